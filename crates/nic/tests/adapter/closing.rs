//! CLOSE, and connections that end for other reasons.

use crate::connected;
use crate::world::*;
use baton_bus::descriptor::{Action, Close, Opcode, Response, Status};
use baton_tcp::{CloseReason, Config, Event};
use baton_wire::Span;

fn closed(tag: u32, status: Status) -> Response {
    done(2, tag, status, Opcode::Close)
}

/// Returns whether socket 2 no longer exists, so that the adapter refuses requests for it.
fn is_free(world: &mut World) -> bool {
    world.ask(0, 2, Action::Status);
    let responses = world.answers(0);
    responses.len() == 1 && responses[0].status == Status::NoSuchSocket
}

#[test]
fn a_close_is_answered_when_the_connection_has_ended() {
    let (mut world, peer) = connected(World::new());
    let receive = world.post_receive(0, 2, 64);
    let send = world.post_send(0, 2, data(0, 3000));
    let close = world.ask(0, 2, close());
    assert_eq!(world.answers(0), [sent(2, send, Status::Ok, 3000)]);
    assert_eq!(world.peer_reads(peer), [data(0, 3000)]);
    assert!(world.peer_was_notified(peer, &Event::PeerClosed));
    world.peer.close(peer);
    world.run();
    assert_eq!(
        world.answers(0),
        [
            received(2, receive, Status::Cancelled, 0),
            closed(close, Status::Ok)
        ]
    );
    assert!(is_free(&mut world));
}

#[test]
fn data_sent_before_a_close_is_sent_before_the_fin() {
    let (mut world, peer) = connected(World::new());
    world.apps[0].faults.delay_dma(4);
    for index in 0..20 {
        world.post_send(0, 2, data(index * 4096, 4096));
    }
    world.post(0, 2, close());
    world.run();
    assert_eq!(world.peer_reads(peer), [data(0, 20 * 4096)]);
    assert!(world.peer_was_notified(peer, &Event::PeerClosed));
}

#[test]
fn the_peer_closes_first() {
    let (mut world, peer) = connected(World::new());
    world.peer.close(peer);
    world.run();
    assert_eq!(world.answers(0), [peer_closed(2)]);
    let tag = world.ask(0, 2, close());
    assert_eq!(world.answers(0), [closed(tag, Status::Ok)]);
    let normal = Event::Closed(CloseReason::Normal);
    assert!(world.peer_was_notified(peer, &normal));
    assert!(is_free(&mut world));
}

#[test]
fn a_socket_ends_when_both_directions_are_closed() {
    let (mut world, peer) = connected(World::new());
    let shut = world.ask(0, 2, Action::Close(Close::Write));
    assert_eq!(world.answers(0), [closed(shut, Status::Ok)]);
    let again = world.ask(0, 2, Action::Close(Close::Write));
    assert_eq!(world.answers(0), [closed(again, Status::WrongState)]);
    let receive = world.post_receive(0, 2, 64);
    world.run();
    world.peer.close(peer);
    world.run();
    let responses = world.answers(0);
    assert_eq!(
        responses,
        [
            received(2, receive, Status::EndOfStream, 0),
            peer_closed(2),
            over(2, Status::Ok)
        ]
    );
    assert!(is_free(&mut world));
}

#[test]
fn a_shut_socket_is_closed() {
    let (mut world, peer) = connected(World::new());
    let shut = world.post(0, 2, Action::Close(Close::Write));
    let tag = world.post(0, 2, close());
    let again = world.post(0, 2, close());
    world.run();
    assert_eq!(
        world.answers(0),
        [closed(shut, Status::Ok), closed(again, Status::WrongState)]
    );
    world.peer.close(peer);
    world.run();
    assert_eq!(world.answers(0), [closed(tag, Status::Ok)]);
}

