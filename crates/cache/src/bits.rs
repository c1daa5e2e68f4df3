//! Large sets of small numbers, as bits.

const WORD: usize = 64;
/// Number of children of a node in the counters over words.
const FAN: usize = 64;
/// Number of words per counter of the lowest level.
const WORDS: usize = 8;
/// Number of bits per counter of each level.
const SPAN: [usize; 3] = [WORDS * WORD, FAN * WORDS * WORD, FAN * FAN * WORDS * WORD];

/// A set that counts its members above a given number.
///
/// Three levels of counters summarize the bits. A count sums fewer than 64 neighbours on each level, which compilers turn into vector
/// instructions; an update touches one counter on each level. Both are faster than a tree with logarithmic operations.
#[derive(Clone, Debug)]
pub struct CountingSet {
    words: Vec<u64>,
    low: Vec<u16>,
    middle: Vec<u32>,
    high: Vec<u32>,
}

impl CountingSet {
    /// Creates an empty set of numbers below [`Self::len`], which is `len` rounded up.
    pub fn new(len: usize) -> Self {
        let middle = len.div_ceil(SPAN[1]).max(1);
        Self {
            words: vec![0; middle * SPAN[1] / WORD],
            low: vec![0; middle * FAN],
            middle: vec![0; middle.next_multiple_of(FAN)],
            high: vec![0; middle.div_ceil(FAN)],
        }
    }

    /// Returns the exclusive upper limit of members.
    pub fn len(&self) -> usize {
        self.words.len() * WORD
    }

    /// Adds `number`, which must not be in the set.
    pub fn insert(&mut self, number: usize) {
        debug_assert!(self.words[number / WORD] >> (number % WORD) & 1 == 0);
        self.words[number / WORD] |= 1 << (number % WORD);
        self.low[number / SPAN[0]] += 1;
        self.middle[number / SPAN[1]] += 1;
        self.high[number / SPAN[2]] += 1;
    }

    /// Removes `number`, which must be in the set.
    pub fn remove(&mut self, number: usize) {
        debug_assert!(self.words[number / WORD] >> (number % WORD) & 1 == 1);
        self.words[number / WORD] &= !(1 << (number % WORD));
        self.low[number / SPAN[0]] -= 1;
        self.middle[number / SPAN[1]] -= 1;
        self.high[number / SPAN[2]] -= 1;
    }

    /// Returns the number of members greater than `number`.
    pub fn count_above(&self, number: usize) -> u32 {
        let word = number / WORD;
        // Two shifts, because shifting by all 64 bits at once would overflow.
        let mut count = (self.words[word] >> (number % WORD) >> 1).count_ones();
        count += self.words[siblings(word, WORDS)]
            .iter()
            .map(|word| word.count_ones())
            .sum::<u32>();
        count += self.low[siblings(number / SPAN[0], FAN)]
            .iter()
            .map(|&low| u32::from(low))
            .sum::<u32>();
        count += self.middle[siblings(number / SPAN[1], FAN)]
            .iter()
            .sum::<u32>();
        count + self.high[number / SPAN[2] + 1..].iter().sum::<u32>()
    }

    /// Returns the number of members before each word of 64 numbers. With [`Self::rank`], this gives the rank of any number.
    pub fn ranks_of_words(&self) -> Vec<u32> {
        let before = |before: &mut u32, word: &u64| {
            let rank = *before;
            *before += word.count_ones();
            Some(rank)
        };
        self.words.iter().scan(0, before).collect()
    }

    /// Returns the number of members less than `number`, given [`Self::ranks_of_words`].
    pub fn rank(&self, ranks_of_words: &[u32], number: usize) -> u32 {
        let below = self.words[number / WORD] & ((1 << (number % WORD)) - 1);
        ranks_of_words[number / WORD] + below.count_ones()
    }

    /// Replaces the members by the numbers less than `members`.
    pub fn fill(&mut self, members: usize) {
        debug_assert!(members <= self.len());
        fill(&mut self.words, WORD, members, |count| {
            if count == WORD {
                u64::MAX
            } else {
                (1 << count) - 1
            }
        });
        fill(&mut self.low, SPAN[0], members, |count| count as u16);
        fill(&mut self.middle, SPAN[1], members, |count| count as u32);
        fill(&mut self.high, SPAN[2], members, |count| count as u32);
    }
}

