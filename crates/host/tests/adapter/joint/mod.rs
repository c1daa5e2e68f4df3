//! Host and adapter on a link in memory, with peers on a network that loses and reorders. All events are drawn from one seed, and the
//! invariants of both are checked after every event.

mod exchange;
mod machine;
mod timed;
mod web;

use machine::Machine;
use std::fmt::Debug;

use baton_host::Ready;
use baton_tcp::{ConnId, Event};

/// A run that takes more events than this is deadlocked.
const MOST_EVENTS: u32 = 3_000_000;

/// The application on the host, and its peers.
trait Application: Debug {
    /// Starts the application.
    fn start(&mut self, machine: &mut Machine);
    /// Handles a notification of the host's application.
    fn handle_ready(&mut self, machine: &mut Machine, ready: Ready);
    /// Handles an event of a peer's connection.
    fn handle_peer_event(&mut self, machine: &mut Machine, conn: ConnId, event: Event);
    /// Lets a peer act by itself; returns false when there is nothing to do.
    fn act(&mut self, machine: &mut Machine) -> bool;
    /// Handles the replacement of the adapter by a new one.
    fn handle_loss(&mut self, machine: &mut Machine);
    /// Returns whether all work is done and all sockets except listeners are closed.
    fn is_done(&self, machine: &Machine) -> bool;
}

/// Summary of a run, which is the same for the same seed.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    host: baton_host::adapter::OsLayerStats,
    transfers: u64,
    ended_at: baton_wire::Time,
}

/// Runs until all work is done, then closes the listeners and asserts that nothing remains.
fn run(mut machine: Machine, application: &mut impl Application) -> Summary {
    application.start(&mut machine);
    let mut closing = false;
    for _ in 0..MOST_EVENTS {
        event(&mut machine, application);
        if !closing && application.is_done(&machine) {
            closing = true;
            machine.close_listeners();
        }
        // A request to a new adapter's cache may still be pending when the last socket is closed.
        if closing && machine.os.sockets() == 0 && machine.os.outstanding() == 0 {
            machine.assert_empty();
            return machine.summary();
        }
    }
    panic!("stuck: {application:?} {machine:?}");
}

/// Lets one random event happen, or time pass.
fn event(machine: &mut Machine, application: &mut impl Application) {
    if machine.draws_a_loss() {
        machine.lose_link();
        application.handle_loss(machine);
    }
    machine.draw_faults();
    let acted = match machine.random.below(6) {
        0 => machine.frame_to_adapter(),
        1 => machine.frame_to_peers(),
        2 => machine.pump_adapter(),
        3 => machine.pump_host(),
        4 => host_acts(machine, application),
        _ => application.act(machine),
    };
    peers_settle(machine, application);
    if !acted && machine.random.percent(20) {
        machine.pass_time();
    }
}

/// Runs one turn of the event loop, or part of one.
fn host_acts(machine: &mut Machine, application: &mut impl Application) -> bool {
    let mut acted = false;
    for _ in 0..1 + machine.random.below(4) {
        let Some(ready) = machine.os.next_ready() else {
            break;
        };
        acted = true;
        machine.host_rings = true;
        application.handle_ready(machine, ready);
        machine.os.check();
    }
    acted
}

fn peers_settle(machine: &mut Machine, application: &mut impl Application) {
    while let Some((conn, event)) = machine.peers.poll_event() {
        application.handle_peer_event(machine, conn, event);
    }
    machine.peers_transmit();
}
