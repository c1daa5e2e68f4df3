//! A page of Markdown: its commands, what it says that they print, the files it has a reader write, and what it points to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Beginnings of what is not run, which say why.
const REASONS: [&str; 3] = ["# As root", "# Takes ", "# Needs "];

/// What is in a command that writes a file.
const WRITES: [&str; 5] = [">", "--figure", "--json", "--out", "--pcap"];

/// A page.
pub struct Page {
    pub path: PathBuf,
    /// The path within the repository.
    pub name: String,
    pub blocks: Vec<Block>,
    text: String,
}

/// What stands above a table of numbers that commands have printed.
const PRINTED: &str = "<!-- printed -->";

/// A block that a reader does something with, or compares.
#[derive(Clone)]
pub enum Block {
    /// `sh`: lines for a shell.
    Commands(String),
    /// `toml` that begins with the name of a file, as in `# mine.toml`: the file's content.
    File { name: String, text: String },
    /// `text`: it is in what the commands above print.
    Printed(String),
    /// A table's rows: their numbers stand on a line of what the commands above print, in this order.
    Rows(Vec<String>),
}

impl Page {
    pub fn read(root: &Path, path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).expect("a page");
        let name = path.strip_prefix(root).expect("a path in the repository");
        Self {
            name: name.display().to_string(),
            blocks: blocks(&text),
            text,
            path,
        }
    }

    /// Files that the page points to, without anchors.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        let targets = self.text.split("](").skip(1);
        let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
        let files = targets.filter_map(|target| target.split('#').next());
        files.filter(|file| !file.is_empty() && !file.contains("://"))
    }

    /// Of these, the ones that are not there.
    pub fn dead_links(&self) -> Vec<String> {
        let folder = self.path.parent().expect("a folder");
        let dead = self.links().filter(|file| !folder.join(file).exists());
        dead.map(|file| format!("{}: {file} is not there", self.name))
            .collect()
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == PRINTED {
            let table = lines.by_ref().take_while(|line| line.starts_with('|'));
            let rows: Vec<String> = table.skip(2).map(str::to_owned).collect();
            assert!(!rows.is_empty(), "a table stands below {PRINTED}");
            blocks.push(Block::Rows(rows));
        }
        let Some(language) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        let inside = lines.by_ref().take_while(|line| line.trim_start() != "```");
        let text: String = inside
            .map(|line| format!("{}\n", line.trim_end()))
            .collect();
        let named = text
            .lines()
            .next()
            .and_then(|first| first.strip_prefix("# "));
        match language {
            "sh" => blocks.push(Block::Commands(text)),
            "text" => blocks.push(Block::Printed(text)),
            "toml" => blocks.extend(named.filter(|name| name.ends_with(".toml")).map(|name| {
                let name = name.to_owned();
                Block::File {
                    name,
                    text: text.clone(),
                }
            })),
            _ => {}
        }
    }
    blocks
}

impl Block {
    /// Why a test does not run it.
    pub fn reason(&self) -> Option<&str> {
        let Self::Commands(text) = self else {
            return None;
        };
        let first = text.lines().next()?;
        let told = REASONS.iter().any(|reason| first.starts_with(reason));
        let builds = !self.has_commands() && text.lines().any(is_build);
        match told {
            true => Some(first.trim_start_matches("# ").trim_end_matches(':')),
            false if builds => Some("a build or the tests themselves"),
            false => None,
        }
    }

    /// Leaves out commands that were seen before and write nothing.
    pub fn without(&self, seen: &mut BTreeSet<String>) -> Self {
        let Self::Commands(text) = self else {
            return self.clone();
        };
        let mut is_new = |line: &&str| {
            let command = line.split("  #").next().unwrap_or_default().trim_end();
            let command = command.replace("cargo run --release --", "baton");
            let writes = WRITES.iter().any(|how| command.contains(how));
            seen.insert(command) || writes
        };
        let lines = text.lines().filter(|line| is_new(line));
        Self::Commands(lines.map(|line| format!("{line}\n")).collect())
    }

    pub fn first_command(&self) -> &str {
        let Self::Commands(text) = self else {
            return "";
        };
        let mut commands = text.lines().filter(|line| !line.starts_with('#'));
        commands.next().unwrap_or_default()
    }

    /// Whether there is anything to run.
    pub fn has_commands(&self) -> bool {
        match self {
            Self::Commands(_) => !self.script().is_empty(),
            _ => false,
        }
    }

    /// What of it the commands above should have printed, and have not.
    pub fn unprinted(&self, printed: &str) -> Option<&str> {
        match self {
            Self::Printed(text) => (!printed.contains(text)).then_some(text),
            Self::Rows(rows) => {
                let mut rows = rows.iter().map(String::as_str);
                rows.find(|row| !is_printed(row, printed))
            }
            Self::Commands(_) | Self::File { .. } => None,
        }
    }

    /// What a shell is to run: `baton` is in its path, and built already.
    pub fn script(&self) -> String {
        let Self::Commands(text) = self else {
            return String::new();
        };
        let text = text.replace("cargo run --release --", "baton");
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !is_build(line));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

/// Whether a page's row, but for its name, has numbers that stand on a line of `printed` in the same order.
fn is_printed(row: &str, printed: &str) -> bool {
    let (_, cells) = row[1..].split_once('|').unwrap_or_default();
    printed.lines().any(|line| {
        let mut on_line = numbers(line);
        numbers(cells).all(|number| on_line.any(|other| other == number))
    })
}

fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != ',' && c != '.');
    words.filter(|word| word.contains(|c: char| c.is_ascii_digit()))
}

/// Whether a line builds, or tests what has been built.
fn is_build(line: &str) -> bool {
    [
        "cargo build",
        "cargo test",
        "cargo install",
        "./check",
        "./e2e",
        "mdbook",
        "git ",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}
