//! Values of keys in profiles, and the comments that name their sources.

use crate::shipped::{PROFILES, Shipped};
use crate::source::{Kind, Sources};
use crate::tree::{Entry, Node, Table};
use serde::Serialize;

/// A value that a profile sets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stated {
    /// The key.
    #[serde(skip)]
    pub path: String,
    /// The profile.
    pub profile: &'static str,
    /// The value.
    pub value: toml::Value,
    /// Source of the value: the comment on its line, else that of its table, else the note for all values at the head of the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Returns the values of all profiles that are part of the program.
pub fn stated() -> Vec<Stated> {
    let mut all = Vec::new();
    for &Shipped {
        name: profile,
        text,
    } in PROFILES
    {
        let mut sources = Sources::new();
        let Ok(tree) = Node::parse(&mut sources, Kind::Profile, profile, text) else {
            // This cannot happen, because a test reads all profiles.
            continue;
        };
        let mut reader = Reader {
            profile,
            text,
            of_all: of_all(text),
            sources: &sources,
            all: &mut all,
        };
        if let Some(table) = tree.table() {
            reader.read(table, "", None);
        }
    }
    all
}

/// Returns the source that the head of a profile names for values without a source of their own.
fn of_all(text: &str) -> Option<&'static str> {
    let head = text.lines().take_while(|line| line.starts_with('#'));
    let said = head
        .map(|line| line.trim_start_matches('#'))
        .collect::<String>();
    said.contains("*assumed* unless").then_some("*assumed*")
}

struct Reader<'a> {
    profile: &'static str,
    text: &'static str,
    of_all: Option<&'static str>,
    sources: &'a Sources,
    all: &'a mut Vec<Stated>,
}

impl Reader<'_> {
    fn read(&mut self, table: &Table, above: &str, of_table: Option<&str>) {
        for (name, entry) in table {
            let path = match above {
                "" => name.clone(),
                above => format!("{above}.{name}"),
            };
            match entry.node.table() {
                Some(table) => {
                    let said = self.beside(entry);
                    self.read(table, &path, said.as_deref());
                }
                None => {
                    let beside = self.beside(entry);
                    let source = beside.as_deref().or(of_table).or(self.of_all);
                    self.all.push(Stated {
                        path,
                        profile: self.profile,
                        value: entry.node.to_toml(),
                        source: source.map(str::to_owned),
                    });
                }
            }
        }
    }

    /// Returns the comment on the line of a key, with its continuation on the lines below.
    fn beside(&self, entry: &Entry) -> Option<String> {
        let start = self.sources.start(&entry.key);
        let mut lines = self.text.get(start..)?.lines();
        let mut comment = comment(lines.next()?)?.to_owned();
        for line in lines {
            // A separate comment begins at the start of a line.
            let Some(more) = line
                .strip_prefix(' ')
                .and_then(|line| line.trim().strip_prefix('#'))
            else {
                break;
            };
            comment.push(' ');
            comment.push_str(more.trim());
        }
        Some(comment)
    }
}

/// Returns the comment at the end of a line of TOML.
fn comment(line: &str) -> Option<&str> {
    let mut quoted = false;
    let start = line.char_indices().find(|&(_, letter)| {
        quoted ^= letter == '"';
        letter == '#' && !quoted
    })?;
    Some(line[start.0 + 1..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(profile: &str, path: &str) -> Option<String> {
        let stated = stated();
        let found = stated
            .iter()
            .find(|one| one.profile == profile && one.path == path);
        found.expect("the profile says it").source.clone()
    }

    #[test]
    fn the_source_of_a_value_is_the_comment_next_to_it_or_its_table() {
        assert_eq!(
            source("dcache-2002", "nic.dma.read_setup_ns").as_deref(),
            Some("*fitted*: throughput of the NASA and Rice traces, where the bus is saturated")
        );
        assert_eq!(
            source("handoff-2006", "host.l1.ways").as_deref(),
            Some("Table 2")
        );
        let nagle = source("dcache-2002", "tcp.nagle").expect("a source");
        assert!(
            nagle.ends_with("section 5.2 mentions \"other generally applicable optimizations\""),
            "{nagle}"
        );
        assert_eq!(
            source("dcache-modern", "nic.dma.reads_in_flight").as_deref(),
            Some("*assumed*")
        );
    }

    #[test]
    fn a_hash_in_quotes_begins_no_comment() {
        assert_eq!(comment("a = \"#1\"  # one"), Some("one"));
        assert_eq!(comment("a = 1"), None);
    }
}
