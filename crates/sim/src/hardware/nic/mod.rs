//! A NIC: rings, engines, DMA, packet memory and its MAC.
//!
//! Each of these is a separate resource that does one thing at a time. A frame to send passes from the driver's ring through an engine, the
//! DMA and packet memory to the wire; a received frame passes the other way. A full resource blocks those before it, back to the driver's
//! ring or to the receive FIFO, where frames are lost. A NIC with firmware is an adapter: each frame also passes the firmware.

mod around;
mod coalescing;
mod config;
mod engine;
mod interrupts;
mod receive;
mod ring;
pub mod rss;
mod send;

pub use around::{Around, Dropped, Event, Frame, Tag};
pub use config::{
    Checksums, CoalescingRule, Descriptors, Dma, DriverRule, LinkRate, NicHardware, NicProcessing,
    PacketMemory, PauseRule,
};

use super::Occupancy;
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_wire::{Span, Time};
use engine::{Engine, Work};
pub(crate) use interrupts::Interrupt;
use receive::Receiver;
use ring::Ring;
use send::Sender;
use std::collections::VecDeque;

/// Bytes of an interrupt message (PCI Express 6.1.4).
pub(crate) const MESSAGE_BYTES: u32 = 4;

/// Where a NIC's firmware is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firmware {
    /// There is none: engines pass frames to and from the driver's rings.
    None,
    /// Between the engines and the driver's rings: the firmware handles each frame.
    Inline,
    /// Frames begin and end in the firmware, which has a link of its own to the host; there are no rings of a driver.
    Apart,
}

/// Counts of a NIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct NicCounts {
    /// Frames put on the wire, not counting pause frames.
    pub sent: u64,
    /// Frames that reached host memory.
    pub delivered: u64,
    /// Frames that the NIC dropped, by reason.
    pub dropped: [u64; Dropped::ALL.len()],
}

/// A NIC.
///
/// Call [`advance`](Self::advance) after any `handle_*` and after any action of the driver or of the firmware.
#[derive(Debug)]
pub struct Nic<F> {
    firmware: Firmware,
    profile: NicHardware,
    engines: Vec<Engine<F>>,
    dma: Occupancy,
    /// Frames whose DMA is to be started, one after the other.
    starting: VecDeque<Work<F>>,
    memory: Occupancy,
    sender: Sender<F>,
    receiver: Receiver<F>,
    /// Interrupts by queue.
    interrupts: Vec<Interrupt>,
    /// Counts since the start.
    pub counts: NicCounts,
}

impl<F: Frame> Nic<F> {
    /// Creates an idle NIC.
    pub fn new(profile: &NicHardware, queues: u8, is_polled: bool, firmware: Firmware) -> Self {
        let interrupt = Interrupt::new(profile, is_polled, profile.messages);
        Self {
            firmware,
            engines: (0..profile.processor.engines)
                .map(|_| Engine::default())
                .collect(),
            dma: Occupancy::default(),
            starting: VecDeque::new(),
            memory: Occupancy::default(),
            sender: Sender::new(profile, queues),
            receiver: Receiver::new(profile, queues, firmware),
            interrupts: vec![interrupt; usize::from(queues)],
            counts: NicCounts::default(),
            profile: profile.clone(),
        }
    }

    // --- events ---

    /// Handles an event. Returns the frame that has reached host memory, with its slot in the driver's ring, if one has.
    pub fn handle(&mut self, around: &mut impl Around<F>, event: Event) -> Option<&(u32, F)> {
        match event {
            Event::Engine(engine) => self.handle_engine(around, engine),
            Event::Dma => self.handle_dma(around),
            Event::Buffered => self.handle_buffered(),
            Event::Sent => self.handle_sent(around),
            Event::Stored => self.handle_stored(),
            Event::Delivered => return self.handle_delivered(around),
            Event::Timer => {
                let all = self.interrupts.iter_mut();
                all.for_each(|interrupt| interrupt.handle_timer(around.now()));
            }
        }
        None
    }

    /// Handles the completion of a transfer for the NIC.
    pub fn handle_transfer(&mut self, around: &mut impl Around<F>, tag: Tag) {
        match tag {
            Tag::Doorbell(queue, count) => self.send_ring(queue).post(count),
            Tag::Refill(queue, count) => self.receive_ring(queue).post(count),
            Tag::SendDescriptors(queue, count) => self.send_ring(queue).arrive(count),
            Tag::ReceiveDescriptors(queue, count) => self.receive_ring(queue).arrive(count),
            Tag::SendFrame => self.handle_read(around),
            Tag::ReceiveFrame => self.handle_written(around),
            Tag::Interrupt(queue) => self.interrupts[usize::from(queue)].handle_message(),
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

    /// Returns whether a queue interrupts its processor. No other interrupt follows until the driver [ends](Self::end_interrupt) this one.
    pub fn take_interrupt(&mut self, queue: u8) -> bool {
        self.interrupts[usize::from(queue)].take()
    }

    /// Ends the interrupt: the driver has handled everything that was in the queue when it decided to return.
    pub fn end_interrupt(&mut self, around: &mut impl Around<F>, queue: u8) {
        let sent = (self.completed(queue), self.not_exhausted(queue));
        let place = usize::from(queue);
        let received = self.receiver.queues[place].delivered.len() as u32;
        self.interrupts[place].end(around.now(), sent, received);
        self.arm(around, queue);
    }

    // --- effects ---

    /// Begins everything that can begin.
    pub fn advance(&mut self, around: &mut impl Around<F>) {
        self.read_descriptors(around);
        self.begin_passed(around);
        for engine in 0..self.engines.len() {
            self.begin_work(around, engine);
        }
        self.transmit(around);
    }

    /// Moves descriptors between rings and NIC, and sends interrupt messages.
    fn read_descriptors(&mut self, around: &mut impl Around<F>) {
        let rings = self.profile.descriptors;
        let mut submit = |operation, bytes, tag| {
            around.submit(operation, Category::Descriptor, bytes, tag);
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
            if interrupt.poll_message() {
                let tag = Some(Tag::Interrupt(number));
                submit(Operation::DmaWrite, MESSAGE_BYTES, tag);
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
    fn arm(&mut self, around: &mut impl Around<F>, queue: u8) {
        for due in self.interrupts[usize::from(queue)].next_dues() {
            around.at(due.max(around.now()), Event::Timer);
        }
    }

    // --- getters ---

    /// Starts the measurement.
    pub fn restart_counts(&mut self, now: Time) {
        for engine in &mut self.engines {
            engine.occupancy.start_measurement(now);
        }
        self.dma.start_measurement(now);
        self.memory.start_measurement(now);
    }

    /// Returns the utilisation of the busiest engine, the DMA start and packet memory since the start of the measurement, 0 to 1.
    pub fn utilisation(&self, now: Time) -> [f64; 3] {
        let engines = self.engines.iter();
        let engines = engines.map(|engine| engine.occupancy.utilisation(now));
        [
            engines.fold(0.0, f64::max),
            self.dma.utilisation(now),
            self.memory.utilisation(now),
        ]
    }
}
