//! The search for the largest packet that a path carries (RFC 4821 7). Sizes are bytes of data and options in a segment.

use crate::clock::Moment;
use crate::config::MtuProbing;
use baton_wire::{SeqNr, Span};
use serde::{Deserialize, Serialize};

/// A segment larger than the others, whose outcome is pending: its first number and the number after its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Probe {
    pub(crate) start: SeqNr,
    pub(crate) end: SeqNr,
}

/// State of the search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MtuSearch {
    /// Largest size known to arrive, which is in use (search_low).
    low: u16,
    /// Largest size that may arrive (search_high).
    high: u16,
    /// Largest size that ICMP messages allow.
    pub(crate) told: u16,
    /// When the search last began.
    since: Moment,
    /// The probe in flight, which is larger than `low`.
    pub(crate) probe: Option<Probe>,
    /// The part of a lost probe that is still to be sent again, where times are not kept.
    pub(crate) again: Option<Probe>,
}

impl MtuSearch {
    /// Begins a search between `low` and `high`, or with `high` if that is less.
    pub(crate) fn new(low: u16, high: u16, told: u16, now: Moment) -> Self {
        Self {
            low: low.min(high),
            high,
            told,
            since: now,
            probe: None,
            again: None,
        }
    }

    /// The size in use.
    pub(crate) fn low(&self) -> u16 {
        self.low
    }

    /// The largest size that may be found.
    pub(crate) fn high(&self) -> u16 {
        self.high
    }

    /// Searches sizes up to `most`, since the path may have changed.
    pub(crate) fn reach(&mut self, most: u16) {
        self.high = most.max(self.low);
    }

    /// The size to try next: the middle of the remaining range (RFC 4821 7.3). `None` if the range is small.
    pub(crate) fn next_size(&self, config: &MtuProbing) -> Option<u16> {
        let left = self.high - self.low;
        (left >= config.threshold).then(|| self.low + left / 2)
    }

    /// Searches the path anew up to `most` after a while, whatever ICMP reported, because the path may have changed (RFC 4821 7.2
    /// and RFC 1191 6.3 specify such a timer).
    pub(crate) fn restart_if_old(&mut self, most: u16, now: Moment, config: &MtuProbing) {
        if now.since(self.since) >= Span::from_secs(config.interval_s.into()) {
            self.reach(most);
            self.told = u16::MAX;
            self.since = now;
        }
    }

    /// Records that a segment of this size arrived.
    pub(crate) fn arrived(&mut self, size: u16) {
        self.low = size.clamp(self.low, self.high);
        self.probe = None;
    }

    /// Records that a segment of this size was lost, and only that.
    pub(crate) fn failed(&mut self, size: u16) {
        self.high = self.high.min(size - 1).max(self.low);
        self.probe = None;
    }

    /// Limits the search to sizes up to `most`.
    pub(crate) fn limit(&mut self, most: u16) {
        self.high = self.high.min(most);
        self.low = self.low.min(most);
    }

    /// Lowers the size in use, which does not seem to arrive, to the base or to half (tcp_mtu_probing).
    pub(crate) fn lower(&mut self, base: u16, half: u16) {
        self.low = self.low.min(base).min(half);
        self.probe = None;
    }

    /// Returns the invariant that is violated, if any.
    pub(crate) fn verify(&self, una: SeqNr, max: SeqNr, most: u16) -> Result<(), &'static str> {
        if self.low > self.high || self.high > most {
            return Err("the size in use lies between the bounds of the search");
        }
        let lies_within = |probe: &Probe| {
            probe.start.at_or_after(una)
                && probe.start.before(probe.end)
                && probe.end.at_or_before(max)
        };
        if self.probe.is_some_and(|probe| !lies_within(&probe)) {
            return Err("a probe for the MTU is in flight");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mtu_of_any_path_is_found_by_a_finite_search() {
        let config = MtuProbing::default();
        for path in 64..9000_u16 {
            let mut search = MtuSearch::new(path.min(1024), 8960, u16::MAX, Moment::ZERO);
            let mut probes = 0;
            while let Some(size) = search.next_size(&config) {
                match size <= path {
                    true => search.arrived(size),
                    false => search.failed(size),
                }
                probes += 1;
            }
            assert!(search.low() <= path && path.min(8960) - search.low() < config.threshold);
            assert!(probes <= 12, "{probes} for {path}");
        }
    }

    #[test]
    fn a_finished_search_restarts_after_its_interval() {
        let config = MtuProbing::default();
        let mut search = MtuSearch::new(1024, 1460, u16::MAX, Moment::ZERO);
        search.limit(1030);
        assert_eq!(search.next_size(&config), None);
        search.restart_if_old(1460, Moment::ZERO + Span::from_secs(599), &config);
        assert_eq!(search.next_size(&config), None);
        search.restart_if_old(1460, Moment::ZERO + Span::from_secs(600), &config);
        assert_eq!(search.next_size(&config), Some(1242));
    }
}
