//! A NIC: rings, engines, DMA, packet memory and its MAC.
//!
//! Each is a resource of its own that does one thing at a time. A frame to send goes from the driver's ring over an engine, the DMA and
//! packet memory to the wire; one that was received goes the other way. What is full keeps back what comes before it, up to the driver's
//! ring or the receive FIFO, where frames are lost.

mod engine;
mod receive;
mod ring;
mod send;

use super::bus::{Bus, Tag};
use super::event::{Context, Event, NicId};
use super::frame::Frame;
use crate::port::Losses;
use crate::profile::NicProfile;
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_sim::hardware::{Occupancy, Wire};
use baton_wire::{Span, Time};
use engine::{Engine, Work};
use receive::Receiver;
use send::Sender;
use std::collections::VecDeque;

/// What was counted at a NIC.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NicCounts {
    /// Frames that were put on the wire, those that pause not counted.
    pub(super) sent: u64,
    /// Frames that reached host memory.
    pub(super) delivered: u64,
    /// Frames that it had to drop.
    pub(super) losses: Losses,
}

/// A NIC.
///
/// Calling order: after any `handle_*` and what the driver does, [`advance`](Self::advance).
#[derive(Debug)]
pub(super) struct Nic {
    id: NicId,
    profile: NicProfile,
    engines: Vec<Engine>,
    dma: Occupancy,
    /// What DMA is being started for, one after the other.
    starting: VecDeque<Work>,
    memory: Occupancy,
    sender: Sender,
    receiver: Receiver,
    /// It wants to interrupt the processor.
    pub(super) interrupts: bool,
    pub(super) counts: NicCounts,
}

impl Nic {
    pub(super) fn new(id: NicId, profile: &NicProfile) -> Self {
        Self {
            id,
            engines: vec![Engine::default(); profile.processor.engines as usize],
            dma: Occupancy::default(),
            starting: VecDeque::new(),
            memory: Occupancy::default(),
            sender: Sender::new(profile),
            receiver: Receiver::new(profile),
            interrupts: false,
            counts: NicCounts::default(),
            profile: profile.clone(),
        }
    }

    // --- events ---

    /// A transfer that was for the NIC is done.
    pub(super) fn handle_transfer(&mut self, cx: &mut Context<'_>, tag: Tag) {
        match tag {
            Tag::Doorbell(count) => self.sender.descriptors.post(count),
            Tag::Refill(count) => self.receiver.descriptors.post(count),
            Tag::SendDescriptors(count) => self.sender.descriptors.arrive(count),
            Tag::ReceiveDescriptors(count) => self.receiver.descriptors.arrive(count),
            Tag::SendFrame => self.handle_read(cx),
            Tag::ReceiveFrame => self.handle_written(cx),
            Tag::Register => {}
        }
    }

    /// A time of interrupts may be over.
    pub(super) fn handle_timer(&mut self, cx: &mut Context<'_>) {
        let rules = [&self.sender.interrupts, &self.receiver.interrupts];
        self.interrupts |= rules.iter().any(|rule| rule.is_due(cx.now));
    }

    /// The driver has looked at all that was there when it decided to return from the interrupt.
    pub(super) fn end_interrupt(&mut self, cx: &mut Context<'_>) {
        let others = self.not_exhausted();
        let Self {
            sender, receiver, ..
        } = self;
        let of_sent = sender.interrupts.restart(cx.now, sender.completed, others);
        let received = receiver.delivered.len() as u32;
        let of_received = receiver.interrupts.restart(cx.now, received, u32::MAX);
        self.interrupts = of_sent || of_received;
        self.arm(cx);
    }

    // --- effects ---

    /// Begins all that can begin.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>, bus: &mut Bus, wire: &mut Wire<Frame>) {
        self.read_descriptors(cx, bus);
        for engine in 0..self.engines.len() {
            self.begin_work(cx, engine);
        }
        self.transmit(cx, wire);
    }

    /// Moves descriptors between rings and NIC.
    fn read_descriptors(&mut self, cx: &mut Context<'_>, bus: &mut Bus) {
        let (rings, nic) = (self.profile.descriptors, self.id.nic);
        let mut submit = |operation, bytes, tag| {
            bus.submit(cx, nic, operation, Category::Descriptor, bytes, tag);
        };
        if let Some(count) = self.sender.descriptors.ask(rings.batch, rings.held) {
            let tag = Some(Tag::SendDescriptors(count));
            submit(Operation::DmaRead, count * rings.send_bytes, tag);
        }
        if let Some(count) = self.receiver.descriptors.ask(rings.batch, rings.held) {
            let tag = Some(Tag::ReceiveDescriptors(count));
            submit(Operation::DmaRead, count * rings.receive_bytes, tag);
        }
        if self.sender.to_write_back >= rings.batch {
            self.sender.to_write_back -= rings.batch;
            submit(Operation::DmaWrite, rings.batch * rings.send_bytes, None);
        }
    }

    /// So many bytes go into or out of packet memory: when they have. `None` if that takes no time.
    fn occupy_memory(&mut self, now: Time, bytes: u32) -> Option<Time> {
        let mbps = u64::from(self.profile.memory.bandwidth_mbps?);
        let span = Span::from_ps(u64::from(bytes) * 8 * 1_000_000 / mbps);
        Some(self.memory.occupy(now, span))
    }

    /// Sees to it that times of interrupts are noticed.
    fn arm(&mut self, cx: &mut Context<'_>) {
        for rule in [&mut self.sender.interrupts, &mut self.receiver.interrupts] {
            if let Some(due) = rule.next_due() {
                cx.at(due.max(cx.now), Event::Timer(self.id));
            }
        }
    }

    /// Puts a frame on the wire at `at`, or behind those that are on it.
    fn put_on_wire(&self, cx: &mut Context<'_>, wire: &mut Wire<Frame>, at: Time, frame: Frame) {
        let idle = wire.next_arrival().is_none();
        wire.send(at, frame.len.into(), frame);
        if let Some(arrival) = wire.next_arrival().filter(|_| idle) {
            cx.at(arrival, Event::Arrival(self.id));
        }
    }

    // --- getters ---

    pub(super) fn restart_counts(&mut self, now: Time) {
        for engine in &mut self.engines {
            engine.occupancy.start_measurement(now);
        }
        self.dma.start_measurement(now);
        self.memory.start_measurement(now);
    }

    /// Time since then in which the busiest engine, the start of DMA and packet memory worked, as shares, 0 to 1.
    pub(super) fn utilisation(&self, now: Time) -> [f64; 3] {
        let of = |occupancy: &Occupancy| {
            let (busy, idle) = (occupancy.busy(now), occupancy.idle(now));
            busy.as_ps() as f64 / (busy + idle).as_ps().max(1) as f64
        };
        let engines = self.engines.iter().map(|engine| of(&engine.occupancy));
        [engines.fold(0.0, f64::max), of(&self.dma), of(&self.memory)]
    }
}
