//! Simulated NICs, with their hosts, drivers and buses.
//!
//! A cable joins two machines, or a switch joins three. Partners are modelled like the NIC under test, and may be the bottleneck. Time is
//! virtual: the same trial gives exactly the same result.

mod application;
mod bus;
mod event;
mod firmware;
mod frame;
mod host;
mod interface;
mod machine;
mod router;
mod switch;
#[cfg(test)]
mod tests;
mod web;
mod world;

use crate::frame::LinkRate;
use crate::port::{
    Load, Losses, Machine as Role, Place, Port, Request, Resource, Stream, Trial, Use,
};
use application::{Application, LatencySum, PARTNER, RECEIVER, Senders, UNDER_TEST, of_test};
use baton_bus::interconnect::InterconnectError;
use baton_sim::config::{HostConfig, NicConfig, NicHardware};
use baton_sim::hardware::ConfigError;
use baton_wire::{Span, Time};
use event::NicId;
use frame::Contents;
use machine::{Drivers, Parts};
use world::{Link, World};

/// Delay of a cable of a few metres, in nanoseconds.
const CABLE_NS: u32 = 50;

/// How far the numbers of offered and counted frames may differ without a loss, because the number of frames that wait for an interrupt
/// handler varies.
const TOLERANCE: u64 = 64;

/// Time without a frame after which a burst is over.
const QUIET: Span = Span::from_ms(20);

pub use router::route;
pub use web::serve;

/// A profile describes something that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// The bus cannot be simulated.
    #[error("bus: {0}")]
    Bus(#[from] InterconnectError),
    /// Processor, memory or wire cannot be simulated.
    #[error(transparent)]
    Hardware(#[from] ConfigError),
}

/// A simulated NIC under test, and its partners.
#[derive(Clone, Debug)]
pub struct SimulatedPort<'a> {
    /// The NIC under test.
    pub under_test: &'a NicHardware,
    /// The adapter on the NIC under test; absent: it is a plain NIC.
    pub adapter: Option<&'a NicConfig>,
    /// NIC of the machine that sends to the NIC under test, or of the only other machine.
    pub partner: &'a NicHardware,
    /// NIC of the machine that the NIC under test sends to, in tests with two partners.
    pub receiver: &'a NicHardware,
    /// The host of every machine.
    pub host: &'a HostConfig,
    /// Number of flows of datagrams per sender, which receive-side scaling spreads.
    pub flows: u16,
}

/// Default number of flows per sender.
pub const FLOWS: u16 = 1_024;

impl<'a> SimulatedPort<'a> {
    /// Creates a port on which all NICs are of the same kind.
    pub fn alike(nic: &'a NicHardware, host: &'a HostConfig) -> Self {
        Self::with_partner(nic, nic, host)
    }

    /// Creates a port on which all partners have the same NIC.
    pub fn with_partner(
        under_test: &'a NicHardware,
        partner: &'a NicHardware,
        host: &'a HostConfig,
    ) -> Self {
        Self {
            under_test,
            adapter: None,
            partner,
            receiver: partner,
            host,
            flows: FLOWS,
        }
    }

    /// Returns the number of processors that a machine with this NIC uses, each with a queue of its own.
    fn cores(&self, nic: &NicHardware) -> u8 {
        self.host.cores.min(nic.queues)
    }

    /// Creates the world in its initial state.
    fn world(&self, request: &Request) -> Result<World, SimulationError> {
        let is_three_way = request.test.is_three_way();
        let all = [self.under_test, self.partner, self.receiver];
        let nics = if is_three_way { &all[..] } else { &all[..2] };
        let machine = |(machine, nic): (u8, &&'a NicHardware)| {
            let share = (machine, self.cores(nic));
            let senders = Senders {
                flows: self.flows,
                burst: nic.driver.doorbell_frames,
            };
            Parts {
                nics: vec![*nic],
                adapter: self.adapter.filter(|_| machine == UNDER_TEST),
                host: self.host,
                drivers: match nic.driver.polls {
                    Some(_) => Drivers::Poll,
                    None => Drivers::Interrupt,
                },
                applications: of_test(request, self.link_rate(), senders, share),
            }
        };
        let machines = (0..).zip(nics).map(machine).collect();
        let nic = |machine| NicId { machine, nic: 0 };
        let link = if is_three_way {
            Link::Switch([UNDER_TEST, PARTNER, RECEIVER].map(nic).to_vec())
        } else {
            Link::Cable([UNDER_TEST, PARTNER].map(nic))
        };
        World::new(self.link_rate(), machines, vec![link])
    }
}

