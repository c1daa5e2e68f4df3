//! Reads the keys from the schema of the configuration structs.

use super::{Allowed, Choice, Key, Named, Range};
use crate::tree::TAGS;
use baton_sim::config::Experiment;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Returns all keys.
pub(super) fn keys() -> Vec<Key> {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings
        .into_generator()
        .into_root_schema_for::<Experiment>();
    let defaults = toml::Value::try_from(Experiment::default()).expect("defaults are TOML");
    let mut reader = Reader {
        defaults,
        keys: Vec::new(),
    };
    reader.read(schema.as_value(), &Place::default());
    reader.keys.sort_by(|a, b| a.path.cmp(&b.path));
    reader.keys
}

/// Position of the reader in the schema.
#[derive(Clone, Default)]
struct Place {
    path: String,
    only_where: Vec<Choice>,
    /// Meaning from the levels above, for a schema without a doc comment.
    meaning: Option<String>,
    unit: Option<String>,
    required: bool,
    optional: bool,
}

impl Place {
    /// Returns the place of a key of this table.
    fn key(&self, name: &str, table: &Value) -> Self {
        let required = table.get("required").and_then(Value::as_array);
        Self {
            path: match self.path.as_str() {
                "" => name.to_owned(),
                path => format!("{path}.{name}"),
            },
            only_where: self.only_where.clone(),
            meaning: None,
            unit: text(table, "x-unit"),
            required: required.is_some_and(|names| names.iter().any(|one| one == name)),
            optional: false,
        }
    }

    /// Returns this place with the additional condition that the key `tag` of the table is `name`.
    fn where_is(&self, tag: &str, name: &str) -> Self {
        let mut place = self.clone();
        place.only_where.push(Choice {
            path: format!("{}.{tag}", self.path),
            values: vec![name.to_owned()],
        });
        place
    }
}

struct Reader {
    defaults: toml::Value,
    keys: Vec<Key>,
}

impl Reader {
    fn read(&mut self, schema: &Value, place: &Place) {
        let mut place = place.clone();
        place.meaning = place.meaning.or_else(|| meaning(schema));
        place.optional |= is_type(schema, "null");
        if schema.get("x-differs-from").is_some() {
            return self.add(schema, &place, Allowed::Table);
        }
        if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
            return self.read_variants(schema, variants, &place);
        }
        if let Some(variants) = schema.get("anyOf").and_then(Value::as_array) {
            let (nothing, some): (Vec<&Value>, Vec<&Value>) = variants
                .iter()
                .partition(|variant| variant.get("type").is_some_and(|kind| kind == "null"));
            place.optional |= !nothing.is_empty();
            return some
                .into_iter()
                .for_each(|variant| self.read(variant, &place));
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            if place.optional {
                self.add(schema, &place, Allowed::Table);
            }
            for (name, property) in properties {
                self.read(property, &place.key(name, schema));
            }
        } else if is_type(schema, "array") {
            self.read_list(schema, place);
        } else {
            let value = match schema {
                _ if is_type(schema, "integer") => Allowed::Number(Range::of(schema, true)),
                _ if is_type(schema, "number") => Allowed::Number(Range::of(schema, false)),
                _ if is_type(schema, "boolean") => Allowed::Boolean,
                _ if is_type(schema, "string") => Allowed::Text,
                _ => Allowed::Table,
            };
            self.add(schema, &place, value);
        }
    }

    fn read_list(&mut self, schema: &Value, mut place: Place) {
        let items = &schema["items"];
        if !self.keys.iter().any(|key| key.path == place.path) {
            self.add(schema, &place, Allowed::List);
        }
        if items.get("properties").is_none() {
            return;
        }
        place.path.push_str("[]");
        let of_general = text(items, "x-differs-from");
        for (name, property) in properties(items) {
            // The keys that this table shares with the table that it overrides are listed only there.
            let is_general = of_general.as_ref().is_some_and(|table| {
                let path = format!("{table}.{name}");
                let inside = |key: &Key| key.path.strip_prefix(&path).is_some_and(is_end_of_name);
                self.keys.iter().any(inside)
            });
            if !is_general {
                self.read(property, &place.key(name, items));
            }
        }
    }

    fn read_variants(&mut self, schema: &Value, variants: &[Value], place: &Place) {
        let named = |name: fn(&Value) -> Option<String>| -> Option<Vec<Named>> {
            let named = variants.iter().map(|variant| {
                Some(Named {
                    name: name(variant)?,
                    meaning: meaning(variant).unwrap_or_default(),
                })
            });
            named.collect()
        };
        if let Some(names) = named(|variant| text(variant, "const")) {
            return self.add(schema, place, Allowed::OneOf(names));
        }
        if let Some(names) = named(|variant| tag(variant).map(|(_, name)| name)) {
            let (tag_name, _) = tag(&variants[0]).expect("each variant has a tag");
            let mut of_tag = place.key(tag_name, &variants[0]);
            of_tag.meaning.clone_from(&place.meaning);
            self.add(schema, &of_tag, Allowed::OneOf(names));
            for variant in variants {
                let (tag_name, name) = tag(variant).expect("each variant has a tag");
                let inside = place.where_is(tag_name, &name);
                for (name, property) in properties(variant).filter(|(name, _)| *name != tag_name) {
                    self.read(property, &inside.key(name, variant));
                }
            }
            return;
        }
        let only_key = |variant: &Value| properties(variant).map(|(name, _)| name.clone()).next();
        let names = named(only_key).unwrap_or_default();
        self.add(schema, place, Allowed::TableOf(names));
        for variant in variants {
            for (name, property) in properties(variant) {
                let mut inside = place.key(name, variant);
                inside.meaning = meaning(variant);
                inside.required = false;
                self.read(property, &inside);
            }
        }
    }

    /// Adds a key or, if the key is already known, the additional places where it exists.
    fn add(&mut self, schema: &Value, place: &Place, value: Allowed) {
        let key = Key {
            path: place.path.clone(),
            only_where: place.only_where.clone(),
            meaning: place.meaning.clone().unwrap_or_default(),
            value,
            unit: unit(schema, place),
            default: self.default_of(schema, place),
            required: place.required,
        };
        let same = |other: &&mut Key| {
            other.path == key.path
                && **other
                    == Key {
                        only_where: other.only_where.clone(),
                        ..key.clone()
                    }
        };
        match self.keys.iter_mut().find(same) {
            Some(other) => {
                for (choice, more) in other.only_where.iter_mut().zip(key.only_where) {
                    choice.values.extend(more.values);
                    choice.values.dedup();
                }
            }
            None => self.keys.push(key),
        }
    }

    /// Returns the program's default or, in a table of a kind that is not the default, the default of the kind.
    fn default_of(&self, schema: &Value, place: &Place) -> Option<toml::Value> {
        let at = |path: &str| {
            let mut names = path.split('.');
            names.try_fold(&self.defaults, |table, name| table.get(name))
        };
        let is_default = place.only_where.iter().all(|choice| {
            let name = at(&choice.path).and_then(toml::Value::as_str);
            name.is_some_and(|name| choice.values.iter().any(|value| value == name))
        });
        let known = at(&place.path).filter(|_| is_default);
        let of_kind = || toml::Value::try_from(schema.get("default")?).ok();
        known.cloned().or_else(of_kind)
    }
}

