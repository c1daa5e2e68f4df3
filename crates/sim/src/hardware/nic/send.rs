//! Frames on their way from the driver's ring to the wire.

use super::engine::Work;
use super::ring::Ring;
use super::{Around, Event, Firmware, Frame, Nic, NicHardware, Tag};
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use std::collections::VecDeque;

/// Number of frames that the MAC takes out of packet memory ahead: the one on the wire and the next.
const STAGED: usize = 2;

/// A queue of frames to send.
#[derive(Debug)]
pub(super) struct SendQueue<F> {
    pub(super) descriptors: Ring,
    /// Frames that no engine has taken, oldest first, with their slots in the driver's ring; frames of the firmware have none.
    ring: VecDeque<(Option<u32>, F)>,
    /// Descriptors of the driver's ring in use, including those of sent frames that the driver has not reclaimed.
    used: u32,
    /// Descriptors of sent frames that the driver has not reclaimed.
    pub(super) completed: u32,
    /// Descriptors of sent frames that the NIC has not written back.
    pub(super) to_write_back: u32,
}

/// The sending half of a NIC.
#[derive(Debug)]
pub(super) struct Sender<F> {
    pub(super) queues: Vec<SendQueue<F>>,
    /// The queue to look at next.
    next: usize,
    /// Number of frames that an engine has, or that are on their way into packet memory.
    pub(super) under_way: u32,
    /// Frames of the driver for the firmware, in packet memory.
    fetched: VecDeque<F>,
    /// Frames whose DMA is in progress.
    reading: VecDeque<(u32, F)>,
    /// Frames being written to packet memory.
    entering: VecDeque<F>,
    /// Frames that wait for the MAC.
    pub(super) to_send: VecDeque<F>,
    /// Bytes of packet memory in use, and their maximum.
    bytes: u32,
    most_bytes: u32,
    /// Bytes and queues of the frames that the MAC has.
    staged: VecDeque<(u32, u8)>,
    /// Whether the partner has paused this NIC.
    pub(super) stopped: bool,
}

impl<F: Frame> Sender<F> {
    pub(super) fn new(profile: &NicHardware, queues: u8) -> Self {
        let queue = |_| SendQueue {
            descriptors: Ring::default(),
            ring: VecDeque::new(),
            used: 0,
            completed: 0,
            to_write_back: 0,
        };
        Self {
            queues: (0..queues).map(queue).collect(),
            next: 0,
            under_way: 0,
            fetched: VecDeque::new(),
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
        let fits = |next: &F| self.bytes + next.bytes() <= self.most_bytes;
        let is_ready = |queue: &usize| {
            let queue = &self.queues[*queue];
            let first = queue.ring.front();
            first.is_some_and(|(slot, next)| {
                (slot.is_none() || queue.descriptors.has_one()) && fits(next)
            })
        };
        (self.next..self.queues.len())
            .chain(0..self.next)
            .find(is_ready)
    }

    /// Takes the next frame of a queue, and reserves packet memory for it.
    pub(super) fn begin(&mut self, number: usize) -> Option<Work<F>> {
        self.next = (number + 1) % self.queues.len();
        let queue = &mut self.queues[number];
        let (slot, frame) = queue.ring.pop_front()?;
        if slot.is_some() {
            queue.descriptors.take();
        }
        self.under_way += 1;
        self.bytes += frame.bytes();
        Some(Work::Send(slot, frame))
    }
}

impl<F: Frame> Nic<F> {
    // --- the driver ---

    /// Returns the number of free descriptors in a queue's ring.
    pub fn free_descriptors(&self, queue: u8) -> u32 {
        self.profile.descriptors.send - self.send_queue(queue).used
    }

    fn send_queue(&self, queue: u8) -> &SendQueue<F> {
        &self.sender.queues[usize::from(queue)]
    }

    /// Returns the number of a queue's descriptors that are free or in progress: all but those that wait for the driver to reclaim them.
    pub(super) fn not_exhausted(&self, queue: u8) -> u32 {
        self.profile.descriptors.send - self.send_queue(queue).completed
    }

    /// Returns the number of a queue's sent frames whose descriptors the driver has not reclaimed.
    pub fn completed(&self, queue: u8) -> u32 {
        self.send_queue(queue).completed
    }

