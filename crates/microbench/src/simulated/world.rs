//! Machines and their links, and the event loop.

use super::SimulationError;
use super::event::{Context, Event, NicId};
use super::frame::{Contents, Frame};
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
enum End {
    Nic(NicId),
    /// A switch, by its number.
    Switch(usize),
}

/// Machines on cables and switches.
#[derive(Debug)]
pub(super) struct World {
    pub(super) machines: Vec<Machine>,
    pub(super) switches: Vec<Switch>,
    /// Rate of all links.
    pub(super) rate: LinkRate,
    /// End of each NIC's wire, by machine and NIC.
    ends: Vec<Vec<End>>,
    events: EventQueue<Event>,
    pub(super) contents: Contents,
}

impl World {
    /// Creates machines and the links that join them.
    pub(super) fn new(
        rate: LinkRate,
        machines: Vec<Parts<'_>>,
        links: Vec<Link>,
    ) -> Result<Self, SimulationError> {
        let nics = machines.iter().map(|parts| parts.nics.len());
        let mut ends: Vec<Vec<End>> = nics.map(|nics| vec![End::Switch(0); nics]).collect();
        let mut end = |of: NicId, is| ends[usize::from(of.machine)][usize::from(of.nic)] = is;
        let mut switches = Vec::new();
        for link in links {
            match link {
                Link::Cable([one, other]) => {
                    end(one, End::Nic(other));
                    end(other, End::Nic(one));
                }
                Link::Switch(nics) => {
                    for nic in &nics {
                        end(*nic, End::Switch(switches.len()));
                    }
                    switches.push(Switch::new(&nics, rate)?);
                }
            }
        }
        let built = (0..).zip(machines);
        let built = built.map(|(id, parts)| Machine::new(id, parts, rate));
        let mut world = Self {
            machines: built.collect::<Result<_, _>>()?,
            switches,
            rate,
            ends,
            events: EventQueue::with_capacity(256),
            contents: Contents::default(),
        };
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

    fn step(&mut self, now: Time, event: Event) {
        let Self {
            machines,
            switches,
            ends,
            events,
            contents,
            ..
        } = self;
        let mut cx = Context {
            now,
            events,
            contents,
        };
        let receive = |machines: &mut [Machine], cx: &mut Context<'_>, to: NicId, frame: Frame| {
            machines[usize::from(to.machine)].receive(cx, to.nic, frame);
        };
        match event {
            Event::Arrival(from) => {
                let (machine, nic) = (usize::from(from.machine), usize::from(from.nic));
                let wire = &mut machines[machine].interfaces[nic].wire;
                let frame = wire.receive(now);
                if let Some(next) = wire.next_arrival() {
                    cx.at(next, event);
                }
                match (frame, ends[machine][nic]) {
                    (Some(frame), End::Switch(number)) => switches[number].receive(&mut cx, frame),
                    (Some(frame), End::Nic(to)) => receive(machines, &mut cx, to, frame),
                    (None, _) => {}
                }
            }
            Event::FromSwitch(to) => {
                let end = ends[usize::from(to.machine)][usize::from(to.nic)];
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
