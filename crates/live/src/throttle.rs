//! Decides when to check for something rare.

use baton_wire::{Span, Time};

/// While nothing is waited for, it is looked at so often.
const INTERVAL: Span = Span::from_ms(1);
/// It is looked at so often whatever waits have seen: whoever asks may give up.
const LONGEST: Span = Span::from_ms(100);

/// Schedules checks for something that is rare and costs system calls to check: after a wait has seen it, and at intervals while the loop
/// is too busy to wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Throttle {
    /// Time of the next check.
    at: Time,
    /// When it is looked at whatever waits have seen.
    latest: Time,
}

impl Throttle {
    /// Returns whether to check now.
    pub(crate) fn is_due(&mut self, now: Time) -> bool {
        let is_due = now >= self.at;
        if is_due {
            self.at = now + INTERVAL;
            self.latest = now + LONGEST;
        }
        is_due
    }

    /// A wait has ended at `now`, and has seen something or not.
    pub(crate) fn handle_wait(&mut self, now: Time, seen: bool) {
        self.at = match seen {
            true => now,
            false => self.latest.min(now + INTERVAL),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_at_when_it_was_seen_and_otherwise_now_and_then() {
        let mut throttle = Throttle::default();
        let mut now = Time::ZERO + INTERVAL;
        assert!(throttle.is_due(now), "at first");
        assert!(!throttle.is_due(now));
        now += INTERVAL;
        assert!(throttle.is_due(now), "now and then");
        throttle.handle_wait(now, true);
        assert!(throttle.is_due(now), "it was seen");
        now += INTERVAL;
        throttle.handle_wait(now, false);
        assert!(!throttle.is_due(now), "it would have been seen");
        now += LONGEST;
        throttle.handle_wait(now, false);
        assert!(throttle.is_due(now), "at the latest");
    }
}