/// Returns the siblings after a node under the same parent.
const fn siblings(node: usize, fan: usize) -> std::ops::Range<usize> {
    node + 1..(node / fan + 1) * fan
}

/// Sets each node, which covers `span` bits, to the `value` of the number of its bits that are below `members`.
fn fill<T>(nodes: &mut [T], span: usize, members: usize, value: impl Fn(usize) -> T) {
    for (i, node) in nodes.iter_mut().enumerate() {
        *node = value(members.saturating_sub(i * span).min(span));
    }
}

/// A set that finds the greatest member below a number. Each level has one bit for every word of the level below, set if that word is not
/// zero.
#[derive(Clone, Debug)]
pub struct OrderedSet {
    levels: Vec<Vec<u64>>,
}

impl OrderedSet {
    /// Creates an empty set of numbers below `len`.
    pub fn new(len: usize) -> Self {
        let mut levels = Vec::new();
        let mut bits = len.max(1);
        loop {
            let words = bits.div_ceil(WORD);
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels };
            }
            bits = words;
        }
    }

    /// Adds `number`.
    pub fn insert(&mut self, number: usize) {
        let mut index = number;
        for level in &mut self.levels {
            let word = &mut level[index / WORD];
            let was_empty = *word == 0;
            *word |= 1 << (index % WORD);
            if !was_empty {
                return;
            }
            index /= WORD;
        }
    }

    /// Removes `number`.
    pub fn remove(&mut self, number: usize) {
        let mut index = number;
        for level in &mut self.levels {
            let word = &mut level[index / WORD];
            *word &= !(1 << (index % WORD));
            if *word != 0 {
                return;
            }
            index /= WORD;
        }
    }

    /// Returns the greatest member less than `number`.
    pub fn below(&self, number: usize) -> Option<usize> {
        let mut index = number;
        for (height, level) in self.levels.iter().enumerate() {
            let below = match index % WORD {
                // `number` may be one past the last word.
                0 => 0,
                bit => level[index / WORD] & ((1 << bit) - 1),
            };
            if below != 0 {
                let found = index / WORD * WORD + below.ilog2() as usize;
                return Some(self.greatest_under(height, found));
            }
            index /= WORD;
        }
        None
    }

    /// Returns the greatest member under bit `index` of level `height`, which must be set.
    fn greatest_under(&self, height: usize, mut index: usize) -> usize {
        for level in self.levels[..height].iter().rev() {
            index = index * WORD + level[index].ilog2() as usize;
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Generates numbers near the boundaries of words and counters.
    fn number() -> impl Strategy<Value = usize> {
        prop_oneof![
            0usize..200,
            32_700usize..32_900,
            2_097_000usize..2_097_300,
            0usize..2_200_000
        ]
    }

    proptest! {
        #[test]
        fn sets_agree_with_a_tree(numbers in prop::collection::vec(number(), 1..60), probe in number()) {
            let mut counting = CountingSet::new(2_200_000);
            let mut ordered = OrderedSet::new(2_200_000);
            let mut tree = BTreeSet::new();
            for number in numbers {
                if tree.insert(number) {
                    counting.insert(number);
                    ordered.insert(number);
                } else {
                    tree.remove(&number);
                    counting.remove(number);
                    ordered.remove(number);
                }
                for probe in [probe, number] {
                    let above = tree.range(probe + 1..).count();
                    prop_assert_eq!(counting.count_above(probe) as usize, above);
                    prop_assert_eq!(ordered.below(probe), tree.range(..probe).next_back().copied());
                    let ranks = counting.ranks_of_words();
                    prop_assert_eq!(counting.rank(&ranks, probe) as usize, tree.range(..probe).count());
                }
            }
        }

        #[test]
        fn a_filled_set_has_the_first_numbers(members in number(), probe in number()) {
            let mut set = CountingSet::new(2_200_000);
            set.insert(77);
            set.fill(members);
            prop_assert_eq!(set.count_above(probe) as usize, members.saturating_sub(probe + 1));
        }
    }

    #[test]
    fn the_greatest_number_below_a_word_boundary_is_found() {
        let mut set = OrderedSet::new(128);
        assert_eq!(set.below(128), None);
        set.insert(127);
        assert_eq!(set.below(128), Some(127));
        assert_eq!(set.below(127), None);
    }
}
