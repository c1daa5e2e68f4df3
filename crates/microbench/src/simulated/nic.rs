//! A NIC: rings, engines, DMA, packet memory and its MAC.
//!
//! Each is a resource of its own that does one thing at a time. A frame to send goes from the driver's ring over an engine, the DMA and
//! packet memory to the wire; one that was received goes the other way. What is full keeps back what comes before it, up to the driver's
//! ring or the receive FIFO, where frames are lost.

use super::bus::{Bus, Tag};
use super::coalescing::Coalescing;
use super::event::{Context, Event};
use super::frame::{Body, Frame, LEAST_FRAME};
use crate::port::{Losses, Place};
use crate::profile::NicProfile;
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_sim::hardware::{Occupancy, Wire};
use baton_wire::{Span, Time};
use std::collections::VecDeque;

/// Frames that the MAC has begun to take out of packet memory: one on the wire and the next.
const STAGED: u32 = 2;

/// The two ways that frames go through a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Send,
    Receive,
}

/// One that handles frames.
#[derive(Clone, Debug, Default)]
struct Engine {
    occupancy: Occupancy,
    work: Option<Way>,
    /// What it did last: with both to do it does them in turn.
    last: Option<Way>,
}

/// Descriptors of one way.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    /// Those that the NIC knows of and has not read.
    posted: u32,
    /// Those on their way to it.
    coming: u32,
    /// Those that it has read and not used.
    held: u32,
}

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
#[derive(Debug)]
pub(super) struct Nic {
    machine: u8,
    profile: NicProfile,
    engines: Vec<Engine>,
    dma: Occupancy,
    /// What DMA is being started for, one after the other.
    starting: VecDeque<Way>,
    memory: Option<Occupancy>,

    /// Frames in the driver's ring, oldest first, up to those whose descriptor was taken back.
    ring: VecDeque<(u32, Frame)>,
    send_ring: Ring,
    /// Frames whose DMA was asked for and is not done, by their places in the host's ring.
    reading: VecDeque<(u32, Frame)>,
    /// Frames on their way into packet memory.
    entering: VecDeque<Frame>,
    /// Frames that wait for the MAC.
    to_send: VecDeque<Frame>,
    /// Bytes of packet memory in use for frames to send.
    send_bytes: u32,
    staged: VecDeque<Frame>,
    /// The partner has asked it to stop.
    stopped: bool,
    /// Frames that were sent and whose descriptors the driver has not taken back.
    pub(super) completed: u32,
    /// Frames that were sent and whose descriptors the NIC has not written back.
    to_write_back: u32,

    receive_ring: Ring,
    /// Frames on their way into packet memory.
    storing: VecDeque<Frame>,
    /// Frames in packet memory that no engine has taken.
    stored: VecDeque<Frame>,
    /// Frames whose DMA was asked for and is not done, with the time when they have left packet memory.
    writing: VecDeque<(Frame, Time)>,
    /// Frames that are over the bus and leave packet memory.
    leaving: VecDeque<Frame>,
    /// Bytes of packet memory in use for received frames.
    receive_bytes: u32,
    /// It has asked its partner to stop.
    pausing: bool,
    /// The place of the host's ring that the next frame goes to.
    next_slot: u32,
    /// Frames in host memory that the driver has not looked at, by their places in its ring.
    pub(super) delivered: VecDeque<(u32, Frame)>,

    send_interrupts: Coalescing,
    receive_interrupts: Coalescing,
    /// It wants to interrupt the processor.
    pub(super) interrupts: bool,
    /// Descriptors in the driver's send ring, as far as the driver has not taken them back.
    pub(super) ring_used: u32,
    pub(super) counts: NicCounts,
}

