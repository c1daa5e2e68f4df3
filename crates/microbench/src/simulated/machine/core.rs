//! A processor of a machine, with its queues of all NICs, its drivers and its application.

use super::super::SimulationError;
use super::super::application::Application;
use super::super::bus::Bus;
use super::super::event::{Context, Event};
use super::super::host::{Host, Meter, Task, Traffic};
use super::super::interface::{DriverRings, Interface};
use super::drivers::Turn;
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
pub(super) struct Devices<'a, 'b> {
    pub(super) cx: &'a mut Context<'b>,
    pub(super) bus: &'a mut Bus,
    pub(super) interfaces: &'a mut [Interface],
}

impl Devices<'_, '_> {
    pub(super) fn of(&mut self, nic: u8) -> &mut Interface {
        &mut self.interfaces[usize::from(nic)]
    }

    fn rings(&mut self, nic: u8, queue: u8) -> &mut DriverRings {
        &mut self.of(nic).rings[usize::from(queue)]
    }

    /// Reports the new frames in a queue's ring to a NIC.
    fn announce(&mut self, nic: u8, queue: u8) {
        let count = std::mem::take(&mut self.rings(nic, queue).to_announce);
        self.write_register(nic, Tag::Doorbell(queue, count), count);
    }

    /// Gives descriptors of a queue back to a NIC.
    pub(super) fn refill(&mut self, nic: u8, queue: u8) {
        let count = std::mem::take(&mut self.rings(nic, queue).to_refill);
        self.write_register(nic, Tag::Refill(queue, count), count);
    }

    /// Writes a register, if there is something to report.
    fn write_register(&mut self, nic: u8, tag: Tag, count: u32) {
        if count > 0 {
            self.access_register(nic, Operation::RegisterWrite, tag);
        }
    }

    fn access_register(&mut self, nic: u8, operation: Operation, tag: Tag) {
        let (category, bytes) = (Category::Other, REGISTER);
        (self.bus).submit(self.cx, nic, operation, category, bytes, Some(tag));
    }
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
    /// Whether drivers poll; if not, NICs interrupt.
    pub(super) polls: bool,
    /// The driver whose turn it is.
    pub(super) turn: Turn,
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
            polls,
            turn: Turn::default(),
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

    /// Begins a task of the driver or of the application.
    pub(super) fn begin(&mut self, devices: &mut Devices<'_, '_>, task: Task) {
        let traffic = match &task {
            Task::Send(_, _, frame) => self.application.traffic(frame, false),
            Task::Receive(_, _, frame) => self.application.traffic(frame, true),
            _ => Traffic::Datagram,
        };
        let until = self.host.begin(devices.cx.now, &task, traffic);
        self.begin_until(devices, task, until);
    }

    fn begin_until(&mut self, devices: &mut Devices<'_, '_>, task: Task, until: Time) {
        self.task = Some(task);
        let event = Event::Processor(self.machine, self.number);
        devices.cx.at(until, event);
    }

    /// Lets the driver handle the next received frame or reclaim descriptors; returns false if there is nothing to do.
    pub(super) fn begin_driver(&mut self, devices: &mut Devices<'_, '_>, nic: u8) -> bool {
        let interface = devices.of(nic);
        if let Some((slot, frame)) = interface.nic.poll_delivered(self.number) {
            self.begin(devices, Task::Receive(nic, slot, frame));
        } else if interface.nic.completed(self.number) > 0 {
            self.begin_reclaim(devices, nic);
        } else {
            return false;
        }
        true
    }

    fn begin_reclaim(&mut self, devices: &mut Devices<'_, '_>, nic: u8) {
        let completed = devices.of(nic).nic.completed(self.number);
        let count = completed.min(RECLAIM_BATCH);
        let slot = devices.rings(nic, self.number).take_reclaim(count);
        self.begin(devices, Task::Reclaim { nic, slot, count });
    }

