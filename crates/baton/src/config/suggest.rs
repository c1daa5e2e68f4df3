//! What may have been meant by a key that does not exist.

use super::tree::Node;

/// The key of the same table that is written most alike or, failing that, the path at which such a key exists.
pub fn nearest(key: &str, known: &[&str], table: &[String], tree: &Node) -> Option<String> {
    let alike = known
        .iter()
        .map(|k| (strsim::damerau_levenshtein(key, k), *k))
        .min();
    if let Some((distance, meant)) = alike
        && distance <= (key.len() / 3).clamp(1, 3)
    {
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
