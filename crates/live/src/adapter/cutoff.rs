//! Counts of applications that were cut off, by reason.

use baton_bus::link::Violation;

/// Names of the kinds of [`Violation`]s, as used in the names of counters.
pub const KINDS: [&str; 7] = [
    "index",
    "malformed",
    "range",
    "length",
    "unasked",
    "message",
    "unwanted",
];

/// Number of applications that were cut off, by kind of violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutOffs([u64; KINDS.len()]);

impl CutOffs {
    /// Counts one application that was cut off for `violation`.
    pub fn add(&mut self, violation: &Violation) {
        self.0[kind(violation)] += 1;
    }

    /// Returns the name and the count of each kind.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        KINDS.into_iter().zip(self.0)
    }

    /// Returns the total of all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

fn kind(violation: &Violation) -> usize {
    match violation {
        Violation::Index { .. } => 0,
        Violation::Malformed(_) => 1,
        Violation::Range { .. } => 2,
        Violation::Length(_) => 3,
        Violation::Unasked { .. } => 4,
        Violation::Message(_) => 5,
        Violation::Unwanted { .. } => 6,
    }
}
