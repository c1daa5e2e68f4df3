//! One JSON object per line. Fields are found by name; members of nested objects have names with dots. Of a list, the first value is used,
//! as in the headers that Caddy logs. `\x22`, which nginx writes without `escape=json`, is read as the byte of that number.

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
    /// Buffer for a line whose escapes are replaced.
    escaped: Vec<u8>,
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
    pub(in crate::log) fn new(map: FieldMap) -> Self {
        Self {
            map,
            found: Found::default(),
            url: Vec::new(),
            escaped: Vec::new(),
            has_sizes: false,
        }
    }

    pub(super) const fn has_sizes(&self) -> bool {
        self.has_sizes
    }

    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Entry<'_>, SkipReason> {
        self.read(line)?;
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

    /// Returns the text of the field that holds a line in another format.
    pub(in crate::log) fn line(&mut self, line: &[u8]) -> Option<&[u8]> {
        self.read(line).ok()?;
        let place = self.found.places[Field::Line as usize].as_ref();
        place.map(|(_, range)| self.found.text[range.clone()].trim_end().as_bytes())
    }

    /// Finds the fields of a line.
    fn read(&mut self, line: &[u8]) -> Result<(), SkipReason> {
        if !line.trim_ascii_start().starts_with(b"{") {
            return Err(SkipReason::NotJson);
        }
        let mut read = self.found.read(&self.map, line);
        if read.is_err() && memchr::memmem::find(line, br"\x").is_some() {
            unescape(line, &mut self.escaped);
            read = self.found.read(&self.map, &self.escaped);
        }
        read.map_err(|_| SkipReason::NotJson)
    }
}

/// Replaces `\x22` by `\u0022`.
fn unescape(line: &[u8], text: &mut Vec<u8>) {
    text.clear();
    let mut rest = line;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (before, after) = rest.split_at((at + 2).min(rest.len()));
        match before.strip_suffix(b"x") {
            Some(before) => {
                text.extend_from_slice(before);
                text.extend_from_slice(b"u00");
            }
            None => text.extend_from_slice(before),
        }
        rest = after;
    }
    text.extend_from_slice(rest);
}

impl Found {
    fn read(&mut self, map: &FieldMap, line: &[u8]) -> serde_json::Result<()> {
        self.path.clear();
        self.text.clear();
        self.places = Default::default();
        let mut json = serde_json::Deserializer::from_slice(line);
        let value = Value { map, found: self };
        value.deserialize(&mut json)?;
        json.end()
    }

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
