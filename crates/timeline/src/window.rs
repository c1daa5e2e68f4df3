//! Start and end of a timeline.

use crate::sampling::Sampling;
use baton_wire::Time;

/// The part of a run that is in a timeline.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    from: Option<Time>,
    to: Option<Time>,
    opened: Option<Time>,
}

impl Window {
    /// Creates a window that is not yet open.
    pub fn new(sampling: &Sampling) -> Self {
        Self {
            from: sampling.from,
            to: sampling.to,
            opened: None,
        }
    }

    /// Opens the window at the default time, unless a start was configured.
    pub fn begin(&mut self, now: Time) {
        if self.from.is_none() {
            self.opened.get_or_insert(now);
        }
    }

    /// Returns when the window opened, if it is open at `now`.
    pub fn opened(&mut self, now: Time) -> Option<Time> {
        self.opened = self.opened.or(self.from.filter(|from| *from <= now));
        self.includes(now)
    }

    /// Returns when the window opened, if `at` is inside it; `at` must not be later than the latest time passed before.
    pub fn includes(&self, at: Time) -> Option<Time> {
        let opened = self.opened.filter(|opened| *opened <= at);
        opened.filter(|_| self.to.is_none_or(|to| at < to))
    }

    /// Returns when the window opened and when it ended, or `now` if it is still open.
    pub fn bounds(&self, now: Time) -> Option<(Time, Time)> {
        Some((self.opened?, self.end(now)))
    }

    /// Returns when the window ended, or `now` if that is earlier.
    pub fn end(&self, now: Time) -> Time {
        self.to.map_or(now, |to| to.min(now))
    }
}
