//! Decides when to check for something rare.

use baton_wire::{Span, Time};

/// Interval between checks while the loop never waits.
const INTERVAL: Span = Span::from_ms(5);
/// Maximum interval between checks, even if waits see nothing: a client may give up.
const LONGEST: Span = Span::from_ms(100);

/// Schedules checks for something that is rare and costs system calls to check: after a wait has seen it, and at intervals while the loop
/// is too busy to wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Throttle {
    /// Time of the next check.
    at: Time,
    /// Time of the last check.
    checked: Time,
}

impl Throttle {
    /// Returns whether to check now.
    pub(crate) fn is_due(&mut self, now: Time) -> bool {
        let is_due = now >= self.at;
        if is_due {
            self.at = now + INTERVAL;
            self.checked = now;
        }
        is_due
    }

    /// Returns the time until which waits ignore clients, if they do so now. A client that asks again and again would otherwise keep the
    /// loop busy.
    pub(crate) fn pauses_until(&self, now: Time) -> Option<Time> {
        Some(self.checked + INTERVAL).filter(|&until| until > now)
    }

    /// Handles the end of a wait at `now`; `seen` says whether the wait has seen anything to check.
    pub(crate) fn handle_wait(&mut self, now: Time, seen: bool) {
        self.at = match seen {
            true => now,
            false => (self.checked + LONGEST).min(now + INTERVAL),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_polled_when_it_was_ready_and_otherwise_rarely() {
        let mut throttle = Throttle::default();
        let mut now = Time::ZERO + INTERVAL;
        assert!(throttle.is_due(now), "at first");
        assert!(!throttle.is_due(now));
        now += INTERVAL;
        assert!(throttle.is_due(now), "now and then");
        throttle.handle_wait(now, true);
        assert!(throttle.is_due(now), "it was seen");
        assert_eq!(throttle.pauses_until(now), Some(now + INTERVAL));
        now += INTERVAL;
        assert_eq!(throttle.pauses_until(now), None);
        throttle.handle_wait(now, false);
        assert!(!throttle.is_due(now), "it would have been seen");
        now += LONGEST;
        throttle.handle_wait(now, false);
        assert!(throttle.is_due(now), "at the latest");
    }
}
