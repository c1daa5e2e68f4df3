//! The NIC's driver: its two rings, the buffers posted for received packets, and the packets that the NIC has not yet sent.

use crate::config::Config;
use crate::footprint::{self, Storage};
use crate::memory::Buffers;
use crate::meter::Meter;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// The mbufs of one packet: first the headers, then one mbuf for each run of data.
pub(crate) type PacketMbufs = SmallVec<[u32; 4]>;

/// A packet that was given to the NIC and is not yet reported as sent.
#[derive(Debug)]
struct Unsent {
    mbufs: PacketMbufs,
    /// Memory that holds the packet's data.
    data: PacketData,
    /// Number of the packet's first ring entry.
    first_entry: u32,
}

/// Memory that holds the data of one packet.
pub(crate) type PacketData = SmallVec<[Storage; 2]>;

/// The driver of one NIC.
#[derive(Debug)]
pub(crate) struct Driver {
    /// The mbuf and the cluster behind each entry of the receive ring.
    posted: Vec<(u32, u32)>,
    next_posted: usize,
    receive_ring_entries: u32,
    next_received: u32,
    transmit_ring_entries: u32,
    next_transmit: u32,
    /// Number of this driver's first receive ring entry in a numbering over the rings of all NICs.
    first_received: u32,
    first_transmit: u32,
    /// Packets that the NIC was given and has not reported as sent.
    unsent: VecDeque<Unsent>,
}

impl Driver {
    /// Creates the driver of NIC number `nic`.
    pub fn new(config: &Config, nic: u32, buffers: &mut Buffers) -> Self {
        let posted = (0..config.receive_ring_entries.max(1))
            .map(|_| buffers.allocate_reserved_pair())
            .collect();
        Self {
            posted,
            next_posted: 0,
            receive_ring_entries: config.receive_ring_entries.max(1),
            next_received: 0,
            transmit_ring_entries: config.transmit_ring_entries.max(1),
            next_transmit: 0,
            first_received: nic * config.receive_ring_entries.max(1),
            first_transmit: nic * config.transmit_ring_entries.max(1),
            unsent: VecDeque::new(),
        }
    }

    /// Returns the number of mbufs that the driver holds.
    pub fn mbufs_held(&self) -> usize {
        self.posted.len()
            + self
                .unsent
                .iter()
                .map(|packet| packet.mbufs.len())
                .sum::<usize>()
    }

    /// Returns the number of clusters that the driver holds.
    pub fn clusters_held(&self) -> usize {
        self.posted.len()
    }

    /// Reads the next entry of the receive ring, of whatever kind, and returns its number.
    pub fn next_entry<M: Meter>(&mut self, m: &mut M) -> u32 {
        let slot = self.first_received + self.next_received;
        self.next_received = (self.next_received + 1) % self.receive_ring_entries;
        footprint::ring_read(m, slot);
        slot
    }

    /// Takes the packet from ring entry `slot` and posts a fresh buffer. If no buffer is free, the packet is dropped and its buffer stays
    /// posted.
    pub fn receive<M: Meter>(
        &mut self,
        slot: u32,
        frame_len: usize,
        buffers: &mut Buffers,
        m: &mut M,
    ) -> Option<(u32, u32)> {
        let fresh = buffers.allocate_pair()?;
        let packet = std::mem::replace(&mut self.posted[self.next_posted], fresh);
        self.next_posted = (self.next_posted + 1) % self.posted.len();
        footprint::driver_receive(m, slot, packet, fresh.0, frame_len as u32);
        Some(packet)
    }

    /// Puts a packet on the ring, with a descriptor for each mbuf.
    pub fn transmit<M: Meter>(&mut self, mbufs: PacketMbufs, data: PacketData, m: &mut M) {
        let first_entry = self.next_transmit;
        let entries = mbufs.len() as u32;
        self.next_transmit = (first_entry + entries) % self.transmit_ring_entries;
        footprint::driver_transmit(m, self.transmit_entries(first_entry, entries), mbufs[0]);
        self.unsent.push_back(Unsent {
            mbufs,
            data,
            first_entry,
        });
    }

    /// Returns the numbers of `count` transmit ring entries, starting at `first`, in the numbering over all NICs.
    fn transmit_entries(&self, first: u32, count: u32) -> impl Iterator<Item = u32> + use<> {
        let (base, ring) = (self.first_transmit, self.transmit_ring_entries);
        (first..first + count).map(move |entry| base + entry % ring)
    }

    /// Frees the mbufs of the `count` oldest packets, which the NIC has sent.
    pub fn complete<M: Meter>(&mut self, count: u32, buffers: &mut Buffers, m: &mut M) {
        for _ in 0..count {
            let Some(packet) = self.unsent.pop_front() else {
                debug_assert!(false, "the NIC reports no more packets than it was given");
                return;
            };
            let Unsent {
                mbufs,
                data,
                first_entry,
            } = packet;
            let entries = self.transmit_entries(first_entry, mbufs.len() as u32);
            footprint::driver_complete(m, entries, &mbufs, &data);
            for mbuf in mbufs {
                buffers.mbufs.release(mbuf);
            }
        }
    }
}
