//! What happens, and what machines need when it does.

use super::frame::Segment;
use baton_sim::EventQueue;
use baton_wire::Time;
use slab::Slab;

/// What can happen, on the machine of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Its processor is done with a task.
    Processor(u8),
    /// Its bus may be done with a transfer.
    Bus(u8),
    /// An engine of its NIC is done with a frame.
    Engine(u8, u8),
    /// Its NIC has started a DMA.
    Dma(u8),
    /// A frame to send is in packet memory.
    Buffered(u8),
    /// A frame to send has left.
    Sent(u8),
    /// A frame that was received is in packet memory.
    Stored(u8),
    /// A frame that was received is in host memory.
    Delivered(u8),
    /// A time of its NIC's interrupts may be over.
    Timer(u8),
    /// Its test wants to send, or a timer of it is due.
    Due(u8),
    /// A frame from it arrives at the other end of its wire.
    Arrival(u8),
    /// A frame from the switch arrives at it.
    FromSwitch(u8),
}

/// What is there beside the machine that something happens on.
pub(super) struct Context<'a> {
    pub(super) now: Time,
    pub(super) events: &'a mut EventQueue<Event>,
    pub(super) segments: &'a mut Slab<Segment>,
}

impl Context<'_> {
    /// `event` happens at `time`, which is not over.
    pub(super) fn at(&mut self, time: Time, event: Event) {
        debug_assert!(time >= self.now, "{event:?} comes too late");
        self.events.push(time, event);
    }
}