impl Nic {
    pub(super) fn new(machine: u8, profile: &NicProfile) -> Self {
        Self {
            machine,
            engines: vec![Engine::default(); profile.processor.engines as usize],
            dma: Occupancy::default(),
            starting: VecDeque::new(),
            memory: profile.memory.bandwidth_mbps.map(|_| Occupancy::default()),
            ring: VecDeque::new(),
            send_ring: Ring::default(),
            reading: VecDeque::new(),
            entering: VecDeque::new(),
            to_send: VecDeque::new(),
            send_bytes: 0,
            staged: VecDeque::new(),
            stopped: false,
            completed: 0,
            to_write_back: 0,
            receive_ring: Ring {
                posted: profile.descriptors.receive,
                ..Ring::default()
            },
            storing: VecDeque::new(),
            stored: VecDeque::new(),
            writing: VecDeque::new(),
            leaving: VecDeque::new(),
            receive_bytes: 0,
            pausing: false,
            next_slot: 0,
            delivered: VecDeque::new(),
            send_interrupts: Coalescing::new(profile.send_interrupts),
            receive_interrupts: Coalescing::new(profile.receive_interrupts),
            interrupts: false,
            ring_used: 0,
            counts: NicCounts::default(),
            profile: profile.clone(),
        }
    }

    // --- the driver ---

    /// Descriptors of the send ring that the driver could use.
    pub(super) fn free_descriptors(&self) -> u32 {
        self.profile.descriptors.send - self.ring_used
    }

    /// Descriptors of the send ring that are free, or will be without the driver's doing anything: all but those of frames that were sent.
    fn not_exhausted(&self) -> u32 {
        self.profile.descriptors.send - self.completed
    }

    /// Whether the driver cannot send because the partner has paused it.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The driver has put a frame into its ring.
    pub(super) fn put(&mut self, slot: u32, frame: Frame) {
        self.ring_used += 1;
        self.ring.push_back((slot, frame));
    }

    /// The driver has taken back the descriptors of so many frames that were sent.
    pub(super) fn reclaim(&mut self, count: u32) {
        self.completed -= count;
        self.ring_used -= count;
    }

    /// The driver has looked at all that was there when it decided to return from the interrupt.
    pub(super) fn end_interrupt(&mut self, cx: &mut Context<'_>) {
        let (sent, received) = (self.completed, self.delivered.len() as u32);
        let at_once = self
            .send_interrupts
            .restart(cx.now, sent, self.not_exhausted());
        let at_once = self.receive_interrupts.restart(cx.now, received, u32::MAX) || at_once;
        self.interrupts = at_once;
        self.arm(cx);
    }

    // --- events ---

    /// A transfer that was for the NIC is done.
    pub(super) fn handle_transfer(&mut self, cx: &mut Context<'_>, tag: Tag) {
        match tag {
            Tag::Doorbell(count) => self.send_ring.posted += count,
            Tag::Refill(count) => self.receive_ring.posted += count,
            Tag::SendDescriptors(count) => self.send_ring.arrive(count),
            Tag::ReceiveDescriptors(count) => self.receive_ring.arrive(count),
            Tag::SendFrame => self.handle_read(cx),
            Tag::ReceiveFrame => self.handle_written(cx),
            Tag::Register => {}
        }
    }

    /// The frame whose DMA from host memory ends next: its place in the driver's ring, and its bytes.
    pub(super) fn next_read(&self) -> Option<(u32, u32)> {
        self.reading
            .front()
            .map(|(slot, frame)| (*slot, frame.bytes()))
    }

    /// A frame to send has been read from host memory.
    fn handle_read(&mut self, cx: &mut Context<'_>) {
        let Some((_, frame)) = self.reading.pop_front() else {
            return;
        };
        self.entering.push_back(frame);
        match self.occupy_memory(cx.now, frame.bytes()) {
            Some(until) => cx.at(until, Event::Buffered(self.machine)),
            None => self.handle_buffered(),
        }
    }

    /// A frame to send is in packet memory.
    pub(super) fn handle_buffered(&mut self) {
        self.to_send.extend(self.entering.pop_front());
    }

    /// A frame has left.
    pub(super) fn handle_sent(&mut self, cx: &mut Context<'_>) {
        let Some(frame) = self.staged.pop_front() else {
            return;
        };
        self.send_bytes -= frame.bytes();
        self.completed += 1;
        self.to_write_back += 1;
        self.counts.sent += 1;
        if self.send_interrupts.add(cx.now, self.not_exhausted()) {
            self.interrupts = true;
        }
        self.arm(cx);
    }

