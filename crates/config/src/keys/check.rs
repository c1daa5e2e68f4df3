//! Finds numbers that their keys do not allow, and keys of kinds that were not chosen.

use super::{Allowed, Key, all, names_of};
use crate::de::{Mismatch, Wrong, describe};
use crate::tree::{Node, Value};

/// Tables with the same keys: a kind of NIC in `nics` overrides values of `nic` and `offload.adapter`.
const SECOND_PLACES: [(&str, &str); 2] =
    [("nic.", "nics[]."), ("offload.adapter.", "nics[].adapter.")];

/// Finds the first number in an experiment that its key does not allow.
pub fn out_of_range(tree: &Node) -> Option<Mismatch> {
    all().iter().find_map(|key| {
        let again = SECOND_PLACES.iter().filter_map(|(general, own)| {
            let rest = key.path.strip_prefix(general)?;
            Some(format!("{own}{rest}"))
        });
        std::iter::once(key.path.clone())
            .chain(again)
            .find_map(|path| wrong(tree, key, &path))
    })
}

fn wrong(tree: &Node, key: &Key, path: &str) -> Option<Mismatch> {
    let Allowed::Number(range) = &key.value else {
        return None;
    };
    let exists = key.only_where.iter().all(|choice| {
        let name = tree.get(&choice.path).and_then(Node::string);
        name.is_some_and(|name| choice.values.iter().any(|value| value == name))
    });
    let mut found = Vec::new();
    if exists {
        tree.find(path, &mut Vec::new(), &mut found);
    }
    let tables = format!("{}[]", key.path);
    let has_another_form = || all().iter().any(|other| other.path.starts_with(&tables));
    let is_wrong = |node: &&Node| match node.value {
        Value::Integer(number) => !range.contains(number as f64),
        Value::Float(number) => range.whole || !range.contains(number),
        // A key that may also be a list of tables is checked by the code that reads it.
        _ => !has_another_form(),
    };
    let (path, node) = found.into_iter().find(|(_, node)| is_wrong(node))?;
    Some(Mismatch {
        wrong: Wrong::Value {
            found: describe(&node.value),
            expected: range.expected(),
        },
        path,
        origin: Some(node.origin.clone()),
    })
}

/// Finds the first key that does not belong to the chosen kind of its table. The code that reads tables would accept any key for a kind
/// that has none.
pub fn of_another_kind(tree: &Node) -> Option<Mismatch> {
    let choices = all().iter().flat_map(|key| &key.only_where);
    let mut tags: Vec<(&str, &str)> = choices
        .filter_map(|choice| choice.path.rsplit_once('.'))
        .collect();
    tags.sort_unstable();
    tags.dedup();
    tags.into_iter().find_map(|(table, tag)| {
        let node = tree.get(table)?;
        let kind = node.get(tag)?.string()?;
        let tag_path = format!("{table}.{tag}");
        // The code that reads the table reports an unknown kind.
        names_of(&tag_path)
            .iter()
            .find(|named| named.name == kind)?;
        let entries = node.table()?.iter();
        let mut others = entries.filter(|(name, _)| *name != tag);
        others.find_map(|(name, entry)| {
            let path = format!("{table}.{name}");
            let kinds = kinds_with(&path, &tag_path);
            if kinds.iter().any(|known| known == kind) {
                return None;
            }
            let mut path: Vec<String> = path.split('.').map(str::to_owned).collect();
            let wrong = match kinds.as_slice() {
                [] => {
                    let key = path.pop()?;
                    let known = names_in(table);
                    Wrong::UnknownKey { key, known }
                }
                kinds => Wrong::Other(format!(
                    "is allowed only with {tag} = {}; found {tag} = {kind:?}",
                    quoted(kinds)
                )),
            };
            Some(Mismatch {
                wrong,
                path,
                origin: Some(entry.key.clone()),
            })
        })
    })
}

/// Returns the names of all keys in a table, of any kind.
fn names_in(table: &str) -> Vec<&'static str> {
    let inside = all().iter().filter_map(|key| {
        let rest = key.path.strip_prefix(table)?.strip_prefix('.')?;
        rest.split(['.', '[']).next()
    });
    let mut names: Vec<&str> = inside.collect();
    names.dedup();
    names
}

/// Returns the kinds of a table that have a key.
fn kinds_with(path: &str, tag: &str) -> Vec<String> {
    let is_there = |key: &&Key| {
        let rest = key.path.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let choices = all()
        .iter()
        .filter(is_there)
        .flat_map(|key| &key.only_where);
    let mut kinds: Vec<String> = choices
        .filter(|choice| choice.path == tag)
        .flat_map(|choice| choice.values.clone())
        .collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(" or ")
}
