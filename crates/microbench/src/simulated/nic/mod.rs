//! A NIC: rings, engines, DMA, packet memory and its MAC.
//!
//! Each of these is a separate resource that does one thing at a time. A frame to send passes from the driver's ring through an engine, the
//! DMA and packet memory to the wire; a received frame passes the other way. A full resource blocks those before it, back to the driver's
//! ring or to the receive FIFO, where frames are lost.

mod engine;
mod receive;
mod ring;
mod send;

use super::bus::{Bus, Tag};
use super::event::{Context, Event, NicId};
use super::frame::Frame;
use crate::port::Losses;
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_sim::config::NicHardware;
use baton_sim::hardware::{Occupancy, Wire};
use baton_wire::{Span, Time};
use engine::{Engine, Work};
use receive::Receiver;
use ring::Ring;
use send::Sender;
use std::collections::VecDeque;

/// Bytes of an interrupt message (PCI Express 6.1.4).
const MESSAGE: u32 = 4;

/// State of a queue's interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interrupt {
    /// There is no reason to interrupt.
    None,
    /// A message has to be sent.
    Wanted,
    /// The message is on its way.
    Told,
    /// The interrupt is pending at the processor.
    Here,
    /// The driver is running and looks for work by itself.
    Masked,
}

/// Counts of a NIC.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NicCounts {
    /// Frames put on the wire, not counting pause frames.
    pub(super) sent: u64,
    /// Frames that reached host memory.
    pub(super) delivered: u64,
    /// Frames that the NIC dropped.
    pub(super) losses: Losses,
}

/// A NIC.
///
/// Call [`advance`](Self::advance) after any `handle_*` and after any action of the driver.
#[derive(Debug)]
pub(super) struct Nic {
    id: NicId,
    profile: NicHardware,
    engines: Vec<Engine>,
    dma: Occupancy,
    /// Frames whose DMA is to be started, one after the other.
    starting: VecDeque<Work>,
    memory: Occupancy,
    sender: Sender,
    receiver: Receiver,
    /// State of interrupts, by queue.
    interrupts: Vec<Interrupt>,
    /// Whether the driver polls, so that the NIC never interrupts.
    is_polled: bool,
    pub(super) counts: NicCounts,
}

impl Nic {
    pub(super) fn new(id: NicId, profile: &NicHardware, queues: u8, is_polled: bool) -> Self {
        let interrupt = match is_polled {
            true => Interrupt::Masked,
            false => Interrupt::None,
        };
        Self {
            id,
            engines: vec![Engine::default(); profile.processor.engines as usize],
            dma: Occupancy::default(),
            starting: VecDeque::new(),
            memory: Occupancy::default(),
            sender: Sender::new(profile, queues),
            receiver: Receiver::new(profile, queues),
            interrupts: vec![interrupt; usize::from(queues)],
            is_polled,
            counts: NicCounts::default(),
            profile: profile.clone(),
        }
    }

    // --- events ---

    /// Handles the completion of a transfer for the NIC.
    pub(super) fn handle_transfer(&mut self, cx: &mut Context<'_>, tag: Tag) {
        match tag {
            Tag::Doorbell(queue, count) => self.send_ring(queue).post(count),
            Tag::Refill(queue, count) => self.receive_ring(queue).post(count),
            Tag::SendDescriptors(queue, count) => self.send_ring(queue).arrive(count),
            Tag::ReceiveDescriptors(queue, count) => self.receive_ring(queue).arrive(count),
            Tag::SendFrame => self.handle_read(cx),
            Tag::ReceiveFrame => self.handle_written(cx),
            Tag::Interrupt(queue) => {
                self.interrupts[usize::from(queue)] = Interrupt::Here;
            }
            Tag::Register(_) => {}
        }
    }

    /// Returns the send descriptors of a queue.
    fn send_ring(&mut self, queue: u8) -> &mut Ring {
        &mut self.sender.queues[usize::from(queue)].descriptors
    }

    /// Returns the receive descriptors of a queue.
    fn receive_ring(&mut self, queue: u8) -> &mut Ring {
        &mut self.receiver.queues[usize::from(queue)].descriptors
    }

    /// Handles that a coalescing time may have passed.
    pub(super) fn handle_timer(&mut self, cx: &mut Context<'_>) {
        for queue in 0..self.interrupts.len() {
            let rules = [
                &self.sender.queues[queue].interrupts,
                &self.receiver.queues[queue].interrupts,
            ];
            if rules.iter().any(|rule| rule.is_due(cx.now)) {
                self.interrupt(queue as u8);
            }
        }
    }

    /// Requests an interrupt for a queue.
    fn interrupt(&mut self, queue: u8) {
        let interrupt = &mut self.interrupts[usize::from(queue)];
        if *interrupt == Interrupt::None {
            *interrupt = match self.profile.messages {
                true => Interrupt::Wanted,
                false => Interrupt::Here,
            };
        }
    }

