//! A bounded cache of what is known of other hosts.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Maximum number of entries. When there are more, the least recently used one is dropped.
pub(crate) const MOST: usize = 1024;

/// A table of at most [`MOST`] entries.
#[derive(Debug)]
pub(crate) struct Remembered<K, V> {
    /// Entries with the time of their last use, as a count of uses.
    entries: FxHashMap<K, (u64, Option<V>)>,
    uses: u64,
}

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self {
            entries: FxHashMap::default(),
            uses: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, V> Remembered<K, V> {
    pub(crate) fn get(&mut self, key: &K) -> Option<&V> {
        self.uses += 1;
        let (used, value) = self.entries.get_mut(key)?;
        *used = self.uses;
        value.as_ref()
    }

    /// The value of `key`, to be read or set.
    pub(crate) fn entry(&mut self, key: K) -> &mut Option<V> {
        self.uses += 1;
        if self.entries.len() >= MOST && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used);
            if let Some((&oldest, _)) = oldest {
                self.entries.remove(&oldest);
            }
        }
        let (used, value) = self.entries.entry(key).or_insert((0, None));
        *used = self.uses;
        value
    }

    pub(crate) fn forget(&mut self, key: &K) {
        self.entries.remove(key);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}
