//! Simulated NICs, with their hosts, drivers and buses.
//!
//! A cable joins two machines, or a switch joins three. Partners are modelled like the NIC under test, and may be the bottleneck. Time is
//! virtual: the same trial gives exactly the same result.

mod application;
mod bus;
mod counts;
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

use crate::applications::Drivers;
use crate::frame::LinkRate;
use crate::port::{Load, Machine as Role, Place, Port, Request, Stream, Trial};
use application::{Application, LatencySum, PARTNER, RECEIVER, Senders, UNDER_TEST, of_test};
use baton_bus::interconnect::InterconnectError;
use baton_sim::config::{HostConfig, NicConfig, NicHardware};
use baton_sim::hardware::ConfigError;
use baton_wire::{Span, Time};
use counts::Counts;
use event::NicId;
use machine::Parts;
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
                    Some(_) => Drivers::Polling,
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
        let before = world.counts(start);
        let mut end = start + request.duration;
        world.run(end);
        if is_burst {
            end = drain(&mut world, end);
        }
        let after = world.counts(end).into_iter();
        let since = after.zip(before).map(|(after, before)| after - before);
        Ok(trial(request, &world, &since.collect::<Vec<_>>(), start))
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

/// Returns the counts of frames from one machine to another.
fn stream(from: &Counts, to: &Counts) -> Stream {
    let mut losses = from.lost_before_wire;
    losses.add_all(&to.lost_after_wire);
    if from.tried > 0 && from.offered > from.tried + TOLERANCE {
        losses.add(Place::Sender, from.offered - from.tried);
    }
    Stream {
        offered: from.offered,
        sent: from.sent,
        delivered: to.delivered,
        losses,
    }
}

/// Returns the result of a trial with these counts of the machines.
fn trial(request: &Request, world: &World, counts: &[Counts], start: Time) -> Trial {
    const ROLES: [Role; 3] = [Role::UnderTest, Role::Partner, Role::Receiver];
    let receiver = counts.len() - 1;
    let at_receiver = match request.test.sends_datagrams() && !request.test.is_three_way() {
        true => PARTNER,
        false => UNDER_TEST,
    };
    let latency = LatencySum::of(world.machines[usize::from(at_receiver)].applications());
    let end = start + request.duration;
    let machines = world.machines.iter().zip(ROLES);
    let all = Counts::sum(counts);
    Trial {
        test: request.test,
        load: request.load,
        seconds: request.duration.as_secs_f64(),
        sent: stream(&counts[0], &counts[receiver]),
        received: stream(&counts[1], &counts[0]),
        goodput_bytes: all.goodput_bytes,
        connections: all.connections,
        latency,
        interrupts: counts[0].interrupts,
        uses: machines
            .flat_map(|(machine, role)| machine.uses(role, end))
            .collect(),
        tolerance: match request.load {
            Load::Burst(_) => 0,
            _ => TOLERANCE,
        },
    }
}
