//! Proportional rate reduction (RFC 9937): in recovery, what is sent follows what arrives, so that the window falls to ssthresh
//! gradually over the recovery instead of immediately.

use serde::{Deserialize, Serialize};

/// Accounting of one recovery, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RateReduction {
    /// prr_delivered: bytes that left the network during this recovery.
    delivered: u32,
    /// prr_out: bytes sent during this recovery.
    out: u32,
    /// RecoverFS: bytes in flight when the recovery began.
    flight: u32,
    /// Shares are rounded up to a multiple of this many bytes.
    unit: u32,
}

impl RateReduction {
    /// Begins a recovery with `flight` bytes in flight, without those that the peer has already reported.
    pub(crate) fn new(flight: u32) -> Self {
        Self::in_units(flight, 1)
    }

    /// Begins a recovery of a sender that counts in segments of `unit` bytes.
    pub(crate) fn in_units(flight: u32, unit: u32) -> Self {
        Self {
            delivered: 0,
            out: 0,
            flight: flight.max(1),
            unit,
        }
    }

    /// Records that `len` bytes were sent.
    pub(crate) fn sent(&mut self, len: u32) {
        self.out = self.out.saturating_add(len);
    }

    /// Returns cwnd after an acknowledgment that reports `delivered` more bytes; `in_flight` bytes are in the network now.
    /// `safe` is true if SND.UNA moved and no further loss was detected (SafeACK).
    pub(crate) fn on_ack(
        &mut self,
        delivered: u32,
        in_flight: u32,
        threshold: u32,
        smss: u32,
        safe: bool,
    ) -> u32 {
        self.delivered = self.delivered.saturating_add(delivered);
        let mut send = if in_flight > threshold {
            let share =
                (u64::from(self.delivered) * u64::from(threshold)).div_ceil(u64::from(self.flight));
            let share = share.next_multiple_of(u64::from(self.unit));
            share.saturating_sub(self.out.into()).min(u32::MAX.into()) as u32
        } else {
            // Reduction bound: conservative (PRR-CRB), or slow start while recovery makes good progress (PRR-SSRB).
            let bound = self.delivered.saturating_sub(self.out).max(delivered)
                + if safe { smss } else { 0 };
            bound.min(threshold - in_flight)
        };
        if self.out == 0 {
            // The fast retransmit itself.
            send = send.max(smss);
        }
        in_flight.saturating_add(send)
    }
}

#[cfg(test)]
mod tests;
