//! LRU stack distances: one pass over a reference string computes the hits of every cache size (Mattson, Gecsei, Slutz and Traiger,
//! "Evaluation techniques for storage hierarchies", IBM Systems Journal 1970).

use crate::bits::CountingSet;

/// Minimum number of positions, so that small reference strings do not renumber all the time.
const MIN_POSITIONS: usize = 1 << 15;
/// Marks a key that has not been referenced yet. The value is zero, so that memory for keys that never occur is never touched.
const NEVER: u32 = 0;

/// Computes the LRU stack distance of each reference in nearly constant time. Keys must be small numbers.
///
/// Every key has a position, which is higher the later it was referenced; a set of bits counts the occupied positions. The distance of a
/// key is the number of occupied positions above its own. Positions only grow; when they run out, the keys are renumbered in order, which
/// costs about as much as one reference for each key.
#[derive(Clone, Debug)]
pub struct StackDistance {
    /// Position of each key, counted from 1.
    positions: Vec<u32>,
    occupied: CountingSet,
    next: usize,
    distinct: usize,
}

impl Default for StackDistance {
    fn default() -> Self {
        Self::new(0)
    }
}

impl StackDistance {
    /// Creates an empty stack with space for keys below `keys`. The stack grows for greater keys, so keys should be dense.
    pub fn new(keys: usize) -> Self {
        Self {
            positions: vec![NEVER; keys],
            occupied: CountingSet::new((2 * keys).max(MIN_POSITIONS)),
            next: 0,
            distinct: 0,
        }
    }

    /// References `key`. Returns how many distinct other keys were referenced since its last reference: an LRU cache of `c` keys holds the
    /// key exactly if that is less than `c`. `None` at the first reference.
    pub fn reference(&mut self, key: u32) -> Option<u32> {
        if self.next == self.occupied.len() {
            self.renumber();
        }
        let key = key as usize;
        if key >= self.positions.len() {
            self.positions.resize(key + 1, NEVER);
        }
        let old = std::mem::replace(&mut self.positions[key], self.next as u32 + 1);
        let distance = if old == NEVER {
            self.distinct += 1;
            None
        } else {
            let old = old as usize - 1;
            let distance = self.occupied.count_above(old);
            self.occupied.remove(old);
            Some(distance)
        };
        self.occupied.insert(self.next);
        self.next += 1;
        distance
    }

    /// Returns the number of distinct keys referenced so far.
    pub const fn distinct(&self) -> usize {
        self.distinct
    }

    /// Assigns the positions 0, 1, 2... to the keys in order, and ensures space for as many further references.
    fn renumber(&mut self) {
        let ranks = self.occupied.ranks_of_words();
        for position in &mut self.positions {
            if *position != NEVER {
                *position = self.occupied.rank(&ranks, *position as usize - 1) + 1;
            }
        }
        if self.occupied.len() < 2 * self.distinct {
            self.occupied = CountingSet::new(2 * self.distinct);
        }
        self.occupied.fill(self.distinct);
        self.next = self.distinct;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An LRU stack as a list, most recent first.
    #[derive(Default)]
    struct Naive(Vec<u32>);

    impl Naive {
        fn reference(&mut self, key: u32) -> Option<u32> {
            let depth = self.0.iter().position(|&k| k == key);
            if let Some(depth) = depth {
                self.0.remove(depth);
            }
            self.0.insert(0, key);
            depth.map(|d| d as u32)
        }
    }

    #[test]
    fn distances_of_a_short_string() {
        let mut stack = StackDistance::default();
        let got: Vec<_> = [1, 2, 3, 2, 2, 1, 3].map(|k| stack.reference(k)).into();
        assert_eq!(got, [None, None, None, Some(1), Some(0), Some(2), Some(2)]);
        assert_eq!(stack.distinct(), 3);
    }

    proptest! {
        #[test]
        fn distances_agree_with_a_list(keys in prop::collection::vec(0u32..40, 0..300)) {
            let (mut stack, mut naive) = (StackDistance::new(10), Naive::default());
            for key in keys {
                prop_assert_eq!(stack.reference(key), naive.reference(key));
            }
        }
    }

    #[test]
    fn distances_agree_with_a_list_across_renumbering() {
        let (mut stack, mut naive) = (StackDistance::default(), Naive::default());
        let mut x = 1u64;
        for _ in 0..100_000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Mostly one of a few hundred keys, sometimes one of more than a thousand.
            let key = (x >> 33) as u32 % if x >> 60 == 0 { 1500 } else { 300 };
            assert_eq!(stack.reference(key), naive.reference(key));
        }
    }

    #[test]
    fn distances_over_more_keys_than_positions_are_right() {
        let mut stack = StackDistance::default();
        let keys = 3 * MIN_POSITIONS as u32;
        for round in 0..3 {
            for key in 0..keys {
                let wanted = (round > 0).then_some(keys - 1);
                assert_eq!(stack.reference(key), wanted);
            }
        }
    }
}
