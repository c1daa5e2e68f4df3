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
}

/// Lets `source` send to `sink` for `span`; losses and the bottleneck are the same in both directions.
pub fn run(source: &mut dyn End, sink: &mut dyn End, path: PathSpec, span: Span) -> Outcome {
    let mut forward = Path::new(path, 1);
    let mut backward = Path::new(path, 2);
    let end = Time::ZERO + span;
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
        if now >= end {
            break;
        }
    }
    Outcome {
        received: sink.received(),
        lost: forward.lost,
        marked: forward.marked,
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
