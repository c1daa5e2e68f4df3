//! Random numbers from a seed.

use std::collections::VecDeque;

/// The source of all randomness in a run (SplitMix64). The first numbers may be chosen, by a fuzzer for instance.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    chosen: VecDeque<u8>,
}

impl Random {
    /// Creates the sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            chosen: VecDeque::new(),
        }
    }

    /// Creates the sequence that begins with these numbers, of two bytes each.
    pub fn beginning_with(chosen: &[u8]) -> Self {
        Self {
            chosen: chosen.iter().copied().collect(),
            ..Self::new(0)
        }
    }

    /// Returns the next random number.
    pub fn draw(&mut self) -> u64 {
        if let (Some(low), Some(high)) = (self.chosen.pop_front(), self.chosen.pop_front()) {
            return u16::from_le_bytes([low, high]).into();
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns 64 random bits, even while numbers are chosen.
    pub fn word(&mut self) -> u64 {
        (0..4).fold(0, |word, _| word << 16 | self.draw() & 0xffff)
    }

    /// Returns one of `choices`.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Returns a number below `limit`, or 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw().checked_rem(limit).unwrap_or(0)
    }

    /// Returns true in `percent` of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
