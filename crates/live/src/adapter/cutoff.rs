//! Why applications are cut off, counted.

use baton_bus::link::Violation;

/// Kinds of [`Violation`]s, as counters name them.
pub const KINDS: [&str; 7] = [
    "index",
    "malformed",
    "range",
    "length",
    "unasked",
    "message",
    "unwanted",
];

/// Applications that were cut off, by what they did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutOffs([u64; KINDS.len()]);

impl CutOffs {
    /// Counts one more.
    pub fn add(&mut self, violation: &Violation) {
        self.0[kind(violation)] += 1;
    }

    /// Names and counts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        KINDS.into_iter().zip(self.0)
    }

    /// All of them.
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
