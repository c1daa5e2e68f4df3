//! The hardware of a NIC between its wires and the adapter's process: MAC, packet memory and engines.
//!
//! The DMA between the adapter's process and the host belongs to the link between them.

use super::super::capture::{LOST_ON_WIRE, Taps};
use crate::EventQueue;
use crate::config::NicHardware;
use crate::hardware::nic::{self, Around, Dropped, Event, Firmware, Frame, Interrupt, Nic, Tag};
use crate::hardware::{CHECK_SEQUENCE, Wire};
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_tcp::Segment;
use baton_timeline::Way;
use baton_wire::{Symbolic, Time};

/// A segment in the hardware, with its arrival time.
#[derive(Clone, Debug)]
struct InFlight(Time, Segment<Symbolic>);

/// The hardware of one NIC.
#[derive(Debug)]
pub(super) struct Hardware {
    nic: Nic<InFlight>,
    events: EventQueue<Event>,
    /// When the host is interrupted because of responses.
    pub(super) interrupt: Interrupt,
    /// Frames that may wait for the send engine.
    most_to_send: usize,
}

impl Hardware {
    pub(super) fn new(config: &NicHardware) -> Self {
        Self {
            nic: Nic::new(config, 1, false, Firmware::Apart),
            events: EventQueue::new(),
            interrupt: Interrupt::new(config, false, true),
            most_to_send: config.descriptors.send as usize,
        }
    }

    /// Returns when the next event or interrupt is due.
    #[cold]
    pub(super) fn due(&self) -> Time {
        let event = self.events.peek_time();
        self.interrupt.due().min(event.unwrap_or(Time::NEVER))
    }

    /// Returns whether the adapter must not send more frames now.
    pub(super) fn is_full(&self) -> bool {
        self.nic.waiting_to_send() >= self.most_to_send
    }

    /// Handles a frame from the wire.
    #[cold]
    pub(super) fn receive(
        &mut self,
        now: Time,
        segment: Segment<Symbolic>,
        to_clients: &mut Wire<Segment<Symbolic>>,
        taps: &mut Taps,
    ) {
        let (nic, mut around) = self.with_around(now, to_clients, taps);
        nic.handle_arrival(&mut around, InFlight(now, segment));
        nic.advance(&mut around);
    }

    /// Sends a frame of the adapter.
    #[cold]
    pub(super) fn send(
        &mut self,
        now: Time,
        segment: Segment<Symbolic>,
        to_clients: &mut Wire<Segment<Symbolic>>,
        taps: &mut Taps,
    ) {
        let (nic, mut around) = self.with_around(now, to_clients, taps);
        nic.send(InFlight(now, segment));
        nic.advance(&mut around);
    }

    /// Handles the events until `now`.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        to_clients: &mut Wire<Segment<Symbolic>>,
        taps: &mut Taps,
    ) {
        while let Some(event) = self.events.pop_due(now) {
            let (nic, mut around) = self.with_around(now, to_clients, taps);
            nic.handle(&mut around, event);
            nic.advance(&mut around);
        }
    }

    /// Takes the next received frame for the adapter, with the time of its arrival.
    pub(super) fn poll_received(&mut self) -> Option<(Time, Segment<Symbolic>)> {
        let frame = self.nic.poll_arrived()?;
        self.nic.release(frame.bytes());
        let InFlight(since, segment) = frame;
        Some((since, segment))
    }

    /// Returns the number of frames for which packet memory had no space since the start.
    pub(super) fn dropped(&self) -> u64 {
        self.nic.counts.dropped[Dropped::ReceiveFifo as usize]
    }

    fn with_around<'a>(
        &'a mut self,
        now: Time,
        to_clients: &'a mut Wire<Segment<Symbolic>>,
        taps: &'a mut Taps,
    ) -> (&'a mut Nic<InFlight>, Outside<'a>) {
        let events = &mut self.events;
        (
            &mut self.nic,
            Outside {
                now,
                events,
                to_clients,
                taps,
            },
        )
    }
}

impl Frame for InFlight {
    fn bytes(&self) -> u32 {
        self.1.frame_len() as u32 - u32::from(CHECK_SEQUENCE)
    }

    fn hash(&self) -> u32 {
        0
    }

    fn queue(&self) -> u8 {
        0
    }

    fn set_queue(&mut self, _queue: u8) {}

    fn pause(_now: Time, _stop: bool) -> Self {
        unreachable!("clients cannot be paused")
    }

    fn as_pause(&self) -> Option<bool> {
        None
    }
}

/// The machine around the hardware.
struct Outside<'a> {
    now: Time,
    events: &'a mut EventQueue<Event>,
    to_clients: &'a mut Wire<Segment<Symbolic>>,
    taps: &'a mut Taps,
}

impl Around<InFlight> for Outside<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn at(&mut self, time: Time, event: nic::Event) {
        self.events.push(time, event);
    }

    fn submit(&mut self, _: Operation, _: Category, _: u32, _: Option<Tag>) {
        unreachable!("the adapter's process moves frames to and from the host");
    }

    fn transmit(&mut self, at: Time, InFlight(_, segment): InFlight) -> Time {
        self.taps.frame(self.now, Way::Out, &segment);
        if !self.to_clients.send(at, segment.frame_len(), segment) {
            self.taps.lost_last(self.now, LOST_ON_WIRE);
        }
        self.to_clients.free_at()
    }

    fn dropped(&mut self, InFlight(_, segment): InFlight, reason: Dropped) {
        self.taps.lost(self.now, segment.src, reason.name());
    }
}
