//! What may have been meant by a key that does not exist.

use super::tree::Node;

/// The key of the same table that is written most alike or, failing that, the path at which such a key exists.
pub fn nearest(key: &str, known: &[&str], table: &[String], tree: &Node) -> Option<String> {
    if let Some(meant) = name(key, known.iter().copied()) {
        return Some(meant.to_owned());
    }
    // Of several such paths, rather one inside the same table.
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

/// Of several names the one that is written most alike, if it is alike at all.
pub fn name<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = known.map(|name| (distance(written, name), name)).min();
    let (distance, meant) = alike?;
    (distance <= (written.len() / 3).clamp(1, 3)).then_some(meant)
}

/// In how many letters two names differ.
pub fn distance(one: &str, other: &str) -> usize {
    strsim::damerau_levenshtein(one, other)
}
