//! HyStart as Linux has it (Ha and Rhee, "Hybrid Slow Start for High-Bandwidth and Long-Distance Networks", PFLDNet 2008):
//! slow start ends when a train of ACKs is as long as a round trip, or when round trips get longer.

use super::controller::Acked;
use crate::clock::Moment;
use baton_wire::{SeqNr, Span};
use serde::{Deserialize, Serialize};

/// Smaller windows are left alone, segments (`hystart_low_window`).
const LEAST_WINDOW_SEGMENTS: u32 = 16;
/// ACKs that follow each other faster are of one train (`hystart_ack_delta_us`).
const TRAIN_GAP: Span = Span::from_ms(2);
/// Round-trip times that a round's least one is of before it counts.
const SAMPLES: u8 = 8;
/// A round trip is longer when it is by an eighth of the least one ever, within these bounds.
const RISE_DIVISOR: u64 = 8;
const LEAST_RISE: Span = Span::from_ms(4);
const MOST_RISE: Span = Span::from_ms(16);
/// What a receiver that merges packets may add to a train: the time of four super-segments, this at most.
const MERGED_BYTES: u64 = 4 * 65_536;
const LONGEST_MERGING: Span = Span::from_ms(1);

/// What it remembers about the rounds of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrainHyStart {
    /// The round ends when more than this is acknowledged.
    end: SeqNr,
    began: Moment,
    /// The last ACK of the train; one that came too late for it is not.
    train: Moment,
    /// Least round-trip time of this round, and of all.
    current: Option<Span>,
    least: Option<Span>,
    samples: u8,
    /// Data is paced, and so trains are long by that.
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

    /// The same, from `next` on.
    pub(super) fn begin_anew(&mut self, next: SeqNr) {
        *self = Self::new(next, self.paced);
    }

    /// An acknowledgment in slow start, up to `una`; `next` is SND.NXT and `window` cwnd in bytes. True when slow start is
    /// over.
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

    /// Half of the least round-trip time, all of it where data is paced: data that left as fast as the path takes it keeps it busy from there on.
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
