//! Delivery rate: bytes that arrived in a round trip divided by its length, measured anew in each round trip.

use crate::clock::Moment;
use baton_wire::SeqNr;
use serde::{Deserialize, Serialize};

/// The measurement of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeliveryRate {
    /// The round trip ends when this is acknowledged.
    end: SeqNr,
    since: Moment,
    /// Bytes that arrived in it so far.
    delivered: u32,
    /// The last result.
    per_second: u64,
}

impl DeliveryRate {
    pub(crate) fn new(iss: SeqNr) -> Self {
        Self {
            end: iss,
            since: Moment::default(),
            delivered: 0,
            per_second: 0,
        }
    }

    /// Bytes a second; 0 before the first round trip.
    pub(crate) fn per_second(&self) -> u64 {
        self.per_second
    }

    /// Records that `bytes` more arrived; `una` is SND.UNA and `max` is SND.MAX.
    pub(crate) fn delivered(&mut self, bytes: u32, now: Moment, una: SeqNr, max: SeqNr) {
        self.delivered = self.delivered.saturating_add(bytes);
        if una.before(self.end) {
            return;
        }
        let elapsed_us = now.since(self.since).as_us();
        if self.since != Moment::default() && elapsed_us > 0 {
            self.per_second = match self.delivered {
                // Avoids a division per segment on connections that only receive.
                0 => 0,
                delivered => u64::from(delivered) * 1_000_000 / elapsed_us,
            };
        }
        self.end = max;
        self.since = now;
        self.delivered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::Span;

    #[test]
    fn a_round_trip_gives_its_bytes_over_its_time() {
        let start = Moment::default() + Span::from_secs(5);
        let mut rate = DeliveryRate::new(SeqNr(0));
        rate.delivered(0, start, SeqNr(1), SeqNr(3001));
        rate.delivered(1000, start + Span::from_ms(50), SeqNr(1001), SeqNr(4001));
        assert_eq!(rate.per_second(), 0, "the round trip is not over");
        rate.delivered(2000, start + Span::from_ms(100), SeqNr(3001), SeqNr(6001));
        assert_eq!(rate.per_second(), 30_000);
        rate.delivered(3000, start + Span::from_ms(110), SeqNr(6001), SeqNr(6001));
        assert_eq!(rate.per_second(), 300_000);
    }
}