#[test]
fn a_reset_answers_all_requests() {
    let (mut world, peer) = connected(World::new());
    world.is_cut = true;
    // More than fits into the peer's window and the send buffer.
    let mut sends: Vec<u32> = (0..100)
        .map(|index| world.post_send(0, 2, data(index * 4096, 4096)))
        .collect();
    let receives = [0, 1].map(|_| world.post_receive(0, 2, 64));
    world.run();
    let fetched = world.answers(0).len();
    assert_eq!(fetched, 64, "256 KB fit into the send buffer");
    world.is_cut = false;
    world.peer.abort(peer);
    world.run();
    let mut expected: Vec<Response> = sends
        .drain(fetched..)
        .map(|tag| sent(2, tag, Status::Reset, 4096))
        .collect();
    expected.extend(receives.map(|one| received(2, one, Status::Reset, 0)));
    expected.push(over(2, Status::Reset));
    assert_eq!(world.answers(0), expected);
    assert!(is_free(&mut world));
}

#[test]
fn a_reset_after_the_peers_fin_discards_undelivered_data() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    let peer = world.peer_connects(80);
    world.run();
    assert_eq!(world.peer.write(peer, data(0, 500)), Ok(500));
    world.peer.close(peer);
    world.run();
    // The peer has closed both directions: it answers data with a reset (RFC 9293 3.6.1), which arrives before the application has noticed
    // the end of the peer's data.
    world.post(0, 1, accept(2, 1, 0));
    let send = world.post_inline(0, 2, data(0, 10));
    world.run();
    assert_eq!(
        world.answers(0)[1..],
        [sent(2, send, Status::Ok, 10), over(2, Status::Reset)],
        "a reset is reported, not the end of the data"
    );
}

#[test]
fn the_end_of_a_connection_waits_for_its_transfers() {
    let (mut world, peer) = connected(World::new());
    world.apps[0].faults.delay_dma(30);
    let receives = [0, 1].map(|_| world.post_receive(0, 2, 100));
    let send = world.post_send(0, 2, data(0, 700));
    assert_eq!(world.peer.write(peer, data(0, 60)), Ok(60));
    for _ in 0..3 {
        world.turn();
    }
    assert_eq!(world.answers(0), []);
    world.peer.abort(peer);
    for _ in 0..2 {
        world.turn();
    }
    assert_eq!(world.answers(0), [], "the buffers are in use");
    let late = world.post_receive(0, 2, 10);
    let late_send = world.post_send(0, 2, data(0, 10));
    let cancel = world.post(0, 2, Action::Cancel { target: send });
    world.turn();
    assert_eq!(
        world.answers(0),
        [
            sent(2, late_send, Status::Reset, 10),
            done(2, cancel, Status::NoSuchRequest, Opcode::Cancel),
        ],
        "a RECV is answered after those before it"
    );
    world.run();
    let mut responses = world.answers(0);
    assert_eq!(responses.pop(), Some(over(2, Status::Reset)));
    for receive in [late, receives[1]] {
        let nothing = received(2, receive, Status::Reset, 0);
        assert_eq!(responses.pop(), Some(nothing));
    }
    assert!(responses.contains(&received(2, receives[0], Status::Ok, 60)));
    assert!(responses.contains(&sent(2, send, Status::Ok, 700)));
    assert_eq!(responses.len(), 2);
    assert!(is_free(&mut world));
}

#[test]
fn a_close_that_comes_while_transfers_end_is_answered() {
    for how in [Close::Both, Close::Abort] {
        let (mut world, peer) = connected(World::new());
        world.apps[0].faults.delay_dma(30);
        world.post_send(0, 2, data(0, 700));
        world.turn();
        world.peer.abort(peer);
        world.turn();
        let tag = world.post(0, 2, Action::Close(how));
        world.run();
        let status = match how {
            Close::Abort => Status::Ok,
            _ => Status::Reset,
        };
        assert_eq!(world.answers(0)[1..], [closed(tag, status)]);
        assert!(is_free(&mut world));
    }
}

#[test]
fn an_abort_ends_at_once() {
    let (mut world, peer) = connected(World::new());
    let receive = world.post_receive(0, 2, 64);
    world.run();
    let tag = world.ask(0, 2, Action::Close(Close::Abort));
    assert_eq!(
        world.answers(0),
        [
            received(2, receive, Status::Aborted, 0),
            closed(tag, Status::Ok)
        ]
    );
    let reset = Event::Closed(CloseReason::Reset);
    assert!(world.peer_was_notified(peer, &reset));
    assert!(is_free(&mut world));
    assert_eq!((world.adapter.orphans(), world.stack.len()), (0, 0));
}

