//! ACCEPT: single connections, and several in bulk.

use crate::world::*;
use baton_bus::descriptor::{Action, Outcome, Status};
use baton_wire::{Endpoint, Span};

#[test]
fn an_accept_waits_for_a_connection_or_a_connection_for_it() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    let first = world.ask(0, 1, accept(10, 1, 0));
    assert_eq!(world.answers(0), []);
    let peer = world.peer_connects(80);
    world.run();
    let remote = world.peer.flow(peer).local;
    let accepted = Outcome::Accepted(remote);
    assert_eq!(world.answers(0), [answer(1, first, Status::Ok, accepted)]);
    let peer = world.peer_connects(80);
    world.run();
    assert_eq!(world.answers(0), []);
    let second = world.ask(0, 1, accept(11, 1, 0));
    let accepted = Outcome::Accepted(world.peer.flow(peer).local);
    assert_eq!(world.answers(0), [answer(1, second, Status::Ok, accepted)]);
}

#[test]
fn accepts_are_answered_in_order() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    let tags = [10, 20, 30].map(|first| world.post(0, 1, accept(first, 1, 0)));
    let peers = [0, 1, 2].map(|_| world.peer_connects(80));
    world.run();
    let expected: Vec<_> = tags
        .iter()
        .zip(&peers)
        .map(|(&tag, &peer)| {
            let accepted = Outcome::Accepted(world.peer.flow(peer).local);
            answer(1, tag, Status::Ok, accepted)
        })
        .collect();
    assert_eq!(world.answers(0), expected);
}

#[test]
fn a_bulk_accept_is_answered_when_all_connections_have_arrived() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    let tag = world.ask(0, 1, accept(10, 3, 0));
    let peers = [0, 1].map(|_| world.peer_connects(80));
    world.wait(Span::from_secs(1));
    assert_eq!(world.answers(0), []);
    let last = world.peer_connects(80);
    world.run();
    let responses = world.received(0);
    assert_eq!(responses.len(), 1);
    let bulk = Outcome::AcceptedBulk { count: 3 };
    assert_eq!(responses[0].response, answer(1, tag, Status::Ok, bulk));
    let remotes: Vec<(u32, Endpoint)> = responses[0]
        .peers
        .iter()
        .map(|peer| (peer.socket, peer.remote))
        .collect();
    let remote = |peer| world.peer.flow(peer).local;
    let expected = [
        (10, remote(peers[0])),
        (11, remote(peers[1])),
        (12, remote(last)),
    ];
    assert_eq!(remotes, expected);
}

#[test]
fn a_bulk_accept_times_out() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    let tag = world.post(0, 1, accept(10, 3, 5_000));
    let receive = world.post_receive(0, 12, 100);
    world.wait(Span::from_secs(1));
    assert_eq!(
        world.answers(0),
        [],
        "the timer starts with the first connection"
    );
    for _ in 0..2 {
        world.peer_connects(80);
    }
    world.wait(Span::from_us(4_999));
    assert_eq!(world.answers(0), []);
    world.wait(Span::from_us(1));
    let responses = world.received(0);
    let bulk = Outcome::AcceptedBulk { count: 2 };
    assert_eq!(responses[0].response, answer(1, tag, Status::Partial, bulk));
    let sockets: Vec<u32> = responses[0].peers.iter().map(|peer| peer.socket).collect();
    assert_eq!(sockets, [10, 11]);
    // The unneeded socket is free again, and its RECV is answered.
    assert_eq!(
        responses[1].response,
        received(12, receive, Status::Cancelled, 0)
    );
    let tag = world.ask(0, 12, Action::Status);
    let responses = world.answers(0);
    assert_eq!(
        (responses[0].tag, responses[0].status),
        (tag, Status::NoSuchSocket)
    );
}

#[test]
fn a_bulk_accept_may_get_a_single_connection() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    let tag = world.post(0, 1, accept(10, 4, 1_000));
    let peer = world.peer_connects(80);
    world.wait(Span::from_ms(1));
    let accepted = Outcome::Accepted(world.peer.flow(peer).local);
    assert_eq!(
        world.answers(0),
        [answer(1, tag, Status::Partial, accepted)]
    );
    // The next ACCEPT has a new timer.
    let tag = world.ask(0, 1, accept(20, 2, 1_000));
    let peers = [0, 1].map(|_| {
        let peer = world.peer_connects(80);
        world.wait(Span::from_us(600));
        peer
    });
    let responses = world.received(0);
    assert_eq!(responses[0].response.tag, tag);
    assert_eq!(responses[0].peers.len(), peers.len());
}

#[test]
fn a_connection_that_ends_while_it_waits_is_not_counted() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    world.ask(0, 1, accept(10, 2, 1_000));
    let peer = world.peer_connects(80);
    world.run();
    world.peer.abort(peer);
    world.wait(Span::from_ms(5));
    assert_eq!(world.answers(0), []);
    assert_eq!(
        world.adapter.poll_timeout(),
        None,
        "no timer runs without a connection"
    );
    for _ in 0..2 {
        world.peer_connects(80);
    }
    world.run();
    assert_eq!(world.received(0)[0].peers.len(), 2);
}

