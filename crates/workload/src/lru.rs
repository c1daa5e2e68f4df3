//! LRU stack distances: one pass over a reference string tells the hits of every cache size (Mattson, Gecsei, Slutz
//! and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 1970).

use rustc_hash::FxHashMap;

/// Smallest number of positions in the tree, so that small reference strings do not renumber all the time.
const MIN_POSITIONS: usize = 1024;

/// Computes the LRU stack distance of each reference in O(log n), n the number of distinct keys.
///
/// Every key has a position, higher the later it was referenced; a Fenwick tree counts the occupied positions. The
/// distance of a key is the number of occupied positions above its own. Positions only grow; when they run out, the
/// keys are renumbered in order.
#[derive(Clone, Debug)]
pub struct StackDistance {
    position_of: FxHashMap<u64, u32>,
    /// The key at each position ever given out since the last renumbering; `None` if it has moved on.
    key_at: Vec<Option<u64>>,
    occupied: Fenwick,
}

impl Default for StackDistance {
    fn default() -> Self {
        Self::new()
    }
}

impl StackDistance {
    /// An empty stack.
    pub fn new() -> Self {
        Self {
            position_of: FxHashMap::default(),
            key_at: Vec::new(),
            occupied: Fenwick::new(MIN_POSITIONS),
        }
    }

    /// References `key`. Returns how many distinct other keys were referenced since its last reference: an LRU cache
    /// of `c` keys has it exactly if that is less than `c`. `None` at the first reference.
    pub fn reference(&mut self, key: u64) -> Option<u32> {
        if self.key_at.len() == self.occupied.len() {
            self.renumber();
        }
        let top = self.key_at.len();
        self.key_at.push(Some(key));
        let old = self.position_of.insert(key, top as u32);
        let distance = old.map(|old| {
            let old = old as usize;
            self.key_at[old] = None;
            self.occupied.add(old, -1);
            (self.position_of.len() - 1) as u32 - self.occupied.sum_below(old)
        });
        self.occupied.add(top, 1);
        distance
    }

    /// Number of distinct keys referenced so far.
    pub fn distinct(&self) -> usize {
        self.position_of.len()
    }

    /// Gives the keys positions 0, 1, 2... in their order, and makes room for as many references again.
    fn renumber(&mut self) {
        self.key_at.retain(Option::is_some);
        let keys = self.key_at.len();
        self.occupied = Fenwick::new((2 * keys).max(MIN_POSITIONS));
        for (position, key) in self.key_at.iter().enumerate() {
            let key = key.expect("only occupied positions are left");
            self.position_of.insert(key, position as u32);
            self.occupied.add(position, 1);
        }
    }
}

/// Prefix sums of small counts with O(log n) update (Fenwick, Software: Practice and Experience 1994).
#[derive(Clone, Debug)]
struct Fenwick {
    tree: Vec<i32>,
}

impl Fenwick {
    fn new(len: usize) -> Self {
        Self {
            tree: vec![0; len + 1],
        }
    }

    fn len(&self) -> usize {
        self.tree.len() - 1
    }

    fn add(&mut self, index: usize, delta: i32) {
        let mut i = index + 1;
        while i < self.tree.len() {
            self.tree[i] += delta;
            i += i & i.wrapping_neg();
        }
    }

    /// Sum of all counts at indices less than `index`.
    fn sum_below(&self, index: usize) -> u32 {
        let mut i = index;
        let mut sum = 0;
        while i > 0 {
            sum += self.tree[i];
            i &= i - 1;
        }
        sum as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An LRU stack as a list, most recent first.
    #[derive(Default)]
    struct Naive(Vec<u64>);

    impl Naive {
        fn reference(&mut self, key: u64) -> Option<u32> {
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
        let mut stack = StackDistance::new();
        let got: Vec<_> = [1, 2, 3, 2, 2, 1, 3].map(|k| stack.reference(k)).into();
        assert_eq!(got, [None, None, None, Some(1), Some(0), Some(2), Some(2)]);
        assert_eq!(stack.distinct(), 3);
    }

    proptest! {
        #[test]
        fn distances_agree_with_a_list(keys in prop::collection::vec(0u64..40, 0..300)) {
            let (mut stack, mut naive) = (StackDistance::new(), Naive::default());
            for key in keys {
                prop_assert_eq!(stack.reference(key), naive.reference(key));
            }
        }
    }

    #[test]
    fn distances_agree_with_a_list_across_renumbering() {
        let (mut stack, mut naive) = (StackDistance::new(), Naive::default());
        let mut x = 1u64;
        for _ in 0..20_000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Mostly a few hundred keys, sometimes one of a thousand.
            let key = (x >> 33) % if x >> 60 == 0 { 1500 } else { 300 };
            assert_eq!(stack.reference(key), naive.reference(key));
        }
    }
}
