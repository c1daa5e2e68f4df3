//! HyStart as in Linux (Ha and Rhee, "Hybrid Slow Start for High-Bandwidth and Long-Distance Networks", PFLDNet 2008):
//! slow start ends when a train of ACKs is as long as a round trip, or when round trips get longer.

use super::controller::Acked;
use crate::clock::Moment;
use baton_wire::{SeqNr, Span};
use serde::{Deserialize, Serialize};

/// Least window, in segments, at which slow start ends early (`hystart_low_window`).
const LEAST_WINDOW_SEGMENTS: u32 = 16;
/// ACKs that follow each other faster belong to one train (`hystart_ack_delta_us`).
const TRAIN_GAP: Span = Span::from_ms(2);
/// Samples of a round before its least round-trip time counts.
const SAMPLES: u8 = 8;
/// A round trip counts as longer if it exceeds the least one of all rounds by an eighth, within these bounds.
const RISE_DIVISOR: u64 = 8;
const LEAST_RISE: Span = Span::from_ms(4);
const MOST_RISE: Span = Span::from_ms(16);
/// A receiver that merges packets may lengthen a train by the time in which this many bytes are sent: four super-segments.
const MERGED_BYTES: u64 = 4 * 65_536;
const LONGEST_MERGING: Span = Span::from_ms(1);

/// State of HyStart for the rounds of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrainHyStart {
    /// The round ends when more than this is acknowledged.
    end: SeqNr,
    began: Moment,
    /// When the last ACK of the train arrived; ACKs that came too late do not belong to it.
    train: Moment,
    /// Least round-trip time of this round, and of all rounds.
    current: Option<Span>,
    least: Option<Span>,
    samples: u8,
    /// Data is paced, which makes trains longer.
    paced: bool,
}

impl TrainHyStart {
    pub(super) fn new(next: SeqNr, paced: bool) -> Self {
        Self {
            end: next,
            began: Moment::default(),
            train: Moment::default(),
            current: None,
            least: None,
            samples: 0,
            paced,
        }
    }

    /// Starts over, with a round that ends at `next`.
    pub(super) fn begin_anew(&mut self, next: SeqNr) {
        *self = Self::new(next, self.paced);
    }

    /// Processes an acknowledgment up to `una` in slow start; `next` is SND.NXT and `window` is cwnd in bytes. Returns true
    /// if slow start ends.
    pub(super) fn on_ack(&mut self, acked: &Acked, una: SeqNr, next: SeqNr, window: u32) -> bool {
        let Some(rtt) = acked.rtt else {
            return false;
        };
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        if una.after(self.end) || self.began == Moment::default() {
            self.start_round(acked.now, next);
        }
        if window < LEAST_WINDOW_SEGMENTS * acked.smss {
            return false;
        }
        let long = self.train_is_long(acked, least, window);
        let slow = self.is_slower(rtt, least);
        long || slow
    }

    fn start_round(&mut self, now: Moment, next: SeqNr) {
        (self.began, self.train) = (now, now);
        self.end = next;
        self.current = None;
        self.samples = 0;
    }

    /// Reports whether the train is longer than half of the least round-trip time, or than all of it where data is paced: the
    /// window then keeps the path busy.
    fn train_is_long(&mut self, acked: &Acked, least: Span, window: u32) -> bool {
        if acked.now.since(self.train) > TRAIN_GAP {
            return false;
        }
        self.train = acked.now;
        // At twice the window in a round trip, which is the rate of slow start.
        let merging_us = MERGED_BYTES * acked.srtt.as_us() / (2 * u64::from(window.max(1)));
        let merging = Span::from_us(merging_us).min(LONGEST_MERGING);
        let whole = least + merging;
        acked.now.since(self.began) > if self.paced { whole } else { whole / 2 }
    }

    fn is_slower(&mut self, rtt: Span, least: Span) -> bool {
        let current = self.current.map_or(rtt, |current| current.min(rtt));
        self.current = Some(current);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        current > least + (least / RISE_DIVISOR).clamp_to(LEAST_RISE, MOST_RISE)
    }
}
