//! Detects that the path is full (5.3.1.2): the delivery rate no longer grows although more is sent.

use serde::{Deserialize, Serialize};

/// Rounds without growth after which the pipe counts as full.
const ROUNDS: u8 = 3;
/// Growth by less than a quarter does not count.
const GROWTH: (u64, u64) = (5, 4);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FullPipe {
    /// BBR.full_bw_reached: the pipe was full at least once.
    pub(super) reached: bool,
    /// BBR.full_bw_now: the pipe was found full since the last reset.
    pub(super) now: bool,
    /// BBR.full_bw.
    baseline: u64,
    /// BBR.full_bw_count.
    rounds: u8,
}

impl FullPipe {
    /// ResetFullBW, with a rate that the path is known to deliver.
    pub(super) fn reset(&mut self, baseline: u64) {
        self.baseline = baseline;
        self.rounds = 0;
        self.now = false;
    }

    /// CheckFullBWReached.
    pub(super) fn check(&mut self, round_start: bool, is_app_limited: bool, rate: u64) {
        if self.now || !round_start || is_app_limited {
            return;
        }
        let (more, than) = GROWTH;
        if rate >= (self.baseline / than).saturating_mul(more) {
            self.reset(rate);
            return;
        }
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds >= ROUNDS {
            self.now = true;
            self.reached = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_growth_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        for rate in [1000, 2000, 4000, 4900, 4950, 4990] {
            assert!(!pipe.now, "before {rate}");
            pipe.check(true, false, rate);
            pipe.check(false, false, rate);
        }
        assert!(pipe.now && pipe.reached);
        pipe.reset(0);
        assert!(!pipe.now && pipe.reached);
    }

    #[test]
    fn growth_and_application_limits_delay_the_full_pipe() {
        let mut pipe = FullPipe::default();
        for rate in [1000, 1100, 1100, 1250, 1250, 1250] {
            pipe.check(true, false, rate);
            pipe.check(true, true, rate);
        }
        assert!(!pipe.now);
        pipe.check(true, false, 1250);
        assert!(pipe.now);
    }
}
