//! A machine: its host with the driver and the test, its bus and its NIC.

use super::SimulationError;
use super::application::{Application, Outgoing};
use super::bus::{Bus, Tag};
use super::event::{Context, Event};
use super::frame::{Body, Frame};
use super::host::{Host, Work};
use super::nic::Nic;
use crate::frame::LinkRate;
use crate::port::{Losses, Place};
use crate::profile::{HostProfile, NicProfile};
use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_sim::hardware::{Wire, WireConfig};
use baton_wire::{Span, Time, line_len};

/// Bytes of a register.
const REGISTER: u32 = 4;

/// Descriptors of sent frames that the driver takes back before it looks at other things.
const RECLAIM_BATCH: u32 = 16;

/// What the processor is at.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// The test sends a frame, into this place of the ring.
    Send(u32, Outgoing),
    /// The test sends a frame, which the driver refuses.
    Refuse,
    /// It goes to the driver because of an interrupt.
    Enter,
    /// It waits for a register since this time.
    ReadRegister(Time),
    /// The driver handles a frame that was received.
    Receive(Frame),
    /// The driver takes back descriptors.
    Reclaim(u32),
}

/// What was counted on a machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Frames that were lost before the NIC had them.
    pub(super) losses: Losses,
    /// Interrupts.
    pub(super) interrupts: u64,
}

/// A machine.
#[derive(Debug)]
pub(super) struct Machine {
    id: u8,
    host: Host,
    bus: Bus,
    pub(super) nic: Nic,
    /// From its NIC.
    pub(super) wire: Wire<Frame>,
    pub(super) application: Application,
    task: Option<Task>,
    /// The driver is in its interrupt handler, and the NIC does not interrupt.
    in_interrupt: bool,
    /// Descriptors for frames to receive that were not given back to the NIC.
    to_refill: u32,
    /// Places of the send ring: the next to use, and the next to take back.
    next_slot: u32,
    next_reclaim: u32,
    send_ring: u32,
    reclaims_below: u32,
    /// When it is asked again whether the test wants to send.
    due: Time,
    pub(super) counts: Counts,
}

impl Machine {
    pub(super) fn new(
        id: u8,
        nic: &NicProfile,
        host: &HostProfile,
        application: Application,
        link: LinkRate,
    ) -> Result<Self, SimulationError> {
        let wire = WireConfig {
            rate_mbps: link.mbps,
            delay_ns: super::CABLE_NS,
            ..WireConfig::default()
        };
        Ok(Self {
            id,
            host: Host::new(host, nic)?,
            bus: Bus::new(id, &nic.bus)?,
            nic: Nic::new(id, nic),
            wire: Wire::new(&wire, 0)?,
            application,
            task: None,
            in_interrupt: false,
            to_refill: 0,
            next_slot: 0,
            next_reclaim: 0,
            send_ring: nic.descriptors.send,
            reclaims_below: nic.driver.reclaims_below.unwrap_or(0),
            due: Time::NEVER,
            counts: Counts::default(),
        })
    }

    // --- events ---

