//! Sizes that are powers of two.

/// A power of two, which divides by shifting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PowerOfTwo(u32);

impl PowerOfTwo {
    /// Creates a size. `value` must be a power of two.
    pub(super) fn new(value: u32) -> Self {
        debug_assert!(value.is_power_of_two());
        Self(value.trailing_zeros())
    }

    pub(super) fn get(self) -> u64 {
        1 << self.0
    }

    /// Returns `bytes` divided by this size, rounded up.
    pub(super) fn count(self, bytes: u64) -> u64 {
        (bytes + self.get() - 1) >> self.0
    }

    /// Rounds `bytes` up to a multiple of this size.
    pub(super) fn round_up(self, bytes: u64) -> u64 {
        (bytes + self.get() - 1) & !(self.get() - 1)
    }

    /// Returns `bytes` divided by this size, rounded down, and the remainder.
    pub(super) fn divide(self, bytes: u64) -> (u64, u64) {
        (bytes >> self.0, bytes & (self.get() - 1))
    }
}
