//! Times for which a sender was busy, and for which it was limited (`tcpi_busy_time`, `tcpi_rwnd_limited`,
//! `tcpi_sndbuf_limited`).

use baton_wire::{Span, Time};

/// Activity of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Nothing is to be sent or acknowledged.
    #[default]
    Idle,
    /// There is data, and only the network holds it back.
    Busy,
    /// The peer's window is too small for the pending data.
    WindowLimited,
    /// Everything is sent, and the application waits for buffer space.
    BufferLimited,
}

/// Time spent on each activity.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    activity: Activity,
    since: Time,
    busy: Span,
    window_limited: Span,
    buffer_limited: Span,
}

impl Limits {
    /// Switches to another activity at `now`.
    pub(crate) fn turn_to(&mut self, now: Time, activity: Activity) {
        if activity == self.activity {
            return;
        }
        let spent = now.saturating_since(self.since);
        match self.activity {
            Activity::Idle => {}
            Activity::Busy => self.busy += spent,
            Activity::WindowLimited => self.window_limited += spent,
            Activity::BufferLimited => self.buffer_limited += spent,
        }
        (self.activity, self.since) = (activity, now);
    }

    /// Microseconds for which the sender was busy (limited or not), limited by the window, and limited by the buffer.
    pub(crate) fn totals_us(&self, now: Time) -> [u64; 3] {
        let mut until_now = self.clone();
        until_now.turn_to(now, Activity::Idle);
        let (window, buffer) = (until_now.window_limited, until_now.buffer_limited);
        let busy = until_now.busy + window + buffer;
        // Linux counts in milliseconds.
        [busy, window, buffer].map(|span| (span.as_us() + 500) / 1000 * 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_includes_the_other_times() {
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let mut limits = Limits::default();
        limits.turn_to(at(10), Activity::Busy);
        limits.turn_to(at(30), Activity::WindowLimited);
        limits.turn_to(at(35), Activity::BufferLimited);
        assert_eq!(limits.totals_us(at(42)), [32_000, 5_000, 7_000]);
        limits.turn_to(at(42), Activity::Idle);
        assert_eq!(limits.totals_us(at(100)), [32_000, 5_000, 7_000]);
    }
}
