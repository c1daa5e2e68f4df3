//! CONNECT: opening connections.

use crate::world::*;
use baton_bus::descriptor::{Action, Close, Opcode, Status};
use baton_tcp::Event;
use baton_wire::{Endpoint, Span};
use std::net::{IpAddr, Ipv4Addr};

fn connected(socket: u32, tag: u32, status: Status) -> baton_bus::descriptor::Response {
    done(socket, tag, status, Opcode::Connect)
}

#[test]
fn a_connection_is_opened_over_both_versions() {
    for remote in [Endpoint::new(PEER, 80), Endpoint::new(PEER_V6, 80)] {
        let mut world = World::new();
        let listener = world.peer_listens(remote);
        let socket = world.post(0, 1, Action::Socket);
        let tag = world.ask(0, 1, Action::Connect(remote));
        assert_eq!(
            world.answers(0),
            [
                done(1, socket, Status::Ok, Opcode::Socket),
                connected(1, tag, Status::Ok)
            ]
        );
        let peer = world.peer_accepts(listener);
        let port = world.peer.flow(peer).remote.port;
        assert!((32_768..61_000).contains(&port), "{port}");
    }
}

#[test]
fn sends_and_receives_may_follow_at_once() {
    let mut world = World::new();
    let remote = Endpoint::new(PEER, 80);
    let listener = world.peer_listens(remote);
    world.post(0, 1, Action::Socket);
    let connect = world.post(0, 1, Action::Connect(remote));
    let send = world.post_send(0, 1, data(0, 500));
    let receive = world.post_receive(0, 1, 4096);
    let shut = world.post(0, 1, Action::Close(Close::Write));
    world.run();
    assert_eq!(
        world.answers(0)[1..],
        [
            connected(1, connect, Status::Ok),
            sent(1, send, Status::Ok, 500),
            done(1, shut, Status::Ok, Opcode::Close),
        ]
    );
    let peer = world.peer_accepts(listener);
    assert_eq!(world.peer_reads(peer), [data(0, 500)]);
    assert!(world.peer_was_notified(peer, &Event::PeerClosed));
    world.peer_sends(peer, data(9, 50));
    assert_eq!(world.answers(0), [received(1, receive, Status::Ok, 50)]);
}

#[test]
fn a_connect_that_fails_answers_what_waits_and_can_be_tried_again() {
    let mut world = World::new();
    let remote = Endpoint::new(PEER, 80);
    world.post(0, 1, Action::Socket);
    let connect = world.post(0, 1, Action::Connect(remote));
    let send = world.post_send(0, 1, data(0, 500));
    let receive = world.post_receive(0, 1, 4096);
    let shut = world.post(0, 1, Action::Close(Close::Write));
    world.run();
    assert_eq!(
        world.answers(0)[1..],
        [
            sent(1, send, Status::Refused, 500),
            received(1, receive, Status::Refused, 0),
            done(1, shut, Status::Refused, Opcode::Close),
            connected(1, connect, Status::Refused),
        ]
    );
    world.peer_listens(remote);
    let again = world.ask(0, 1, Action::Connect(remote));
    assert_eq!(world.answers(0), [connected(1, again, Status::Ok)]);
    let twice = world.ask(0, 1, Action::Connect(remote));
    assert_eq!(world.answers(0), [connected(1, twice, Status::WrongState)]);
}

#[test]
fn a_connect_that_nobody_answers_times_out() {
    let mut world = World::new();
    world.is_cut = true;
    world.post(0, 1, Action::Socket);
    let connect = world.post(0, 1, Action::Connect(Endpoint::new(PEER, 80)));
    world.wait(Span::from_secs(300));
    assert_eq!(
        world.answers(0)[1..],
        [connected(1, connect, Status::TimedOut)]
    );
}

