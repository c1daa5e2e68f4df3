//! One JSON object per line. Fields are found by name; members of nested objects have names with dots. Of a list, the first value is used,
//! as in the headers that Caddy logs.

use super::record::Record;
use super::{Entry, SkipReason};
use crate::log::fields::{Field, FieldMap, push_normal};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt::{self, Write};
use std::ops::Range;

/// Parser state.
pub(in crate::log) struct Json {
    map: FieldMap,
    found: Found,
    /// Buffer for the URL with its query.
    url: Vec<u8>,
    /// Whether any line had a size.
    has_sizes: bool,
}

/// Fields found in a line.
#[derive(Default)]
struct Found {
    /// Names from the outermost object to the current value, separated by dots.
    path: String,
    /// Concatenated values of the fields.
    text: String,
    /// Rank of the name and position of the value of each field.
    places: [Option<(u8, Range<usize>)>; Field::ALL.len()],
}

impl Json {
    pub(super) fn new(map: FieldMap) -> Self {
        Self {
            map,
            found: Found::default(),
            url: Vec::new(),
            has_sizes: false,
        }
    }

    pub(super) const fn has_sizes(&self) -> bool {
        self.has_sizes
    }

    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Entry<'_>, SkipReason> {
        if !line.trim_ascii_start().starts_with(b"{") {
            return Err(SkipReason::NotJson);
        }
        let found = &mut self.found;
        found.path.clear();
        found.text.clear();
        found.places = Default::default();
        let mut json = serde_json::Deserializer::from_slice(line);
        let value = Value {
            map: &self.map,
            found,
        };
        value
            .deserialize(&mut json)
            .and_then(|()| json.end())
            .map_err(|_| SkipReason::NotJson)?;
        let mut record = Record::default();
        for (field, place) in Field::ALL.into_iter().zip(&self.found.places) {
            if let Some((_, range)) = place {
                record.set(field, self.found.text[range.clone()].as_bytes());
            }
        }
        let entry = record.entry(record.time_us(), &mut self.url)?;
        self.has_sizes |= entry.bytes.is_some();
        Ok(entry)
    }
}

impl Found {
    /// Stores a value at the current path if its name is the best one for a field so far.
    fn take(&mut self, map: &FieldMap, value: impl fmt::Display) {
        let Some((field, rank)) = map.find(&self.path) else {
            return;
        };
        let place = &mut self.places[field as usize];
        if place.as_ref().is_none_or(|(best, _)| rank < *best) {
            let start = self.text.len();
            // Writing to a string does not fail.
            let _ = write!(self.text, "{value}");
            *place = Some((rank, start..self.text.len()));
        }
    }
}

/// A value at any depth of the object.
struct Value<'m> {
    map: &'m FieldMap,
    found: &'m mut Found,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.found.take(self.map, value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.found.take(self.map, value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.found.take(self.map, value);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.found.take(self.map, value);
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if list.next_element_seed(self)?.is_some() {
            while list.next_element::<IgnoredAny>()?.is_some() {}
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { map: names, found } = self;
        let here = found.path.len();
        while map.next_key_seed(Key(&mut found.path))?.is_some() {
            let value = Value { map: names, found };
            map.next_value_seed(value)?;
            found.path.truncate(here);
        }
        Ok(())
    }
}

/// Appends a key to the path.
struct Key<'p>(&'p mut String);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<(), E> {
        if !self.0.is_empty() {
            self.0.push('.');
        }
        push_normal(self.0, key);
        Ok(())
    }
}
