//! A machine: its processors with drivers and applications, its bus and its NICs.

mod core;
mod drivers;

use super::SimulationError;
use super::application::Application;
use super::bus::Bus;
use super::event::{Context, Event, NicId};
use super::frame::Frame;
use super::interface::Interface;
use crate::applications::Drivers;
use crate::frame::LinkRate;
use crate::port::{Machine as Role, Resource, Use};
use baton_sim::config::{HostConfig, NicConfig, NicHardware};
use baton_sim::hardware::nic::{self, Tag};
use baton_wire::Time;
use core::{Core, Devices};

/// Parts of a machine.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// One or more NICs, all on the bus of the first.
    pub(super) nics: Vec<&'a NicHardware>,
    /// The adapter on each NIC; absent: they are plain NICs.
    pub(super) adapter: Option<&'a NicConfig>,
    pub(super) host: &'a HostConfig,
    pub(super) drivers: Drivers,
    /// One application for each processor, which has a queue of each NIC.
    pub(super) applications: Vec<Application>,
}

/// A machine.
#[derive(Debug)]
pub(super) struct Machine {
    bus: Bus,
    pub(super) interfaces: Vec<Interface>,
    pub(super) cores: Vec<Core>,
    /// Rate of all links.
    link: LinkRate,
    /// Start of the measurement.
    measured_from: Time,
}

impl Machine {
    pub(super) fn new(id: u8, parts: Parts<'_>, link: LinkRate) -> Result<Self, SimulationError> {
        let Parts {
            nics,
            adapter,
            host,
            drivers,
            applications,
        } = parts;
        let queues = applications.len() as u8;
        let polls = drivers == Drivers::Polling;
        let interface = |(nic, profile): (u8, &&NicHardware)| {
            let id = NicId { machine: id, nic };
            Interface::new(id, (*profile, adapter), link, queues, polls)
        };
        let core =
            |(number, application)| Core::new([id, number], (host, &nics), polls, application);
        Ok(Self {
            bus: Bus::new(id, &nics[0].bus, nics.len())?,
            interfaces: (0..).zip(&nics).map(interface).collect::<Result<_, _>>()?,
            cores: (0..)
                .zip(applications)
                .map(core)
                .collect::<Result<_, _>>()?,
            link,
            measured_from: Time::ZERO,
        })
    }

    // --- events ---

    /// Handles an event of the machine or of one of its NICs.
    pub(super) fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::Processor(_, core) => {
                let (core, mut devices) = self.core(cx, core);
                core.end_task(&mut devices);
            }
            Event::Bus(_) => self.handle_bus(cx),
            Event::Due(_, core) => self.cores[usize::from(core)].handle_due(),
            Event::Nic(id, event) => self.handle_nic(cx, id.nic, event),
            Event::Firmware(id) => {
                let interface = &mut self.interfaces[usize::from(id.nic)];
                interface.end_firmware_piece();
            }
            Event::Arrival(_) | Event::FromSwitch(_) => {
                unreachable!("frames are passed to `receive`")
            }
        }
        self.advance(cx);
    }

    /// Handles a frame that arrives at one of the NICs.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>, nic: u8, frame: Frame) {
        let interface = &mut self.interfaces[usize::from(nic)];
        let (nic, mut around) = interface.with_around(cx, &mut self.bus);
        nic.handle_arrival(&mut around, frame);
        self.advance(cx);
    }

    fn handle_nic(&mut self, cx: &mut Context<'_>, number: u8, event: nic::Event) {
        let now = cx.now;
        let interface = &mut self.interfaces[usize::from(number)];
        let (nic, mut around) = interface.with_around(cx, &mut self.bus);
        if let Some(delivered) = nic.handle(&mut around, event) {
            let core = &mut self.cores[usize::from(delivered.1.queue)];
            core.host.receive_by_dma(now, number, delivered);
            core.application.deliver(now, &delivered.1);
        }
    }

    /// Begins everything that can begin.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>) {
        for interface in &mut self.interfaces {
            interface.advance(cx, &mut self.bus);
        }
        for core in 0..self.cores.len() as u8 {
            let (core, mut devices) = self.core(cx, core);
            core.advance(&mut devices);
        }
    }

    /// Returns a processor, and the devices that all processors share.
    fn core<'a, 'b>(
        &'a mut self,
        cx: &'a mut Context<'b>,
        number: u8,
    ) -> (&'a mut Core, Devices<'a, 'b>) {
        let devices = Devices {
            cx,
            bus: &mut self.bus,
            interfaces: &mut self.interfaces,
        };
        (&mut self.cores[usize::from(number)], devices)
    }

    fn handle_bus(&mut self, cx: &mut Context<'_>) {
        self.bus.advance(cx);
        while let Some((number, tag)) = self.bus.poll_done() {
            let interface = &mut self.interfaces[usize::from(number)];
            match tag {
                Tag::Register(core) => self.cores[usize::from(core)].handle_register(cx.now),
                Tag::SendFrame => {
                    if let Some(read) = interface.nic.next_read() {
                        let core = &mut self.cores[usize::from(read.1.queue)];
                        core.host.send_by_dma(cx.now, number, read);
                    }
                }
                _ => {}
            }
            let (nic, mut around) = interface.with_around(cx, &mut self.bus);
            nic.handle_transfer(&mut around, tag);
        }
        self.bus.arm(cx);
    }

    // --- getters ---

    pub(super) fn restart_counts(&mut self, now: Time) {
        self.measured_from = now;
        for core in &mut self.cores {
            core.host.restart_counts(now);
        }
        self.bus.restart_counts(now);
        for interface in &mut self.interfaces {
            interface.restart_counts(now);
        }
    }

    /// Returns the number of interrupts of all processors.
    pub(super) fn interrupts(&self) -> u64 {
        self.cores.iter().map(|core| core.interrupts).sum()
    }

    /// Returns the applications of all processors.
    pub(super) fn applications(&self) -> impl Iterator<Item = &Application> {
        self.cores.iter().map(|core| &core.application)
    }

    /// Returns the utilisation from the start of the measurement until `now` of the busiest resource of each kind.
    pub(super) fn uses(&self, role: Role, now: Time) -> Vec<Use> {
        let span = now - self.measured_from;
        let most_bits = self.link.bits_per_second() as f64 * span.as_secs_f64();
        let hosts = self.cores.iter().map(|core| core.host.utilisation(now));
        let nics = self.interfaces.iter();
        let of_nics = nics.map(|interface| interface.utilisation(now, most_bits));
        let of_nics = of_nics.fold([0.0; 4], |most: [f64; 4], one: [f64; 4]| {
            std::array::from_fn(|n| f64::max(most[n], one[n]))
        });
        let shares = [hosts.fold(0.0, f64::max), self.bus.utilisation(now)];
        let shares = shares.into_iter().chain(of_nics);
        let of = |(resource, share)| Use {
            machine: role,
            resource,
            share,
        };
        Resource::ALL.into_iter().zip(shares).map(of).collect()
    }
}
