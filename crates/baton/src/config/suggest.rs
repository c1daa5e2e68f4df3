//! What may have been meant by a key that does not exist.

use super::tree::Node;

/// The key of the same table that is written most alike or, failing that, the path at which such a key exists.
pub fn nearest(key: &str, known: &[&str], tree: &Node) -> Option<String> {
    let alike = known
        .iter()
        .map(|k| (strsim::damerau_levenshtein(key, k), *k))
        .min();
    if let Some((distance, meant)) = alike
        && distance <= (key.len() / 3).clamp(1, 3)
    {
        return Some(meant.to_owned());
    }
    tree.paths()
        .into_iter()
        .find(|path| path.rsplit('.').next() == Some(key))
}