    /// A frame arrives.
    pub(super) fn handle_arrival(
        &mut self,
        cx: &mut Context<'_>,
        wire: &mut Wire<Frame>,
        frame: Frame,
    ) {
        if let Body::Pause { stop } = frame.body {
            self.stopped = stop && self.profile.pause.honours;
            return;
        }
        if self.receive_bytes + frame.bytes() > self.profile.memory.receive_bytes {
            let has_none = self.receive_ring.held == 0
                && self.receive_ring.coming == 0
                && self.receive_ring.posted == 0;
            let place = if has_none {
                Place::NoDescriptor
            } else {
                Place::ReceiveFifo
            };
            self.counts.losses.add(place, 1);
            if let Body::Segment(key) = frame.body {
                cx.segments.remove(key);
            }
            return;
        }
        self.receive_bytes += frame.bytes();
        self.storing.push_back(frame);
        match self.occupy_memory(cx.now, frame.bytes()) {
            Some(until) => cx.at(until, Event::Stored(self.machine)),
            None => self.handle_stored(),
        }
        self.pause(cx, wire);
    }

    /// A frame that was received is in packet memory.
    pub(super) fn handle_stored(&mut self) {
        self.stored.extend(self.storing.pop_front());
    }

    /// An engine is done with a frame: its DMA is next.
    pub(super) fn handle_engine(&mut self, cx: &mut Context<'_>, engine: u8) {
        let Some(way) = self.engines[usize::from(engine)].work.take() else {
            return;
        };
        let transfers = match way {
            Way::Send => 1,
            Way::Receive => self.transfers_of_next(),
        };
        let start = Span::from_ns(self.profile.dma.start_ns.into()) * u64::from(transfers);
        self.starting.push_back(way);
        let until = self.dma.occupy(cx.now, start);
        cx.at(until, Event::Dma(self.machine));
    }

    /// DMA transfers that the next frame to host memory takes.
    fn transfers_of_next(&self) -> u32 {
        let waiting = self
            .starting
            .iter()
            .filter(|way| **way == Way::Receive)
            .count();
        let bytes = self.stored.get(waiting).map_or(0, Frame::bytes);
        let limit = self.profile.dma.receive_limit_bytes.unwrap_or(u32::MAX);
        bytes.div_ceil(limit).max(1)
    }

    /// A DMA is started.
    pub(super) fn handle_dma(&mut self, cx: &mut Context<'_>, bus: &mut Bus) {
        match self.starting.pop_front() {
            Some(Way::Send) => {
                let Some((slot, frame)) = self.ring.pop_front() else {
                    return;
                };
                self.reading.push_back((slot, frame));
                bus.submit(
                    cx,
                    Operation::DmaRead,
                    Category::Content,
                    frame.bytes(),
                    Some(Tag::SendFrame),
                );
            }
            Some(Way::Receive) => {
                let Some(frame) = self.stored.pop_front() else {
                    return;
                };
                let out = self.occupy_memory(cx.now, frame.bytes()).unwrap_or(cx.now);
                self.writing.push_back((frame, out));
                let limit = self.profile.dma.receive_limit_bytes.unwrap_or(u32::MAX);
                let mut left = frame.bytes();
                while left > 0 {
                    let bytes = left.min(limit);
                    bus.submit(cx, Operation::DmaWrite, Category::Content, bytes, None);
                    left -= bytes;
                }
                let descriptor = self.profile.descriptors.receive_bytes;
                bus.submit(
                    cx,
                    Operation::DmaWrite,
                    Category::Descriptor,
                    descriptor,
                    Some(Tag::ReceiveFrame),
                );
            }
            None => {}
        }
    }

    /// A frame that was received is over the bus.
    fn handle_written(&mut self, cx: &mut Context<'_>) {
        let Some((frame, out)) = self.writing.pop_front() else {
            return;
        };
        self.leaving.push_back(frame);
        cx.at(out.max(cx.now), Event::Delivered(self.machine));
    }

    /// A frame that was received is in host memory: its place there, and its bytes.
    pub(super) fn handle_delivered(
        &mut self,
        cx: &mut Context<'_>,
        wire: &mut Wire<Frame>,
    ) -> Option<(u32, Frame)> {
        let frame = self.leaving.pop_front()?;
        self.receive_bytes -= frame.bytes();
        self.counts.delivered += 1;
        let slot = self.next_slot;
        self.next_slot = (slot + 1) % self.profile.descriptors.receive;
        self.delivered.push_back((slot, frame));
        if self.receive_interrupts.add(cx.now, u32::MAX) {
            self.interrupts = true;
        }
        self.pause(cx, wire);
        self.arm(cx);
        Some((slot, frame))
    }

