//! One direction of a path: a bottleneck with a queue, a delay, and losses.

use baton_testkit::{Network, Way};
use baton_wire::impairment::{Impairment, Share};
use baton_wire::{Span, Time};
use std::collections::VecDeque;

/// Parameters of one direction.
#[derive(Clone, Copy, Debug)]
pub struct PathSpec {
    /// Bits per second.
    pub rate: u64,
    /// Delay of a packet's last bit from end to end.
    pub delay: Span,
    /// Maximum number of packets that wait at the bottleneck.
    pub queue: usize,
    /// Share of packets lost at random.
    pub loss: f64,
    /// A packet that finds more than this many others waiting is marked instead of lost, if its ends have agreed on that
    /// (RFC 3168 5).
    pub mark_above: Option<usize>,
}

/// One direction, with its packets in flight.
pub struct Path {
    spec: PathSpec,
    /// What follows the bottleneck.
    network: Network<Vec<u8>>,
    /// When the bottleneck has sent everything that waits there.
    busy_until: Time,
    /// When each packet that waits at the bottleneck leaves it.
    leaving: VecDeque<Time>,
    /// Number of packets lost at random or because the queue was full.
    pub lost: u64,
    pub marked: u64,
    /// Times from which packets longer than a limit are silently lost, in order.
    pub limits: Vec<(Time, usize)>,
    /// Longest packet that recently got through.
    pub longest: usize,
    /// Histogram of the number of waiting packets that each packet found, from `measured_from` on.
    pub found_waiting: Vec<u64>,
    pub measured_from: Time,
}

/// Positions of the ECN bits and of the checksum in an IPv4 header.
const TRAFFIC_CLASS: usize = 1;
const CHECKSUM: std::ops::Range<usize> = 10..12;

impl Path {
    pub fn new(spec: PathSpec, seed: u64) -> Self {
        let impairment = Impairment {
            loss: Share::from_probability(spec.loss),
            ..Impairment::default()
        };
        Self {
            spec,
            network: Network::new(impairment, spec.delay, seed),
            busy_until: Time::ZERO,
            leaving: VecDeque::new(),
            lost: 0,
            marked: 0,
            limits: Vec::new(),
            longest: 0,
            found_waiting: Vec::new(),
            measured_from: Time::ZERO,
        }
    }

    fn note_waiting(&mut self, now: Time, waiting: usize) {
        if now >= self.measured_from {
            if self.found_waiting.len() <= waiting {
                self.found_waiting.resize(waiting + 1, 0);
            }
            self.found_waiting[waiting] += 1;
        }
    }

    /// Returns the length of the longest packet that gets through, in bytes.
    fn limit(&self, now: Time) -> usize {
        let begun = self.limits.iter().rev().find(|(from, _)| *from <= now);
        begun.map_or(usize::MAX, |&(_, len)| len)
    }
}

impl Way for Path {
    type Frame = Vec<u8>;

    fn send(&mut self, now: Time, mut packet: Vec<u8>) {
        if packet.len() > self.limit(now) {
            self.lost += 1;
            return;
        }
        self.longest = self.longest.max(packet.len());
        while self.leaving.front().is_some_and(|&time| time <= now) {
            self.leaving.pop_front();
        }
        let waiting = self.leaving.len();
        self.note_waiting(now, waiting);
        let marks = self.spec.mark_above.is_some_and(|above| waiting > above);
        let marks = marks && packet[TRAFFIC_CLASS] & 3 != 0;
        if marks {
            mark(&mut packet);
        }
        let bits = packet.len() as u64 * 8;
        let sending = Span::from_ps(bits * 1_000_000_000_000 / self.spec.rate);
        let leaves = self.busy_until.max(now) + sending;
        if waiting >= self.spec.queue || !self.network.carries(leaves, packet) {
            self.lost += 1;
            return;
        }
        self.marked += u64::from(marks);
        self.busy_until = leaves;
        self.leaving.push_back(leaves);
    }

    fn next_arrival(&self) -> Option<Time> {
        self.network.next_arrival()
    }

    fn receive(&mut self, now: Time) -> Option<Vec<u8>> {
        self.network.receive(now)
    }
}

/// Sets "congestion experienced" in an IPv4 header.
fn mark(packet: &mut [u8]) {
    packet[TRAFFIC_CLASS] |= 3;
    packet[CHECKSUM].fill(0);
    let sum: u32 = packet[..20]
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    packet[CHECKSUM].copy_from_slice(&(!folded as u16).to_be_bytes());
}
