//! Received frames on their way from the wire to the host.

use super::engine::Work;
use super::ring::Ring;
use super::{Around, Dropped, Event, Firmware, Frame, Nic, NicHardware, Tag};
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_wire::Time;
use std::collections::VecDeque;

/// A queue of received frames.
#[derive(Debug)]
pub(super) struct ReceiveQueue<F> {
    pub(super) descriptors: Ring,
    /// Slot of the driver's ring for the next frame.
    next_slot: u32,
    /// Frames in host memory that the driver has not looked at, with their slots.
    pub(super) delivered: VecDeque<(u32, F)>,
}

/// The receiving half of a NIC.
#[derive(Debug)]
pub(super) struct Receiver<F> {
    pub(super) queues: Vec<ReceiveQueue<F>>,
    /// Frames being written to packet memory.
    storing: VecDeque<F>,
    /// Frames in packet memory that no engine has taken.
    stored: VecDeque<F>,
    /// Number of frames that an engine has, or that are on their way to the host.
    pub(super) under_way: u32,
    /// Frames for the firmware.
    pub(super) arrived: VecDeque<F>,
    /// Frames that the firmware passes to the host, and that no DMA has taken.
    passed: VecDeque<F>,
    /// Frames whose DMA is in progress, with the time when they have left packet memory.
    writing: VecDeque<(F, Time)>,
    /// Frames that have passed the bus but not completely left packet memory.
    leaving: VecDeque<F>,
    /// Bytes of packet memory in use.
    bytes: u32,
    /// Whether the NIC has paused its partner.
    pausing: bool,
}

impl<F: Frame> Receiver<F> {
    pub(super) fn new(profile: &NicHardware, queues: u8, firmware: Firmware) -> Self {
        let mut descriptors = Ring::default();
        if firmware != Firmware::Apart {
            descriptors.post(profile.descriptors.receive);
        }
        let queue = |_| ReceiveQueue {
            descriptors,
            next_slot: 0,
            delivered: VecDeque::new(),
        };
        Self {
            queues: (0..queues).map(queue).collect(),
            storing: VecDeque::new(),
            stored: VecDeque::new(),
            under_way: 0,
            arrived: VecDeque::new(),
            passed: VecDeque::new(),
            writing: VecDeque::new(),
            leaving: VecDeque::new(),
            bytes: 0,
            pausing: false,
        }
    }

    /// Returns whether an engine can take the next frame, if at most `most` may be in progress.
    pub(super) fn can_begin(&self, most: u32, firmware: Firmware) -> bool {
        let can = |frame: &F| firmware != Firmware::None || self.has_descriptor(frame);
        self.under_way < most && self.stored.front().is_some_and(can)
    }

    fn has_descriptor(&self, frame: &F) -> bool {
        self.queues[usize::from(frame.queue())]
            .descriptors
            .has_one()
    }

    /// Takes the next frame.
    pub(super) fn begin(&mut self, firmware: Firmware) -> Option<Work<F>> {
        let frame = self.stored.pop_front()?;
        if firmware == Firmware::None {
            self.queues[usize::from(frame.queue())].descriptors.take();
        }
        self.under_way += 1;
        Some(Work::Receive(frame))
    }
}

impl<F: Frame> Nic<F> {
    // --- the driver ---

    /// Takes the next frame of a queue from host memory, with its slot.
    pub fn poll_delivered(&mut self, queue: u8) -> Option<(u32, F)> {
        self.receiver.queues[usize::from(queue)]
            .delivered
            .pop_front()
    }

    /// Iterates over the frames in host memory that the driver has not looked at.
    pub fn delivered(&self) -> impl Iterator<Item = &F> {
        let queues = self.receiver.queues.iter();
        queues.flat_map(|queue| queue.delivered.iter().map(|(_, frame)| frame))
    }

    /// Returns whether host memory has a frame of a queue that the driver has not looked at.
    pub fn has_delivered(&self, queue: u8) -> bool {
        !self.receiver.queues[usize::from(queue)]
            .delivered
            .is_empty()
    }

    /// Returns the slot of a queue's ring in which the driver finds the next frame, now or later.
    pub fn next_to_look_at(&self, queue: u8) -> u32 {
        let queue = &self.receiver.queues[usize::from(queue)];
        let first = queue.delivered.front();
        first.map_or(queue.next_slot, |(slot, _)| *slot)
    }

    /// Returns the queue of a frame: receive-side scaling with an indirection table that has one entry per queue.
    fn queue_for(&self, frame: &F) -> u8 {
        (frame.hash() % self.receiver.queues.len() as u32) as u8
    }

    // --- the firmware ---

    /// Takes the next received frame for the firmware.
    pub fn poll_arrived(&mut self) -> Option<F> {
        self.receiver.arrived.pop_front()
    }

    /// Frees the packet memory of a received frame of this length, which the firmware keeps.
    pub fn release(&mut self, bytes: u32) {
        self.receiver.bytes -= bytes;
    }

    /// Passes a received frame to the host, for the firmware.
    pub fn pass(&mut self, frame: F) {
        self.receiver.passed.push_back(frame);
    }

