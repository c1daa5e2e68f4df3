//! Several applications: what they share, and what happens when they detach.

use crate::connected;
use crate::world::*;
use baton_bus::descriptor::{Action, Outcome, Status};
use baton_nic::adapter::{AttachError, Ending};
use baton_tcp::{CloseReason, Event};
use baton_wire::Span;

#[test]
fn applications_have_sockets_of_their_own() {
    let mut world = World::with(|config| config.most_sessions = 2);
    let other = world.attach();
    assert_eq!(world.adapter.attach(), Err(AttachError::TooMany(2)));
    world.listen(0, 1, 80);
    world.listen(other, 1, 81);
    let peers = [
        world.connection(0, 1, 2, 80),
        world.connection(other, 1, 2, 81),
    ];
    for (app, peer) in [0, other].into_iter().zip(peers) {
        world.post_send(app, 2, data(app as u64 * 1000, 100));
        world.run();
        assert_eq!(world.peer_reads(peer), [data(app as u64 * 1000, 100)]);
        assert_eq!(world.answers(app).len(), 1);
    }
}

#[test]
fn an_application_that_leaves_is_reset() {
    let mut world = World::new();
    let other = world.attach();
    world.listen(0, 1, 80);
    world.listen(other, 1, 81);
    let kept = world.connection(other, 1, 2, 81);
    let lost = world.connection(0, 1, 2, 80);
    world.post(0, 1, accept(5, 2, 1000));
    let waiting = world.peer_connects(80);
    world.post(0, 9, Action::Socket);
    world.run();
    world.detach(0, Ending::Reset);
    world.run();
    let reset = Event::Closed(CloseReason::Reset);
    assert!(world.peer_was_notified(lost, &reset));
    assert!(world.peer_was_notified(waiting, &reset));
    assert!(!world.peer_was_notified(kept, &reset));
    assert_eq!((world.stack.len(), world.stack.listeners().count()), (1, 1));
    assert_eq!(world.adapter.orphans(), 0);
    assert_eq!(world.adapter.poll_timeout(), None);
    // A new application can use the same address and socket number.
    let heir = world.attach();
    world.listen(heir, 1, 80);
    let peer = world.connection(heir, 1, 2, 80);
    world.post_send(heir, 2, data(0, 100));
    world.run();
    assert_eq!(world.peer_reads(peer), [data(0, 100)]);
    assert_eq!(world.adapter.stats().accepted, 3);
}

#[test]
fn an_application_that_leaves_is_drained() {
    let (mut world, whole) = connected(World::new());
    let partial = world.connection(0, 1, 3, 80);
    world.is_cut = true;
    world.post_send(0, 2, data(0, 4000));
    for index in 0..100 {
        world.post_send(0, 3, data(index * 4096, 4096));
    }
    world.run();
    world.is_cut = false;
    world.detach(0, Ending::Drain);
    world.wait(Span::from_secs(2));
    assert_eq!(world.peer_reads(whole), [data(0, 4000)]);
    assert!(world.peer_was_notified(whole, &Event::PeerClosed));
    let reset = Event::Closed(CloseReason::Reset);
    assert!(
        world.peer_was_notified(partial, &reset),
        "a FIN would claim that all data was sent"
    );
    assert_eq!(world.adapter.orphans(), 1);
    world.peer.close(whole);
    world.run();
    assert_eq!((world.adapter.orphans(), world.stack.len()), (0, 0));
}

#[test]
fn draining_has_a_time_limit() {
    let (mut world, peer) = connected(World::with(|config| config.drain_ms = 500));
    world.detach(0, Ending::Drain);
    world.wait(Span::from_ms(499));
    assert_eq!(world.adapter.orphans(), 1, "the peer does not close");
    world.wait(Span::from_ms(1));
    assert_eq!((world.adapter.orphans(), world.stack.len()), (0, 0));
    let reset = Event::Closed(CloseReason::Reset);
    assert!(world.peer_was_notified(peer, &reset));
    assert_eq!(world.adapter.poll_timeout(), None);
}

#[test]
fn the_number_of_drained_connections_is_limited() {
    let mut world = World::with(|config| config.most_drained = 2);
    world.listen(0, 1, 80);
    for socket in 2..6 {
        world.connection(0, 1, socket, 80);
    }
    world.detach(0, Ending::Drain);
    world.run();
    assert_eq!((world.adapter.orphans(), world.stack.len()), (2, 2));
}

