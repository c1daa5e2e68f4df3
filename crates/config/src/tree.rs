//! A TOML document as a tree in which every value remembers where it was written.

use super::count::count;
use super::source::{Diagnostic, Kind, Origin, Sources};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where the value was written.
    pub origin: Origin,
    /// The value.
    pub value: Value,
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A date or time, as it was written.
    Datetime(String),
    Array(Vec<Node>),
    Table(Table),
}

impl Value {
    /// Returns the value as a finite number.
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) if number.is_finite() => Some(*number),
            _ => None,
        }
    }
}

/// The entries of a table by key.
pub type Table = BTreeMap<String, Entry>;

/// An entry of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Where the key was written.
    pub key: Origin,
    /// The value of the entry.
    pub node: Node,
}

impl Node {
    /// Creates an empty table.
    pub const fn empty(origin: Origin) -> Self {
        Self {
            origin,
            value: Value::Table(Table::new()),
        }
    }

    /// Parses a TOML document.
    ///
    /// # Errors
    /// Fails if the text is not valid TOML.
    pub fn parse(
        sources: &mut Sources,
        kind: Kind,
        name: &str,
        text: &str,
    ) -> Result<Self, Diagnostic> {
        let source = sources.add(kind, name, text);
        match DeTable::parse(text) {
            Ok(table) => {
                let span = table.span();
                let value = from_table(source, table.get_ref()).map_err(|(span, message)| {
                    sources.diagnose(&Sources::at(source, span), message)
                })?;
                Ok(Self {
                    origin: Sources::at(source, span),
                    value,
                })
            }
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                Err(sources.diagnose(&Sources::at(source, span), error.message()))
            }
        }
    }

    /// Parses the value of a flag: as a count or TOML if possible, else as a string.
    pub fn parse_flag(sources: &mut Sources, name: &str, text: &str) -> Self {
        let source = sources.add(Kind::Flag, name, text);
        let origin = Sources::at(source, 0..text.len());
        let value = match count(text).map(i64::try_from) {
            Some(Ok(number)) => Some(Self {
                origin: origin.clone(),
                value: Value::Integer(number),
            }),
            _ => DeValue::parse(text)
                .ok()
                .and_then(|value| from_value(source, &value).ok()),
        };
        value.unwrap_or_else(|| Self {
            origin,
            value: Value::String(text.to_owned()),
        })
    }

    /// Creates a tree of the program's own values.
    pub fn from_default(value: &toml::Value) -> Self {
        let origin = Sources::default_origin();
        let value = match value {
            toml::Value::String(text) => Value::String(text.clone()),
            toml::Value::Integer(number) => Value::Integer(*number),
            toml::Value::Float(number) => Value::Float(*number),
            toml::Value::Boolean(truth) => Value::Boolean(*truth),
            toml::Value::Datetime(time) => Value::Datetime(time.to_string()),
            toml::Value::Array(items) => {
                Value::Array(items.iter().map(Self::from_default).collect())
            }
            toml::Value::Table(table) => Value::Table(
                table
                    .iter()
                    .map(|(key, value)| {
                        (
                            key.clone(),
                            Entry {
                                key: origin.clone(),
                                node: Self::from_default(value),
                            },
                        )
                    })
                    .collect(),
            ),
        };
        Self { origin, value }
    }

    /// Returns the value as plain TOML.
    pub fn to_toml(&self) -> toml::Value {
        match &self.value {
            Value::String(text) | Value::Datetime(text) => toml::Value::String(text.clone()),
            Value::Integer(number) => toml::Value::Integer(*number),
            Value::Float(number) => toml::Value::Float(*number),
            Value::Boolean(truth) => toml::Value::Boolean(*truth),
            Value::Array(items) => toml::Value::Array(items.iter().map(Self::to_toml).collect()),
            Value::Table(table) => toml::Value::Table(
                table
                    .iter()
                    .map(|(key, entry)| (key.clone(), entry.node.to_toml()))
                    .collect(),
            ),
        }
    }

    /// Returns the entries, if the node is a table.
    pub const fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Returns the value, if it is a number.
    pub const fn number(&self) -> Option<f64> {
        self.value.number()
    }

    /// Returns the text, if the value is a string.
    pub fn string(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Removes an entry, if the node is a table that has it.
    pub fn take(&mut self, key: &str) -> Option<Entry> {
        match &mut self.value {
            Value::Table(table) => table.remove(key),
            _ => None,
        }
    }

    /// Returns the node under a key of this table, or at an index of this list.
    fn child(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(table) => table.get(key).map(|entry| &entry.node),
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// Returns the node at a dotted path.
    pub fn get(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, Self::child)
    }

    /// Finds all nodes at a dotted path in which `[]` means each item of a list, with their paths below `above`.
    pub fn find<'a>(
        &'a self,
        path: &str,
        above: &mut Vec<String>,
        found: &mut Vec<(Vec<String>, &'a Self)>,
    ) {
        let (name, rest) = path
            .split_once('.')
            .map_or((path, None), |(name, rest)| (name, Some(rest)));
        let (key, each) = name
            .strip_suffix("[]")
            .map_or((name, false), |key| (key, true));
        let Some(child) = self.child(key) else {
            return;
        };
        above.push(key.to_owned());
        let items: Vec<(Option<String>, &Self)> = match &child.value {
            Value::Array(items) if each => {
                let numbered = items.iter().enumerate();
                numbered
                    .map(|(number, item)| (Some(number.to_string()), item))
                    .collect()
            }
            _ if each => Vec::new(),
            _ => vec![(None, child)],
        };
        for (number, item) in items {
            let depth = above.len();
            above.extend(number);
            match rest {
                Some(rest) => item.find(rest, above, found),
                None => found.push((above.clone(), item)),
            }
            above.truncate(depth);
        }
        above.pop();
    }

    /// Returns the node at a dotted path, for changes.
    pub fn get_mut(&mut self, path: &str) -> Option<&mut Self> {
        path.split('.')
            .try_fold(self, |node, key| match &mut node.value {
                Value::Table(table) => table.get_mut(key).map(|entry| &mut entry.node),
                _ => None,
            })
    }

    /// Returns the origin of the node at a dotted path or, if there is none, of the nearest node around it.
    pub fn origin_of(&self, path: &str) -> &Origin {
        let mut node = self;
        for key in path.split('.') {
            let Some(child) = node.child(key) else { break };
            node = child;
        }
        &node.origin
    }

    /// Creates a tree that holds only `leaf`, at a dotted path. The tables on the way get the origin of the leaf.
    pub fn at_path(path: &str, leaf: Self) -> Self {
        path.rsplit('.').fold(leaf, |node, key| {
            let origin = node.origin.clone();
            let entry = Entry {
                key: origin.clone(),
                node,
            };
            Self {
                origin,
                value: Value::Table(Table::from([(key.to_owned(), entry)])),
            }
        })
    }

    /// Overrides this tree with `upper`: tables are joined, other values are replaced. A table whose kind changes is replaced as a whole,
    /// because the keys of one kind mean nothing to another.
    pub fn merge(&mut self, upper: Self) {
        match (&mut self.value, upper.value) {
            (Value::Table(lower), Value::Table(upper_table))
                if !kind_changes(lower, &upper_table) =>
            {
                for (key, entry) in upper_table {
                    match lower.get_mut(&key) {
                        Some(existing) => {
                            existing.key = entry.key;
                            existing.node.merge(entry.node);
                        }
                        None => {
                            lower.insert(key, entry);
                        }
                    }
                }
            }
            (value, upper_value) => {
                *value = upper_value;
                self.origin = upper.origin;
            }
        }
    }

    /// Overrides this tree with a layer of an experiment, like [`merge`](Self::merge). If `upper` has one of several alternative keys, this
    /// tree loses all of them.
    pub fn lay_over(&mut self, upper: Self) {
        for alternatives in ALTERNATIVES {
            let named = |key: &&str| upper.get(&format!("run.{key}")).is_some();
            if !alternatives.iter().any(named) {
                continue;
            }
            if let Some(Value::Table(run)) = self.get_mut("run").map(|run| &mut run.value) {
                run.retain(|key, _| !alternatives.contains(&key.as_str()));
            }
        }
        self.merge(upper);
    }

    /// Turns keys with dots in them, as in `{ "nic.mips" = 600 }`, into tables.
    #[must_use]
    pub fn expand_dots(self) -> Self {
        let Value::Table(table) = self.value else {
            return self;
        };
        let mut expanded = Self::empty(self.origin);
        for (path, Entry { key, node }) in table {
            expanded.merge(Self::at_path(&path, node.expand_dots()).with_keys_at(&path, &key));
        }
        expanded
    }

    /// Sets the origin of all keys along `path`.
    #[must_use]
    pub fn with_keys_at(mut self, path: &str, origin: &Origin) -> Self {
        let mut node = &mut self;
        for part in path.split('.') {
            let Value::Table(table) = &mut node.value else {
                break;
            };
            let Some(entry) = table.get_mut(part) else {
                break;
            };
            entry.key = origin.clone();
            node = &mut entry.node;
        }
        self
    }

    /// Returns the dotted paths of all leaves.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        match &self.value {
            Value::Table(table) => {
                for (key, entry) in table {
                    let path = if prefix.is_empty() {
                        key.clone()
                    } else {
                        format!("{prefix}.{key}")
                    };
                    entry.node.collect_paths(&path, paths);
                }
            }
            _ => paths.push(prefix.to_owned()),
        }
    }
}