    /// Starts the DMAs of frames that the firmware passed to the host.
    pub(super) fn begin_passed(&mut self, around: &mut impl Around<F>) {
        while self.receiver.under_way < self.profile.dma.frames
            && let Some(next) = self.receiver.passed.front()
            && self.receiver.has_descriptor(next)
            && let Some(frame) = self.receiver.passed.pop_front()
        {
            let queue = usize::from(frame.queue());
            self.receiver.queues[queue].descriptors.take();
            self.receiver.under_way += 1;
            self.start(around, Work::Receive(frame));
        }
    }

    // --- events ---

    /// Handles the arrival of a frame.
    pub fn handle_arrival(&mut self, around: &mut impl Around<F>, mut frame: F) {
        if let Some(stop) = frame.as_pause() {
            self.sender.stopped = stop && self.profile.pause.honours;
            return;
        }
        frame.set_queue(self.queue_for(&frame));
        let queue = &self.receiver.queues[usize::from(frame.queue())];
        // Drop the frame, so that other queues do not have to wait for this queue's late driver.
        if self.receiver.queues.len() > 1 && queue.descriptors.is_exhausted() {
            return self.drop_frame(around, frame);
        }
        if self.receiver.bytes + frame.bytes() > self.profile.memory.receive_bytes {
            return self.drop_frame(around, frame);
        }
        let bytes = frame.bytes();
        self.receiver.bytes += bytes;
        self.receiver.storing.push_back(frame);
        match self.occupy_memory(around.now(), bytes) {
            Some(until) => around.at(until, Event::Stored),
            None => self.handle_stored(),
        }
        self.pause(around);
    }

    fn drop_frame(&mut self, around: &mut impl Around<F>, frame: F) {
        let queue = &self.receiver.queues[usize::from(frame.queue())];
        let has_ring = self.firmware != Firmware::Apart;
        let reason = match has_ring && queue.descriptors.is_exhausted() {
            true => Dropped::NoDescriptor,
            false => Dropped::ReceiveFifo,
        };
        self.counts.dropped[reason as usize] += 1;
        around.dropped(frame, reason);
    }

    /// Handles the arrival of a received frame in packet memory.
    pub(super) fn handle_stored(&mut self) {
        let Receiver {
            stored, storing, ..
        } = &mut self.receiver;
        stored.extend(storing.pop_front());
    }

    /// Writes a frame and its descriptor to host memory.
    pub(super) fn write(&mut self, around: &mut impl Around<F>, frame: F) {
        let now = around.now();
        let mut left = frame.bytes();
        let out = self.occupy_memory(now, left).unwrap_or(now);
        self.receiver.writing.push_back((frame, out));
        let limit = self.receive_limit();
        while left > 0 {
            let bytes = left.min(limit);
            around.submit(Operation::DmaWrite, Category::Content, bytes, None);
            left -= bytes;
        }
        let (bytes, tag) = (self.profile.descriptors.arrived_bytes(), Tag::ReceiveFrame);
        around.submit(Operation::DmaWrite, Category::Descriptor, bytes, Some(tag));
    }

    /// Handles the end of a frame's transfer over the bus.
    pub(super) fn handle_written(&mut self, around: &mut impl Around<F>) {
        if let Some((frame, out)) = self.receiver.writing.pop_front() {
            self.receiver.leaving.push_back(frame);
            around.at(out.max(around.now()), Event::Delivered);
        }
    }

    /// Handles the arrival of a frame in host memory. Returns its slot in the driver's ring and the frame.
    pub(super) fn handle_delivered(&mut self, around: &mut impl Around<F>) -> Option<&(u32, F)> {
        let receiver = &mut self.receiver;
        let frame = receiver.leaving.pop_front()?;
        receiver.bytes -= frame.bytes();
        receiver.under_way -= 1;
        let queue = &mut receiver.queues[usize::from(frame.queue())];
        let slot = queue.next_slot;
        queue.next_slot = (slot + 1) % self.profile.descriptors.receive;
        let number = frame.queue();
        queue.delivered.push_back((slot, frame));
        self.interrupts[usize::from(number)].handle_received(around.now());
        self.counts.delivered += 1;
        self.pause(around);
        self.arm(around, number);
        self.receiver.queues[usize::from(number)].delivered.back()
    }

    /// Asks the partner to stop or to continue.
    fn pause(&mut self, around: &mut impl Around<F>) {
        let rule = self.profile.pause;
        if !rule.sends {
            return;
        }
        let used = 100 * u64::from(self.receiver.bytes);
        let of_memory =
            |percent: u32| u64::from(self.profile.memory.receive_bytes) * u64::from(percent);
        let stop = if self.receiver.pausing {
            used > of_memory(rule.low_percent)
        } else {
            used >= of_memory(rule.high_percent)
        };
        if stop != self.receiver.pausing {
            self.receiver.pausing = stop;
            let frame = F::pause(around.now(), stop);
            around.transmit(around.now(), frame);
        }
    }
}
