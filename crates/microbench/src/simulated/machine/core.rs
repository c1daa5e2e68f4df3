//! A processor of a machine, with its queues of all NICs, its drivers and its application.

use super::super::SimulationError;
use super::super::application::{Application, Outgoing};
use super::super::bus::Bus;
use super::super::event::{Context, Event};
use super::super::frame::Frame;
use super::super::host::{Host, Meter, Work};
use super::super::interface::Interface;
use super::place;
use super::polling::Polling;
use crate::port::Place as Loss;
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_sim::config::{HostConfig, NicHardware};
use baton_sim::hardware::nic::Tag;
use baton_wire::{Span, Time};

/// Bytes of a register.
const REGISTER: u32 = 4;

/// Number of sent frames whose descriptors a driver reclaims before it does something else.
const RECLAIM_BATCH: u32 = 16;

/// Devices that the processors of a machine share.
#[derive(Debug)]
pub(super) struct Devices<'a> {
    pub(super) bus: &'a mut Bus,
    pub(super) interfaces: &'a mut [Interface],
}

/// Current task of the processor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// The application sends a frame into this slot of a NIC's ring.
    Send(u8, u32, Outgoing),
    /// The application sends a frame, which the driver refuses.
    Refuse,
    /// The processor enters the driver of a NIC because of an interrupt.
    Enter(u8),
    /// The processor has been waiting for a register since this time.
    ReadRegister(Time),
    /// The driver of a NIC handles a frame received into this slot of its ring.
    Receive(u8, u32, Frame),
    /// The driver of a NIC reclaims descriptors.
    Reclaim(u8, u32),
    /// A driver polls its NIC.
    Poll,
    /// The application works.
    Work,
}

/// A processor.
#[derive(Debug)]
pub(in crate::simulated) struct Core {
    machine: u8,
    /// Number of the processor and of its queues.
    pub(super) number: u8,
    pub(super) host: Host,
    pub(in crate::simulated) application: Application,
    pub(super) task: Option<Task>,
    /// The NIC whose interrupt handler is running, which cannot interrupt now.
    pub(super) in_interrupt: Option<u8>,
    /// State of polling drivers; `None` if NICs interrupt.
    pub(super) polling: Option<Polling>,
    /// The NIC through which the application sends next.
    next_to_send: u8,
    /// When the application is next asked whether it wants to send.
    due: Time,
    /// Number of interrupts.
    pub(in crate::simulated) interrupts: u64,
}

impl Core {
    pub(super) fn new(
        [machine, number]: [u8; 2],
        (host, nics): (&HostConfig, &[&NicHardware]),
        polls: bool,
        application: Application,
    ) -> Result<Self, SimulationError> {
        Ok(Self {
            machine,
            number,
            host: Host::new(host, nics)?,
            application,
            task: None,
            in_interrupt: None,
            polling: polls.then(Polling::default),
            next_to_send: 0,
            due: Time::NEVER,
            interrupts: 0,
        })
    }

    // --- events ---

    /// Handles the time at which the application is to be asked.
    pub(super) fn handle_due(&mut self) {
        self.due = Time::NEVER;
    }

    /// Handles the completion of a register read.
    pub(super) fn handle_register(&mut self, now: Time) {
        if let Some(Task::ReadRegister(since)) = self.task {
            self.host.waited(since, now);
            self.task = None;
        }
    }

    // --- effects ---

