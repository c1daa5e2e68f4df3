//! Frames on their way from the driver's ring to the wire.

use super::super::bus::{Bus, Tag};
use super::super::coalescing::Coalescing;
use super::super::event::{Context, Event};
use super::super::frame::Frame;
use super::Nic;
use super::engine::Work;
use super::ring::Ring;
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_sim::config::NicHardware;
use baton_sim::hardware::Wire;
use std::collections::VecDeque;

/// Number of frames that the MAC takes out of packet memory ahead: the one on the wire and the next.
const STAGED: usize = 2;

/// A queue of frames to send.
#[derive(Debug)]
pub(super) struct SendQueue {
    pub(super) descriptors: Ring,
    /// Frames in the driver's ring that no engine has taken, oldest first, with their slots.
    ring: VecDeque<(u32, Frame)>,
    /// Descriptors of the driver's ring in use, including those of sent frames that the driver has not reclaimed.
    used: u32,
    /// Descriptors of sent frames that the driver has not reclaimed.
    pub(super) completed: u32,
    /// Descriptors of sent frames that the NIC has not written back.
    pub(super) to_write_back: u32,
    pub(super) interrupts: Coalescing,
}

/// The sending half of a NIC.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) queues: Vec<SendQueue>,
    /// The queue to look at next.
    next: usize,
    /// Number of frames that an engine has, or that are on their way into packet memory.
    under_way: u32,
    /// Frames whose DMA is in progress.
    reading: VecDeque<(u32, Frame)>,
    /// Frames being written to packet memory.
    entering: VecDeque<Frame>,
    /// Frames that wait for the MAC.
    to_send: VecDeque<Frame>,
    /// Bytes of packet memory in use, and their maximum.
    bytes: u32,
    most_bytes: u32,
    /// Frames that the MAC has.
    staged: VecDeque<Frame>,
    /// Whether the partner has paused this NIC.
    pub(super) stopped: bool,
}

impl Sender {
    pub(super) fn new(profile: &NicHardware, queues: u8) -> Self {
        let queue = |_| SendQueue {
            descriptors: Ring::default(),
            ring: VecDeque::new(),
            used: 0,
            completed: 0,
            to_write_back: 0,
            interrupts: Coalescing::new(profile.send_interrupts),
        };
        Self {
            queues: (0..queues).map(queue).collect(),
            next: 0,
            under_way: 0,
            reading: VecDeque::new(),
            entering: VecDeque::new(),
            to_send: VecDeque::new(),
            bytes: 0,
            most_bytes: profile.memory.send_bytes,
            staged: VecDeque::new(),
            stopped: false,
        }
    }

    /// Returns the next queue, in turn, whose next frame an engine can take, if at most `most` frames may be in progress.
    pub(super) fn ready_queue(&self, most: u32) -> Option<usize> {
        if self.under_way >= most {
            return None;
        }
        let fits = |(_, next): &(u32, Frame)| self.bytes + next.bytes() <= self.most_bytes;
        let is_ready = |queue: &usize| {
            let queue = &self.queues[*queue];
            queue.descriptors.has_one() && queue.ring.front().is_some_and(fits)
        };
        (self.next..self.queues.len())
            .chain(0..self.next)
            .find(is_ready)
    }

    /// Takes the next frame of a queue, and reserves packet memory for it.
    pub(super) fn begin(&mut self, number: usize) -> Option<Work> {
        self.next = (number + 1) % self.queues.len();
        let queue = &mut self.queues[number];
        let (slot, frame) = queue.ring.pop_front()?;
        queue.descriptors.take();
        self.under_way += 1;
        self.bytes += frame.bytes();
        Some(Work::Send(slot, frame))
    }
}

impl Nic {
    // --- the driver ---

    /// Returns the number of free descriptors in a queue's ring.
    pub(in super::super) fn free_descriptors(&self, queue: u8) -> u32 {
        self.profile.descriptors.send - self.send_queue(queue).used
    }

    fn send_queue(&self, queue: u8) -> &SendQueue {
        &self.sender.queues[usize::from(queue)]
    }

