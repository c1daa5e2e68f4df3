//! Two ends joined by two paths.

use crate::path::{Path, PathSpec};
use baton_testkit::{End, Pair};
use baton_wire::{Span, Time};

/// A host with one or more flows, which exchanges IP packets. Data goes from the opening end to the listening end, or the other way.
pub trait Host: End<Frame = Vec<u8>> {
    /// Returns how many bytes the application of each flow has received.
    fn received(&self) -> Vec<u64>;
}

/// Role of a flow at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Writes as much as it can.
    Source,
    /// Reads and checks data.
    Sink,
}

/// Result of a run.
pub struct Outcome {
    /// Bytes that each flow delivered.
    pub received: Vec<u64>,
    /// Packets lost in the direction of the data.
    pub lost: u64,
    /// Packets marked in the direction of the data.
    pub marked: u64,
    /// Histogram of the number of packets waiting at the bottleneck that each packet of the run's second half found.
    found_waiting: Vec<u64>,
    /// Bytes that each flow had delivered by the end of each tenth of the run.
    pub progress: Vec<Vec<u64>>,
    /// Longest data packet that got through in each tenth of the run, in bytes.
    pub longest: Vec<usize>,
}

impl Outcome {
    /// Returns the mean number of packets that waited at the bottleneck, over packets that arrived in the run's second half.
    pub fn mean_queue(&self) -> f64 {
        let packets: u64 = self.found_waiting.iter().sum();
        let waiting = self.found_waiting.iter().enumerate();
        let sum: u64 = waiting.map(|(waiting, count)| waiting as u64 * count).sum();
        sum as f64 / packets.max(1) as f64
    }

    /// Returns the bytes that each flow delivered between two tenths of the run.
    pub fn between(&self, from: usize, to: usize) -> Vec<u64> {
        let tenths = self.progress[from].iter().zip(&self.progress[to]);
        tenths.map(|(from, to)| to - from).collect()
    }
}

/// Lets `source` send to `sink` for `span`, with the same losses and bottleneck in both directions.
pub fn run<'a>(
    source: &'a mut dyn Host,
    sink: &'a mut dyn Host,
    path: PathSpec,
    span: Span,
) -> Outcome {
    run_over(source, sink, Path::new(path, 1), Path::new(path, 2), span)
}

/// Lets `source` send to `sink` for `span` over these two paths.
pub fn run_over<'a>(
    source: &'a mut dyn Host,
    sink: &'a mut dyn Host,
    mut forward: Path,
    backward: Path,
    span: Span,
) -> Outcome {
    forward.measured_from = Time::ZERO + span / 2;
    let mut longest = Vec::new();
    let mut progress = vec![sink.received()];
    let mut pair = Pair {
        now: Time::ZERO,
        ends: [source, sink],
        ways: [backward, forward],
    };
    while pair.step() {
        let passed = pair.now - Time::ZERO;
        while progress.len() <= 10 && passed >= span * progress.len() as u64 / 10 {
            progress.push(pair.ends[1].received());
            longest.push(std::mem::take(&mut pair.ways[1].longest));
        }
        if passed >= span {
            break;
        }
    }
    let [_, forward] = pair.ways;
    let [_, sink] = pair.ends;
    Outcome {
        received: sink.received(),
        lost: forward.lost,
        marked: forward.marked,
        found_waiting: forward.found_waiting,
        progress,
        longest,
    }
}
