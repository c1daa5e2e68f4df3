//! A web server and its clients behind a switch.

use super::SimulationError;
use super::application::{Clients, WebServer};
use super::counts::Counts;
use super::event::NicId;
use super::machine::Parts;
use super::world::{Link, World};
use crate::applications::{Drivers, Machines, WebSettings, WebTrial};
use crate::port::{Machine, Resource};
use baton_wire::{Span, Time};
use baton_workload::Replay;

const SERVER: u8 = 0;

/// Interval at which the number of responses is checked.
const LOOK: Span = Span::from_ms(1);

/// Maximum time to wait for responses.
const LONGEST: Span = Span::from_secs(60);

/// Lets users on several machines replay their parts of a log, and counts a number of responses after a warm-up.
///
/// # Errors
/// A profile describes something that cannot be simulated.
pub fn serve(
    machines: &Machines<'_>,
    log: &Replay,
    settings: &WebSettings,
    users: u32,
) -> Result<WebTrial, SimulationError> {
    let mut world = world(machines, log, settings.machines, users)?;
    let start = run_until(&mut world, Time::ZERO, settings.warm_up);
    for machine in &mut world.machines {
        machine.restart_counts(start);
    }
    let before = world.counts(start);
    let end = run_until(&mut world, start, settings.warm_up + settings.responses);
    let after = world.counts(end);
    let of_all = Counts::sum(&after) - Counts::sum(&before);
    let server = usize::from(SERVER);
    let clients = world.machines[1..].iter();
    let of_clients = clients.flat_map(|client| client.uses(Machine::Partner, end));
    let of_hosts = of_clients.filter(|one| one.resource == Resource::Host);
    Ok(WebTrial {
        users,
        seconds: (end - start).as_secs_f64(),
        responses: of_all.responses,
        content_bytes: of_all.content_bytes,
        connections: of_all.connections,
        lost_connections: of_all.lost_connections,
        lost_frames: of_all.lost_before_wire.total() + of_all.lost_after_wire.total(),
        interrupts: after[server].interrupts - before[server].interrupts,
        uses: world.machines[server].uses(Machine::UnderTest, end),
        client_host: of_hosts.map(|one| one.share).fold(0.0, f64::max),
    })
}

/// Creates the world in its initial state: machine 0 is the server.
fn world(
    machines: &Machines<'_>,
    log: &Replay,
    count: u32,
    users: u32,
) -> Result<World, SimulationError> {
    let mut all = vec![Parts {
        nics: vec![machines.nic],
        adapter: None,
        host: machines.host,
        drivers: Drivers::Interrupt,
        applications: vec![WebServer::application(SERVER)],
    }];
    let parts = log.clone().split(count as usize);
    let count = parts.len() as u32;
    for (number, part) in (1..).zip(parts) {
        let share = users / count + u32::from(u32::from(number) <= users % count);
        all.push(Parts {
            nics: vec![machines.client_nic],
            adapter: None,
            host: machines.client_host,
            drivers: Drivers::Interrupt,
            applications: vec![Clients::application(number, SERVER, share, part)],
        });
    }
    let nic = |machine| NicId { machine, nic: 0 };
    let nics = (0..all.len() as u8).map(nic).collect();
    World::new(machines.link_rate(), all, vec![Link::Switch(nics)])
}

/// Runs from `now` until there are this many responses, and returns when that was.
fn run_until(world: &mut World, now: Time, responses: u64) -> Time {
    let mut until = now;
    while Counts::sum(&world.counts(until)).responses < responses && until < now + LONGEST {
        until += LOOK;
        world.run(until);
    }
    until
}
