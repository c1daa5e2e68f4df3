//! Machines and their links, and the event loop.

use super::SimulationError;
use super::counts::Counts;
use super::event::{Context, Event, NicId};
use super::frame::Frame;
use super::interface::Interface;
use super::machine::{Machine, Parts};
use super::switch::Switch;
use crate::frame::LinkRate;
use baton_sim::EventQueue;
use baton_wire::Time;

/// A link that joins NICs. Each NIC is on exactly one link.
#[derive(Debug)]
pub(super) enum Link {
    /// A cable between two NICs.
    Cable([NicId; 2]),
    /// A switch with a cable to each NIC.
    Switch(Vec<NicId>),
}

/// The end of a NIC's wire.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Nic(NicId),
    /// A switch, by its number.
    Switch(usize),
}

/// Machines on cables and switches.
#[derive(Debug)]
pub(super) struct World {
    pub(super) machines: Vec<Machine>,
    switches: Vec<Switch>,
    events: EventQueue<Event>,
}

impl World {
    /// Creates machines and the links that join them.
    pub(super) fn new(
        rate: LinkRate,
        machines: Vec<Parts<'_>>,
        links: Vec<Link>,
    ) -> Result<Self, SimulationError> {
        let machines = (0..).zip(machines);
        let machines = machines.map(|(id, parts)| Machine::new(id, parts, rate));
        let mut world = Self {
            machines: machines.collect::<Result<_, _>>()?,
            switches: Vec::new(),
            events: EventQueue::with_capacity(256),
        };
        for link in links {
            match link {
                Link::Cable([one, other]) => {
                    world.interface(one).end = End::Nic(other);
                    world.interface(other).end = End::Nic(one);
                }
                Link::Switch(nics) => {
                    for nic in &nics {
                        world.interface(*nic).end = End::Switch(world.switches.len());
                    }
                    world.switches.push(Switch::new(&nics, rate)?);
                }
            }
        }
        for id in 0..world.machines.len() {
            for core in 0..world.machines[id].cores.len() as u8 {
                world.events.push(Time::ZERO, Event::Due(id as u8, core));
            }
        }
        Ok(world)
    }

    /// Runs until `until`, or until there are no more events. Events at `until` itself are not handled yet.
    pub(super) fn run(&mut self, until: Time) {
        while self.events.peek_time().is_some_and(|time| time < until) {
            if let Some((now, event)) = self.events.pop() {
                self.step(now, event);
            }
        }
    }

    /// Returns the counts of each machine by `now`.
    pub(super) fn counts(&self, now: Time) -> Vec<Counts> {
        let machines = self.machines.iter().enumerate();
        let of = |(number, machine)| Counts::of(machine, number, &self.switches, now);
        machines.map(of).collect()
    }

    fn interface(&mut self, NicId { machine, nic }: NicId) -> &mut Interface {
        &mut self.machines[usize::from(machine)].interfaces[usize::from(nic)]
    }

    fn step(&mut self, now: Time, event: Event) {
        let Self {
            machines,
            switches,
            events,
        } = self;
        let mut cx = Context { now, events };
        let receive = |machines: &mut [Machine], cx: &mut Context<'_>, to: NicId, frame: Frame| {
            machines[usize::from(to.machine)].receive(cx, to.nic, frame);
        };
        match event {
            Event::Arrival(NicId { machine, nic }) => {
                let of = &mut machines[usize::from(machine)].interfaces[usize::from(nic)];
                match (cx.receive(&mut of.wire, event), of.end) {
                    (Some(frame), End::Switch(number)) => switches[number].receive(&mut cx, frame),
                    (Some(frame), End::Nic(to)) => receive(machines, &mut cx, to, frame),
                    (None, _) => {}
                }
            }
            Event::FromSwitch(to) => {
                let end = machines[usize::from(to.machine)].interfaces[usize::from(to.nic)].end;
                if let End::Switch(number) = end
                    && let Some(frame) = switches[number].deliver(&mut cx, to)
                {
                    receive(machines, &mut cx, to, frame);
                }
            }
            _ => machines[usize::from(event.machine())].handle(&mut cx, event),
        }
    }
}
