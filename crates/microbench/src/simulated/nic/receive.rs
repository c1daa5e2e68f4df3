//! Received frames on their way from the wire to the host.

use super::super::bus::{Bus, Tag};
use super::super::coalescing::Coalescing;
use super::super::event::{Context, Event};
use super::super::frame::{Body, Frame, LEAST_FRAME};
use super::Nic;
use super::engine::Work;
use super::ring::Ring;
use crate::port::Place;
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_sim::config::NicHardware;
use baton_sim::hardware::Wire;
use baton_wire::Time;
use std::collections::VecDeque;

/// A queue of received frames.
#[derive(Debug)]
pub(super) struct ReceiveQueue {
    pub(super) descriptors: Ring,
    /// Slot of the driver's ring for the next frame.
    next_slot: u32,
    /// Frames in host memory that the driver has not looked at, with their slots.
    pub(super) delivered: VecDeque<(u32, Frame)>,
    pub(super) interrupts: Coalescing,
}

/// The receiving half of a NIC.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) queues: Vec<ReceiveQueue>,
    /// Frames being written to packet memory.
    storing: VecDeque<Frame>,
    /// Frames in packet memory that no engine has taken.
    stored: VecDeque<Frame>,
    /// Number of frames that an engine has, or that are on their way to the host.
    under_way: u32,
    /// Frames whose DMA is in progress, with the time when they have left packet memory.
    writing: VecDeque<(Frame, Time)>,
    /// Frames that have passed the bus but not completely left packet memory.
    leaving: VecDeque<Frame>,
    /// Bytes of packet memory in use.
    bytes: u32,
    /// Whether the NIC has paused its partner.
    pausing: bool,
}

impl Receiver {
    pub(super) fn new(profile: &NicHardware, queues: u8) -> Self {
        let mut descriptors = Ring::default();
        descriptors.post(profile.descriptors.receive);
        let queue = |_| ReceiveQueue {
            descriptors,
            next_slot: 0,
            delivered: VecDeque::new(),
            interrupts: Coalescing::new(profile.receive_interrupts),
        };
        Self {
            queues: (0..queues).map(queue).collect(),
            storing: VecDeque::new(),
            stored: VecDeque::new(),
            under_way: 0,
            writing: VecDeque::new(),
            leaving: VecDeque::new(),
            bytes: 0,
            pausing: false,
        }
    }

    /// Returns whether an engine can take the next frame, if at most `most` may be in progress.
    pub(super) fn can_begin(&self, most: u32) -> bool {
        let has_descriptor =
            |frame: &Frame| self.queues[usize::from(frame.queue)].descriptors.has_one();
        self.under_way < most && self.stored.front().is_some_and(has_descriptor)
    }

    /// Takes the next frame.
    pub(super) fn begin(&mut self) -> Option<Work> {
        let frame = self.stored.pop_front()?;
        self.queues[usize::from(frame.queue)].descriptors.take();
        self.under_way += 1;
        Some(Work::Receive(frame))
    }
}

impl Nic {
    // --- the driver ---

    /// Takes the next frame of a queue from host memory, with its slot.
    pub(in super::super) fn poll_delivered(&mut self, queue: u8) -> Option<(u32, Frame)> {
        self.receiver.queues[usize::from(queue)]
            .delivered
            .pop_front()
    }

    /// Iterates over the frames in host memory that the driver has not looked at.
    pub(in super::super) fn delivered(&self) -> impl Iterator<Item = &Frame> {
        let queues = self.receiver.queues.iter();
        queues.flat_map(|queue| queue.delivered.iter().map(|(_, frame)| frame))
    }

    /// Returns whether host memory has a frame of a queue that the driver has not looked at.
    pub(in super::super) fn has_delivered(&self, queue: u8) -> bool {
        !self.receiver.queues[usize::from(queue)]
            .delivered
            .is_empty()
    }

    /// Returns the slot of a queue's ring in which the driver finds the next frame, now or later.
    pub(in super::super) fn next_to_look_at(&self, queue: u8) -> u32 {
        let queue = &self.receiver.queues[usize::from(queue)];
        let first = queue.delivered.front();
        first.map_or(queue.next_slot, |(slot, _)| *slot)
    }

    /// Returns the queue of a frame: receive-side scaling with an indirection table that has one entry per queue.
    fn queue_for(&self, frame: &Frame) -> u8 {
        (frame.hash % self.receiver.queues.len() as u32) as u8
    }

