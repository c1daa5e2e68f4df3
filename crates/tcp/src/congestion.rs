//! Congestion window: slow start, congestion avoidance and fast recovery (RFC 5681, RFC 6582).

use baton_wire::SeqNr;
use serde::{Deserialize, Serialize};

/// Duplicate acknowledgments that mean a loss (RFC 5681 3.2).
pub(crate) const DUPLICATE_THRESHOLD: u8 = 3;

/// No window grows beyond this: more cannot be in flight (RFC 7323 2.3).
const LARGEST_WINDOW: u32 = 1 << 30;

/// Whether a loss is being repaired, and how it was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Nothing is known to be missing.
    Open,
    /// Duplicate ACKs told of a loss; it lasts until `recover` is acknowledged.
    FastRecovery,
    /// The timer told of a loss; it lasts until `recover` is acknowledged.
    Timeout,
}

/// Window and recovery state of one connection. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CongestionWindow {
    window: u32,
    threshold: u32,
    /// Acknowledged in congestion avoidance and not yet counted towards growth (RFC 3465 2.1).
    credit: u32,
    /// SND.MAX when the last loss was noticed (RFC 6582 3.1).
    pub(crate) recover: SeqNr,
    pub(crate) duplicates: u8,
    pub(crate) phase: Phase,
    /// Most that was in flight lately: since what was sent last when it was measured is acknowledged.
    peak: u32,
    peak_until: SeqNr,
    /// A partial ACK has restarted the timer in this recovery (RFC 6582 3.2, step 4).
    partial_seen: bool,
}

impl CongestionWindow {
    pub(crate) fn new(iss: SeqNr) -> Self {
        Self {
            window: 0,
            threshold: LARGEST_WINDOW,
            credit: 0,
            recover: iss,
            duplicates: 0,
            phase: Phase::Open,
            peak: 0,
            peak_until: iss,
            partial_seen: false,
        }
    }

    /// The connection is established; `initial` is IW.
    pub(crate) fn start(&mut self, initial: u32) {
        self.window = initial;
    }

    /// cwnd.
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// ssthresh; `u32::MAX` before the first loss.
    pub(crate) fn threshold(&self) -> u32 {
        match self.threshold {
            LARGEST_WINDOW => u32::MAX,
            threshold => threshold,
        }
    }

    /// Extra room while the first duplicate ACKs come in (limited transmit, RFC 3042).
    pub(crate) fn limited_transmit(&self, smss: u32) -> u32 {
        match self.phase {
            Phase::Open => smss * u32::from(self.duplicates.min(DUPLICATE_THRESHOLD - 1)),
            _ => 0,
        }
    }

    /// Something was sent; `flight` is outstanding, up to `max`.
    pub(crate) fn sent(&mut self, flight: u32, una: SeqNr, max: SeqNr) {
        if flight > self.peak || una.at_or_after(self.peak_until) {
            self.peak = flight;
            self.peak_until = max;
        }
    }

    /// New data was acknowledged outside of fast recovery. A window that is not used does not grow: nothing was
    /// learnt about it (RFC 7661 1, RFC 9002 7.8).
    pub(crate) fn grow(&mut self, acked: u32, smss: u32) {
        if self.window < self.threshold {
            if self.window <= self.peak.saturating_mul(2) {
                // RFC 3465 2.2 and 2.3: L is 2, and 1 after a timeout.
                let limit = if self.phase == Phase::Timeout {
                    smss
                } else {
                    2 * smss
                };
                self.window += acked.min(limit);
            }
        } else if self.window <= self.peak.saturating_add(smss) {
            self.credit += acked;
            if self.credit >= self.window {
                self.credit -= self.window;
                self.window += smss;
            }
        }
        self.window = self.window.min(LARGEST_WINDOW);
    }

    /// Half of what is in flight (RFC 5681 equation 4).
    fn reduce_threshold(&mut self, flight: u32, smss: u32) {
        self.threshold = (flight / 2).max(2 * smss);
        self.credit = 0;
    }

    /// Keeps a mark that is behind SND.UNA just behind it: further than 2^31 behind would be ahead.
    pub(crate) fn keep_mark_near(&mut self, una: SeqNr) {
        if self.recover.before(una) {
            self.recover = una - 1;
        }
    }

    /// Enters fast recovery. With SACK the window is the threshold (RFC 6675 5, 4.2), without it is inflated by
    /// the segments that left the network (RFC 5681 3.2, step 3).
    pub(crate) fn enter_recovery(&mut self, flight: u32, max: SeqNr, smss: u32, sack: bool) {
        self.reduce_threshold(flight, smss);
        self.window = self.threshold
            + if sack {
                0
            } else {
                u32::from(DUPLICATE_THRESHOLD) * smss
            };
        self.recover = max;
        self.phase = Phase::FastRecovery;
        self.partial_seen = false;
    }

    /// One more duplicate in fast recovery without SACK: one more segment left the network (RFC 5681 3.2, step 4).
    pub(crate) fn inflate(&mut self, smss: u32) {
        self.window = (self.window + smss).min(LARGEST_WINDOW);
    }

    /// An ACK that ends less than the whole recovery, without SACK (RFC 6582 3.2, step 3). True when it is the first.
    pub(crate) fn partial_ack(&mut self, acked: u32, smss: u32) -> bool {
        self.window = self.window.saturating_sub(acked).max(smss);
        if acked >= smss {
            self.window += smss;
        }
        let first = !self.partial_seen;
        self.partial_seen = true;
        first
    }

    /// `recover` is acknowledged; `flight` is what is outstanding now.
    pub(crate) fn leave_recovery(&mut self, flight: u32, smss: u32, sack: bool) {
        if self.phase == Phase::FastRecovery {
            self.window = match sack {
                true => self.threshold,
                // RFC 6582 3.2, step 3, first alternative: no burst.
                false => self.threshold.min(flight.max(smss) + smss),
            };
        }
        self.phase = Phase::Open;
        self.duplicates = 0;
    }

    /// The retransmission timer expired, for the first time for this data or again (RFC 5681 3.1).
    pub(crate) fn time_out(&mut self, first: bool, flight: u32, max: SeqNr, smss: u32) {
        if first {
            self.reduce_threshold(flight, smss);
        }
        self.window = smss;
        self.recover = max;
        self.phase = Phase::Timeout;
        self.duplicates = 0;
    }

    /// Nothing was sent for a timeout: start anew (RFC 5681 4.1).
    pub(crate) fn restart(&mut self, initial: u32) {
        self.window = self.window.min(initial);
    }

    /// The rule that is broken, if any.
    pub(crate) fn verify(&self, una: SeqNr, smss: u32) -> Result<(), &'static str> {
        if self.window < smss {
            return Err("the congestion window has room for a segment");
        }
        if self.phase != Phase::Open && self.recover.before(una) {
            return Err("recovery ends when its mark is acknowledged");
        }
        Ok(())
    }
}