    /// Something happens on it.
    pub(super) fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::Processor(_) => self.end_task(cx),
            Event::Bus(_) => self.handle_bus(cx),
            Event::Engine(_, engine) => self.nic.handle_engine(cx, engine),
            Event::Dma(_) => self.nic.handle_dma(cx, &mut self.bus),
            Event::Buffered(_) => self.nic.handle_buffered(),
            Event::Sent(_) => self.nic.handle_sent(cx),
            Event::Stored(_) => self.nic.handle_stored(),
            Event::Delivered(_) => {
                if let Some((slot, frame)) = self.nic.handle_delivered(cx, &mut self.wire) {
                    self.host.receive_by_dma(cx.now, slot, frame.bytes());
                    self.application.deliver(cx.now, &frame);
                }
            }
            Event::Timer(_) => self.nic.handle_timer(cx),
            Event::Due(_) => self.due = Time::NEVER,
            Event::Arrival(_) | Event::FromSwitch(_) => {
                unreachable!("frames are given to `receive`")
            }
        }
        self.advance(cx);
    }

    /// A frame arrives.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>, frame: Frame) {
        self.nic.handle_arrival(cx, &mut self.wire, frame);
        self.advance(cx);
    }

    /// Begins all that can begin.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>) {
        self.nic.advance(cx, &mut self.bus, &mut self.wire);
        if self.task.is_none() {
            self.begin_task(cx);
        }
    }

    fn handle_bus(&mut self, cx: &mut Context<'_>) {
        self.bus.advance(cx);
        while let Some(tag) = self.bus.poll_done() {
            match tag {
                Tag::Register => {
                    if let Some(Task::ReadRegister(since)) = self.task {
                        self.host.waited(since, cx.now);
                        self.task = None;
                    }
                }
                Tag::SendFrame => {
                    if let Some((slot, bytes)) = self.nic.next_read() {
                        self.host.send_by_dma(cx.now, slot, bytes);
                    }
                    self.nic.handle_transfer(cx, tag);
                }
                _ => self.nic.handle_transfer(cx, tag),
            }
        }
        self.bus.arm(cx);
    }

    // --- the processor ---

    /// Chooses what the processor does next: an interrupt goes before the test.
    fn begin_task(&mut self, cx: &mut Context<'_>) {
        if self.in_interrupt {
            self.begin_in_interrupt(cx);
        } else if self.nic.interrupts {
            self.nic.interrupts = false;
            self.in_interrupt = true;
            self.counts.interrupts += 1;
            self.begin(cx, Task::Enter, Work::Interrupt);
        }
        if self.task.is_none() {
            self.begin_send(cx);
        }
    }

    fn begin(&mut self, cx: &mut Context<'_>, task: Task, work: Work) {
        let until = self.host.begin(cx.now, work);
        self.task = Some(task);
        cx.at(until, Event::Processor(self.id));
    }

    /// The driver's interrupt handler: what was received, then what was sent, until there is nothing left.
    fn begin_in_interrupt(&mut self, cx: &mut Context<'_>) {
        if let Some((slot, frame)) = self.nic.poll_delivered() {
            let is_segment = matches!(frame.body, Body::Segment(_));
            let bytes = frame.bytes();
            self.begin(
                cx,
                Task::Receive(frame),
                Work::Receive {
                    slot,
                    bytes,
                    is_segment,
                },
            );
        } else if self.nic.completed() > 0 {
            self.begin_reclaim(cx);
        } else {
            self.refill(cx);
            self.in_interrupt = false;
            self.nic.end_interrupt(cx);
        }
    }

    fn begin_reclaim(&mut self, cx: &mut Context<'_>) {
        let count = self.nic.completed().min(RECLAIM_BATCH);
        let slot = self.next_reclaim;
        self.next_reclaim = (slot + count) % self.send_ring;
        self.begin(cx, Task::Reclaim(count), Work::Reclaim { slot, count });
    }

    /// The test sends, if it wants to.
    fn begin_send(&mut self, cx: &mut Context<'_>) {
        let free = self.nic.free_descriptors();
        if free < self.reclaims_below
            && self.nic.completed() > 0
            && self.application.wants_to_send(cx.now)
        {
            return self.begin_reclaim(cx);
        }
        let waits_for_room = free == 0 && self.application.waits_for_room();
        let next = if waits_for_room {
            None
        } else {
            self.application.poll_send(cx.now, cx.segments)
        };
        let Some(next) = next else {
            if !waits_for_room {
                self.arm_due(cx);
            }
            return;
        };
        if free == 0 {
            let place = if self.nic.is_stopped() {
                Place::Pause
            } else {
                Place::DriverRing
            };
            self.counts.losses.add(place, 1);
            return self.begin(cx, Task::Refuse, Work::Refuse);
        }
        let slot = self.next_slot;
        self.next_slot = (slot + 1) % self.send_ring;
        let is_segment = matches!(next.body, Body::Segment(_));
        let bytes = next.frame(cx.now).bytes();
        self.begin(
            cx,
            Task::Send(slot, next),
            Work::Send {
                slot,
                bytes,
                is_segment,
            },
        );
    }

    /// Sees to it that the test is asked again.
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
            Some(Task::Send(slot, next)) => {
                self.nic.put(slot, next.frame(cx.now));
                self.write_register(cx, Tag::Doorbell(1));
            }
            Some(Task::Enter) => {
                self.task = Some(Task::ReadRegister(cx.now));
                self.bus.submit(
                    cx,
                    Operation::RegisterRead,
                    Category::Other,
                    REGISTER,
                    Some(Tag::Register),
                );
            }
            Some(Task::Receive(frame)) => {
                self.application.receive(cx.now, &frame, cx.segments);
                self.to_refill += 1;
                if self.to_refill >= self.host.refill_batch() {
                    self.refill(cx);
                }
            }
            Some(Task::Reclaim(count)) => self.nic.reclaim(count),
            Some(Task::Refuse) => {}
            Some(Task::ReadRegister(since)) => self.task = Some(Task::ReadRegister(since)),
            None => {}
        }
    }

    /// Gives descriptors back to the NIC.
    fn refill(&mut self, cx: &mut Context<'_>) {
        let count = std::mem::take(&mut self.to_refill);
        if count > 0 {
            self.write_register(cx, Tag::Refill(count));
        }
    }

    fn write_register(&mut self, cx: &mut Context<'_>, tag: Tag) {
        self.bus.submit(
            cx,
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
        self.nic.restart_counts(now);
    }

    /// Bytes that its NIC has put on the wire, preambles and gaps included.
    pub(super) fn line_bytes(&self) -> u64 {
        let counters = self.wire.counters();
        counters.bytes_sent + line_len(0) as u64 * counters.frames_sent
    }

    /// Shares of the time since then in which host, bus, engines, start of DMA and packet memory were busy.
    pub(super) fn utilisation(&self, now: Time) -> [f64; 5] {
        let [engines, dma, memory] = self.nic.utilisation(now);
        [
            self.host.utilisation(now),
            self.bus.utilisation(now),
            engines,
            dma,
            memory,
        ]
    }
}
