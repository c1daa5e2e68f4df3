//! An adapter that serves only imported connections.

use crate::world::*;
use baton_bus::HostLink;
use baton_bus::descriptor::{Action, Outcome, Status};
use baton_nic::adapter::Custody;
use baton_tcp::Portable;
use baton_wire::{Endpoint, Flow, Symbolic};

/// Refuses every connection.
#[derive(Debug)]
struct Closed;

impl Custody<Symbolic> for Closed {
    fn claim(&mut self, _: Option<u32>, _: &Portable<Symbolic>) -> Result<(), Status> {
        Err(Status::NotYours)
    }

    fn unclaim(&mut self, _: &Flow) {}

    fn release(&mut self, state: Portable<Symbolic>) -> Portable<Symbolic> {
        state
    }
}

fn statuses(world: &mut World) -> Vec<Status> {
    let answers = world.answers(0).into_iter();
    let asked = answers.filter(|answer| !matches!(answer.outcome, Outcome::SoftLimit { .. }));
    asked.map(|answer| answer.status).collect()
}

#[test]
fn with_custody_applications_cannot_listen_connect_or_send_packets() {
    let mut world = World::new();
    world.adapter.set_custody(Box::new(Closed));
    let (local, remote) = (Endpoint::new(ADAPTER, 80), Endpoint::new(PEER, 80));
    world.ask(0, 1, Action::Socket);
    world.ask(0, 2, Action::PacketSocket);
    // A packet socket reports to an application how many connections the adapter accepts.
    world.ask(0, 2, Action::Bind(local));
    assert_eq!(statuses(&mut world), [Status::Ok; 3]);
    world.ask(0, 1, Action::Bind(local));
    world.ask(0, 1, Action::Listen { backlog: 1 });
    world.ask(0, 1, Action::Connect(remote));
    world.post_send(0, 2, data(0, 60));
    world.run();
    let address = world.apps[0]
        .link
        .place(data(0, 60))
        .expect("a buffer is free");
    world.ask(0, 2, Action::Forward { address, len: 60 });
    assert_eq!(statuses(&mut world), [Status::ImportsOnly; 5]);
    assert!(world.adapter.poll_packet().is_none());
    assert_eq!((world.to_peer, world.stack.len()), (0, 0));
}
