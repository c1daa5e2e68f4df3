//! A machine: its host with the drivers and an application, its bus and its NICs.

mod interrupts;
mod polling;

use super::SimulationError;
use super::application::{Application, Outgoing};
use super::bus::{Bus, Tag};
use super::event::{Context, Event, NicId};
use super::frame::Frame;
use super::host::{Host, Meter, Place, Work};
use super::interface::Interface;
use crate::frame::LinkRate;
use crate::port::Place as Loss;
use crate::profile::{HostProfile, NicProfile};
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_wire::{Span, Time};
use polling::Polling;

/// Bytes of a register.
const REGISTER: u32 = 4;

/// Descriptors of sent frames that a driver takes back before it looks at other things.
const RECLAIM_BATCH: u32 = 16;

/// What a machine is made of.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// Its NICs, one or more, on the bus of the first.
    pub(super) nics: Vec<&'a NicProfile>,
    pub(super) host: &'a HostProfile,
    pub(super) drivers: Drivers,
    pub(super) application: Application,
}

/// How drivers hear of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drivers {
    /// The NICs interrupt.
    Interrupt,
    /// They look, and the NICs never interrupt.
    Poll,
}

/// What the processor is at.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// The application sends a frame, into this place of a NIC's ring.
    Send(u8, u32, Outgoing),
    /// The application sends a frame, which the driver refuses.
    Refuse,
    /// It goes to the driver of a NIC because of an interrupt.
    Enter(u8),
    /// It waits for a register since this time.
    ReadRegister(Time),
    /// The driver of a NIC handles a frame that was received into this place of its ring.
    Receive(u8, u32, Frame),
    /// The driver of a NIC takes back descriptors.
    Reclaim(u8, u32),
    /// A driver has looked whether there is something.
    Poll,
    /// The application works.
    Work,
}

/// A machine.
#[derive(Debug)]
pub(super) struct Machine {
    id: u8,
    host: Host,
    bus: Bus,
    pub(super) interfaces: Vec<Interface>,
    pub(super) application: Application,
    task: Option<Task>,
    /// The NIC in whose interrupt handler the processor is: it does not interrupt.
    in_interrupt: Option<u8>,
    /// What polling drivers are at; none where NICs interrupt.
    polling: Option<Polling>,
    /// The NIC that the application sends by next.
    next_to_send: u8,
    /// When it is asked again whether the application wants to send.
    due: Time,
    /// Interrupts that it had.
    pub(super) interrupts: u64,
}

impl Machine {
    pub(super) fn new(id: u8, parts: Parts<'_>, link: LinkRate) -> Result<Self, SimulationError> {
        let Parts {
            nics,
            host,
            drivers,
            application,
        } = parts;
        let interface = |(nic, profile): (u8, &&NicProfile)| {
            Interface::new(NicId { machine: id, nic }, profile, link)
        };
        Ok(Self {
            id,
            host: Host::new(host, &nics)?,
            bus: Bus::new(id, &nics[0].bus, nics.len())?,
            interfaces: (0..).zip(&nics).map(interface).collect::<Result<_, _>>()?,
            application,
            task: None,
            in_interrupt: None,
            polling: (drivers == Drivers::Poll).then(Polling::default),
            next_to_send: 0,
            due: Time::NEVER,
            interrupts: 0,
        })
    }

    // --- events ---

