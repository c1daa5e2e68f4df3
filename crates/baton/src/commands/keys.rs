//! `baton keys`: lists the keys that can be set.

use crate::cli::KeysArgs;
use crate::config::keys::{self, Allowed, Condition, Key, Stated};
use crate::config::suggest;
use crate::failure::Failure;
use crate::output::{print, print_text, to_json};
use baton_report::{width, wrapped};
use serde::Serialize;
use std::fmt::Write as _;

/// A key with all information about it.
#[derive(Debug, Serialize)]
struct Described<'a> {
    #[serde(flatten)]
    key: &'a Key,
    /// Conditions for the key to have an effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<&'static Condition>,
    /// Values in profiles, with their sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profiles: Vec<&'a Stated>,
}

/// Runs the command.
///
/// # Errors
/// Fails if no key has the prefix, or if stdout cannot be written.
pub fn execute(arguments: &KeysArgs) -> Result<(), Failure> {
    let prefix = arguments.prefix.as_deref().unwrap_or_default();
    let stated = keys::stated();
    let describe = |key: &'static Key| Described {
        key,
        needs: keys::needs_of(&key.path)
            .filter(|condition| condition.path != key.path)
            .collect(),
        profiles: stated.iter().filter(|one| one.path == key.path).collect(),
    };
    let found = keys::all()
        .iter()
        .filter(|key| key.path.starts_with(prefix));
    let found: Vec<Described<'_>> = found.map(describe).collect();
    if found.is_empty() {
        return Err(unknown(prefix));
    }
    if arguments.json {
        return print(&to_json(&found)?);
    }
    let texts: Vec<String> = found.iter().map(text).collect();
    print_text(&texts.join("\n"))
}

fn unknown(prefix: &str) -> Failure {
    let last = |path: &'static str| path.rsplit('.').next().unwrap_or(path);
    let paths = || keys::all().iter().map(|key| key.path.as_str());
    let same_name = || paths().find(|path| last(path) == prefix);
    let meant = same_name().or_else(|| suggest::name(prefix, paths()));
    let meant = meant.map_or(String::new(), |meant| format!(" did you mean `{meant}`?"));
    Failure::BadInput(format!(
        "keys {prefix}: no key begins with this;{meant} `baton keys` lists all keys"
    ))
}

const INDENT: usize = 4;

fn text(described: &Described<'_>) -> String {
    let Described {
        key,
        needs,
        profiles,
    } = described;
    let mut text = format!("{}\n", key.path);
    let mut say = |line: &str| {
        let hanging = if line.starts_with("- ") { 2 } else { 0 };
        let lines = wrapped(line, width() - INDENT, hanging);
        for line in lines.lines() {
            writeln!(text, "{:INDENT$}{line}", "").expect("writing to a string does not fail");
        }
    };
    say(&key.meaning);
    say(&format!("{}; {}", allowed(key), default(key)));
    if let Allowed::OneOf(names) | Allowed::TableOf(names) = &key.value {
        for named in names {
            say(&format!("- {}: {}", named.name, named.meaning));
        }
    }
    for choice in &key.only_where {
        say(&format!(
            "only where {} is {}",
            choice.path,
            choice.values.join(" or ")
        ));
    }
    if !needs.is_empty() {
        let conditions: Vec<String> = needs.iter().map(ToString::to_string).collect();
        say(&format!("without effect unless {}", conditions.join(", ")));
    }
    for stated in profiles {
        let source = stated
            .source
            .as_ref()
            .map_or(String::new(), |source| format!(": {source}"));
        say(&format!("{} = {}{source}", stated.profile, stated.value));
    }
    text
}

fn allowed(key: &Key) -> String {
    let unit = key
        .unit
        .as_ref()
        .map_or(String::new(), |unit| format!(" {unit}"));
    match &key.value {
        Allowed::Number(range) => format!("{range}{unit}"),
        Allowed::Boolean => "true or false".to_owned(),
        Allowed::Text => "text".to_owned(),
        Allowed::OneOf(_) => "one of the names below".to_owned(),
        Allowed::TableOf(_) => "a table with one of the keys below".to_owned(),
        Allowed::Table => "a table".to_owned(),
        Allowed::List => "a list".to_owned(),
    }
}

fn default(key: &Key) -> String {
    match (&key.default, key.required) {
        (Some(value), _) => format!("default {value}"),
        (None, true) => "required".to_owned(),
        (None, false) => "not set by default".to_owned(),
    }
}
