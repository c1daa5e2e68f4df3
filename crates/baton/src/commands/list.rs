//! `baton list`: lists everything that has a name. The names come from their definitions.

use crate::cli::{Described, Group, ListArgs};
use crate::commands::{load, reproduce, run};
use crate::config::keys::{self, Allowed, Key, Named};
use crate::config::shipped::{EXPERIMENTS, HOSTS, NICS, PROFILES, Shipped};
use crate::failure::Failure;
use crate::output::{print, print_text, to_json};
use baton_report::{width, wrapped};
use baton_sim::results::VERSION;
use baton_study::table::metrics;
use baton_workload::Preset;
use baton_workload::log::Format;
use clap::ValueEnum;
use schemars::{Schema, schema_for};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Something that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// Description.
    pub about: String,
    /// For a policy, the keys that it may be the value of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

impl Entry {
    fn new(name: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            about: about.into(),
            keys: Vec::new(),
        }
    }
}

/// Returns all entries of a group.
pub fn entries(group: Group) -> Vec<Entry> {
    let shipped = |all: &[Shipped]| {
        let entry = |one: &Shipped| Entry::new(one.name, one.about());
        all.iter().map(entry).collect()
    };
    match group {
        Group::Experiments => shipped(EXPERIMENTS),
        Group::Profiles => shipped(PROFILES),
        Group::Nics => shipped(NICS),
        Group::Hosts => shipped(HOSTS),
        Group::Presets => presets(),
        Group::Policies => policies(),
        Group::Formats => Format::ALL
            .map(|format| Entry::new(format.name(), format.example()))
            .into(),
        Group::Reproductions => {
            let all = reproduce::ALL.iter();
            all.map(|one| Entry::new(one.name, one.about)).collect()
        }
        Group::Columns => {
            let all = metrics::ALL.iter();
            all.map(|one| Entry::new(one.name, one.meaning)).collect()
        }
    }
}

/// Returns the generated logs, with their doc comments.
fn presets() -> Vec<Entry> {
    let about = |preset: Preset| {
        let text = keys::meanings_of::<Preset>();
        let named = text.into_iter().find(|named| named.name == preset.name());
        named.map_or(String::new(), |named| named.meaning)
    };
    Preset::ALL
        .map(|preset| Entry::new(preset.name(), about(preset)))
        .into()
}

/// Returns the names that values of keys may have: once for all keys with the same names.
fn policies() -> Vec<Entry> {
    let keys = keys::all().iter().filter_map(|key| match &key.value {
        Allowed::OneOf(names) => Some((key, names)),
        _ => None,
    });
    let mut all: Vec<(&Vec<Named>, Vec<&Key>)> = Vec::new();
    for (key, names) in keys {
        match all.iter_mut().find(|(known, _)| *known == names) {
            Some((_, keys)) => keys.push(key),
            None => all.push((names, vec![key])),
        }
    }
    let entries = all.into_iter().flat_map(|(names, keys)| {
        names.iter().map(move |named| Entry {
            name: named.name.clone(),
            about: named.meaning.clone(),
            keys: keys.iter().map(|key| key.path.clone()).collect(),
        })
    });
    entries.collect()
}

/// Runs the command.
///
/// # Errors
/// Fails if stdout cannot be written.
pub fn execute(arguments: &ListArgs) -> Result<(), Failure> {
    if let Some(command) = arguments.schema {
        return print(&to_json(&schema(command))?);
    }
    let groups = match arguments.group {
        Some(group) => vec![group],
        None => Group::value_variants().to_vec(),
    };
    let of_group = |group: &Group| (name(*group), entries(*group));
    let all: BTreeMap<String, Vec<Entry>> = groups.iter().map(of_group).collect();
    if arguments.json {
        return print(&to_json(&all)?);
    }
    let texts: Vec<String> = match arguments.group {
        Some(group) => vec![text(group)],
        None => groups.iter().map(|group| names(*group)).collect(),
    };
    print_text(&texts.join("\n"))
}

/// Returns the schema of a command's JSON, with the version of its results.
fn schema(command: Described) -> Schema {
    let (name, mut schema) = match command {
        Described::Run => ("run", schema_for!(run::Document<'_>)),
        Described::Load => ("load", schema_for!(load::Document<'_>)),
    };
    let title = format!("Output of `baton {name} --json`, version {VERSION}");
    schema.insert("title".to_owned(), title.into());
    schema.insert("$id".to_owned(), format!("baton-{name}-v{VERSION}").into());
    schema
}

/// Returns the names of a group, and how to see what they mean.
fn names(group: Group) -> String {
    let mut seen = BTreeSet::new();
    let names = entries(group).into_iter().map(|entry| entry.name);
    let names: Vec<String> = names.filter(|name| seen.insert(name.clone())).collect();
    let name = name(group);
    let head = format!(
        "{} (baton list {name} describes them): ",
        capitalised(&name)
    );
    wrapped(&(head + &names.join(", ")), width(), 2)
}

fn name(group: Group) -> String {
    let value = group.to_possible_value().expect("no group is hidden");
    value.get_name().to_owned()
}

/// Minimum width of a description next to its name, columns; if less is left, the description goes below the name.
const LEAST_BESIDE: usize = 40;

fn text(group: Group) -> String {
    let value = group.to_possible_value().expect("no group is hidden");
    let about = value
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let entries = entries(group);
    let widest = entries
        .iter()
        .map(|entry| entry.name.len())
        .max()
        .unwrap_or(0);
    let mut text = format!("{} ({about}):\n", capitalised(value.get_name()));
    let mut keys: &[String] = &[];
    for entry in &entries {
        if entry.keys != keys {
            keys = &entry.keys;
            text.push_str(&wrapped(&keys.join(", "), width() - 2, 2).replacen("", "  ", 1));
        }
        let indent = if keys.is_empty() { 2 } else { 4 };
        let name = format!("{:indent$}{:widest$}  ", "", entry.name);
        let beside = name.len() + LEAST_BESIDE <= width();
        let column = if beside { name.len() } else { indent + 4 };
        // `wrapped` treats blanks as gaps between words.
        let about = wrapped(&entry.about, width() - column, 0);
        let next = format!("\n{:column$}", "");
        let about = about.trim_end().replace('\n', &next);
        match beside {
            true => text.push_str(&format!("{name}{about}\n")),
            false => text.push_str(&format!("{}{next}{about}\n", name.trim_end())),
        }
    }
    text
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_unique_name_and_a_description() {
        for group in Group::value_variants() {
            let entries = entries(*group);
            assert!(entries.len() >= 3, "{group:?}");
            for entry in &entries {
                assert!(!entry.about.is_empty(), "{group:?}: {}", entry.name);
                let same = |other: &&Entry| other.name == entry.name && other.keys == entry.keys;
                assert_eq!(entries.iter().filter(same).count(), 1, "{}", entry.name);
            }
        }
    }
}
