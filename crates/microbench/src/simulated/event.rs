//! What happens, and what machines need when it does.

use super::frame::Contents;
use baton_sim::EventQueue;
use baton_wire::Time;

/// A NIC of a machine, both by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NicId {
    pub(super) machine: u8,
    pub(super) nic: u8,
}

/// What can happen, to the machine of a number or to a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A processor of a machine, both by their numbers, is done with a task.
    Processor(u8, u8),
    /// A machine's bus may be done with a transfer.
    Bus(u8),
    /// The application of a processor of a machine wants to send, or a timer of it is due.
    Due(u8, u8),
    /// An engine of a NIC is done with a frame.
    Engine(NicId, u8),
    /// A NIC has started a DMA.
    Dma(NicId),
    /// A frame to send is in packet memory.
    Buffered(NicId),
    /// A frame to send has left.
    Sent(NicId),
    /// A frame that was received is in packet memory.
    Stored(NicId),
    /// A frame that was received is in host memory.
    Delivered(NicId),
    /// A time of a NIC's interrupts may be over.
    Timer(NicId),
    /// A frame from a NIC arrives at the other end of its wire.
    Arrival(NicId),
    /// A frame from a switch arrives at a NIC.
    FromSwitch(NicId),
}

impl Event {
    /// The machine that it happens to, or to a NIC of which.
    pub(super) fn machine(self) -> u8 {
        match self {
            Self::Processor(machine, _) | Self::Bus(machine) | Self::Due(machine, _) => machine,
            Self::Engine(nic, _)
            | Self::Dma(nic)
            | Self::Buffered(nic)
            | Self::Sent(nic)
            | Self::Stored(nic)
            | Self::Delivered(nic)
            | Self::Timer(nic)
            | Self::Arrival(nic)
            | Self::FromSwitch(nic) => nic.machine,
        }
    }
}

/// What is there beside the machine that something happens on.
pub(super) struct Context<'a> {
    pub(super) now: Time,
    pub(super) events: &'a mut EventQueue<Event>,
    pub(super) contents: &'a mut Contents,
}

impl Context<'_> {
    /// `event` happens at `time`, which is not over.
    #[inline]
    pub(super) fn at(&mut self, time: Time, event: Event) {
        debug_assert!(time >= self.now, "{event:?} comes too late");
        self.events.push(time, event);
    }
}
