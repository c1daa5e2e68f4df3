//! Pacing: data is sent no faster than a given rate, in bursts of bounded length (draft-ietf-ccwg-bbr-06 5.6.2).

use crate::clock::Moment;
use baton_wire::Span;
use serde::{Deserialize, Serialize};

/// State of one connection's pacing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pacing {
    /// C.next_send_time: when all data sent so far has left at the rate. `None` before anything was sent.
    next: Option<Moment>,
    /// Bytes that may still leave with the current burst.
    burst_left: u32,
    /// How late the current burst began, minus the time already made up for.
    #[serde(skip)]
    late: Span,
}

impl Pacing {
    /// Returns how long the next segment must wait; zero if it may be sent. A burst continues until it has its full length; the
    /// next one begins when this one would have left at the rate.
    pub(crate) fn wait(&self, now: Moment) -> Span {
        match self.next {
            Some(next) if self.burst_left == 0 => next.since(now),
            _ => Span::ZERO,
        }
    }

    /// Records that `len` bytes were sent at `rate` bytes a second in bursts of `quantum` bytes. With `credits` a late burst makes up
    /// for lost time, by at most half of the time that a segment takes, as in Linux.
    pub(crate) fn sent(&mut self, now: Moment, len: u32, rate: u64, quantum: u32, credits: bool) {
        let next = self.next.unwrap_or(now);
        let idle = !next.after(now);
        if idle {
            self.burst_left = quantum;
            self.late = if credits { now.since(next) } else { Span::ZERO };
        }
        self.burst_left = self.burst_left.saturating_sub(len);
        self.next = Some(match rate {
            0 => now,
            _ => {
                let start = if idle { now } else { next };
                let takes = Span::from_ps(u64::from(len) * Span::from_secs(1).as_ps() / rate);
                let credit = self.late.min(takes / 2);
                self.late = self.late.saturating_sub(credit);
                start + takes.saturating_sub(credit)
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand bytes take a millisecond.
    const RATE: u64 = 1_000_000;

    #[test]
    fn bursts_follow_each_other_at_the_rate() {
        let mut pacing = Pacing::default();
        let mut now = Moment::default() + Span::from_secs(1);
        let start = now;
        let mut departures = Vec::new();
        for _ in 0..7 {
            now = now + pacing.wait(now);
            pacing.sent(now, 1000, RATE, 3000, false);
            departures.push(now.since(start).as_us());
        }
        assert_eq!(departures, [0, 0, 0, 3000, 3000, 3000, 6000]);
    }

    #[test]
    fn a_segment_is_sent_however_short_a_burst_is() {
        let mut pacing = Pacing::default();
        let now = Moment::default() + Span::from_secs(1);
        assert_eq!(pacing.wait(now), Span::ZERO);
        pacing.sent(now, 1000, RATE, 1, false);
        assert_eq!(pacing.wait(now), Span::from_ms(1));
        assert_eq!(pacing.wait(now + Span::from_us(400)), Span::from_us(600));
        assert_eq!(pacing.wait(now + Span::from_ms(1)), Span::ZERO);
    }

    #[test]
    fn unused_time_is_not_made_up_for() {
        let mut pacing = Pacing::default();
        let start = Moment::default() + Span::from_secs(1);
        pacing.sent(start, 1000, RATE, 2000, false);
        let later = start + Span::from_secs(5);
        pacing.sent(later, 1000, RATE, 2000, false);
        pacing.sent(later, 1000, RATE, 2000, false);
        assert_eq!(
            pacing.wait(later),
            Span::from_ms(2),
            "one burst, not five seconds of them"
        );
    }

    #[test]
    fn a_delay_is_made_up_for_by_half_at_most() {
        let mut pacing = Pacing::default();
        let start = Moment::default() + Span::from_secs(1);
        pacing.sent(start, 1000, RATE, 1000, true);
        let later = start + Span::from_us(1200);
        pacing.sent(later, 1000, RATE, 1000, true);
        assert_eq!(pacing.wait(later), Span::from_us(800));
        let later = later + Span::from_ms(100);
        pacing.sent(later, 1000, RATE, 2000, true);
        pacing.sent(later, 1000, RATE, 2000, true);
        assert_eq!(pacing.wait(later), Span::from_ms(1));
    }

    #[test]
    fn without_a_rate_nothing_is_paced() {
        let mut pacing = Pacing::default();
        let now = Moment::default() + Span::from_secs(1);
        pacing.sent(now, 100_000, 0, 0, false);
        assert_eq!(pacing.wait(now), Span::ZERO);
    }
}
