//! One NIC of a machine, with its wire and its driver's state.

use super::SimulationError;
use super::bus::Bus;
use super::event::{Context, Event, NicId};
use super::frame::Frame;
use super::world::End;
use crate::frame::LinkRate;
use crate::port::{Losses, Place};
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_sim::config::NicConfig;
use baton_sim::hardware::nic::{
    self, Around, DriverRule, Dropped, Firmware, Nic, NicHardware, Tag,
};
use baton_sim::hardware::{Wire, WireConfig};
use baton_wire::{Time, line_len};

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
    id: NicId,
    pub(super) nic: Nic<Frame>,
    /// The wire that leaves the NIC.
    pub(super) wire: Wire<Frame>,
    /// The end of the wire.
    pub(super) end: End,
    /// The driver's state of each queue.
    pub(super) rings: Vec<DriverRings>,
    pub(super) driver: DriverRule,
    /// Frames lost before they reached the NIC.
    pub(super) losses: Losses,
    /// The firmware, if the NIC is an adapter.
    firmware: Option<Box<super::firmware::Firmware>>,
    /// Bytes on the wire at the start of the measurement.
    line_bytes_before: u64,
}

impl Interface {
    pub(super) fn new(
        id: NicId,
        (profile, costs): (&NicHardware, Option<&NicConfig>),
        link: LinkRate,
        queues: u8,
        polls: bool,
    ) -> Result<Self, SimulationError> {
        let wire = WireConfig {
            rate_mbps: link.mbps,
            delay_ns: super::CABLE_NS,
            ..WireConfig::default()
        };
        let place_of_firmware = match costs {
            Some(_) => Firmware::Inline,
            None => Firmware::None,
        };
        Ok(Self {
            id,
            nic: Nic::new(profile, queues, polls, place_of_firmware),
            wire: Wire::new(&wire, 0)?,
            end: End::Switch(0),
            rings: vec![DriverRings::new(profile.descriptors.send); usize::from(queues)],
            driver: profile.driver,
            losses: Losses::default(),
            firmware: costs
                .map(|costs| super::firmware::Firmware::new(id, costs))
                .transpose()?
                .map(Box::new),
            line_bytes_before: 0,
        })
    }

    /// Returns the NIC, and the machine around it.
    pub(super) fn with_around<'a, 'b>(
        &'a mut self,
        cx: &'a mut Context<'b>,
        bus: &'a mut Bus,
    ) -> (&'a mut Nic<Frame>, Surroundings<'a, 'b>) {
        let (id, wire) = (self.id, &mut self.wire);
        (&mut self.nic, Surroundings { id, cx, bus, wire })
    }

    /// Returns the frames that the NIC lost after the wire, by place.
    pub(super) fn lost_after_wire(&self) -> Losses {
        let mut losses = Losses::default();
        for (reason, place) in [
            (Dropped::ReceiveFifo, Place::ReceiveFifo),
            (Dropped::NoDescriptor, Place::NoDescriptor),
        ] {
            losses.add(place, self.nic.counts.dropped[reason as usize]);
        }
        let of_firmware = self
            .firmware
            .as_ref()
            .map_or(0, |firmware| firmware.dropped);
        losses.add(Place::AdapterQueue, of_firmware);
        losses
    }

    /// Ends the firmware's piece of work.
    pub(super) fn end_firmware_piece(&mut self) {
        if let Some(firmware) = &mut self.firmware {
            firmware.end_piece(&mut self.nic);
        }
    }

    /// Begins everything that can begin.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>, bus: &mut Bus) {
        if let Some(firmware) = &mut self.firmware {
            firmware.advance(cx, &mut self.nic);
        }
        let (nic, mut around) = self.with_around(cx, bus);
        nic.advance(&mut around);
    }

    /// Returns whether the driver has work in a queue.
    pub(super) fn has_work(&self, queue: u8) -> bool {
        self.nic.has_delivered(queue) || self.nic.completed(queue) > 0
    }

    /// Returns the bytes that the NIC has put on the wire, including preambles and gaps.
    fn line_bytes(&self) -> u64 {
        let counters = self.wire.counters();
        counters.bytes_sent + line_len(0) as u64 * counters.frames_sent
    }

    pub(super) fn restart_counts(&mut self, now: Time) {
        self.nic.restart_counts(now);
        if let Some(firmware) = &mut self.firmware {
            firmware.restart_counts(now);
        }
        self.line_bytes_before = self.line_bytes();
    }

    /// Returns the utilisation, since the start of the measurement, of the busier of engines and firmware, of DMA start, of packet memory, and of the
    /// wire, which could send `most_bits`.
    pub(super) fn utilisation(&self, now: Time, most_bits: f64) -> [f64; 4] {
        let [engines, dma, memory] = self.nic.utilisation(now);
        let firmware = self.firmware.as_ref();
        let of_firmware = firmware.map_or(0.0, |firmware| firmware.utilisation(now));
        let on_wire = (self.line_bytes() - self.line_bytes_before) as f64;
        [
            engines.max(of_firmware),
            dma,
            memory,
            8.0 * on_wire / most_bits,
        ]
    }
}

/// The machine around a NIC.
pub(super) struct Surroundings<'a, 'b> {
    id: NicId,
    cx: &'a mut Context<'b>,
    bus: &'a mut Bus,
    wire: &'a mut Wire<Frame>,
}

impl Around<Frame> for Surroundings<'_, '_> {
    fn now(&self) -> Time {
        self.cx.now
    }

    fn at(&mut self, time: Time, event: nic::Event) {
        self.cx.at(time, Event::Nic(self.id, event));
    }

    fn submit(&mut self, operation: Operation, category: Category, bytes: u32, tag: Option<Tag>) {
        (self.bus).submit(self.cx, self.id.nic, operation, category, bytes, tag);
    }

    fn transmit(&mut self, at: Time, frame: Frame) -> Time {
        (self.cx).send(self.wire, at, frame, Event::Arrival(self.id));
        self.wire.free_at()
    }

    fn dropped(&mut self, _frame: Frame, _reason: Dropped) {}
}