    /// Something happens to it or to one of its NICs.
    pub(super) fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        let nic = |id: NicId| usize::from(id.nic);
        match event {
            Event::Processor(_) => self.end_task(cx),
            Event::Bus(_) => self.handle_bus(cx),
            Event::Due(_) => self.due = Time::NEVER,
            Event::Engine(id, engine) => self.interfaces[nic(id)].nic.handle_engine(cx, engine),
            Event::Dma(id) => self.interfaces[nic(id)].nic.handle_dma(cx, &mut self.bus),
            Event::Buffered(id) => self.interfaces[nic(id)].nic.handle_buffered(),
            Event::Sent(id) => self.interfaces[nic(id)].nic.handle_sent(cx),
            Event::Stored(id) => self.interfaces[nic(id)].nic.handle_stored(),
            Event::Delivered(id) => self.handle_delivered(cx, id.nic),
            Event::Timer(id) => self.interfaces[nic(id)].nic.handle_timer(cx),
            Event::Arrival(_) | Event::FromSwitch(_) => {
                unreachable!("frames are given to `receive`")
            }
        }
        self.advance(cx);
    }

    /// A frame arrives at one of its NICs.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>, nic: u8, frame: Frame) {
        let Interface { nic, wire, .. } = &mut self.interfaces[usize::from(nic)];
        nic.handle_arrival(cx, wire, frame);
        self.advance(cx);
    }

    fn handle_delivered(&mut self, cx: &mut Context<'_>, number: u8) {
        let Interface { nic, wire, .. } = &mut self.interfaces[usize::from(number)];
        if let Some((slot, frame)) = nic.handle_delivered(cx, wire) {
            self.host
                .receive_by_dma(cx.now, place(number, slot, &frame));
            self.application.deliver(cx.now, &frame);
        }
    }

    /// Begins all that can begin.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>) {
        for Interface { nic, wire, .. } in &mut self.interfaces {
            nic.advance(cx, &mut self.bus, wire);
        }
        if self.task.is_none() {
            self.begin_task(cx);
        }
    }

    fn handle_bus(&mut self, cx: &mut Context<'_>) {
        self.bus.advance(cx);
        while let Some((number, tag)) = self.bus.poll_done() {
            let nic = &mut self.interfaces[usize::from(number)].nic;
            match tag {
                Tag::Register => {
                    if let Some(Task::ReadRegister(since)) = self.task {
                        self.host.waited(since, cx.now);
                        self.task = None;
                    }
                }
                Tag::SendFrame => {
                    if let Some((slot, bytes)) = nic.next_read() {
                        let place = Place {
                            nic: number,
                            slot,
                            bytes,
                        };
                        self.host.send_by_dma(cx.now, place);
                    }
                    nic.handle_transfer(cx, tag);
                }
                _ => nic.handle_transfer(cx, tag),
            }
        }
        self.bus.arm(cx);
    }

    // --- the processor ---

    /// Chooses what the processor does next: drivers go before the application, but for those that poll.
    fn begin_task(&mut self, cx: &mut Context<'_>) {
        if self.polling.is_some() {
            return self.begin_with_polling(cx);
        }
        self.begin_interrupt(cx);
        if self.task.is_none() {
            self.begin_application(cx);
        }
    }

    fn begin(&mut self, cx: &mut Context<'_>, task: Task, work: Work) {
        let until = self.host.begin(cx.now, work);
        self.begin_until(cx, task, until);
    }

    fn begin_until(&mut self, cx: &mut Context<'_>, task: Task, until: Time) {
        self.task = Some(task);
        cx.at(until, Event::Processor(self.id));
    }

    /// A driver handles the next frame that was received, or takes descriptors back; false if there is nothing of either.
    fn begin_driver(&mut self, cx: &mut Context<'_>, nic: u8) -> bool {
        let interface = &mut self.interfaces[usize::from(nic)];
        if let Some((slot, frame)) = interface.nic.poll_delivered() {
            let traffic = self.application.traffic_in(&frame, cx.contents);
            let work = Work::Receive(place(nic, slot, &frame), traffic);
            self.begin(cx, Task::Receive(nic, slot, frame), work);
        } else if interface.nic.completed() > 0 {
            self.begin_reclaim(cx, nic);
        } else {
            return false;
        }
        true
    }

    fn begin_reclaim(&mut self, cx: &mut Context<'_>, nic: u8) {
        let interface = &mut self.interfaces[usize::from(nic)];
        let count = interface.nic.completed().min(RECLAIM_BATCH);
        let slot = interface.take_reclaim(count);
        self.begin(
            cx,
            Task::Reclaim(nic, count),
            Work::Reclaim { nic, slot, count },
        );
    }

    /// The application sends, if it wants to, by each NIC in turn, or works.
    fn begin_application(&mut self, cx: &mut Context<'_>) {
        let nics = self.interfaces.len() as u8;
        let mut waits_for_room = false;
        for _ in 0..nics {
            let nic = self.next_to_send;
            self.next_to_send = (nic + 1) % nics;
            waits_for_room |= self.begin_send(cx, nic);
            if self.task.is_some() {
                return;
            }
        }
        let Self {
            host, application, ..
        } = self;
        if application.has_work() {
            let work = |meter: &mut Meter<'_>| application.work(cx.now, meter, cx.contents);
            if let Some(until) = host.begin_application(cx.now, work) {
                return self.begin_until(cx, Task::Work, until);
            }
        }
        if !waits_for_room {
            self.arm_due(cx);
        }
    }

    /// The application sends by a NIC, if it wants to. Whether it may want to and has no room.
    fn begin_send(&mut self, cx: &mut Context<'_>, nic: u8) -> bool {
        let interface = &mut self.interfaces[usize::from(nic)];
        let free = interface.nic.free_descriptors();
        if free < interface.reclaims_below
            && interface.nic.completed() > 0
            && self.application.wants_to_send(cx.now, nic)
        {
            self.begin_reclaim(cx, nic);
            return false;
        }
        if free == 0 && self.application.waits_for_room() {
            return true;
        }
        let Some(next) = self.application.poll_send(cx.now, nic, cx.contents) else {
            return false;
        };
        if free == 0 {
            let reason = if interface.nic.is_stopped() {
                Loss::Pause
            } else {
                Loss::DriverRing
            };
            interface.losses.add(reason, 1);
            cx.contents.forget(next.body);
            self.begin(cx, Task::Refuse, Work::Refuse);
            return false;
        }
        let slot = interface.take_slot();
        let traffic = self.application.traffic_out(&next, cx.contents);
        let place = place(nic, slot, &next.frame(cx.now));
        let work = Work::Send(place, traffic, next.lies_at);
        self.begin(cx, Task::Send(nic, slot, next), work);
        false
    }

    /// Sees to it that the application is asked again.
    fn arm_due(&mut self, cx: &mut Context<'_>) {
        let due = self.application.next_due().max(cx.now + Span::from_ps(1));
        if due < self.due {
            self.due = due;
            cx.at(due, Event::Due(self.id));
        }
    }

    /// The processor is done with its task.
    fn end_task(&mut self, cx: &mut Context<'_>) {
        match self.task.take() {
            Some(Task::Send(nic, slot, next)) => {
                let interface = &mut self.interfaces[usize::from(nic)];
                interface.nic.put(slot, next.frame(cx.now));
                self.write_register(cx, nic, Tag::Doorbell(1));
            }
            Some(Task::Enter(nic)) => {
                self.task = Some(Task::ReadRegister(cx.now));
                self.bus.submit(
                    cx,
                    nic,
                    Operation::RegisterRead,
                    Category::Other,
                    REGISTER,
                    Some(Tag::Register),
                );
            }
            Some(Task::Receive(nic, slot, frame)) => {
                let lies_at = Host::received_at(nic, slot);
                self.application
                    .receive(cx.now, (nic, lies_at), &frame, cx.contents);
                let interface = &mut self.interfaces[usize::from(nic)];
                interface.to_refill += 1;
                if interface.to_refill >= self.host.refill_batch() {
                    self.refill(cx, nic);
                }
            }
            Some(Task::Reclaim(nic, count)) => {
                self.interfaces[usize::from(nic)].nic.reclaim(count);
            }
            Some(Task::Refuse | Task::Poll | Task::Work) | None => {}
            Some(Task::ReadRegister(since)) => self.task = Some(Task::ReadRegister(since)),
        }
    }

    /// Gives descriptors back to a NIC.
    fn refill(&mut self, cx: &mut Context<'_>, nic: u8) {
        let interface = &mut self.interfaces[usize::from(nic)];
        let count = std::mem::take(&mut interface.to_refill);
        if count > 0 {
            self.write_register(cx, nic, Tag::Refill(count));
        }
    }

    fn write_register(&mut self, cx: &mut Context<'_>, nic: u8, tag: Tag) {
        self.bus.submit(
            cx,
            nic,
            Operation::RegisterWrite,
            Category::Other,
            REGISTER,
            Some(tag),
        );
    }

    // --- getters ---

    pub(super) fn restart_counts(&mut self, now: Time) {
        self.host.restart_counts(now);
        self.bus.restart_counts(now);
        for interface in &mut self.interfaces {
            interface.nic.restart_counts(now);
        }
    }

    /// Shares of the time since then in which host, bus, engines, start of DMA and packet memory were busy; of several NICs, of the busiest.
    pub(super) fn utilisation(&self, now: Time) -> [f64; 5] {
        let nics = self.interfaces.iter();
        let of_nics = nics.map(|interface| interface.nic.utilisation(now));
        let [engines, dma, memory] = of_nics.fold([0.0; 3], |most: [f64; 3], one: [f64; 3]| {
            std::array::from_fn(|n| f64::max(most[n], one[n]))
        });
        [
            self.host.utilisation(now),
            self.bus.utilisation(now),
            engines,
            dma,
            memory,
        ]
    }
}

fn place(nic: u8, slot: u32, frame: &Frame) -> Place {
    Place {
        nic,
        slot,
        bytes: frame.bytes(),
    }
}
