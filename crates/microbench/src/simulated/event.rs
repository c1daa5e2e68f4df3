//! Events, and the state that machines need to handle them.

use super::frame::Frame;
use baton_sim::EventQueue;
use baton_sim::hardware::{Wire, nic};
use baton_wire::Time;

/// A NIC, by the numbers of its machine and of the NIC in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NicId {
    pub(super) machine: u8,
    pub(super) nic: u8,
}

/// An event at a machine, or at a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A processor has finished a task. Fields: machine, processor.
    Processor(u8, u8),
    /// A machine's bus may have finished a transfer.
    Bus(u8),
    /// The application of a processor wants to send, or a timer of it is due. Fields: machine, processor.
    Due(u8, u8),
    /// An event of a NIC.
    Nic(NicId, nic::Event),
    /// The firmware of a NIC has finished a piece of work.
    Firmware(NicId),
    /// A frame from a NIC arrives at the other end of its wire.
    Arrival(NicId),
    /// A frame from a switch arrives at a NIC.
    FromSwitch(NicId),
}

impl Event {
    /// Returns the machine of the event, or of the event's NIC.
    pub(super) fn machine(self) -> u8 {
        match self {
            Self::Processor(machine, _) | Self::Bus(machine) | Self::Due(machine, _) => machine,
            Self::Nic(nic, _)
            | Self::Firmware(nic)
            | Self::Arrival(nic)
            | Self::FromSwitch(nic) => nic.machine,
        }
    }
}

/// State outside the machine that handles an event.
pub(super) struct Context<'a> {
    pub(super) now: Time,
    pub(super) events: &'a mut EventQueue<Event>,
}

impl Context<'_> {
    /// Schedules `event` at `time`, which must not be in the past.
    #[inline]
    pub(super) fn at(&mut self, time: Time, event: Event) {
        debug_assert!(time >= self.now, "{event:?} is scheduled in the past");
        self.events.push(time, event);
    }

    /// Puts a frame on a wire at `at`, or behind the frames that are already on it. `event` is the arrival of its first frame.
    pub(super) fn send(&mut self, wire: &mut Wire<Frame>, at: Time, frame: Frame, event: Event) {
        let is_idle = wire.next_arrival().is_none();
        wire.send(at, frame.len.into(), frame);
        if let Some(arrival) = wire.next_arrival().filter(|_| is_idle) {
            self.at(arrival, event);
        }
    }

    /// Takes the frame that has arrived, by this event, at the end of a wire.
    pub(super) fn receive(&mut self, wire: &mut Wire<Frame>, event: Event) -> Option<Frame> {
        let frame = wire.receive(self.now);
        if let Some(arrival) = wire.next_arrival() {
            self.at(arrival, event);
        }
        frame
    }
}
