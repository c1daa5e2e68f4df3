//! The least round-trip time, and when to measure it anew (5.3.4.3, 5.5.7).

use crate::clock::Moment;
use baton_wire::Span;
use serde::{Deserialize, Serialize};

/// BBR.MinRTTFilterLen and BBR.ProbeRTTInterval (2.16).
const FILTER_LEN: Span = Span::from_secs(10);
const PROBE_INTERVAL: Span = Span::from_secs(5);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MinRtt {
    /// BBR.min_rtt; `None` before the first measurement.
    least: Option<Span>,
    stamp: Moment,
    /// BBR.probe_rtt_min_delay and BBR.probe_rtt_min_stamp.
    probe_least: Option<Span>,
    probe_stamp: Moment,
    /// BBR.probe_rtt_expired.
    pub(super) expired: bool,
}

impl MinRtt {
    /// Starts with the round-trip time known when the connection is established; `srtt` is zero if none is.
    pub(super) fn start(&mut self, now: Moment, srtt: Span) {
        self.least = (srtt > Span::ZERO).then_some(srtt);
        self.stamp = now;
        self.probe_least = None;
        self.probe_stamp = now;
    }

    /// BBR.min_rtt.
    pub(super) fn get(&self) -> Option<Span> {
        self.least
    }

    /// UpdateMinRTT.
    pub(super) fn update(&mut self, now: Moment, rtt: Option<Span>) {
        self.expired = now.since(self.probe_stamp) > PROBE_INTERVAL;
        let lower = |rtt: Span| self.probe_least.is_none_or(|least| rtt < least) || self.expired;
        if let Some(rtt) = rtt.filter(|&rtt| lower(rtt)) {
            self.probe_least = Some(rtt);
            self.probe_stamp = now;
        }
        let old = now.since(self.stamp) > FILTER_LEN;
        if let Some(probed) = self.probe_least
            && (old || self.least.is_none_or(|least| probed < least))
        {
            self.least = Some(probed);
            self.stamp = self.probe_stamp;
        }
    }

    /// ProbeRTT ended: the next one is due an interval from now.
    pub(super) fn probed(&mut self, now: Moment) {
        self.probe_stamp = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::ZERO + Span::from_secs(1) + Span::from_ms(ms)
    }

    const fn ms(ms: u64) -> Option<Span> {
        Some(Span::from_ms(ms))
    }

    #[test]
    fn the_minimum_rtt_is_kept_for_ten_seconds_and_probed_after_five() {
        let mut rtt = MinRtt::default();
        rtt.start(at(0), Span::from_ms(50));
        assert_eq!(rtt.get(), ms(50));
        rtt.update(at(10), ms(40));
        assert_eq!(rtt.get(), ms(40));
        rtt.update(at(5000), ms(60));
        assert!(!rtt.expired);
        rtt.update(at(5011), ms(60));
        assert!(rtt.expired, "five seconds after it was last as low");
        assert_eq!(rtt.get(), ms(40), "which does not raise it yet");
        rtt.update(at(5100), ms(55));
        assert!(!rtt.expired);
        rtt.update(at(10_020), ms(70));
        assert_eq!(rtt.get(), ms(55), "ten seconds after it was measured");
    }
}