    /// A time of interrupts may be over.
    pub(super) fn handle_timer(&mut self, cx: &mut Context<'_>) {
        let is_due = self.send_interrupts.is_due(cx.now) || self.receive_interrupts.is_due(cx.now);
        self.interrupts |= is_due;
    }

    // --- effects ---

    /// Begins all that can begin.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>, bus: &mut Bus, wire: &mut Wire<Frame>) {
        let rings = self.profile.descriptors;
        if let Some(count) = self.send_ring.ask(rings.batch, rings.held) {
            bus.submit(
                cx,
                Operation::DmaRead,
                Category::Descriptor,
                count * rings.send_bytes,
                Some(Tag::SendDescriptors(count)),
            );
        }
        if let Some(count) = self.receive_ring.ask(rings.batch, rings.held) {
            bus.submit(
                cx,
                Operation::DmaRead,
                Category::Descriptor,
                count * rings.receive_bytes,
                Some(Tag::ReceiveDescriptors(count)),
            );
        }
        if self.to_write_back >= rings.batch {
            self.to_write_back -= rings.batch;
            bus.submit(
                cx,
                Operation::DmaWrite,
                Category::Descriptor,
                rings.batch * rings.send_bytes,
                None,
            );
        }
        for engine in 0..self.engines.len() {
            self.begin_work(cx, engine);
        }
        self.transmit(cx, wire);
    }

    /// Gives an idle engine the next frame.
    fn begin_work(&mut self, cx: &mut Context<'_>, engine: usize) {
        if self.engines[engine].work.is_some() {
            return;
        }
        let alone = self.engines.len() == 1;
        let send = (alone || engine == 0) && self.can_read();
        let receive = (alone || engine == 1) && self.can_write();
        let way = match (send, receive) {
            (true, true) if self.engines[engine].last == Some(Way::Send) => Way::Receive,
            (true, _) => Way::Send,
            (false, true) => Way::Receive,
            (false, false) => return,
        };
        let processing = self.profile.processor;
        let time = match way {
            Way::Send => {
                self.send_ring.held -= 1;
                let next = self
                    .ring
                    .get(self.being_handled(Way::Send))
                    .map_or(0, |(_, frame)| frame.bytes());
                self.send_bytes += next;
                processing.send_ns
            }
            Way::Receive => {
                self.receive_ring.held -= 1;
                processing.receive_ns
            }
        };
        let of_memory = match processing.memory_bytes {
            0 => None,
            bytes => self.occupy_memory(cx.now, bytes),
        };
        let one = &mut self.engines[engine];
        (one.work, one.last) = (Some(way), Some(way));
        // Its code and data are in packet memory: it waits for them.
        let waits = of_memory.map_or(Span::ZERO, |until| until - cx.now);
        let until = one
            .occupancy
            .occupy(cx.now, Span::from_ns(time.into()) + waits);
        cx.at(until, Event::Engine(self.machine, engine as u8));
    }

    /// Frames of this way that an engine has, or whose DMA is about to start.
    fn being_handled(&self, way: Way) -> usize {
        let engines = self
            .engines
            .iter()
            .filter(|engine| engine.work == Some(way))
            .count();
        engines + self.starting.iter().filter(|one| **one == way).count()
    }

    /// Whether the next frame to send can be taken from the driver's ring.
    fn can_read(&self) -> bool {
        let handled = self.being_handled(Way::Send);
        let Some((_, next)) = self.ring.get(handled) else {
            return false;
        };
        let under_way = handled + self.reading.len() + self.entering.len();
        self.send_ring.held > 0
            && under_way < self.profile.dma.frames as usize
            && self.send_bytes + next.bytes() <= self.profile.memory.send_bytes
    }

    /// Whether the next frame that was received can be given to the host.
    fn can_write(&self) -> bool {
        let handled = self.being_handled(Way::Receive);
        let under_way = handled + self.writing.len() + self.leaving.len();
        self.receive_ring.held > 0
            && self.stored.len() > handled
            && under_way < self.profile.dma.frames as usize
    }

    /// Puts frames on the wire.
    fn transmit(&mut self, cx: &mut Context<'_>, wire: &mut Wire<Frame>) {
        while !self.stopped && self.staged.len() < STAGED as usize {
            let Some(frame) = self.to_send.pop_front() else {
                return;
            };
            let out = self.occupy_memory(cx.now, frame.bytes()).unwrap_or(cx.now);
            self.staged.push_back(frame);
            send(cx, wire, self.machine, out, frame);
            cx.at(wire.free_at(), Event::Sent(self.machine));
        }
    }

    /// Asks the partner to stop, or to go on.
    fn pause(&mut self, cx: &mut Context<'_>, wire: &mut Wire<Frame>) {
        let (rule, memory) = (
            self.profile.pause,
            u64::from(self.profile.memory.receive_bytes),
        );
        if !rule.sends {
            return;
        }
        let used = 100 * u64::from(self.receive_bytes);
        let stop = if self.pausing {
            used > memory * u64::from(rule.low_percent)
        } else {
            used >= memory * u64::from(rule.high_percent)
        };
        if stop != self.pausing {
            self.pausing = stop;
            let frame = Frame {
                len: LEAST_FRAME,
                to: 0,
                born: cx.now,
                body: Body::Pause { stop },
            };
            send(cx, wire, self.machine, cx.now, frame);
        }
    }

    /// So many bytes go into or out of packet memory: when they have. `None` if that takes no time.
    fn occupy_memory(&mut self, now: Time, bytes: u32) -> Option<Time> {
        let mbps = u64::from(self.profile.memory.bandwidth_mbps?);
        let span = Span::from_ps(u64::from(bytes) * 8 * 1_000_000 / mbps);
        Some(self.memory.as_mut()?.occupy(now, span))
    }

    /// Sees to it that times of interrupts are noticed.
    fn arm(&mut self, cx: &mut Context<'_>) {
        if let Some(due) = self.send_interrupts.next_due() {
            cx.at(due.max(cx.now), Event::Timer(self.machine));
        }
        if let Some(due) = self.receive_interrupts.next_due() {
            cx.at(due.max(cx.now), Event::Timer(self.machine));
        }
    }

    // --- getters ---

    pub(super) fn restart_counts(&mut self, now: Time) {
        for engine in &mut self.engines {
            engine.occupancy.start_measurement(now);
        }
        self.dma.start_measurement(now);
        if let Some(memory) = &mut self.memory {
            memory.start_measurement(now);
        }
    }

    /// Time since then in which the busiest engine, the start of DMA and packet memory worked, as shares, 0 to 1.
    pub(super) fn utilisation(&self, now: Time) -> [f64; 3] {
        let of = |occupancy: &Occupancy| {
            let (busy, idle) = (occupancy.busy(now), occupancy.idle(now));
            busy.as_ps() as f64 / (busy + idle).as_ps().max(1) as f64
        };
        let engines = self.engines.iter().map(|engine| of(&engine.occupancy));
        [
            engines.fold(0.0, f64::max),
            of(&self.dma),
            self.memory.as_ref().map_or(0.0, of),
        ]
    }
}

impl Ring {
    fn arrive(&mut self, count: u32) {
        self.coming -= count;
        self.held += count;
    }

    /// How many descriptors to read now, if any: one read at a time.
    fn ask(&mut self, batch: u32, most: u32) -> Option<u32> {
        if self.posted == 0 || self.coming > 0 || self.held + batch > most {
            return None;
        }
        let count = self.posted.min(batch);
        self.posted -= count;
        self.coming = count;
        Some(count)
    }
}

/// Puts a frame on the wire of `machine` at `at`, or behind those that are on it.
fn send(cx: &mut Context<'_>, wire: &mut Wire<Frame>, machine: u8, at: Time, frame: Frame) {
    let idle = wire.next_arrival().is_none();
    wire.send(at, frame.len.into(), frame);
    if let Some(arrival) = wire.next_arrival().filter(|_| idle) {
        cx.at(arrival, Event::Arrival(machine));
    }
}
