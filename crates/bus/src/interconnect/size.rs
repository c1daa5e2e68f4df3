//! Sizes that are powers of two.

/// A power of two, to divide by without a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PowerOfTwo(u32);

impl PowerOfTwo {
    /// `value` must be a power of two.
    pub(super) fn new(value: u32) -> Self {
        debug_assert!(value.is_power_of_two());
        Self(value.trailing_zeros())
    }

    pub(super) fn get(self) -> u64 {
        1 << self.0
    }

    /// How many of it `bytes` are, the last perhaps in part.
    pub(super) fn count(self, bytes: u64) -> u64 {
        (bytes + self.get() - 1) >> self.0
    }

    /// `bytes`, or the next multiple of it.
    pub(super) fn round_up(self, bytes: u64) -> u64 {
        (bytes + self.get() - 1) & !(self.get() - 1)
    }

    /// How many of it are wholly in `bytes`, and what is left.
    pub(super) fn divide(self, bytes: u64) -> (u64, u64) {
        (bytes >> self.0, bytes & (self.get() - 1))
    }
}
