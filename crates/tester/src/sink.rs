//! Receives a stream.

use crate::sequences::Sequences;
use crate::stamp::{Seen, Template};
use crate::task::Arrivals;
use baton_microbench::Latency;

/// A stream that is being received.
#[derive(Debug)]
pub struct Sink {
    template: Template,
    sequences: Sequences,
    wrong: u64,
    stale: u64,
    foreign: u64,
    /// Latency of the fastest and slowest frame, and the sum over all frames, in ns.
    least_ns: u64,
    most_ns: u64,
    sum_ns: u64,
}

impl Sink {
    /// Creates a sink that has not received anything.
    pub fn new(template: Template) -> Self {
        Self {
            template,
            sequences: Sequences::default(),
            wrong: 0,
            stale: 0,
            foreign: 0,
            least_ns: u64::MAX,
            most_ns: 0,
            sum_ns: 0,
        }
    }

    /// Returns the number of distinct frames that have arrived.
    pub fn delivered(&self) -> u64 {
        self.sequences.unique
    }

    /// Handles a frame that has arrived. Returns true if it belongs to the stream.
    pub fn handle(&mut self, now_ns: u64, frame: &[u8]) -> bool {
        match self.template.examine(frame) {
            Seen::Whole(stamp) => {
                self.sequences.handle(stamp.sequence);
                let took = now_ns.saturating_sub(stamp.sent_ns);
                self.least_ns = self.least_ns.min(took);
                self.most_ns = self.most_ns.max(took);
                self.sum_ns += took;
                return true;
            }
            Seen::Wrong => self.wrong += 1,
            Seen::Stale => self.stale += 1,
            Seen::Foreign => self.foreign += 1,
        }
        false
    }

    /// Returns the counts of arrivals. `same_clock` says whether sender and receiver use the same clock.
    pub fn into_arrivals(self, same_clock: bool) -> Arrivals {
        let frames = self.sequences.unique + self.sequences.copies;
        let us = |ns: u64| ns as f64 / 1e3;
        let latency = (same_clock && frames > 0).then(|| Latency {
            least_us: us(self.least_ns),
            mean_us: us(self.sum_ns) / frames as f64,
            most_us: us(self.most_ns),
        });
        Arrivals {
            delivered: self.sequences.unique,
            reordered: self.sequences.late,
            copies: self.sequences.copies,
            wrong: self.wrong,
            stale: self.stale,
            foreign: self.foreign,
            latency,
        }
    }
}