    /// Begins the next task if the processor is idle.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>) {
        if self.task.is_none() {
            self.begin_task(cx, devices);
        }
    }

    /// Chooses the next task. Interrupt-driven drivers go before the application.
    fn begin_task(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>) {
        if self.polling.is_some() {
            return self.begin_with_polling(cx, devices);
        }
        self.begin_interrupt(cx, devices);
        if self.task.is_none() {
            self.begin_application(cx, devices);
        }
    }

    pub(super) fn begin(&mut self, cx: &mut Context<'_>, task: Task, work: Work) {
        let until = self.host.begin(cx.now, work);
        self.begin_until(cx, task, until);
    }

    pub(super) fn begin_until(&mut self, cx: &mut Context<'_>, task: Task, until: Time) {
        self.task = Some(task);
        cx.at(until, Event::Processor(self.machine, self.number));
    }

    /// Lets the driver handle the next received frame or reclaim descriptors; returns false if there is nothing to do.
    pub(super) fn begin_driver(
        &mut self,
        cx: &mut Context<'_>,
        devices: &mut Devices<'_>,
        nic: u8,
    ) -> bool {
        let interface = &mut devices.interfaces[usize::from(nic)];
        if let Some((slot, frame)) = interface.nic.poll_delivered(self.number) {
            let traffic = self.application.traffic_in(&frame, cx.contents);
            let work = Work::Receive(place(nic, slot, &frame), traffic);
            self.begin(cx, Task::Receive(nic, slot, frame), work);
        } else if interface.nic.completed(self.number) > 0 {
            self.begin_reclaim(cx, devices, nic);
        } else {
            return false;
        }
        true
    }

    fn begin_reclaim(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>, nic: u8) {
        let interface = &mut devices.interfaces[usize::from(nic)];
        let count = interface.nic.completed(self.number).min(RECLAIM_BATCH);
        let slot = interface.rings[usize::from(self.number)].take_reclaim(count);
        self.begin(
            cx,
            Task::Reclaim(nic, count),
            Work::Reclaim { nic, slot, count },
        );
    }

    /// Lets the application send through each NIC in turn, if it wants to, or do other work.
    pub(super) fn begin_application(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>) {
        let waits_for_room = match devices.interfaces.len() {
            1 => self.begin_send(cx, devices, 0),
            nics => self.begin_send_in_turn(cx, devices, nics as u8),
        };
        if self.task.is_some() || self.application.has_work() && self.begin_work(cx) {
            return;
        }
        if !waits_for_room {
            self.arm_due(cx);
        }
    }

    /// Sends a frame through the next NIC for which the application has one. Returns whether a full ring may have kept it from sending.
    fn begin_send_in_turn(
        &mut self,
        cx: &mut Context<'_>,
        devices: &mut Devices<'_>,
        nics: u8,
    ) -> bool {
        let mut waits_for_room = false;
        for _ in 0..nics {
            let nic = self.next_to_send;
            self.next_to_send = (nic + 1) % nics;
            waits_for_room |= self.begin_send(cx, devices, nic);
            if self.task.is_some() {
                break;
            }
        }
        waits_for_room
    }

    /// Lets the application work; returns whether there was something to do.
    fn begin_work(&mut self, cx: &mut Context<'_>) -> bool {
        let Self {
            host, application, ..
        } = self;
        let work = |meter: &mut Meter<'_>| application.work(cx.now, meter, cx.contents);
        let until = host.begin_application(cx.now, work);
        if let Some(until) = until {
            self.begin_until(cx, Task::Work, until);
        }
        until.is_some()
    }

    /// Sends a frame of the application through a NIC, if it has one. Returns whether a full ring may have kept it from sending.
    #[inline(always)]
    fn begin_send(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>, nic: u8) -> bool {
        let interface = &mut devices.interfaces[usize::from(nic)];
        let free = interface.nic.free_descriptors(self.number);
        if free < interface.driver.reclaims_below.unwrap_or(0)
            && interface.nic.completed(self.number) > 0
            && self.application.wants_to_send(cx.now, nic)
        {
            self.begin_reclaim(cx, devices, nic);
            return false;
        }
        if free == 0 && self.application.waits_for_room() {
            self.announce(cx, devices, nic);
            return true;
        }
        let Some(next) = self.application.poll_send(cx.now, nic, cx.contents) else {
            self.announce(cx, devices, nic);
            return false;
        };
        let interface = &mut devices.interfaces[usize::from(nic)];
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
        let slot = interface.rings[usize::from(self.number)].take_slot();
        let traffic = self.application.traffic_out(&next, cx.contents);
        let place = place(nic, slot, &next.frame(cx.now, self.number));
        let work = Work::Send(place, traffic, next.lies_at);
        self.begin(cx, Task::Send(nic, slot, next), work);
        false
    }

    /// Schedules when the application is asked again.
    fn arm_due(&mut self, cx: &mut Context<'_>) {
        let due = self.application.next_due().max(cx.now + Span::from_ps(1));
        if due < self.due {
            self.due = due;
            cx.at(due, Event::Due(self.machine, self.number));
        }
    }

    /// Ends the processor's task.
    pub(super) fn end_task(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>) {
        match self.task.take() {
            Some(Task::Send(nic, slot, next)) => {
                let interface = &mut devices.interfaces[usize::from(nic)];
                interface.nic.put(slot, next.frame(cx.now, self.number));
                let rule = interface.driver;
                let rings = &mut interface.rings[usize::from(self.number)];
                rings.to_announce += 1;
                let is_read = is_full(&mut rings.sent, rule.send_reads);
                if rings.to_announce >= rule.doorbell_frames {
                    self.announce(cx, devices, nic);
                }
                if is_read {
                    self.read_register(cx, devices, nic);
                }
            }
            Some(Task::Enter(nic)) => {
                if devices.interfaces[usize::from(nic)].driver.reads_cause {
                    self.read_register(cx, devices, nic);
                }
            }
            Some(Task::Receive(nic, slot, frame)) => {
                let lies_at = Host::received_at(nic, slot);
                self.application
                    .receive(cx.now, (nic, lies_at), &frame, cx.contents);
                let interface = &mut devices.interfaces[usize::from(nic)];
                let rule = interface.driver;
                let rings = &mut interface.rings[usize::from(self.number)];
                rings.to_refill += 1;
                let is_read = is_full(&mut rings.received, rule.receive_reads);
                if rings.to_refill >= self.host.refill_batch() {
                    self.refill(cx, devices, nic);
                }
                if is_read {
                    self.read_register(cx, devices, nic);
                }
            }
            Some(Task::Reclaim(nic, count)) => {
                devices.interfaces[usize::from(nic)]
                    .nic
                    .reclaim(self.number, count);
            }
            Some(Task::Refuse | Task::Poll | Task::Work) | None => {}
            Some(Task::ReadRegister(since)) => self.task = Some(Task::ReadRegister(since)),
        }
    }

    /// Reports the new frames in the ring to the NIC.
    fn announce(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>, nic: u8) {
        let interface = &mut devices.interfaces[usize::from(nic)];
        let count = std::mem::take(&mut interface.rings[usize::from(self.number)].to_announce);
        if count > 0 {
            self.write_register(cx, devices, nic, Tag::Doorbell(self.number, count));
        }
    }

    /// Starts to read a register of a NIC, for which the processor waits.
    fn read_register(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>, nic: u8) {
        self.task = Some(Task::ReadRegister(cx.now));
        devices.bus.submit(
            cx,
            nic,
            Operation::RegisterRead,
            Category::Other,
            REGISTER,
            Some(Tag::Register(self.number)),
        );
    }

    /// Gives descriptors back to a NIC.
    pub(super) fn refill(&mut self, cx: &mut Context<'_>, devices: &mut Devices<'_>, nic: u8) {
        let interface = &mut devices.interfaces[usize::from(nic)];
        let count = std::mem::take(&mut interface.rings[usize::from(self.number)].to_refill);
        if count > 0 {
            self.write_register(cx, devices, nic, Tag::Refill(self.number, count));
        }
    }

    fn write_register(
        &mut self,
        cx: &mut Context<'_>,
        devices: &mut Devices<'_>,
        nic: u8,
        tag: Tag,
    ) {
        devices.bus.submit(
            cx,
            nic,
            Operation::RegisterWrite,
            Category::Other,
            REGISTER,
            Some(tag),
        );
    }
}

/// Increments a counter. Returns whether it has reached `most`, if there is a limit, and then resets it.
fn is_full(count: &mut u32, most: Option<u32>) -> bool {
    *count += 1;
    let is_full = most.is_some_and(|most| *count >= most);
    if is_full {
        *count = 0;
    }
    is_full
}