    /// Returns whether a queue interrupts its processor. No other interrupt follows until the driver [ends](Self::end_interrupt) this one.
    pub(super) fn take_interrupt(&mut self, queue: u8) -> bool {
        let interrupt = &mut self.interrupts[usize::from(queue)];
        let is_here = *interrupt == Interrupt::Here;
        if is_here {
            *interrupt = Interrupt::Masked;
        }
        is_here
    }

    /// Ends the interrupt: the driver has handled everything that was in the queue when it decided to return.
    pub(super) fn end_interrupt(&mut self, cx: &mut Context<'_>, queue: u8) {
        let others = self.not_exhausted(queue);
        let place = usize::from(queue);
        let sender = &mut self.sender.queues[place];
        let of_sent = sender.interrupts.restart(cx.now, sender.completed, others);
        let receiver = &mut self.receiver.queues[place];
        let received = receiver.delivered.len() as u32;
        let of_received = receiver.interrupts.restart(cx.now, received, u32::MAX);
        self.interrupts[place] = Interrupt::None;
        if of_sent || of_received {
            self.interrupt(queue);
        }
        self.arm(cx, queue);
    }

    // --- effects ---

    /// Begins everything that can begin.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>, bus: &mut Bus, wire: &mut Wire<Frame>) {
        self.read_descriptors(cx, bus);
        for engine in 0..self.engines.len() {
            self.begin_work(cx, engine);
        }
        self.transmit(cx, wire);
    }

    /// Moves descriptors between rings and NIC, and sends interrupt messages.
    fn read_descriptors(&mut self, cx: &mut Context<'_>, bus: &mut Bus) {
        let (rings, nic) = (self.profile.descriptors, self.id.nic);
        let mut submit = |operation, bytes, tag| {
            bus.submit(cx, nic, operation, Category::Descriptor, bytes, tag);
        };
        let queues = self.sender.queues.iter_mut();
        for (number, queue) in (0..).zip(queues) {
            if let Some(count) = queue.descriptors.ask(rings.batch, rings.held) {
                let tag = Some(Tag::SendDescriptors(number, count));
                submit(Operation::DmaRead, count * rings.send_bytes, tag);
            }
            let together = rings.written_back.unwrap_or(rings.batch);
            if queue.to_write_back >= together {
                queue.to_write_back -= together;
                submit(Operation::DmaWrite, together * rings.written_bytes(), None);
            }
        }
        let queues = self.receiver.queues.iter_mut();
        for (number, queue) in (0..).zip(queues) {
            let batch = rings.receive_batch.unwrap_or(rings.batch);
            if let Some(count) = queue.descriptors.ask(batch, rings.held) {
                let tag = Some(Tag::ReceiveDescriptors(number, count));
                submit(Operation::DmaRead, count * rings.receive_bytes, tag);
            }
        }
        for (number, interrupt) in (0..).zip(&mut self.interrupts) {
            if *interrupt == Interrupt::Wanted {
                *interrupt = Interrupt::Told;
                let tag = Some(Tag::Interrupt(number));
                submit(Operation::DmaWrite, MESSAGE, tag);
            }
        }
    }

    /// Returns the time that this many bytes take into or out of packet memory; `None` if they take no time.
    fn memory_time(&self, bytes: u32) -> Option<Span> {
        let mbps = u64::from(self.profile.memory.bandwidth_mbps?);
        Some(Span::from_ps(u64::from(bytes) * 8 * 1_000_000 / mbps))
    }

    /// Moves this many bytes into or out of packet memory, and returns when they have passed; `None` if that takes no time.
    fn occupy_memory(&mut self, now: Time, bytes: u32) -> Option<Time> {
        let span = self.memory_time(bytes)?;
        Some(self.memory.occupy(now, span))
    }

    /// Schedules events for the coalescing times of a queue.
    fn arm(&mut self, cx: &mut Context<'_>, queue: u8) {
        if self.is_polled {
            return;
        }
        let place = usize::from(queue);
        for rule in [
            &mut self.sender.queues[place].interrupts,
            &mut self.receiver.queues[place].interrupts,
        ] {
            if let Some(due) = rule.next_due() {
                cx.at(due.max(cx.now), Event::Timer(self.id));
            }
        }
    }

    /// Puts a frame on the wire at `at`, or behind the frames that are already on it.
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

    /// Returns the utilisation of the busiest engine, the DMA start and packet memory since the start of the measurement, 0 to 1.
    pub(super) fn utilisation(&self, now: Time) -> [f64; 3] {
        let of = |occupancy: &Occupancy| {
            let (busy, idle) = (occupancy.busy(now), occupancy.idle(now));
            busy.as_ps() as f64 / (busy + idle).as_ps().max(1) as f64
        };
        let engines = self.engines.iter().map(|engine| of(&engine.occupancy));
        [engines.fold(0.0, f64::max), of(&self.dma), of(&self.memory)]
    }
}