    /// Lets the application send through each NIC in turn, if it wants to, or do other work.
    pub(super) fn begin_application(&mut self, devices: &mut Devices<'_, '_>) {
        let mut waits_for_room = false;
        let nics = devices.interfaces.len() as u8;
        for _ in 0..nics {
            let nic = self.next_to_send;
            self.next_to_send = (nic + 1) % nics;
            waits_for_room |= self.begin_send(devices, nic);
            if self.task.is_some() {
                return;
            }
        }
        if self.application.has_work() && self.begin_work(devices) {
            return;
        }
        if !waits_for_room {
            self.arm_due(devices.cx);
        }
    }

    /// Lets the application work; returns whether there was something to do.
    fn begin_work(&mut self, devices: &mut Devices<'_, '_>) -> bool {
        let (now, application) = (devices.cx.now, &mut self.application);
        let work = |meter: &mut Meter<'_>| application.work(now, meter);
        let until = self.host.begin_application(now, work);
        if let Some(until) = until {
            self.begin_until(devices, Task::Application, until);
        }
        until.is_some()
    }

    /// Sends a frame of the application through a NIC, if it has one. Returns whether a full ring may have kept it from sending.
    #[inline(always)]
    fn begin_send(&mut self, devices: &mut Devices<'_, '_>, nic: u8) -> bool {
        let now = devices.cx.now;
        let interface = devices.of(nic);
        let free = interface.nic.free_descriptors(self.number);
        if free < interface.driver.reclaims_below.unwrap_or(0)
            && interface.nic.completed(self.number) > 0
            && self.application.wants_to_send(now, nic)
        {
            self.begin_reclaim(devices, nic);
            return false;
        }
        if free == 0 && self.application.waits_for_room() {
            devices.announce(nic, self.number);
            return true;
        }
        let Some(mut frame) = self.application.poll_send(now, nic) else {
            devices.announce(nic, self.number);
            return false;
        };
        if free == 0 {
            let reason = match interface.nic.is_stopped() {
                true => Loss::Pause,
                false => Loss::DriverRing,
            };
            interface.losses.add(reason, 1);
            self.begin(devices, Task::Refuse);
            return false;
        }
        let slot = devices.rings(nic, self.number).take_slot();
        frame.queue = self.number;
        self.begin(devices, Task::Send(nic, slot, frame));
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
    pub(super) fn end_task(&mut self, devices: &mut Devices<'_, '_>) {
        let (now, queue) = (devices.cx.now, self.number);
        match self.task.take() {
            Some(Task::Send(nic, slot, mut frame)) => {
                frame.born = now;
                devices.of(nic).nic.put(slot, frame);
                let rule = devices.of(nic).driver;
                let rings = devices.rings(nic, queue);
                rings.to_announce += 1;
                let is_read = is_full(&mut rings.sent, rule.send_reads);
                if rings.to_announce >= rule.doorbell_frames {
                    devices.announce(nic, queue);
                }
                self.read_register_if(is_read, devices, nic);
            }
            Some(Task::Enter(nic)) => {
                let is_read = devices.of(nic).driver.reads_cause;
                self.read_register_if(is_read, devices, nic);
            }
            Some(Task::Receive(nic, slot, mut frame)) => {
                frame.lies_at = Some(Host::received_at(nic, slot));
                self.application.receive(now, nic, frame);
                let rule = devices.of(nic).driver;
                let rings = devices.rings(nic, queue);
                rings.to_refill += 1;
                let is_read = is_full(&mut rings.received, rule.receive_reads);
                if rings.to_refill >= self.host.refill_batch() {
                    devices.refill(nic, queue);
                }
                self.read_register_if(is_read, devices, nic);
            }
            Some(Task::Reclaim { nic, count, .. }) => devices.of(nic).nic.reclaim(queue, count),
            Some(Task::Refuse | Task::Poll { .. } | Task::Application) | None => {}
            waiting @ Some(Task::ReadRegister(_)) => self.task = waiting,
        }
    }

    /// Starts to read a register of a NIC, for which the processor waits.
    fn read_register_if(&mut self, is_read: bool, devices: &mut Devices<'_, '_>, nic: u8) {
        if is_read {
            self.task = Some(Task::ReadRegister(devices.cx.now));
            let tag = Tag::Register(self.number);
            devices.access_register(nic, Operation::RegisterRead, tag);
        }
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
