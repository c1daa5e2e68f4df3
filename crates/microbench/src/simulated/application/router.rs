//! An IP router with one interface per NIC.

use super::super::frame::{Body, CHECK_SEQUENCE, LEAST_FRAME, Packets};
use super::super::host::Meter;
use super::Outgoing;
use baton_inet::{Router, Verdict};
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

/// Counts of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::simulated) struct RouterCounts {
    /// Packets given to the driver of the NIC through which they leave.
    pub(in crate::simulated) forwarded: u64,
    /// Packets that the router does not forward, by the rules of IP.
    pub(in crate::simulated) refused: u64,
    /// Frames that the router itself created: ICMP errors.
    pub(in crate::simulated) own: u64,
    /// Packets dropped because too many others waited.
    pub(in crate::simulated) too_many: u64,
}

impl RouterCounts {
    /// Returns the counts since `before`.
    pub(in crate::simulated) fn since(self, before: Self) -> Self {
        Self {
            forwarded: self.forwarded - before.forwarded,
            refused: self.refused - before.refused,
            own: self.own - before.own,
            too_many: self.too_many - before.too_many,
        }
    }
}

/// A packet that waits to be routed.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The NIC that received the packet.
    nic: u8,
    lies_at: NonZeroU64,
    key: usize,
}

/// A router between NICs. Machine n + 1 is behind the n-th NIC.
#[derive(Debug)]
pub(in crate::simulated) struct IpRouter {
    router: Router,
    /// Instructions to route a packet.
    instructions: u32,
    /// Number of entries in the routing table.
    routes: u32,
    to_route: VecDeque<Waiting>,
    /// Packets that wait to be sent, by NIC.
    to_send: Vec<VecDeque<Outgoing>>,
    pub(in crate::simulated) counts: RouterCounts,
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
            counts: RouterCounts::default(),
        }
    }

    pub(super) fn wants_to_send(&self, nic: u8) -> bool {
        !self.to_send[usize::from(nic)].is_empty()
    }

    pub(super) fn poll_send(&mut self, nic: u8) -> Option<Outgoing> {
        self.to_send[usize::from(nic)].pop_front()
    }

    /// Queues a packet that a driver delivers.
    pub(super) fn receive(
        &mut self,
        nic: u8,
        lies_at: NonZeroU64,
        key: usize,
        packets: &mut Packets,
    ) {
        if self.to_route.len() >= MOST_WAITING {
            self.counts.too_many += 1;
            return packets.remove(key);
        }
        self.to_route.push_back(Waiting { nic, lies_at, key });
    }

    pub(super) fn has_work(&self) -> bool {
        !self.to_route.is_empty()
    }

    /// Routes the next packet.
    pub(super) fn work(&mut self, now: Time, meter: &mut Meter<'_>, packets: &mut Packets) -> bool {
        let Some(Waiting { nic, lies_at, key }) = self.to_route.pop_front() else {
            return false;
        };
        let bytes = packets.bytes_mut(key);
        meter.execute(self.instructions);
        meter.range(lies_at.get(), HEADERS, true);
        meter.range(TABLE + self.entry(bytes) * u64::from(ENTRY), ENTRY, false);
        match self.router.handle_frame(now, nic.into(), bytes) {
            Verdict::Forward { interface, len } => {
                bytes.truncate(len);
                if self.send(interface, key, packets, Some(lies_at)) {
                    self.counts.forwarded += 1;
                }
            }
            Verdict::Consumed | Verdict::Refused(_) => {
                self.counts.refused += 1;
                packets.remove(key);
                self.send_own(now, packets);
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

    /// Queues a frame for its NIC, or drops the frame if the queue is full.
    fn send(
        &mut self,
        interface: usize,
        key: usize,
        packets: &mut Packets,
        lies_at: Option<NonZeroU64>,
    ) -> bool {
        let waiting = &mut self.to_send[interface];
        if waiting.len() >= MOST_WAITING {
            self.counts.too_many += 1;
            packets.remove(key);
            return false;
        }
        let bytes = packets.bytes_mut(key);
        let least = usize::from(LEAST_FRAME - CHECK_SEQUENCE);
        bytes.resize(bytes.len().max(least), 0);
        waiting.push_back(Outgoing {
            len: bytes.len() as u16 + CHECK_SEQUENCE,
            to: interface as u8 + 1,
            body: Body::Packet(key),
            hash: 0,
            lies_at,
        });
        true
    }

    /// Sends the frames that the router itself created.
    fn send_own(&mut self, now: Time, packets: &mut Packets) {
        for interface in 0..self.to_send.len() {
            loop {
                let key = packets.insert(&[]);
                let bytes = packets.bytes_mut(key);
                if !self.router.poll_frame(now, interface, bytes) {
                    packets.remove(key);
                    break;
                }
                if self.send(interface, key, packets, None) {
                    self.counts.own += 1;
                }
            }
        }
    }
}