#[test]
fn closed_connections_of_a_detached_application_end_in_order() {
    let (mut world, peer) = connected(World::new());
    world.post_send(0, 2, data(0, 100));
    world.ask(0, 2, close());
    world.detach(0, Ending::Reset);
    world.run();
    assert_eq!(world.peer_reads(peer), [data(0, 100)]);
    world.peer.close(peer);
    world.run();
    let normal = Event::Closed(CloseReason::Normal);
    assert!(world.peer_was_notified(peer, &normal));
    assert_eq!(world.adapter.orphans(), 0);
}

#[test]
fn a_slow_application_delays_only_itself() {
    let mut world = World::with(|config| config.ring_depth = 8);
    let other = world.attach();
    for (app, port) in [(0, 80), (other, 81)] {
        world.listen(app, 1, port);
    }
    let slow = world.connection(0, 1, 2, 80);
    let quick = world.connection(other, 1, 2, 81);
    // The application no longer takes responses, but keeps sending requests.
    world.apps[0].faults.refuse_responses(true);
    for _ in 0..4 {
        world.post_receive(0, 2, 4096);
    }
    world.run();
    for _ in 0..30 {
        world.post(0, 2, Action::Status);
    }
    world.run();
    let session = world.apps[0].session.expect("the application is attached");
    assert_eq!(world.adapter.room_for_requests(session), 0);
    // The number of responses that wait is limited, and so is the data that is received for them.
    world.peer_sends(slow, data(0, 200_000));
    let row = world
        .adapter
        .sessions()
        .next()
        .expect("the application is attached");
    assert!(row.is_held_up);
    assert_eq!(
        row.responses_waiting,
        8 + 4,
        "the 4 RECVs were posted earlier"
    );
    world.post_receive(other, 2, 4096);
    world.post_send(other, 2, data(0, 100));
    world.peer_sends(quick, data(0, 100));
    assert_eq!(world.answers(other).len(), 2);
    assert_eq!(world.peer_reads(quick), [data(0, 100)]);
    // When the application takes responses again, all of them arrive in order.
    world.apps[0].faults.refuse_responses(false);
    world.run();
    let responses = world.answers(0);
    assert_eq!(responses.len(), 34);
    let infos = responses
        .iter()
        .filter(|one| matches!(one.outcome, Outcome::Status(_)));
    let tags: Vec<u32> = infos.map(|one| one.tag).collect();
    assert!(tags.is_sorted() && tags.len() == 30);
    assert!(responses.iter().all(|one| one.status == Status::Ok));
}

#[test]
fn responses_wait_for_others_or_for_the_timer() {
    let mut world = World::with(|config| {
        config.batching.level = 4;
        config.batching.timer_us = 100;
    });
    world.post(0, 1, Action::Socket);
    world.post(0, 2, Action::Socket);
    world.run();
    assert_eq!(world.answers(0), []);
    assert_eq!(
        world.adapter.poll_timeout(),
        Some(world.now + Span::from_us(100))
    );
    world.wait(Span::from_us(99));
    assert_eq!(world.answers(0), []);
    world.wait(Span::from_us(1));
    assert_eq!(world.answers(0).len(), 2);
    for socket in 3..7 {
        world.post(0, socket, Action::Socket);
    }
    world.run();
    assert_eq!(world.answers(0).len(), 4);
    // Errors are reported at once.
    world.ask(0, 1, Action::Socket);
    assert_eq!(world.answers(0).len(), 1);
}

#[test]
fn responses_with_data_may_wait_or_be_sent_at_once() {
    for hurry in [false, true] {
        let mut world = World::with(|config| {
            config.batching.level = 4;
            config.data_at_once = hurry;
        });
        world.post(0, 1, Action::Socket);
        world.post(0, 1, Action::Bind(baton_wire::Endpoint::new(ANY, 80)));
        world.post(0, 1, Action::Listen { backlog: 4 });
        world.post(0, 1, accept(2, 1, 0));
        world.post_receive(0, 2, 4096);
        world.run();
        let peer = world.peer_connects(80);
        world.run();
        assert_eq!(world.answers(0).len(), 4);
        world.peer_sends(peer, data(0, 100));
        assert_eq!(world.answers(0).len(), usize::from(hurry));
    }
}
