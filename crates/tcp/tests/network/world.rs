//! Two ends joined by two paths.

use crate::path::{Path, PathSpec};
use baton_wire::{Span, Time};

/// A host with one or more flows. Data goes from the opening end to the listening end, or the other way.
pub trait End {
    /// Handles an IP packet.
    fn receive(&mut self, now: Time, packet: &[u8]);
    /// Runs timers and the application.
    fn step(&mut self, now: Time);
    /// Returns the next IP packet to send.
    fn transmit(&mut self, now: Time) -> Option<Vec<u8>>;
    /// Returns when the end has to be stepped again, if ever.
    fn next(&mut self, now: Time) -> Option<Time>;
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

/// Maximum number of steps at one moment.
const MOST_STEPS: usize = 100_000;

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
pub fn run(source: &mut dyn End, sink: &mut dyn End, path: PathSpec, span: Span) -> Outcome {
    run_over(source, sink, Path::new(path, 1), Path::new(path, 2), span)
}

/// Lets `source` send to `sink` for `span` over these two paths.
pub fn run_over(
    source: &mut dyn End,
    sink: &mut dyn End,
    mut forward: Path,
    mut backward: Path,
    span: Span,
) -> Outcome {
    let end = Time::ZERO + span;
    forward.measured_from = Time::ZERO + span / 2;
    let mut longest = Vec::new();
    let mut progress = vec![sink.received()];
    let mut now = Time::ZERO;
    for _ in 0.. {
        exchange(now, source, &mut backward, &mut forward);
        exchange(now, sink, &mut forward, &mut backward);
        let due = [
            forward.next(),
            backward.next(),
            source.next(now),
            sink.next(now),
        ];
        let Some(next) = due.into_iter().flatten().min() else {
            break;
        };
        now = now.max(next);
        while progress.len() <= 10 && now >= Time::ZERO + span * progress.len() as u64 / 10 {
            progress.push(sink.received());
            longest.push(std::mem::take(&mut forward.longest));
        }
        if now >= end {
            break;
        }
    }
    Outcome {
        received: sink.received(),
        lost: forward.lost,
        marked: forward.marked,
        found_waiting: forward.found_waiting,
        progress,
        longest,
    }
}

/// Does everything that one end can do at one moment.
fn exchange(now: Time, end: &mut dyn End, inward: &mut Path, outward: &mut Path) {
    while let Some(packet) = inward.receive(now) {
        end.receive(now, &packet);
    }
    for count in 0.. {
        assert!(count < MOST_STEPS, "an end must become idle");
        end.step(now);
        let Some(packet) = end.transmit(now) else {
            break;
        };
        outward.send(now, packet);
    }
}
