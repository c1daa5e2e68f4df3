//! All keys of an experiment, with their meanings and accepted values, from the doc comments and attributes of the configuration structs.
//!
//! There is no second list: [`schemars`] derives a schema from the configuration, and [`all`] reads the schema.

mod check;
mod effect;
mod range;
mod schema;
mod stated;
#[cfg(test)]
mod tests;

pub(super) use check::{of_another_kind, out_of_range};
pub(super) use effect::without_effect;
pub use effect::{Condition, needs_of};
pub use range::Range;
pub use stated::{Stated, stated};

use schemars::JsonSchema;
use serde::Serialize;
use std::sync::OnceLock;

/// A key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Key {
    /// Tables and name, separated by dots; `[]` stands for each table of a list.
    pub path: String,
    /// Conditions under which the key exists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only_where: Vec<Choice>,
    /// Meaning of the key.
    pub meaning: String,
    /// Accepted values.
    pub value: Allowed,
    /// Unit of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Default value, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<toml::Value>,
    /// Whether the key must be present in its table.
    pub required: bool,
}

/// Requires that another key has one of these values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The other key.
    pub path: String,
    /// The values of which it must have one.
    pub values: Vec<String>,
}

/// Accepted values of a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allowed {
    /// A number.
    Number(Range),
    /// True or false.
    Boolean,
    /// Any text.
    Text,
    /// One of several names.
    OneOf(Vec<Named>),
    /// A table with one of several keys.
    TableOf(Vec<Named>),
    /// A table, or nothing.
    Table,
    /// A list.
    List,
}

/// A name that a value may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Meaning of the name.
    pub meaning: String,
}

/// Returns the names of an enum's variants, with their doc comments.
pub fn meanings_of<T: JsonSchema>() -> Vec<Named> {
    schema::names(schemars::schema_for!(T).as_value())
}

/// Returns the names that the value of a key may have; empty if values are not names.
pub fn names_of(path: &str) -> &'static [Named] {
    match all()
        .iter()
        .find(|key| key.path == path)
        .map(|key| &key.value)
    {
        Some(Allowed::OneOf(names)) => names,
        _ => &[],
    }
}

/// Returns all keys, sorted by path.
pub fn all() -> &'static [Key] {
    static KEYS: OnceLock<Vec<Key>> = OnceLock::new();
    KEYS.get_or_init(schema::keys)
}