    /// Returns whether the partner has paused this NIC.
    pub fn is_stopped(&self) -> bool {
        self.sender.stopped
    }

    /// Puts a frame into its queue's ring, for the driver.
    pub fn put(&mut self, slot: u32, frame: F) {
        let queue = &mut self.sender.queues[usize::from(frame.queue())];
        queue.used += 1;
        queue.ring.push_back((Some(slot), frame));
    }

    /// Reclaims the descriptors of this many sent frames of a queue, for the driver.
    pub fn reclaim(&mut self, queue: u8, count: u32) {
        let queue = &mut self.sender.queues[usize::from(queue)];
        queue.completed -= count;
        queue.used -= count;
    }

    // --- the firmware ---

    /// Takes the next frame of the driver for the firmware.
    pub fn poll_fetched(&mut self) -> Option<F> {
        self.sender.fetched.pop_front()
    }

    /// Gives a frame of the driver to the MAC, for the firmware.
    pub fn send_fetched(&mut self, frame: F) {
        self.sender.to_send.push_back(frame);
    }

    /// Sends a frame of the firmware.
    pub fn send(&mut self, frame: F) {
        self.sender.queues[0].ring.push_back((None, frame));
    }

    /// Returns the number of frames that no engine has taken.
    pub fn waiting_to_send(&self) -> usize {
        let queues = self.sender.queues.iter();
        queues.map(|queue| queue.ring.len()).sum()
    }

    // --- events ---

    /// Reads a frame from host memory.
    pub(super) fn read(&mut self, around: &mut impl Around<F>, slot: u32, frame: F) {
        let mut left = frame.bytes();
        self.sender.reading.push_back((slot, frame));
        let limit = self.send_limit();
        while left > 0 {
            let bytes = left.min(limit);
            left -= bytes;
            let tag = (left == 0).then_some(Tag::SendFrame);
            around.submit(Operation::DmaRead, Category::Content, bytes, tag);
        }
    }

    /// Returns the frame whose DMA from host memory ends next, with its slot.
    pub fn next_read(&self) -> Option<&(u32, F)> {
        self.sender.reading.front()
    }

    /// Handles the end of a frame's DMA from host memory.
    pub(super) fn handle_read(&mut self, around: &mut impl Around<F>) {
        let Some((_, frame)) = self.sender.reading.pop_front() else {
            return;
        };
        let bytes = frame.bytes();
        self.sender.entering.push_back(frame);
        match self.occupy_memory(around.now(), bytes) {
            Some(until) => around.at(until, Event::Buffered),
            None => self.handle_buffered(),
        }
    }

    /// Handles the arrival of a frame to send in packet memory.
    pub(super) fn handle_buffered(&mut self) {
        if let Some(frame) = self.sender.entering.pop_front() {
            self.sender.under_way -= 1;
            match self.firmware {
                Firmware::None => self.sender.to_send.push_back(frame),
                _ => self.sender.fetched.push_back(frame),
            }
        }
    }

    /// Gives frames to the MAC.
    pub(super) fn transmit(&mut self, around: &mut impl Around<F>) {
        while !self.sender.stopped && self.sender.staged.len() < STAGED {
            let Some(frame) = self.sender.to_send.pop_front() else {
                return;
            };
            let out = self.occupy_memory(around.now(), frame.bytes());
            self.sender.staged.push_back((frame.bytes(), frame.queue()));
            let free_at = around.transmit(out.unwrap_or(around.now()), frame);
            around.at(free_at, Event::Sent);
        }
    }

    /// Handles the end of a frame's transmission.
    pub(super) fn handle_sent(&mut self, around: &mut impl Around<F>) {
        let Some((bytes, number)) = self.sender.staged.pop_front() else {
            return;
        };
        self.sender.bytes -= bytes;
        self.counts.sent += 1;
        if self.firmware == Firmware::Apart {
            return;
        }
        let queue = &mut self.sender.queues[usize::from(number)];
        queue.completed += 1;
        queue.to_write_back += 1;
        let others = self.not_exhausted(number);
        self.interrupts[usize::from(number)].handle_sent(around.now(), others);
        self.arm(around, number);
    }
}