/// Returns whether `rest`, which follows the name of a key, is no continuation of this name.
fn is_end_of_name(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['.', '['])
}

/// Returns the names of an enum without values.
pub(super) fn names(schema: &Value) -> Vec<Named> {
    let variants = schema.get("oneOf").and_then(Value::as_array);
    let named = |variant: &Value| {
        Some(Named {
            name: text(variant, "const")?,
            meaning: meaning(variant).unwrap_or_default(),
        })
    };
    variants.into_iter().flatten().filter_map(named).collect()
}

/// Returns the tag of a table that has one of several kinds, and its value.
fn tag(variant: &Value) -> Option<(&'static str, String)> {
    TAGS.iter().find_map(|tag| {
        let name = text(variant.get("properties")?.get(tag)?, "const")?;
        Some((*tag, name))
    })
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::iter)
}

fn text(schema: &Value, key: &str) -> Option<String> {
    schema.get(key)?.as_str().map(str::to_owned)
}

fn is_type(schema: &Value, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == name,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        _ => false,
    }
}

/// Units at the end of the names of keys, longest first, and how they are written.
const UNITS: [(&str, &str); 27] = [
    ("per_second", "1/s"),
    ("mb_per_s", "MB/s"),
    ("per_s", "1/s"),
    ("responses", "responses"),
    ("segments", "segments"),
    ("descriptors", "descriptors"),
    ("packets", "packets"),
    ("entries", "entries"),
    ("percent", "%"),
    ("buckets", "buckets"),
    ("seconds", "s"),
    ("cycles", "cycles"),
    ("clocks", "bus clocks"),
    ("frames", "frames"),
    ("passes", "passes"),
    ("bytes", "bytes"),
    ("lines", "lines"),
    ("pages", "pages"),
    ("bits", "bits"),
    ("mbps", "Mb/s"),
    ("kbps", "kb/s"),
    ("bps", "bit/s"),
    ("mhz", "MHz"),
    ("kib", "KiB"),
    ("gb", "GB"),
    ("ns", "ns"),
    ("us", "us"),
];

/// Returns the unit of a number: from the schema of the key, from that of its table, or from the last part of the key's name.
fn unit(schema: &Value, place: &Place) -> Option<String> {
    if !is_type(schema, "integer") && !is_type(schema, "number") {
        return None;
    }
    if let Some(unit) = text(schema, "x-unit").or_else(|| place.unit.clone()) {
        return Some(unit);
    }
    let name = place.path.rsplit('.').next()?;
    let ends_with = |unit: &str| {
        let before = name.strip_suffix(unit);
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    let short = [("ms", "ms"), ("s", "s")];
    let found = UNITS.iter().chain(&short).find(|(end, _)| ends_with(end));
    found.map(|(_, unit)| (*unit).to_owned())
}

/// Returns the first paragraph of a doc comment, for a reader who does not see the code.
fn meaning(schema: &Value) -> Option<String> {
    let text = text(schema, "description")?;
    let first = text.split("\n\n").next().unwrap_or_default();
    Some(without_links(
        &first.split_whitespace().collect::<Vec<_>>().join(" "),
    ))
}

/// Removes links to code from a doc comment; a link with a text is replaced by this text.
fn without_links(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('[') {
        let Some((label, behind)) = after.split_once(']') else {
            break;
        };
        plain.push_str(before);
        let target = behind
            .strip_prefix('(')
            .and_then(|target| target.split_once(')'));
        match target {
            Some((_, behind)) => {
                plain.push_str(label);
                rest = behind;
            }
            None if label.starts_with('`') => {
                // After a colon, the name of a type means nothing to a reader who does not see the code.
                match plain.strip_suffix(": ") {
                    Some(stem) => plain.truncate(stem.len()),
                    None => plain.push_str(label),
                }
                rest = behind;
            }
            None => {
                plain.push('[');
                plain.push_str(label);
                plain.push(']');
                rest = behind;
            }
        }
    }
    plain.push_str(rest);
    plain
}
