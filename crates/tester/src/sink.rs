//! The receiver of a stream.

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
    /// Fastest and slowest frame, and the sum of all, ns.
    least_ns: u64,
    most_ns: u64,
    sum_ns: u64,
}

impl Sink {
    /// Nothing has come yet.
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

    /// Frames that came, each once.
    pub fn delivered(&self) -> u64 {
        self.sequences.unique
    }

    /// A frame has come. True if it is of the stream.
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

    /// What has come. `same_clock` says that the sender's clock is the receiver's.
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
