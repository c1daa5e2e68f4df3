//! Machines, what joins them, and time.

use super::SimulationError;
use super::application::Application;
use super::event::{Context, Event};
use super::frame::Segment;
use super::machine::Machine;
use super::switch::Switch;
use crate::frame::LinkRate;
use crate::profile::{HostProfile, NicProfile};
use baton_sim::EventQueue;
use baton_wire::Time;
use slab::Slab;

/// Two machines on a cable, or three on a switch.
#[derive(Debug)]
pub(super) struct World {
    pub(super) machines: Vec<Machine>,
    pub(super) switch: Option<Switch>,
    /// What all links are like.
    pub(super) link: LinkRate,
    events: EventQueue<Event>,
    segments: Slab<Segment>,
}

impl World {
    /// Machines with NICs and what they are for: the one under test first.
    pub(super) fn new(
        link: LinkRate,
        machines: Vec<(&NicProfile, &HostProfile, Application)>,
    ) -> Result<Self, SimulationError> {
        let switch = match machines.len() {
            2 => None,
            count => Some(Switch::new(count, link)?),
        };
        let built = (0..).zip(machines);
        let built = built
            .map(|(id, (nic, host, application))| Machine::new(id, nic, host, application, link));
        let mut world = Self {
            machines: built.collect::<Result<_, _>>()?,
            switch,
            link,
            events: EventQueue::with_capacity(256),
            segments: Slab::new(),
        };
        for id in 0..world.machines.len() {
            world.events.push(Time::ZERO, Event::Due(id as u8));
        }
        Ok(world)
    }

    /// Lets time go on to `until`, or until nothing more happens. What happens at `until` itself comes later.
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
            switch,
            events,
            segments,
            ..
        } = self;
        let mut cx = Context {
            now,
            events,
            segments,
        };
        match event {
            Event::Arrival(from) => {
                let wire = &mut machines[usize::from(from)].wire;
                let frame = wire.receive(now);
                if let Some(next) = wire.next_arrival() {
                    cx.at(next, Event::Arrival(from));
                }
                match (frame, switch) {
                    (Some(frame), Some(switch)) => switch.receive(&mut cx, frame),
                    (Some(frame), None) => machines[usize::from(1 - from)].receive(&mut cx, frame),
                    (None, _) => {}
                }
            }
            Event::FromSwitch(to) => {
                let frame = switch
                    .as_mut()
                    .and_then(|switch| switch.deliver(&mut cx, to));
                if let Some(frame) = frame {
                    machines[usize::from(to)].receive(&mut cx, frame);
                }
            }
            Event::Processor(id)
            | Event::Bus(id)
            | Event::Engine(id, _)
            | Event::Dma(id)
            | Event::Buffered(id)
            | Event::Sent(id)
            | Event::Stored(id)
            | Event::Delivered(id)
            | Event::Timer(id)
            | Event::Due(id) => machines[usize::from(id)].handle(&mut cx, event),
        }
    }
}
