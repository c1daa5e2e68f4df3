//! Suggestions for keys that do not exist.

use super::tree::Node;

/// Returns the key of the table with the most similar spelling or, if there is none, a path at which `key` exists.
pub fn nearest(key: &str, known: &[&str], table: &[String], tree: &Node) -> Option<String> {
    if let Some(meant) = name(key, known.iter().copied()) {
        return Some(meant.to_owned());
    }
    // Prefer a path inside the same table.
    let inside = table.join(".");
    let own = if inside.is_empty() {
        key.to_owned()
    } else {
        format!("{inside}.{key}")
    };
    let paths = tree.paths();
    let same_key = |path: &&String| path.rsplit('.').next() == Some(key) && **path != own;
    let mut candidates = paths.iter().filter(same_key);
    let first = candidates.clone().next();
    candidates
        .find(|path| path.starts_with(&inside))
        .or(first)
        .cloned()
}

/// Returns the name with the most similar spelling, if it is similar enough.
pub fn name<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = known.map(|name| (distance(written, name), name)).min();
    let (distance, meant) = alike?;
    (distance <= (written.len() / 3).clamp(1, 3)).then_some(meant)
}

/// Returns the number of letters in which two names differ.
pub fn distance(one: &str, other: &str) -> usize {
    strsim::damerau_levenshtein(one, other)
}
