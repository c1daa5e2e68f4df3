//! When a timeline begins and ends.

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
    /// Not open yet.
    pub fn new(sampling: &Sampling) -> Self {
        Self {
            from: sampling.from,
            to: sampling.to,
            opened: None,
        }
    }

    /// What usually begins begins: the window opens, if nothing else was said.
    pub fn begin(&mut self, now: Time) {
        if self.from.is_none() {
            self.opened.get_or_insert(now);
        }
    }

    /// When it opened, if it is open at this time.
    pub fn opened(&mut self, now: Time) -> Option<Time> {
        self.opened = self.opened.or(self.from.filter(|from| *from <= now));
        self.includes(now)
    }

    /// When it opened, if this time, not later than the last that was asked about, is in it.
    pub fn includes(&self, at: Time) -> Option<Time> {
        let opened = self.opened.filter(|opened| *opened <= at);
        opened.filter(|_| self.to.is_none_or(|to| at < to))
    }

    /// When it opened and ended, if that was `now` at the latest.
    pub fn bounds(&self, now: Time) -> Option<(Time, Time)> {
        Some((self.opened?, self.end(now)))
    }

    /// When it ended, `now` at the latest.
    pub fn end(&self, now: Time) -> Time {
        self.to.map_or(now, |to| to.min(now))
    }
}
