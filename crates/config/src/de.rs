//! Deserialises a [`Node`]. Errors name the key, the value that was found and the values that were expected.

use super::source::Origin;
use super::tree::{Entry, Node, Table, Value};
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor,
};
use std::collections::btree_map;
use std::fmt;

/// An error in a tree, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// The error itself.
    pub wrong: Wrong,
    /// Keys from the root to the value, or to the table that holds the key.
    pub path: Vec<String>,
    /// Where the value or the key was written.
    pub origin: Option<Origin>,
}

/// An error in a value or a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Wrong {
    /// The table has no such key.
    UnknownKey {
        /// The key.
        key: String,
        /// The keys that the table may have.
        known: Vec<&'static str>,
    },
    /// A required key is missing.
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// The value has the wrong type, or is not accepted.
    Value {
        /// The value that was found.
        found: String,
        /// The values that were expected.
        expected: String,
    },
    /// Any other error, in words.
    Other(String),
}

impl Mismatch {
    fn new(wrong: Wrong) -> Self {
        Self {
            wrong,
            path: Vec::new(),
            origin: None,
        }
    }

    /// Returns this error as seen from the table that holds `key`. An error without an origin gets that of the value.
    fn under(mut self, key: &str, entry: &Entry) -> Self {
        self.path.insert(0, key.to_owned());
        if self.origin.is_none() {
            self.origin = Some(match self.culprit(&entry.node) {
                Some((path, origin)) => {
                    self.path.extend(path);
                    origin
                }
                None => entry.node.origin.clone(),
            });
        }
        self
    }

    /// Finds the entry that an error in a tagged table is about, at any depth, by its key or its value. Serde buffers such tables and
    /// reports the error for the whole table. Returns the path to the value, or to the table that holds the key.
    fn culprit(&self, node: &Node) -> Option<(Vec<String>, Origin)> {
        let table = node.table()?;
        let here = match &self.wrong {
            Wrong::UnknownKey { key, .. } => {
                table.get(key).map(|entry| (Vec::new(), entry.key.clone()))
            }
            Wrong::Value { found, .. } => table
                .iter()
                .find(|(_, entry)| describe(&entry.node.value) == *found)
                .map(|(key, entry)| (vec![key.clone()], entry.node.origin.clone())),
            Wrong::MissingKey { .. } | Wrong::Other(_) => None,
        };
        here.or_else(|| {
            table.iter().find_map(|(key, entry)| {
                let (mut path, origin) = self.culprit(&entry.node)?;
                path.insert(0, key.clone());
                Some((path, origin))
            })
        })
    }

    /// Describes the place of the error for somebody who writes TOML.
    fn table(&self) -> String {
        if self.path.is_empty() {
            "an experiment".to_owned()
        } else {
            format!("[{}]", self.path.join("."))
        }
    }

    /// Returns "unknown key ... in ...", without the known keys.
    pub fn unknown_key(&self) -> String {
        match &self.wrong {
            Wrong::UnknownKey { key, .. } => format!("unknown key `{key}` in {}", self.table()),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.join(".");
        match &self.wrong {
            Wrong::UnknownKey { known, .. } => {
                write!(
                    f,
                    "{}; expected one of {}",
                    self.unknown_key(),
                    known.join(", ")
                )
            }
            Wrong::MissingKey { key } => write!(f, "key `{key}` is missing in {}", self.table()),
            Wrong::Value { found, expected } => {
                write!(f, "{path}: found {found}; expected {expected}")
            }
            Wrong::Other(message) => write!(f, "{path}: {message}"),
        }
    }
}

impl std::error::Error for Mismatch {}

impl de::Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Wrong::Other(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Wrong::Value {
            found: describe_unexpected(&found),
            expected: in_words(&expected.to_string()),
        })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let expected = match expected {
            [] => "nothing".to_owned(),
            [one] => format!("{one:?}"),
            several => format!(
                "one of {}",
                several
                    .iter()
                    .map(|v| format!("{v:?}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        };
        Self::new(Wrong::Value {
            found: format!("{variant:?}"),
            expected,
        })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Wrong::UnknownKey {
            key: field.to_owned(),
            known: expected.to_vec(),
        })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Wrong::MissingKey { key: field })
    }
}

/// Translates what serde expects for somebody who writes TOML.
fn in_words(expected: &str) -> String {
    let range = |low: i128, high: u128| format!("a whole number from {low} to {high}");
    match expected {
        "u8" => range(0, u8::MAX.into()),
        "u16" => range(0, u16::MAX.into()),
        "u32" => range(0, u32::MAX.into()),
        // TOML has no larger number.
        "u64" | "usize" => range(0, i64::MAX as u128),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "path string" => "a path in quotes".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("struct ") || other.contains("tagged enum") => {
            "a table".to_owned()
        }
        other => other.to_owned(),
    }
}

fn describe_unexpected(found: &Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(truth) => truth.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => format!("{number:?}"),
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Map => "a table".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Other(other) => (*other).to_owned(),
        other => other.to_string(),
    }
}

/// Describes a value in the words of [`describe_unexpected`].
pub fn describe(value: &Value) -> String {
    describe_unexpected(&match value {
        Value::String(text) => Unexpected::Str(text),
        Value::Integer(number) => Unexpected::Signed(*number),
        Value::Float(number) => Unexpected::Float(*number),
        Value::Boolean(truth) => Unexpected::Bool(*truth),
        Value::Datetime(text) => Unexpected::Other(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Table(_) => Unexpected::Map,
    })
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match &self.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(truth) => visitor.visit_bool(*truth),
            Value::Datetime(text) => {
                Err(de::Error::invalid_type(Unexpected::Other(text), &visitor))
            }
            Value::Array(items) => visitor.visit_seq(de::value::SeqDeserializer::new(items.iter())),
            Value::Table(table) => visitor.visit_map(Entries::new(table)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match &self.value {
            Value::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            Value::Table(table) => {
                visitor.visit_enum(de::value::MapAccessDeserializer::new(Entries::new(table)))
            }
            value => {
                let expected = if variants.is_empty() {
                    name.to_owned()
                } else {
                    quoted(variants)
                };
                Err(Mismatch::new(Wrong::Value {
                    found: describe(value),
                    expected,
                }))
            }
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Mismatch> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn quoted(variants: &[&str]) -> String {
    let list: Vec<String> = variants.iter().map(|v| format!("{v:?}")).collect();
    if let [one] = list.as_slice() {
        one.clone()
    } else {
        format!("one of {}", list.join(", "))
    }
}

/// Hands out the entries of a table and adds their keys to errors.
struct Entries<'de> {
    rest: btree_map::Iter<'de, String, Entry>,
    current: Option<(&'de String, &'de Entry)>,
}

impl<'de> Entries<'de> {
    fn new(table: &'de Table) -> Self {
        Self {
            rest: table.iter(),
            current: None,
        }
    }
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mismatch> {
        self.current = self.rest.next();
        let Some((key, entry)) = self.current else {
            return Ok(None);
        };
        seed.deserialize(Key(key))
            .map(Some)
            .map_err(|mut mismatch| {
                mismatch.origin.get_or_insert_with(|| entry.key.clone());
                mismatch
            })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Mismatch> {
        let (key, entry) = self.current.take().expect("a key comes before its value");
        seed.deserialize(&entry.node)
            .map_err(|mismatch| mismatch.under(key, entry))
    }
}

/// A key. If serde asks for a number (a port), the key is parsed as a number.
struct Key<'de>(&'de str);

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0.parse() {
            Ok(number) => visitor.visit_u16(number),
            Err(_) => visitor.visit_borrowed_str(self.0),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests;
