//! ACK aggregation: how much more data is acknowledged at once than the rate explains (5.5.9).

use super::bandwidth::volume;
use crate::clock::Moment;
use serde::{Deserialize, Serialize};

/// BBR.ExtraAckedFilterLen, in rounds, after and during Startup.
const FILTER_ROUNDS: u64 = 10;
const FILTER_ROUNDS_IN_STARTUP: u64 = 1;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Aggregation {
    /// BBR.extra_acked_interval_start and BBR.extra_acked_delivered.
    since: Moment,
    delivered: u64,
    /// BBR.extra_acked_filter.
    filter: MaxFilter,
}

impl Aggregation {
    /// Starts anew for a new connection.
    pub(super) fn restart(&mut self, now: Moment) {
        *self = Self {
            since: now,
            ..Self::default()
        };
    }

    /// Starts a new interval when sending resumes after an idle time (5.4.1).
    pub(super) fn restart_interval(&mut self, now: Moment) {
        self.since = now;
    }

    /// BBR.extra_acked.
    pub(super) fn extra(&self) -> u32 {
        self.filter.max()
    }

    /// UpdateACKAggregation.
    pub(super) fn update(
        &mut self,
        now: Moment,
        delivered: u32,
        bw: u64,
        cwnd: u32,
        round: u64,
        filled: bool,
    ) {
        let mut expected = volume(bw, now.since(self.since));
        if self.delivered <= expected {
            self.delivered = 0;
            self.since = now;
            expected = 0;
        }
        self.delivered = self.delivered.saturating_add(delivered.into());
        let extra = self.delivered.saturating_sub(expected).min(cwnd.into()) as u32;
        let window = match filled {
            true => FILTER_ROUNDS,
            false => FILTER_ROUNDS_IN_STARTUP,
        };
        self.filter.update(round, extra, window);
    }
}

/// Windowed maximum that keeps the three best samples (K. Nichols' algorithm, as in Linux's lib/minmax).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct MaxFilter {
    best: [(u64, u32); 3],
}

impl MaxFilter {
    fn max(&self) -> u32 {
        self.best[0].1
    }

    fn update(&mut self, time: u64, value: u32, window: u64) {
        let sample = (time, value);
        let age = |it: (u64, u32)| time.saturating_sub(it.0);
        if value >= self.best[0].1 || age(self.best[2]) > window {
            self.best = [sample; 3];
            return;
        }
        if value >= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value >= self.best[2].1 {
            self.best[2] = sample;
        }
        if age(self.best[0]) > window {
            // The best is too old; the others move up.
            self.best = [self.best[1], self.best[2], sample];
            if age(self.best[0]) > window {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age(self.best[1]) > window / 4 {
            // The second-best sample is still the best one, and a quarter of the window has passed: take the newest as second-best.
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age(self.best[2]) > window / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::Span;
    use proptest::prelude::*;

    proptest! {
        /// The filter is never below the newest sample and never above the true maximum of the window.
        #[test]
        fn the_filter_is_close_to_the_maximum(values in prop::collection::vec(0u32..1000, 1..200)) {
            let mut filter = MaxFilter::default();
            for (time, &value) in values.iter().enumerate() {
                filter.update(time as u64, value, 10);
                let most = |rounds: usize| values[time.saturating_sub(rounds)..=time].iter().max().copied();
                prop_assert!(Some(filter.max()) <= most(10));
                prop_assert!(filter.max() >= value);
            }
        }
    }

    #[test]
    fn data_acknowledged_beyond_the_rate_counts_as_extra() {
        let at = |ms| Moment::ZERO + Span::from_secs(1) + Span::from_ms(ms);
        let mut aggregation = Aggregation::default();
        aggregation.restart(at(0));
        // A thousand bytes a millisecond, acknowledged every ten milliseconds.
        for burst in 1..5 {
            aggregation.update(at(burst * 10), 10_000, 1_000_000, 50_000, burst, true);
        }
        assert_eq!(aggregation.extra(), 10_000);
        aggregation.update(at(41), 90_000, 1_000_000, 50_000, 6, true);
        assert_eq!(aggregation.extra(), 50_000, "no more than the window");
    }
}
