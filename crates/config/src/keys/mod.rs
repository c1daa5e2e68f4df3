//! All keys of an experiment: what each means and what it may be, as the configuration structs say it in doc comments and attributes.
//!
//! There is no second list: [`schemars`] makes a schema of the configuration, and [`all`] reads that.

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
    /// Tables and name, with dots between; `[]` stands for each table of a list.
    pub path: String,
    /// The key exists only where this is so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only_where: Vec<Choice>,
    /// What it says.
    pub meaning: String,
    /// What it may be.
    pub value: Allowed,
    /// What it is counted in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Its value where nobody says another; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<toml::Value>,
    /// Whether its table needs it.
    pub required: bool,
}

/// That another key has one of these values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The other key.
    pub path: String,
    /// Its values.
    pub values: Vec<String>,
}

/// What a key may be.
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
    /// What it stands for.
    pub meaning: String,
}

/// What the doc comments of an enum say of each of its names.
pub fn meanings_of<T: JsonSchema>() -> Vec<Named> {
    schema::names(schemars::schema_for!(T).as_value())
}

/// The names that the value of a key may have; none if it is not one of several names.
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

/// All keys, in the order of their paths.
pub fn all() -> &'static [Key] {
    static KEYS: OnceLock<Vec<Key>> = OnceLock::new();
    KEYS.get_or_init(schema::keys)
}
