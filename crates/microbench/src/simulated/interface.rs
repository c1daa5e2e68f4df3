//! One NIC of a machine, with its wire and its driver's state.

use super::SimulationError;
use super::event::NicId;
use super::frame::Frame;
use super::nic::Nic;
use crate::frame::LinkRate;
use crate::port::Losses;
use baton_sim::hardware::nic::{DriverRule, NicHardware};
use baton_sim::hardware::{Wire, WireConfig};
use baton_wire::line_len;

/// A driver's state of the rings of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriverRings {
    /// Receive descriptors not yet given back to the NIC.
    pub(super) to_refill: u32,
    /// Frames in the send ring not yet reported to the NIC.
    pub(super) to_announce: u32,
    /// Frames sent and received since the driver last read the NIC's progress.
    pub(super) sent: u32,
    pub(super) received: u32,
    /// Slots of the send ring: the next to use, and the next to reclaim.
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

    /// Takes the slot of the send ring for the next frame.
    pub(super) fn take_slot(&mut self) -> u32 {
        let slot = self.next_slot;
        self.next_slot = (slot + 1) % self.send_ring;
        slot
    }

    /// Returns the slot of the send ring from which the next `count` descriptors are reclaimed, and advances past them.
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
    /// The wire that leaves the NIC.
    pub(super) wire: Wire<Frame>,
    /// The driver's state of each queue.
    pub(super) rings: Vec<DriverRings>,
    pub(super) driver: DriverRule,
    /// Frames lost before they reached the NIC.
    pub(super) losses: Losses,
}

impl Interface {
    pub(super) fn new(
        id: NicId,
        profile: &NicHardware,
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

    /// Returns whether the driver has work in a queue.
    pub(super) fn has_work(&self, queue: u8) -> bool {
        self.nic.has_delivered(queue) || self.nic.completed(queue) > 0
    }

    /// Returns the bytes that the NIC has put on the wire, including preambles and gaps.
    pub(super) fn line_bytes(&self) -> u64 {
        let counters = self.wire.counters();
        counters.bytes_sent + line_len(0) as u64 * counters.frames_sent
    }
}
