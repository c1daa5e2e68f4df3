//! A table that numbers byte strings.

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Distinct byte strings, numbered from 0 in order of insertion. Allocates only to grow.
#[derive(Clone, Default)]
pub struct Names {
    /// All strings, concatenated.
    text: Vec<u8>,
    /// End of each string in `text`.
    ends: Vec<usize>,
    /// Numbers by hash of the string.
    table: HashTable<u32>,
}

impl Names {
    /// Returns the number of `name`, which is added if it is new.
    ///
    /// # Panics
    /// If there are 2^32 names, which would not fit in memory.
    pub fn insert(&mut self, name: &[u8]) -> u32 {
        let hash = hash(name);
        let Self { text, ends, table } = self;
        if let Some(&found) = table.find(hash, |&n| slice(text, ends, n) == name) {
            return found;
        }
        let number = u32::try_from(ends.len()).expect("fewer than 2^32 names");
        text.extend_from_slice(name);
        ends.push(text.len());
        table.insert_unique(hash, number, |&n| self::hash(slice(text, ends, n)));
        number
    }

    /// Returns the number of `name`, if it is in the table.
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        self.table
            .find(hash(name), |&n| self.get(n) == name)
            .copied()
    }

    /// Returns the name with this number, as bytes because logs may use any encoding.
    ///
    /// # Panics
    /// If there is no such name.
    pub fn get(&self, number: u32) -> &[u8] {
        slice(&self.text, &self.ends, number)
    }

    /// Returns the number of distinct names.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether the table is empty.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

fn slice<'a>(text: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let n = number as usize;
    let start = if n == 0 { 0 } else { ends[n - 1] };
    &text[start..ends[n]]
}

fn hash(name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_in_order_of_arrival() {
        let mut names = Names::default();
        assert_eq!(names.insert(b"/a"), 0);
        assert_eq!(names.insert(b""), 1);
        assert_eq!(names.insert(b"/a"), 0);
        for n in 0..1000u32 {
            assert_eq!(names.insert(format!("/{n}").as_bytes()), n + 2);
        }
        assert_eq!(names.get(1), b"");
        assert_eq!(names.get(502), b"/500");
        assert_eq!(names.find(b"/999"), Some(1001));
        assert_eq!(names.find(b"/1000"), None);
        assert_eq!(names.len(), 1002);
    }
}
