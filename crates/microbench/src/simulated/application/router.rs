//! An IP router with one interface per NIC.

use super::super::frame::{Body, Frame, LEAST_FRAME};
use super::super::host::Meter;
use super::Counts;
use baton_inet::{Router, Verdict};
use baton_sim::hardware::CHECK_SEQUENCE;
use baton_wire::Time;
use std::collections::VecDeque;
use std::num::NonZeroU64;

/// Maximum number of packets that wait to be routed, and that wait for a NIC (Click: `Queue`'s capacity).
const MOST_WAITING: usize = 1_000;

/// Address of the routing table in modelled memory.
const TABLE: u64 = 1 << 44;

/// Bytes of an entry: one cache line for the lookup path, one for the entry itself.
const ENTRY: u32 = 128;

/// Bytes of Ethernet and IPv4 headers.
const HEADERS: u32 = 14 + 20;

/// Position of the IPv4 destination in a frame.
const DESTINATION: std::ops::Range<usize> = 30..34;

/// A router between NICs. Machine n + 1 is behind the n-th NIC.
#[derive(Debug)]
pub(in crate::simulated) struct IpRouter {
    router: Router,
    /// Instructions to route a packet.
    instructions: u32,
    /// Number of entries in the routing table.
    routes: u32,
    /// Packets that wait to be routed, with the NICs that received them.
    to_route: VecDeque<(u8, Frame)>,
    /// Packets that wait to be sent, by NIC.
    to_send: Vec<VecDeque<Frame>>,
    pub(super) counts: Counts,
}

impl IpRouter {
    pub(in crate::simulated) fn new(router: Router, instructions: u32, routes: u32) -> Self {
        let nics = router.interfaces().len();
        Self {
            router,
            instructions,
            routes,
            to_route: VecDeque::new(),
            to_send: vec![VecDeque::new(); nics],
            counts: Counts::default(),
        }
    }

    pub(super) fn wants_to_send(&self, nic: u8) -> bool {
        !self.to_send[usize::from(nic)].is_empty()
    }

    pub(super) fn poll_send(&mut self, nic: u8) -> Option<Frame> {
        self.to_send[usize::from(nic)].pop_front()
    }

    /// Queues a packet that a driver delivers.
    pub(super) fn receive(&mut self, nic: u8, frame: Frame) {
        if self.to_route.len() >= MOST_WAITING {
            self.counts.too_many += 1;
        } else {
            self.to_route.push_back((nic, frame));
        }
    }

    pub(super) fn has_work(&self) -> bool {
        !self.to_route.is_empty()
    }

    /// Routes the next packet.
    pub(super) fn work(&mut self, now: Time, meter: &mut Meter<'_>) -> bool {
        let Some((nic, mut frame)) = self.to_route.pop_front() else {
            return false;
        };
        let Body::Packet(bytes) = &mut frame.body else {
            return true;
        };
        let lies_at = frame.lies_at.map_or(0, NonZeroU64::get);
        meter.execute(self.instructions);
        meter.range(lies_at, HEADERS, true);
        meter.range(TABLE + self.entry(bytes) * u64::from(ENTRY), ENTRY, false);
        match self.router.handle_frame(now, nic.into(), bytes) {
            Verdict::Forward { interface, len } => {
                bytes.truncate(len);
                self.send(interface, frame);
            }
            Verdict::Consumed | Verdict::Refused(_) => {
                self.counts.refused += 1;
                self.send_own(now);
            }
        }
        true
    }

    /// Returns the table entry for a packet's network. The hash scatters networks over the table, which is not sorted by traffic.
    fn entry(&self, frame: &[u8]) -> u64 {
        let destination = frame.get(DESTINATION).and_then(|bytes| bytes.first_chunk());
        let network = destination.map_or(0, |bytes| u32::from_be_bytes(*bytes) >> 8);
        u64::from(network.wrapping_mul(0x9e37_79b1) % self.routes.max(1))
    }

    /// Queues a packet for its NIC, or drops it if the queue is full.
    fn send(&mut self, interface: usize, mut frame: Frame) -> bool {
        let waiting = &mut self.to_send[interface];
        if waiting.len() >= MOST_WAITING {
            self.counts.too_many += 1;
            return false;
        }
        if let Body::Packet(bytes) = &mut frame.body {
            let least = usize::from(LEAST_FRAME - CHECK_SEQUENCE);
            bytes.resize(bytes.len().max(least), 0);
            frame.len = bytes.len() as u16 + CHECK_SEQUENCE;
        }
        (frame.to, frame.hash) = (interface as u8 + 1, 0);
        waiting.push_back(frame);
        true
    }

    /// Sends the frames that the router itself created.
    fn send_own(&mut self, now: Time) {
        for interface in 0..self.to_send.len() {
            loop {
                let mut bytes = Vec::new();
                if !self.router.poll_frame(now, interface, &mut bytes) {
                    break;
                }
                if self.send(interface, Frame::new(0, 0, 0, Body::Packet(bytes))) {
                    self.counts.own += 1;
                }
            }
        }
    }
}