#[test]
fn data_sent_before_an_abort_is_sent_before_the_reset() {
    for is_inline in [false, true] {
        let (mut world, peer) = connected(World::new());
        world.apps[0].faults.delay_dma(4);
        let before = world.to_peer;
        let send = match is_inline {
            true => world.post_inline(0, 2, data(0, 100)),
            false => world.post_send(0, 2, data(0, 4096)),
        };
        let len = if is_inline { 100 } else { 4096 };
        let abort = world.post(0, 2, Action::Close(Close::Abort));
        world.run();
        assert_eq!(
            world.answers(0),
            [sent(2, send, Status::Ok, len), closed(abort, Status::Ok)]
        );
        assert!(world.peer_was_notified(peer, &Event::Readable));
        let reset = Event::Closed(CloseReason::Reset);
        assert!(world.peer_was_notified(peer, &reset));
        let of_data = len.div_ceil(Config::default().mss.into()) as usize;
        assert_eq!(world.to_peer - before, of_data + 1);
        assert!(is_free(&mut world));
        assert_eq!((world.adapter.orphans(), world.stack.len()), (0, 0));
    }
}

#[test]
fn an_abort_does_not_wait_for_the_peers_window() {
    let tcp = Config {
        send_buffer: 8192,
        ..Config::default()
    };
    let (mut world, peer) = connected(World::with_tcp(|_| {}, tcp));
    world.is_cut = true;
    for index in 0..4 {
        world.post_send(0, 2, data(index * 4096, 4096));
    }
    world.run();
    assert_eq!(world.answers(0).len(), 2);
    world.is_cut = false;
    let abort = world.ask(0, 2, Action::Close(Close::Abort));
    assert_eq!(world.answers(0).last(), Some(&closed(abort, Status::Ok)));
    let reset = Event::Closed(CloseReason::Reset);
    assert!(world.peer_was_notified(peer, &reset));
    assert!(is_free(&mut world));
}

#[test]
fn an_abort_overtakes_a_close() {
    let (mut world, _) = connected(World::new());
    world.is_cut = true;
    let shut = world.post(0, 2, Action::Close(Close::Write));
    let both = world.post(0, 2, close());
    let abort = world.post(0, 2, Action::Close(Close::Abort));
    world.run();
    assert_eq!(
        world.answers(0),
        [
            closed(shut, Status::Ok),
            closed(both, Status::Aborted),
            closed(abort, Status::Ok)
        ]
    );
}

#[test]
fn closing_with_unread_data_resets() {
    // RFC 9293 3.6.1.
    let (mut world, peer) = connected(World::new());
    world.peer_sends(peer, data(0, 100));
    let tag = world.ask(0, 2, close());
    assert_eq!(world.answers(0), [closed(tag, Status::Aborted)]);
    let reset = Event::Closed(CloseReason::Reset);
    assert!(world.peer_was_notified(peer, &reset));
}

#[test]
fn undelivered_data_outlives_the_connection() {
    let (mut world, peer) = connected(World::new());
    world.ask(0, 2, Action::Close(Close::Write));
    world.received(0);
    assert_eq!(world.peer.write(peer, data(0, 100)), Ok(100));
    world.peer.close(peer);
    world.run();
    assert_eq!(world.answers(0), [], "no RECV has requested the data");
    let receive = world.post_receive(0, 2, 64);
    world.run();
    assert_eq!(world.answers(0), [received(2, receive, Status::Ok, 64)]);
    let receive = world.post_receive(0, 2, 64);
    world.run();
    let responses = world.answers(0);
    assert_eq!(responses[0], received(2, receive, Status::Ok, 36));
    assert_eq!(responses.last(), Some(&over(2, Status::Ok)));
}

#[test]
fn a_peer_that_does_not_answer_is_given_up() {
    let (mut world, _) = connected(World::new());
    world.ask(
        0,
        2,
        set(baton_bus::descriptor::SocketOption::UserTimeout, 3000),
    );
    world.received(0);
    world.is_cut = true;
    world.post_send(0, 2, data(0, 10));
    let tag = world.post(0, 2, close());
    world.wait(Span::from_secs(60));
    assert_eq!(world.answers(0)[1..], [closed(tag, Status::TimedOut)]);
}
