//! The search for the largest packet that a path carries (RFC 4821 7). Sizes are bytes of data and options in a segment.

use crate::clock::Moment;
use crate::config::MtuProbing;
use baton_wire::{SeqNr, Span};
use serde::{Deserialize, Serialize};

/// A segment larger than the others whose fate is awaited: its first number and the number after its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Probe {
    pub(crate) start: SeqNr,
    pub(crate) end: SeqNr,
}

/// Where the search stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MtuSearch {
    /// Segments of this size arrive, as far as is known: it is in use (search_low).
    low: u16,
    /// Larger ones do not (search_high).
    high: u16,
    /// What ICMP messages allow.
    pub(crate) told: u16,
    /// When it last began.
    since: Moment,
    /// Larger than `low`, and under way.
    pub(crate) probe: Option<Probe>,
    /// Of a lost probe what is still to be sent again, where times are not kept.
    pub(crate) again: Option<Probe>,
}

impl MtuSearch {
    /// Begins between `low` and `high`, or with `high` if that is less.
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

    /// The path may be another: sizes up to this are searched.
    pub(crate) fn reach(&mut self, most: u16) {
        self.high = most.max(self.low);
    }

    /// The size to try next: in the middle of what is left (RFC 4821 7.3). `None` when little is left.
    pub(crate) fn next_size(&self, config: &MtuProbing) -> Option<u16> {
        let left = self.high - self.low;
        (left >= config.threshold).then(|| self.low + left / 2)
    }

    /// A path that was searched is searched anew up to `most` after a while, whatever was told of it: it may be another
    /// (RFC 4821 7.2 has a timer for that, as RFC 1191 6.3).
    pub(crate) fn restart_if_old(&mut self, most: u16, now: Moment, config: &MtuProbing) {
        if now.since(self.since) >= Span::from_secs(config.interval_s.into()) {
            self.reach(most);
            self.told = u16::MAX;
            self.since = now;
        }
    }

    /// A segment of this size arrived.
    pub(crate) fn arrived(&mut self, size: u16) {
        self.low = size.clamp(self.low, self.high);
        self.probe = None;
    }

    /// A segment of this size was lost, and only that.
    pub(crate) fn failed(&mut self, size: u16) {
        self.high = self.high.min(size - 1).max(self.low);
        self.probe = None;
    }

    /// No packet larger than this gets through.
    pub(crate) fn limit(&mut self, most: u16) {
        self.high = self.high.min(most);
        self.low = self.low.min(most);
    }

    /// Nothing of the size in use seems to get through: back to where the search begins, or to half (tcp_mtu_probing).
    pub(crate) fn lower(&mut self, base: u16, half: u16) {
        self.low = self.low.min(base).min(half);
        self.probe = None;
    }

    /// The rule that is broken, if any.
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
    fn any_path_is_found_and_no_search_is_endless() {
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
    fn what_was_found_is_doubted_after_a_while() {
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
