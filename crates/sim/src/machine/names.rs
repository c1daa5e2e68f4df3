//! Names of counters in results.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// Returns the name of a plain enum variant as results spell it: `HostReceive` becomes `host_receive`.
pub(crate) fn snake_case(variant: impl Debug) -> String {
    let mut name = String::new();
    for letter in format!("{variant:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Collects counters by name.
pub(super) fn counts(counters: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    counters
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

/// Adds missing names with a count of zero, so that results have the same keys whatever happened.
pub(super) fn complete(
    counts: &mut BTreeMap<String, u64>,
    names: impl IntoIterator<Item = &'static str>,
) {
    for name in names {
        counts.entry(name.to_owned()).or_default();
    }
}

/// Returns the counts since `before`.
pub(super) fn since(
    before: &BTreeMap<String, u64>,
    now: BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let grown = |(name, count): (String, u64)| {
        let earlier = before.get(&name).copied().unwrap_or(0);
        (name, count - earlier)
    };
    now.into_iter().map(grown).collect()
}