#[test]
fn a_connect_is_cancelled_or_closed() {
    let mut world = World::new();
    world.is_cut = true;
    let remote = Endpoint::new(PEER, 80);
    for close in [None, Some(Close::Both), Some(Close::Abort)] {
        world.post(0, 1, Action::Socket);
        let connect = world.post(0, 1, Action::Connect(remote));
        let receive = world.post_receive(0, 1, 64);
        world.run();
        world.received(0);
        let (tag, opcode) = match close {
            None => {
                let target = connect;
                let unknown = world.ask(0, 1, Action::Cancel { target: 999 });
                let refused = done(1, unknown, Status::NoSuchRequest, Opcode::Cancel);
                assert_eq!(world.answers(0), [refused]);
                (world.ask(0, 1, Action::Cancel { target }), Opcode::Cancel)
            }
            Some(close) => (world.ask(0, 1, Action::Close(close)), Opcode::Close),
        };
        assert_eq!(
            world.answers(0),
            [
                received(1, receive, Status::Cancelled, 0),
                connected(1, connect, Status::Cancelled),
                done(1, tag, Status::Ok, opcode),
            ]
        );
        if close.is_none() {
            world.ask(0, 1, Action::Close(Close::Both));
            world.received(0);
        }
        assert!(world.stack.is_empty() && world.adapter.orphans() == 0);
    }
}

#[test]
fn a_bound_socket_gets_its_port_unless_it_is_in_use() {
    let mut world = World::new();
    let remote = Endpoint::new(PEER, 80);
    world.peer_listens(remote);
    for (socket, status) in [(1, Status::Ok), (2, Status::AddressInUse)] {
        world.post(0, socket, Action::Socket);
        world.post(0, socket, Action::Bind(Endpoint::new(ADAPTER, 5000)));
        let tag = world.ask(0, socket, Action::Connect(remote));
        let responses = world.answers(0);
        assert_eq!(responses.last(), Some(&connected(socket, tag, status)));
    }
    let session = world.apps[0].session.expect("the application is attached");
    let rows: Vec<_> = world.adapter.sockets(&world.stack, session).collect();
    assert_eq!(rows[0].local, Some(Endpoint::new(ADAPTER, 5000)));
}

#[test]
fn ports_run_out_for_one_peer_but_not_for_another() {
    let mut world = World::with(|config| {
        config.first_port = 5000;
        config.last_port = 5002;
    });
    // The adapter does not choose a port that has a listener.
    world.listen(0, 9, 5001);
    let others = [80, 81].map(|port| Endpoint::new(PEER, port));
    for remote in others {
        world.peer_listens(remote);
    }
    for (socket, remote, status) in [
        (1, others[0], Status::Ok),
        (2, others[0], Status::Ok),
        (3, others[0], Status::NoPort),
        (4, others[1], Status::Ok),
    ] {
        world.post(0, socket, Action::Socket);
        let tag = world.ask(0, socket, Action::Connect(remote));
        let responses = world.answers(0);
        assert_eq!(responses.last(), Some(&connected(socket, tag, status)));
    }
}

#[test]
fn invalid_addresses_are_not_connected_to() {
    let mut world = World::new();
    let v4 = |a, b, c, d| IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    world.post(0, 1, Action::Socket);
    world.post(0, 2, Action::Socket);
    world.post(0, 2, Action::Bind(Endpoint::new(ADAPTER, 0)));
    world.run();
    world.received(0);
    for (socket, remote, status) in [
        (1, Endpoint::new(PEER, 0), Status::BadValue),
        (1, Endpoint::new(ANY, 80), Status::BadValue),
        (1, Endpoint::new(v4(224, 0, 0, 1), 80), Status::BadValue),
        (
            1,
            Endpoint::new(v4(255, 255, 255, 255), 80),
            Status::BadValue,
        ),
        (2, Endpoint::new(PEER_V6, 80), Status::AddressNotAvailable),
    ] {
        let tag = world.ask(0, socket, Action::Connect(remote));
        assert_eq!(world.answers(0), [connected(socket, tag, status)]);
    }
    let mut world = World::with(|config| config.addresses.truncate(1));
    world.post(0, 1, Action::Socket);
    let tag = world.ask(0, 1, Action::Connect(Endpoint::new(PEER_V6, 80)));
    assert_eq!(
        world.answers(0)[1..],
        [connected(1, tag, Status::Unreachable)],
        "the adapter has no address of this version"
    );
}