    /// Returns the number of a queue's descriptors that are free or in progress: all but those that wait for the driver to reclaim them.
    pub(super) fn not_exhausted(&self, queue: u8) -> u32 {
        self.profile.descriptors.send - self.send_queue(queue).completed
    }

    /// Returns the number of a queue's sent frames whose descriptors the driver has not reclaimed.
    pub(in super::super) fn completed(&self, queue: u8) -> u32 {
        self.send_queue(queue).completed
    }

    /// Returns whether the partner has paused this NIC.
    pub(in super::super) fn is_stopped(&self) -> bool {
        self.sender.stopped
    }

    /// Puts a frame into its queue's ring, for the driver.
    pub(in super::super) fn put(&mut self, slot: u32, frame: Frame) {
        let queue = &mut self.sender.queues[usize::from(frame.queue)];
        queue.used += 1;
        queue.ring.push_back((slot, frame));
    }

    /// Reclaims the descriptors of this many sent frames of a queue, for the driver.
    pub(in super::super) fn reclaim(&mut self, queue: u8, count: u32) {
        let queue = &mut self.sender.queues[usize::from(queue)];
        queue.completed -= count;
        queue.used -= count;
    }

    // --- events ---

    /// Reads a frame from host memory.
    pub(super) fn read(&mut self, cx: &mut Context<'_>, bus: &mut Bus, slot: u32, frame: Frame) {
        self.sender.reading.push_back((slot, frame));
        let limit = self.send_limit();
        let mut left = frame.bytes();
        while left > 0 {
            let bytes = left.min(limit);
            left -= bytes;
            let tag = (left == 0).then_some(Tag::SendFrame);
            let (nic, operation) = (self.id.nic, Operation::DmaRead);
            bus.submit(cx, nic, operation, Category::Content, bytes, tag);
        }
    }

    /// Returns the frame whose DMA from host memory ends next, with its slot.
    pub(in super::super) fn next_read(&self) -> Option<(u32, Frame)> {
        self.sender.reading.front().copied()
    }

    /// Handles that a frame has been read from host memory.
    pub(super) fn handle_read(&mut self, cx: &mut Context<'_>) {
        let Some((_, frame)) = self.sender.reading.pop_front() else {
            return;
        };
        self.sender.entering.push_back(frame);
        match self.occupy_memory(cx.now, frame.bytes()) {
            Some(until) => cx.at(until, Event::Buffered(self.id)),
            None => self.handle_buffered(),
        }
    }

    /// Handles that a frame to send is in packet memory.
    pub(in super::super) fn handle_buffered(&mut self) {
        if let Some(frame) = self.sender.entering.pop_front() {
            self.sender.under_way -= 1;
            self.sender.to_send.push_back(frame);
        }
    }

    /// Gives frames to the MAC.
    pub(super) fn transmit(&mut self, cx: &mut Context<'_>, wire: &mut Wire<Frame>) {
        while !self.sender.stopped && self.sender.staged.len() < STAGED {
            let Some(frame) = self.sender.to_send.pop_front() else {
                return;
            };
            let out = self.occupy_memory(cx.now, frame.bytes());
            self.sender.staged.push_back(frame);
            self.put_on_wire(cx, wire, out.unwrap_or(cx.now), frame);
            cx.at(wire.free_at(), Event::Sent(self.id));
        }
    }

    /// Handles that a frame was sent completely.
    pub(in super::super) fn handle_sent(&mut self, cx: &mut Context<'_>) {
        let Some(frame) = self.sender.staged.pop_front() else {
            return;
        };
        self.sender.bytes -= frame.bytes();
        let queue = &mut self.sender.queues[usize::from(frame.queue)];
        queue.completed += 1;
        queue.to_write_back += 1;
        self.counts.sent += 1;
        let others = self.not_exhausted(frame.queue);
        let queue = &mut self.sender.queues[usize::from(frame.queue)];
        if queue.interrupts.add(cx.now, others) {
            self.interrupt(frame.queue);
        }
        self.arm(cx, frame.queue);
    }
}
