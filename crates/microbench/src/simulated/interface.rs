//! One NIC of a machine, with its wire and what its driver remembers.

use super::SimulationError;
use super::event::NicId;
use super::frame::Frame;
use super::nic::Nic;
use crate::frame::LinkRate;
use crate::port::Losses;
use crate::profile::{DriverRule, NicProfile};
use baton_sim::hardware::{Wire, WireConfig};
use baton_wire::line_len;

/// What a driver remembers of the rings of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriverRings {
    /// Descriptors for frames to receive that were not given back to the NIC.
    pub(super) to_refill: u32,
    /// Frames in the send ring that the NIC was not told of.
    pub(super) to_announce: u32,
    /// Frames that were sent and received since the driver has read from the NIC how far that is.
    pub(super) sent: u32,
    pub(super) received: u32,
    /// Places of the send ring: the next to use, and the next to take back.
    next_slot: u32,
    next_reclaim: u32,
    send_ring: u32,
}

impl DriverRings {
    fn new(send_ring: u32) -> Self {
        Self {
            to_refill: 0,
            to_announce: 0,
            sent: 0,
            received: 0,
            next_slot: 0,
            next_reclaim: 0,
            send_ring,
        }
    }

    /// The place of the send ring for the next frame.
    pub(super) fn take_slot(&mut self) -> u32 {
        let slot = self.next_slot;
        self.next_slot = (slot + 1) % self.send_ring;
        slot
    }

    /// The place of the send ring from which on the next `count` descriptors are taken back.
    pub(super) fn take_reclaim(&mut self, count: u32) -> u32 {
        let slot = self.next_reclaim;
        self.next_reclaim = (slot + count) % self.send_ring;
        slot
    }
}

/// A NIC, its wire and its driver.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) nic: Nic,
    /// From its NIC.
    pub(super) wire: Wire<Frame>,
    /// What the driver remembers of each queue.
    pub(super) rings: Vec<DriverRings>,
    pub(super) driver: DriverRule,
    /// Frames that were lost before the NIC had them.
    pub(super) losses: Losses,
}

impl Interface {
    pub(super) fn new(
        id: NicId,
        profile: &NicProfile,
        link: LinkRate,
        queues: u8,
        polls: bool,
    ) -> Result<Self, SimulationError> {
        let wire = WireConfig {
            rate_mbps: link.mbps,
            delay_ns: super::CABLE_NS,
            ..WireConfig::default()
        };
        Ok(Self {
            nic: Nic::new(id, profile, queues, polls),
            wire: Wire::new(&wire, 0)?,
            rings: vec![DriverRings::new(profile.descriptors.send); usize::from(queues)],
            driver: profile.driver,
            losses: Losses::default(),
        })
    }

    /// Whether its driver has something to do in a queue.
    pub(super) fn has_work(&self, queue: u8) -> bool {
        self.nic.has_delivered(queue) || self.nic.completed(queue) > 0
    }

    /// Bytes that its NIC has put on the wire, preambles and gaps included.
    pub(super) fn line_bytes(&self) -> u64 {
        let counters = self.wire.counters();
        counters.bytes_sent + line_len(0) as u64 * counters.frames_sent
    }
}
