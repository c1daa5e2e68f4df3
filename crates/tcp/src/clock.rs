//! Moments in the past that survive a move to another clock, and the timestamp clock (RFC 7323 5.4).

use baton_wire::{Span, Time};
use serde::{Deserialize, Serialize};
use std::ops::Add;

/// One tick of the timestamp clock.
pub(crate) const TIMESTAMP_TICK: Span = Span::from_ms(1);

/// A past moment. It may lie before the zero of its clock, so the number wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Past(u64);

impl Past {
    pub(crate) const fn at(now: Time) -> Self {
        Self(now.as_ps())
    }

    /// The moment that is `ago` before `now`.
    pub(crate) const fn ago(now: Time, ago: Span) -> Self {
        Self(now.as_ps().wrapping_sub(ago.as_ps()))
    }

    /// A moment longer ago than any limit that a connection uses.
    pub(crate) const fn long_ago(now: Time) -> Self {
        Self::ago(now, Span::from_secs(24 * 3600))
    }

    /// Returns the time since the moment.
    pub(crate) const fn elapsed(self, now: Time) -> Span {
        Span::from_ps(now.as_ps().wrapping_sub(self.0))
    }
}

/// A connection's timestamp clock: the stack's clock plus an offset, so that the reading survives a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimestampClock {
    offset_ps: u64,
}

impl TimestampClock {
    /// A clock that shows about `value` at time zero.
    pub(crate) const fn new(value: u32) -> Self {
        Self {
            offset_ps: (value as u64).wrapping_mul(TIMESTAMP_TICK.as_ps()),
        }
    }

    /// The clock that shows `reading` at `now`.
    pub(crate) const fn showing(now: Time, reading: Span) -> Self {
        Self {
            offset_ps: reading.as_ps().wrapping_sub(now.as_ps()),
        }
    }

    /// The clock's reading, in picoseconds.
    pub(crate) const fn reading(self, now: Time) -> Span {
        Span::from_ps(now.as_ps().wrapping_add(self.offset_ps))
    }

    /// TSval.
    pub(crate) const fn value(self, now: Time) -> u32 {
        (self.reading(now).as_ps() / TIMESTAMP_TICK.as_ps()) as u32
    }

    /// Converts `now` to a moment on this clock.
    pub(crate) const fn moment(self, now: Time) -> Moment {
        Moment(self.reading(now).as_ps())
    }
}

/// A moment on a connection's own clock, in picoseconds. That clock moves with the connection, so moments need no
/// translation. It wraps every 213 days: moments are compared within half of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment(u64);

impl Moment {
    /// The clock's zero: a placeholder for events that have not happened yet.
    pub const ZERO: Self = Self(0);

    /// Time since `earlier`, or zero if `earlier` is the later of the two.
    pub const fn since(self, earlier: Self) -> Span {
        match self.after(earlier) {
            true => Span::from_ps(self.0.wrapping_sub(earlier.0)),
            false => Span::ZERO,
        }
    }

    /// Reports whether this moment is strictly later than `other`.
    pub const fn after(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i64) > 0
    }

    /// TSval of a segment sent at this moment.
    pub(crate) const fn timestamp(self) -> u32 {
        (self.0 / TIMESTAMP_TICK.as_ps()) as u32
    }
}

impl Add<Span> for Moment {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.wrapping_add(span.as_ps()))
    }
}
