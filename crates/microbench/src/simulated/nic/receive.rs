//! Frames on their way from the wire to the host.

use super::super::bus::{Bus, Tag};
use super::super::coalescing::Coalescing;
use super::super::event::{Context, Event};
use super::super::frame::{Body, Frame, LEAST_FRAME};
use super::Nic;
use super::engine::Work;
use super::ring::Ring;
use crate::port::Place;
use crate::profile::NicProfile;
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_sim::hardware::Wire;
use baton_wire::Time;
use std::collections::VecDeque;

/// The half of a NIC that receives.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) descriptors: Ring,
    /// Frames on their way into packet memory.
    storing: VecDeque<Frame>,
    /// Frames in packet memory that no engine has taken.
    stored: VecDeque<Frame>,
    /// Frames that an engine has, or that are on their way to the host.
    under_way: u32,
    /// Frames whose DMA was asked for and is not done, with the time when they have left packet memory.
    writing: VecDeque<(Frame, Time)>,
    /// Frames that are over the bus and leave packet memory.
    leaving: VecDeque<Frame>,
    /// Bytes of packet memory in use.
    bytes: u32,
    /// It has asked its partner to stop.
    pausing: bool,
    /// The place of the driver's ring that the next frame goes to.
    next_slot: u32,
    /// Frames in host memory that the driver has not looked at, with their places in its ring.
    pub(super) delivered: VecDeque<(u32, Frame)>,
    pub(super) interrupts: Coalescing,
}

impl Receiver {
    pub(super) fn new(profile: &NicProfile) -> Self {
        let mut descriptors = Ring::default();
        descriptors.post(profile.descriptors.receive);
        Self {
            descriptors,
            storing: VecDeque::new(),
            stored: VecDeque::new(),
            under_way: 0,
            writing: VecDeque::new(),
            leaving: VecDeque::new(),
            bytes: 0,
            pausing: false,
            next_slot: 0,
            delivered: VecDeque::new(),
            interrupts: Coalescing::new(profile.receive_interrupts),
        }
    }

    /// Whether an engine can take the next frame, of which so many may be under way.
    pub(super) fn can_begin(&self, most: u32) -> bool {
        self.under_way < most && self.descriptors.has_one() && !self.stored.is_empty()
    }

    /// The next frame.
    pub(super) fn begin(&mut self) -> Option<Work> {
        let frame = self.stored.pop_front()?;
        self.descriptors.take();
        self.under_way += 1;
        Some(Work::Receive(frame))
    }
}

impl Nic {
    // --- the driver ---

    /// Takes the next frame that is in host memory, with its place in the ring.
    pub(in super::super) fn poll_delivered(&mut self) -> Option<(u32, Frame)> {
        self.receiver.delivered.pop_front()
    }

    /// Whether a frame is in host memory that the driver has not looked at.
    pub(in super::super) fn has_delivered(&self) -> bool {
        !self.receiver.delivered.is_empty()
    }

    /// The place of the driver's ring in which it finds the next frame, now or later.
    pub(in super::super) fn next_to_look_at(&self) -> u32 {
        let first = self.receiver.delivered.front();
        first.map_or(self.receiver.next_slot, |(slot, _)| *slot)
    }

    // --- events ---

    /// A frame arrives.
    pub(in super::super) fn handle_arrival(
        &mut self,
        cx: &mut Context<'_>,
        wire: &mut Wire<Frame>,
        frame: Frame,
    ) {
        if let Body::Pause { stop } = frame.body {
            self.sender.stopped = stop && self.profile.pause.honours;
            return;
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
        let place = if self.receiver.descriptors.is_exhausted() {
            Place::NoDescriptor
        } else {
            Place::ReceiveFifo
        };
        self.counts.losses.add(place, 1);
        cx.contents.forget(frame.body);
    }

    /// A frame that was received is in packet memory.
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
        let (bytes, tag) = (self.profile.descriptors.receive_bytes, Tag::ReceiveFrame);
        bus.submit(
            cx,
            self.id.nic,
            Operation::DmaWrite,
            Category::Descriptor,
            bytes,
            Some(tag),
        );
    }

    /// A frame is over the bus.
    pub(super) fn handle_written(&mut self, cx: &mut Context<'_>) {
        if let Some((frame, out)) = self.receiver.writing.pop_front() {
            self.receiver.leaving.push_back(frame);
            cx.at(out.max(cx.now), Event::Delivered(self.id));
        }
    }

    /// A frame is in host memory: its place in the driver's ring, and the frame.
    pub(in super::super) fn handle_delivered(
        &mut self,
        cx: &mut Context<'_>,
        wire: &mut Wire<Frame>,
    ) -> Option<(u32, Frame)> {
        let receiver = &mut self.receiver;
        let frame = receiver.leaving.pop_front()?;
        receiver.bytes -= frame.bytes();
        receiver.under_way -= 1;
        let slot = receiver.next_slot;
        receiver.next_slot = (slot + 1) % self.profile.descriptors.receive;
        receiver.delivered.push_back((slot, frame));
        self.interrupts |= receiver.interrupts.add(cx.now, u32::MAX);
        self.counts.delivered += 1;
        self.pause(cx, wire);
        self.arm(cx);
        Some((slot, frame))
    }

    /// Asks the partner to stop, or to go on.
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
                body: Body::Pause { stop },
            };
            self.put_on_wire(cx, wire, cx.now, frame);
        }
    }
}