#[test]
fn reserved_sockets_take_receives() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    world.post(0, 1, accept(10, 1, 0));
    let receive = world.post_receive(0, 10, 4096);
    let peer = world.peer_connects(80);
    world.run();
    world.peer_sends(peer, data(0, 700));
    let responses = world.answers(0);
    assert!(matches!(responses[0].outcome, Outcome::Accepted(_)));
    assert_eq!(responses[1..], [received(10, receive, Status::Ok, 700)]);
    assert_eq!(world.take(0, responses[1].outcome), data(0, 700));
}

#[test]
fn invalid_accepts_are_refused() {
    let mut world = World::with(|config| {
        config.most_sockets = 6;
        config.most_accepts = 2;
    });
    world.listen(0, 1, 80);
    for (action, status) in [
        (accept(1, 1, 0), Status::SocketInUse),
        (accept(0, 2, 0), Status::SocketInUse),
        (accept(u32::MAX, 2, 0), Status::BadValue),
        (accept(10, 17, 0), Status::BadValue),
        (accept(10, 6, 0), Status::TooManySockets),
    ] {
        let tag = world.ask(0, 1, action);
        assert_eq!(
            world.answers(0),
            [not_accepted(1, tag, status)],
            "{action:?}"
        );
    }
    for first in [10, 11] {
        world.ask(0, 1, accept(first, 1, 0));
        assert_eq!(world.answers(0), []);
    }
    let tag = world.ask(0, 1, accept(12, 1, 0));
    let refused = not_accepted(1, tag, Status::TooManyRequests);
    assert_eq!(world.answers(0), [refused]);
    let tag = world.ask(0, 10, Action::Socket);
    let responses = world.answers(0);
    assert_eq!(
        (responses[0].tag, responses[0].status),
        (tag, Status::SocketInUse)
    );
}

#[test]
fn an_accept_is_cancelled() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    let big = world.ask(0, 1, accept(10, 3, 0));
    let small = world.ask(0, 1, accept(20, 1, 0));
    let peer = world.peer_connects(80);
    world.run();
    assert_eq!(
        world.answers(0),
        [],
        "the first ACCEPT waits for more connections"
    );
    let cancel = world.ask(0, 1, Action::Cancel { target: big });
    let accepted = Outcome::Accepted(world.peer.flow(peer).local);
    let cancelled = Outcome::Done(baton_bus::descriptor::Opcode::Cancel);
    assert_eq!(
        world.answers(0),
        [
            not_accepted(1, big, Status::Cancelled),
            answer(1, small, Status::Ok, accepted),
            answer(1, cancel, Status::Ok, cancelled),
        ]
    );
    let again = world.ask(0, 1, Action::Cancel { target: big });
    let refused = answer(1, again, Status::NoSuchRequest, cancelled);
    assert_eq!(world.answers(0), [refused]);
}

#[test]
fn a_listener_that_closes_answers_its_accepts() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    let bulk = world.post(0, 1, accept(10, 2, 1_000));
    let receive = world.post_receive(0, 11, 64);
    let peer = world.peer_connects(80);
    world.run();
    let tag = world.ask(0, 1, close());
    assert_eq!(
        world.answers(0),
        [
            received(11, receive, Status::Cancelled, 0),
            not_accepted(1, bulk, Status::Cancelled),
            done(1, tag, Status::Ok, baton_bus::descriptor::Opcode::Close),
        ]
    );
    let reset = baton_tcp::Event::Closed(baton_tcp::CloseReason::Reset);
    assert!(
        world.peer_was_notified(peer, &reset),
        "no application can accept the connection"
    );
    assert_eq!(world.adapter.poll_timeout(), None);
    assert_eq!(
        world.adapter.sessions().next().map(|row| row.sockets),
        Some(0)
    );
}

#[test]
fn connections_are_accepted_over_both_versions() {
    let mut world = World::new();
    world.post(0, 1, Action::Socket);
    world.post(0, 1, Action::Bind(Endpoint::new(ADAPTER_V6, 80)));
    world.post(0, 1, Action::Listen { backlog: 4 });
    world.post(0, 1, accept(2, 1, 0));
    world.run();
    world.received(0);
    let peer = world.peer_connects_to(Endpoint::new(ADAPTER_V6, 80));
    world.run();
    let remote = world.peer.flow(peer).local;
    let responses = world.answers(0);
    assert_eq!(responses[0].outcome, Outcome::Accepted(remote));
    let stack = &world.stack;
    let session = world.apps[0].session.expect("the application is attached");
    let mut rows: Vec<_> = world.adapter.sockets(stack, session).collect();
    rows.sort_by_key(|row| row.number);
    assert_eq!((rows[0].state.as_str(), rows[0].remote), ("listen", None));
    assert_eq!(
        (rows[1].state.as_str(), rows[1].local, rows[1].remote),
        (
            "established",
            Some(Endpoint::new(ADAPTER_V6, 80)),
            Some(remote)
        )
    );
}
