//! A web server and its clients behind a switch.

use super::application::{Application, ClientCounts, Clients, WebServer};
use super::event::NicId;
use super::machine::{Drivers, Parts};
use super::world::{Link, World};
use super::{SimulationError, uses_of};
use crate::applications::{Machines, WebSettings, WebTrial};
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
    let before = Counts::of(&world);
    let end = run_until(&mut world, start, settings.warm_up + settings.responses);
    let after = Counts::of(&world);
    let span = end - start;
    let (clients, server) = (&world.machines[1..], &world.machines[usize::from(SERVER)]);
    let of_hosts = clients.iter().map(|client| client.utilisation(end)[0]);
    let since = |value: fn(&ClientCounts) -> u64| value(&after.clients) - value(&before.clients);
    Ok(WebTrial {
        users,
        seconds: span.as_secs_f64(),
        responses: since(|counts| counts.responses),
        content_bytes: since(|counts| counts.content_bytes),
        connections: since(|counts| counts.connections),
        lost_connections: since(|counts| counts.lost),
        lost_frames: after.lost_frames - before.lost_frames,
        interrupts: after.interrupts - before.interrupts,
        uses: uses_of(
            server,
            world.rate,
            (end, span),
            [after.line_bytes - before.line_bytes],
        ),
        client_host: of_hosts.fold(0.0, f64::max),
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
        applications: vec![Application::WebServer(Box::new(WebServer::new(SERVER)))],
    }];
    let parts = log.clone().split(count as usize);
    let count = parts.len() as u32;
    for (number, part) in (1..).zip(parts) {
        let share = users / count + u32::from(u32::from(number) <= users % count);
        let clients = Clients::new(number, SERVER, share, part);
        all.push(Parts {
            nics: vec![machines.client_nic],
            adapter: None,
            host: machines.client_host,
            drivers: Drivers::Interrupt,
            applications: vec![Application::Clients(Box::new(clients))],
        });
    }
    let nic = |machine| NicId { machine, nic: 0 };
    let nics = (0..all.len() as u8).map(nic).collect();
    World::new(machines.link_rate(), all, vec![Link::Switch(nics)])
}

/// Runs from `now` until there are this many responses, and returns when that was.
fn run_until(world: &mut World, now: Time, responses: u64) -> Time {
    let mut until = now;
    while Counts::of(world).clients.responses < responses && until < now + LONGEST {
        until += LOOK;
        world.run(until);
    }
    until
}

/// All counts at one moment.
struct Counts {
    clients: ClientCounts,
    lost_frames: u64,
    interrupts: u64,
    line_bytes: u64,
}

impl Counts {
    fn of(world: &World) -> Self {
        let mut clients = ClientCounts::default();
        let mut lost_frames = 0;
        for (number, machine) in world.machines.iter().enumerate() {
            let interface = &machine.interfaces[0];
            lost_frames += interface.losses.total() + interface.lost_after_wire().total();
            let switches = world.switches.iter();
            lost_frames += switches.map(|switch| switch.dropped(number)).sum::<u64>();
            if let Application::Clients(of_machine) = &machine.cores[0].application {
                clients.responses += of_machine.counts.responses;
                clients.content_bytes += of_machine.counts.content_bytes;
                clients.connections += of_machine.counts.connections;
                clients.lost += of_machine.counts.lost;
            }
        }
        let server = &world.machines[usize::from(SERVER)];
        Self {
            clients,
            lost_frames,
            interrupts: server.interrupts(),
            line_bytes: server.interfaces[0].line_bytes(),
        }
    }
}
