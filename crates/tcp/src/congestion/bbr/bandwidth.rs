//! The rates of the model (2.9.1): BBR.max_bw over the last two probing cycles, BBR.bw_shortterm, BBR.bw.

use super::loss::reduced;
use baton_wire::Span;
use serde::{Deserialize, Serialize};

/// "Infinity" of rates.
const UNLIMITED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bandwidth {
    /// BBR.max_bw_filter: the maxima of the previous cycle and of this one (5.5.6).
    filter: [u64; 2],
    /// BBR.bw_shortterm.
    shortterm: u64,
    /// BBR.bw_latest: the maximum of the last round.
    pub(super) latest: u64,
    /// BBR.bw.
    pub(super) bw: u64,
}

impl Default for Bandwidth {
    fn default() -> Self {
        Self {
            filter: [0; 2],
            shortterm: UNLIMITED,
            latest: 0,
            bw: 0,
        }
    }
}

impl Bandwidth {
    /// BBR.max_bw.
    pub(super) fn max(&self) -> u64 {
        self.filter[0].max(self.filter[1])
    }

    pub(super) fn shortterm(&self) -> u64 {
        self.shortterm
    }

    /// UpdateMaxBw (5.5.5): an application-limited sample counts only if it is at least the known maximum.
    pub(super) fn update(&mut self, rate: u64, is_app_limited: bool) {
        if rate > 0 && (rate >= self.max() || !is_app_limited) {
            self.filter[1] = self.filter[1].max(rate);
        }
    }

    /// AdvanceMaxBwFilter (5.5.6). Ignores a cycle without a sample.
    pub(super) fn advance(&mut self) {
        if self.filter[1] > 0 {
            self.filter = [self.filter[1], 0];
        }
    }

    /// BoundBWForModel (5.5.10.3).
    pub(super) fn bound(&mut self) {
        self.bw = self.max().min(self.shortterm);
    }

    /// Lowers the short-term bound after a round with losses that was no probe: InitLowerBounds and LossLowerBounds (5.5.10.3).
    pub(super) fn lower(&mut self) {
        let from = match self.shortterm {
            UNLIMITED => self.max(),
            shortterm => shortterm,
        };
        self.shortterm = self.latest.max(reduced(from));
    }

    /// ResetShortTermModel.
    pub(super) fn reset_shortterm(&mut self) {
        self.shortterm = UNLIMITED;
    }

    /// Raises the short-term bound again after a spurious loss.
    pub(super) fn raise_shortterm(&mut self, to: u64) {
        self.shortterm = self.shortterm.max(to);
    }
}

/// Bytes that a rate delivers in a time.
pub(super) fn volume(rate: u64, over: Span) -> u64 {
    let second = u128::from(Span::from_secs(1).as_ps());
    let bytes = u128::from(rate) * u128::from(over.as_ps()) / second;
    bytes.min(u64::MAX.into()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bandwidth_is_the_maximum_of_two_cycles() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.update(100, false);
        bandwidth.update(70, false);
        assert_eq!(bandwidth.max(), 100);
        bandwidth.advance();
        bandwidth.update(80, false);
        assert_eq!(bandwidth.max(), 100, "of the cycle before");
        bandwidth.advance();
        assert_eq!(bandwidth.max(), 80);
        bandwidth.advance();
        assert_eq!(bandwidth.max(), 80, "a cycle without a sample is none");
    }

    #[test]
    fn application_limited_samples_count_only_when_higher() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.update(100, false);
        bandwidth.advance();
        bandwidth.update(90, true);
        bandwidth.update(10, false);
        bandwidth.advance();
        assert_eq!(bandwidth.max(), 10);
        bandwidth.update(200, true);
        assert_eq!(bandwidth.max(), 200);
    }

    #[test]
    fn lossy_rounds_lower_the_short_term_by_seven_tenths_at_most() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.update(1000, false);
        bandwidth.latest = 900;
        bandwidth.lower();
        bandwidth.bound();
        assert_eq!(bandwidth.bw, 900);
        bandwidth.latest = 0;
        bandwidth.lower();
        bandwidth.bound();
        assert_eq!(bandwidth.bw, 630);
        bandwidth.reset_shortterm();
        bandwidth.bound();
        assert_eq!(bandwidth.bw, 1000);
    }
}