    // --- events ---

    /// Handles the arrival of a frame.
    pub(in super::super) fn handle_arrival(
        &mut self,
        cx: &mut Context<'_>,
        wire: &mut Wire<Frame>,
        mut frame: Frame,
    ) {
        if let Body::Pause { stop } = frame.body {
            self.sender.stopped = stop && self.profile.pause.honours;
            return;
        }
        frame.queue = self.queue_for(&frame);
        let queue = &self.receiver.queues[usize::from(frame.queue)];
        // Drop the frame, so that other queues do not have to wait for this queue's late driver.
        if self.receiver.queues.len() > 1 && queue.descriptors.is_exhausted() {
            return self.drop_frame(cx, &frame);
        }
        if self.receiver.bytes + frame.bytes() > self.profile.memory.receive_bytes {
            return self.drop_frame(cx, &frame);
        }
        self.receiver.bytes += frame.bytes();
        self.receiver.storing.push_back(frame);
        match self.occupy_memory(cx.now, frame.bytes()) {
            Some(until) => cx.at(until, Event::Stored(self.id)),
            None => self.handle_stored(),
        }
        self.pause(cx, wire);
    }

    fn drop_frame(&mut self, cx: &mut Context<'_>, frame: &Frame) {
        let queue = &self.receiver.queues[usize::from(frame.queue)];
        let place = if queue.descriptors.is_exhausted() {
            Place::NoDescriptor
        } else {
            Place::ReceiveFifo
        };
        self.counts.losses.add(place, 1);
        cx.contents.forget(frame.body);
    }

    /// Handles that a received frame is in packet memory.
    pub(in super::super) fn handle_stored(&mut self) {
        let Receiver {
            stored, storing, ..
        } = &mut self.receiver;
        stored.extend(storing.pop_front());
    }

    /// Writes a frame and its descriptor to host memory.
    pub(super) fn write(&mut self, cx: &mut Context<'_>, bus: &mut Bus, frame: Frame) {
        let out = self.occupy_memory(cx.now, frame.bytes()).unwrap_or(cx.now);
        self.receiver.writing.push_back((frame, out));
        let limit = self.receive_limit();
        let mut left = frame.bytes();
        while left > 0 {
            let bytes = left.min(limit);
            bus.submit(
                cx,
                self.id.nic,
                Operation::DmaWrite,
                Category::Content,
                bytes,
                None,
            );
            left -= bytes;
        }
        let (bytes, tag) = (self.profile.descriptors.arrived_bytes(), Tag::ReceiveFrame);
        bus.submit(
            cx,
            self.id.nic,
            Operation::DmaWrite,
            Category::Descriptor,
            bytes,
            Some(tag),
        );
    }

    /// Handles that a frame has passed the bus.
    pub(super) fn handle_written(&mut self, cx: &mut Context<'_>) {
        if let Some((frame, out)) = self.receiver.writing.pop_front() {
            self.receiver.leaving.push_back(frame);
            cx.at(out.max(cx.now), Event::Delivered(self.id));
        }
    }

    /// Handles that a frame is in host memory, and returns its slot in the driver's ring and the frame.
    pub(in super::super) fn handle_delivered(
        &mut self,
        cx: &mut Context<'_>,
        wire: &mut Wire<Frame>,
    ) -> Option<(u32, Frame)> {
        let receiver = &mut self.receiver;
        let frame = receiver.leaving.pop_front()?;
        receiver.bytes -= frame.bytes();
        receiver.under_way -= 1;
        let queue = &mut receiver.queues[usize::from(frame.queue)];
        let slot = queue.next_slot;
        queue.next_slot = (slot + 1) % self.profile.descriptors.receive;
        queue.delivered.push_back((slot, frame));
        if queue.interrupts.add(cx.now, u32::MAX) {
            self.interrupt(frame.queue);
        }
        self.counts.delivered += 1;
        self.pause(cx, wire);
        self.arm(cx, frame.queue);
        Some((slot, frame))
    }

    /// Asks the partner to stop or to continue.
    fn pause(&mut self, cx: &mut Context<'_>, wire: &mut Wire<Frame>) {
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
            let frame = Frame {
                len: LEAST_FRAME,
                to: 0,
                born: cx.now,
                hash: 0,
                queue: 0,
                body: Body::Pause { stop },
            };
            self.put_on_wire(cx, wire, cx.now, frame);
        }
    }
}