/// Alternative keys of `run`: for its length, and for the length of the warm-up.
const ALTERNATIVES: [&[&str]; 2] = [
    &[
        "measured_packets",
        "measured_responses",
        "measured_seconds",
        "measured_passes",
    ],
    &["warmup_packets", "warmup_responses"],
];

/// Keys that specify the kind of a table, and thereby which other keys it may have.
pub const TAGS: [&str; 2] = ["kind", "policy"];

fn kind_changes(lower: &Table, upper: &Table) -> bool {
    TAGS.iter()
        .any(|tag| match (lower.get(*tag), upper.get(*tag)) {
            (Some(lower), Some(upper)) => lower.node.value != upper.node.value,
            _ => false,
        })
}

type Misread = (Range<usize>, String);

fn from_table(source: usize, table: &DeTable<'_>) -> Result<Value, Misread> {
    table
        .iter()
        .map(|(key, value)| {
            let entry = Entry {
                key: Sources::at(source, key.span()),
                node: from_value(source, value)?,
            };
            Ok((key.get_ref().to_string(), entry))
        })
        .collect::<Result<Table, Misread>>()
        .map(Value::Table)
}

fn from_value(source: usize, value: &Spanned<DeValue<'_>>) -> Result<Node, Misread> {
    let span = value.span();
    let value = match value.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => Value::Integer(
            i64::from_str_radix(number.as_str(), number.radix()).map_err(|_| {
                (
                    span.clone(),
                    format!("{number} is out of range; expected a number that fits into 64 bits"),
                )
            })?,
        ),
        DeValue::Float(number) => Value::Float(
            number
                .as_str()
                .parse()
                .map_err(|_| (span.clone(), format!("{number} is not a number")))?,
        ),
        DeValue::Boolean(truth) => Value::Boolean(*truth),
        DeValue::Datetime(time) => Value::Datetime(time.to_string()),
        DeValue::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| from_value(source, item))
                .collect::<Result<_, Misread>>()?,
        ),
        DeValue::Table(table) => from_table(source, table)?,
    };
    Ok(Node {
        origin: Sources::at(source, span),
        value,
    })
}

#[cfg(test)]
mod tests;