impl Port for SimulatedPort<'_> {
    type Error = SimulationError;

    fn link_rate(&self) -> LinkRate {
        let nics = [self.under_test, self.partner, self.receiver];
        let slowest = nics.into_iter().map(|nic| nic.link).min();
        slowest.unwrap_or_default()
    }

    fn trial(&mut self, request: &Request) -> Result<Trial, SimulationError> {
        let mut world = self.world(request)?;
        let is_burst = matches!(request.load, Load::Burst(_));
        let warm_up = if is_burst {
            Span::ZERO
        } else {
            request.warm_up
        };
        let start = Time::ZERO + warm_up;
        world.run(start);
        for machine in &mut world.machines {
            machine.restart_counts(start);
            for core in &mut machine.cores {
                if let Application::Datagrams(datagrams) = &mut core.application {
                    datagrams.restart_latency();
                }
            }
        }
        let before = Snapshot::of(&world, start);
        let mut end = start + request.duration;
        world.run(end);
        if is_burst {
            end = drain(&mut world, end);
        }
        let after = Snapshot::of(&world, end);
        Ok(trial(request, &world, [&before, &after], start))
    }
}

/// Runs until no more frames arrive, and returns when that was.
fn drain(world: &mut World, mut end: Time) -> Time {
    let delivered = |world: &World| {
        world
            .machines
            .iter()
            .map(|one| one.interfaces[0].nic.counts.delivered)
            .sum::<u64>()
    };
    loop {
        let before = delivered(world);
        end += QUIET;
        world.run(end);
        if delivered(world) == before {
            return end;
        }
    }
}

/// All counts at one moment.
#[derive(Clone, Debug)]
struct Snapshot {
    machines: Vec<MachineSnapshot>,
    /// Frames that the switch dropped for lack of buffers, by the machine they were for.
    switch: Vec<u64>,
}

/// Counts of one machine.
#[derive(Clone, Copy, Debug)]
struct MachineSnapshot {
    /// Frames that were due, and frames that were given to the driver, including those that it refused.
    offered: u64,
    tried: u64,
    sent: u64,
    /// Bytes on the wire, including preambles and gaps.
    line_bytes: u64,
    delivered: u64,
    lost_before_wire: Losses,
    lost_after_wire: Losses,
    goodput_bytes: u64,
    connections: u64,
    interrupts: u64,
}

impl Snapshot {
    fn of(world: &World, now: Time) -> Self {
        let machines: Vec<_> = world
            .machines
            .iter()
            .map(|one| MachineSnapshot::of(one, &world.contents, now))
            .collect();
        let of_switch = |machine| {
            let switches = world.switches.iter();
            switches.map(|switch| switch.dropped(machine)).sum()
        };
        Self {
            switch: (0..machines.len()).map(of_switch).collect(),
            machines,
        }
    }

    /// Returns the counts of frames from one machine to another since `before`.
    fn stream(&self, before: &Self, from: usize, to: usize) -> Stream {
        let sender = (&self.machines[from], &before.machines[from]);
        let receiver = (&self.machines[to], &before.machines[to]);
        let mut losses = sender.0.lost_before_wire.since(&sender.1.lost_before_wire);
        for (place, frames) in receiver
            .0
            .lost_after_wire
            .since(&receiver.1.lost_after_wire)
            .iter()
        {
            losses.add(place, frames);
        }
        losses.add(Place::Switch, self.switch[to] - before.switch[to]);
        let offered = sender.0.offered - sender.1.offered;
        let tried = sender.0.tried - sender.1.tried;
        if tried > 0 && offered > tried + TOLERANCE {
            losses.add(Place::Sender, offered - tried);
        }
        Stream {
            offered,
            sent: sender.0.sent - sender.1.sent,
            delivered: receiver.0.delivered - receiver.1.delivered,
            losses,
        }
    }
}

