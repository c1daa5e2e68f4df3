//! Two ends joined by two paths.

use crate::path::{Path, PathSpec};
use baton_wire::{Span, Time};

/// A host with one or more flows. Data goes from the end that opens to the one that listens, or the other way.
pub trait End {
    /// Takes in an IP packet.
    fn receive(&mut self, now: Time, packet: &[u8]);
    /// Runs timers and the application.
    fn step(&mut self, now: Time);
    /// The next IP packet to send.
    fn transmit(&mut self, now: Time) -> Option<Vec<u8>>;
    /// When it wants to be stepped again, if ever.
    fn next(&mut self, now: Time) -> Option<Time>;
    /// Bytes that the application of each flow has received.
    fn received(&self) -> Vec<u64>;
}

/// What a flow is for at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Writes as much as it can.
    Source,
    /// Reads and checks.
    Sink,
}

/// Steps at one moment at most: no more than there is to send.
const MOST_STEPS: usize = 100_000;

/// What a run came to.
pub struct Outcome {
    /// Bytes that each flow delivered.
    pub received: Vec<u64>,
    /// Packets lost on the way of the data.
    pub lost: u64,
    /// Packets marked on the way of the data.
    pub marked: u64,
    /// How many packets of the run's second half found how many others waiting at the bottleneck.
    found_waiting: Vec<u64>,
    /// Bytes that each flow had delivered at the end of each tenth of the run.
    pub progress: Vec<Vec<u64>>,
    /// Longest packet with data that got through in each tenth of the run, bytes.
    pub longest: Vec<usize>,
}

impl Outcome {
    /// Packets that waited at the bottleneck, on average over those that came in the run's second half.
    pub fn mean_queue(&self) -> f64 {
        let packets: u64 = self.found_waiting.iter().sum();
        let waiting = self.found_waiting.iter().enumerate();
        let sum: u64 = waiting.map(|(waiting, count)| waiting as u64 * count).sum();
        sum as f64 / packets.max(1) as f64
    }

    /// Bytes that each flow delivered from one tenth of the run to another.
    pub fn between(&self, from: usize, to: usize) -> Vec<u64> {
        let tenths = self.progress[from].iter().zip(&self.progress[to]);
        tenths.map(|(from, to)| to - from).collect()
    }
}

/// Lets `source` send to `sink` for `span`; losses and the bottleneck are the same in both directions.
pub fn run(source: &mut dyn End, sink: &mut dyn End, path: PathSpec, span: Span) -> Outcome {
    run_over(source, sink, Path::new(path, 1), Path::new(path, 2), span)
}

/// The same over these two ways.
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

/// All that one end does at one moment.
fn exchange(now: Time, end: &mut dyn End, inward: &mut Path, outward: &mut Path) {
    while let Some(packet) = inward.receive(now) {
        end.receive(now, &packet);
    }
    for count in 0.. {
        assert!(count < MOST_STEPS, "an end comes to rest");
        end.step(now);
        let Some(packet) = end.transmit(now) else {
            break;
        };
        outward.send(now, packet);
    }
}
