//! Tracks which sequence numbers of a stream have arrived.

/// How far behind the highest number a late number can still be distinguished from a duplicate: a tenth of a second of small frames.
const WINDOW: u64 = 1 << 17;

/// Counts the distinct numbers that arrive, and the duplicates.
#[derive(Debug)]
pub struct Sequences {
    /// One more than the highest number that has arrived.
    next: u64,
    /// A bit for each of the last [`WINDOW`] numbers below `next`.
    seen: Box<[u64]>,
    /// Count of distinct numbers.
    pub unique: u64,
    /// Count of distinct numbers that arrived after a higher number.
    pub late: u64,
    /// Count of duplicates, and of numbers too late to be distinguished from duplicates.
    pub copies: u64,
}

impl Default for Sequences {
    fn default() -> Self {
        Self {
            next: 0,
            seen: vec![0; (WINDOW / 64) as usize].into(),
            unique: 0,
            late: 0,
            copies: 0,
        }
    }
}

impl Sequences {
    /// Handles a number that has arrived.
    pub fn handle(&mut self, sequence: u64) {
        if sequence >= self.next {
            self.advance(sequence);
            self.unique += 1;
        } else if self.next - sequence <= WINDOW && !self.mark(sequence) {
            self.unique += 1;
            self.late += 1;
        } else {
            self.copies += 1;
        }
    }

    /// Makes `sequence` the highest number.
    fn advance(&mut self, sequence: u64) {
        if sequence - self.next >= WINDOW {
            self.seen.fill(0);
        } else {
            for skipped in self.next..sequence {
                let (word, bit) = place(skipped);
                self.seen[word] &= !bit;
            }
        }
        let (word, bit) = place(sequence);
        self.seen[word] |= bit;
        self.next = sequence + 1;
    }

    /// Marks a number below the highest; returns true if it was already marked.
    fn mark(&mut self, sequence: u64) -> bool {
        let (word, bit) = place(sequence);
        let before = self.seen[word] & bit != 0;
        self.seen[word] |= bit;
        before
    }
}

fn place(sequence: u64) -> (usize, u64) {
    let at = sequence % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn each_number_counts_once(steps in proptest::collection::vec((0_u64..300, 0_u64..200), 1..2_000)) {
            let mut sequences = Sequences::default();
            let mut all = BTreeSet::new();
            let (mut base, mut copies) = (0, 0);
            for (ahead, back) in steps {
                base += ahead / 100;
                let sequence = (base + ahead).saturating_sub(back);
                copies += u64::from(!all.insert(sequence));
                sequences.handle(sequence);
            }
            prop_assert_eq!(sequences.unique, all.len() as u64);
            prop_assert_eq!(sequences.copies, copies);
        }
    }

    #[test]
    fn a_gap_longer_than_the_window_forgets_earlier_numbers() {
        let mut sequences = Sequences::default();
        sequences.handle(3);
        sequences.handle(3 + WINDOW);
        assert_eq!((sequences.unique, sequences.copies), (2, 0));
        sequences.handle(2);
        assert_eq!(
            (sequences.unique, sequences.copies),
            (2, 1),
            "too late to tell"
        );
        sequences.handle(4);
        assert_eq!((sequences.unique, sequences.late), (3, 1));
        sequences.handle(4);
        assert_eq!(sequences.copies, 2);
    }
}