impl MachineSnapshot {
    fn of(machine: &machine::Machine, contents: &Contents, now: Time) -> Self {
        let (mut offered, mut tried, mut goodput_bytes, mut connections) = (0, 0, 0, 0);
        for application in machine.applications() {
            match application {
                Application::Datagrams(datagrams) => {
                    offered += datagrams.offered(now);
                    tried += datagrams.tried();
                }
                Application::Sink(sink) => goodput_bytes += sink.bytes(),
                Application::Initiator(initiator) => {
                    offered += initiator.offered(now);
                    connections += initiator.closed();
                }
                _ => {}
            }
        }
        let interface = &machine.interfaces[0];
        // An interrupt handler reads hundreds of microseconds' worth of data at once; without this correction, results would be as coarse
        // as that.
        let not_read = interface
            .nic
            .delivered()
            .map(|frame| contents.data_len(frame.body));
        goodput_bytes += not_read.sum::<u64>();
        let counts = interface.nic.counts;
        Self {
            offered,
            sent: counts.sent,
            line_bytes: interface.line_bytes(),
            delivered: counts.delivered,
            tried,
            lost_before_wire: interface.losses,
            lost_after_wire: interface.lost_after_wire(),
            goodput_bytes,
            connections,
            interrupts: machine.interrupts(),
        }
    }
}

/// Returns the result of a trial.
fn trial(request: &Request, world: &World, [before, after]: [&Snapshot; 2], start: Time) -> Trial {
    let receiver = world.machines.len() - 1;
    let [under_test, partner] = [&world.machines[0], &world.machines[1]];
    let since = |value: fn(&MachineSnapshot) -> u64| {
        let pairs = after.machines.iter().zip(&before.machines);
        pairs
            .map(|(after, before)| value(after).saturating_sub(value(before)))
            .sum::<u64>()
    };
    let at_receiver = if request.test.sends_datagrams() && !request.test.is_three_way() {
        partner
    } else {
        under_test
    };
    let latency = LatencySum::of(at_receiver.applications());
    let end = start + request.duration;
    Trial {
        test: request.test,
        load: request.load,
        seconds: request.duration.as_secs_f64(),
        sent: after.stream(before, 0, receiver),
        received: after.stream(before, 1, 0),
        goodput_bytes: since(|one| one.goodput_bytes),
        connections: since(|one| one.connections),
        latency,
        interrupts: after.machines[0].interrupts - before.machines[0].interrupts,
        uses: uses(request, world, before, after, end),
        tolerance: if matches!(request.load, Load::Burst(_)) {
            0
        } else {
            TOLERANCE
        },
    }
}

/// Returns the utilisation of all resources.
fn uses(
    request: &Request,
    world: &World,
    before: &Snapshot,
    after: &Snapshot,
    end: Time,
) -> Vec<Use> {
    const ROLES: [Role; 3] = [Role::UnderTest, Role::Partner, Role::Receiver];
    let mut uses = Vec::new();
    for (place, machine) in world.machines.iter().enumerate() {
        let sent = after.machines[place].line_bytes - before.machines[place].line_bytes;
        let of_machine = uses_of(machine, world.rate, (end, request.duration), [sent]);
        uses.extend(of_machine.into_iter().map(|one| Use {
            machine: ROLES[place],
            ..one
        }));
    }
    uses
}

/// Returns the utilisation of a machine under test during `span` up to `end`, in which its NICs sent `line_bytes`.
fn uses_of<const NICS: usize>(
    machine: &machine::Machine,
    link: LinkRate,
    (end, span): (Time, Span),
    line_bytes: [u64; NICS],
) -> Vec<Use> {
    const RESOURCES: [Resource; 5] = [
        Resource::Host,
        Resource::Bus,
        Resource::NicProcessor,
        Resource::NicDma,
        Resource::NicMemory,
    ];
    let of = |(resource, share)| Use {
        machine: Role::UnderTest,
        resource,
        share,
    };
    let shares = RESOURCES.into_iter().zip(machine.utilisation(end));
    let busiest = line_bytes.into_iter().max().unwrap_or(0);
    let bits = link.bits_per_second() as f64 * span.as_secs_f64();
    let on_wire = 8.0 * busiest as f64 / bits;
    let wire = std::iter::once((Resource::Wire, on_wire));
    shares.chain(wire).map(of).collect()
}
