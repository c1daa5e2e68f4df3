//! TCP sequence numbers (RFC 9293 3.4): 32 bits that wrap, compared within half the space.

use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign, Sub};

/// A sequence number. Comparison is modular: `a.before(b)` holds when `b` is less than 2^31 ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SeqNr(pub u32);

impl SeqNr {
    /// Returns whether this number is strictly earlier than `other`.
    pub const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Returns whether this number is `other` or earlier.
    pub const fn at_or_before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) <= 0
    }

    /// Returns whether this number is strictly later than `other`.
    pub const fn after(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) > 0
    }

    /// Returns whether this number is `other` or later.
    pub const fn at_or_after(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) >= 0
    }

    /// Returns the distance from `earlier` to this number, or zero if this number is not later.
    pub const fn saturating_since(self, earlier: Self) -> u32 {
        if self.after(earlier) {
            self.0.wrapping_sub(earlier.0)
        } else {
            0
        }
    }

    /// Returns the later of two numbers.
    pub const fn latest(self, other: Self) -> Self {
        if self.after(other) { self } else { other }
    }

    /// Returns the earlier of two numbers.
    pub const fn earliest(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }
}

impl Add<u32> for SeqNr {
    type Output = Self;
    fn add(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }
}

impl AddAssign<u32> for SeqNr {
    fn add_assign(&mut self, n: u32) {
        *self = *self + n;
    }
}

impl Sub<u32> for SeqNr {
    type Output = Self;
    fn sub(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(n))
    }
}

/// Returns the distance from the right to the left number, modulo 2^32.
impl Sub for SeqNr {
    type Output = u32;
    fn sub(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE_WRAP: SeqNr = SeqNr(u32::MAX);

    #[test]
    fn numbers_are_compared_across_the_wrap() {
        let later = BEFORE_WRAP + 10;
        assert_eq!(later, SeqNr(9));
        assert!(later.after(BEFORE_WRAP) && BEFORE_WRAP.before(later));
        assert!(later.at_or_after(later) && later.at_or_before(later) && !later.after(later));
        assert_eq!(
            (later.latest(BEFORE_WRAP), later.earliest(BEFORE_WRAP)),
            (later, BEFORE_WRAP)
        );
    }

    #[test]
    fn distances_are_modular_or_stop_at_zero() {
        assert_eq!((BEFORE_WRAP + 10) - BEFORE_WRAP, 10);
        assert_eq!((BEFORE_WRAP + 10).saturating_since(BEFORE_WRAP), 10);
        assert_eq!(BEFORE_WRAP.saturating_since(BEFORE_WRAP + 10), 0);
        assert_eq!(SeqNr(3) - 4, BEFORE_WRAP);
    }
}
