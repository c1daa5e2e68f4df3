//! RECV: receiving data into posted buffers.

use crate::connected;
use crate::world::*;
use baton_bus::descriptor::{Action, Opcode, Outcome, Status};
use baton_nic::adapter::AdapterConfig;
use baton_tcp::{Config, ConnId, LinuxRules};

#[test]
fn buffers_wait_for_data_and_data_for_buffers() {
    let (mut world, peer) = connected(World::new());
    let first = world.post_receive(0, 2, 4096);
    world.run();
    assert_eq!(world.answers(0), []);
    world.peer_sends(peer, data(0, 1000));
    let responses = world.answers(0);
    assert_eq!(responses, [received(2, first, Status::Ok, 1000)]);
    assert_eq!(world.take(0, responses[0].outcome), data(0, 1000));
    world.peer_sends(peer, data(1000, 6000));
    assert_eq!(world.answers(0), []);
    let rest = [0, 1].map(|_| world.post_receive(0, 2, 4096));
    world.run();
    let responses = world.answers(0);
    assert_eq!(
        responses,
        [
            received(2, rest[0], Status::Ok, 4096),
            received(2, rest[1], Status::Ok, 1904)
        ]
    );
    assert_eq!(world.take(0, responses[0].outcome), data(1000, 4096));
    assert_eq!(world.take(0, responses[1].outcome), data(5096, 1904));
    let stats = world.adapter.stats();
    assert_eq!(
        (stats.receives, stats.received_bytes, stats.writes),
        (3, 7000, 3)
    );
}

#[test]
fn data_that_cannot_be_joined_takes_one_buffer_each() {
    let (mut world, peer) = connected(World::new());
    let buffers = [0, 1].map(|_| world.post_receive(0, 2, 4096));
    world.peer_sends(peer, data(0, 10));
    world.peer_sends(peer, data(500, 10));
    let expected = buffers.map(|buffer| received(2, buffer, Status::Ok, 10));
    assert_eq!(world.answers(0), expected);
}

#[test]
fn the_window_opens_as_data_is_delivered() {
    let (mut world, peer) = connected(World::with_tcp(
        |_| {},
        Config {
            receive_buffer: 8192,
            ..Config::default()
        },
    ));
    world.peer_sends(peer, data(0, 20_000));
    let mut at = 0;
    while at < 20_000 {
        world.post_receive(0, 2, 4096);
        world.wait(baton_wire::Span::from_secs(1));
        for response in world.answers(0) {
            let piece = world.take(0, response.outcome);
            assert_eq!(piece, data(at, piece.len));
            at += u64::from(piece.len);
        }
    }
    assert_eq!(at, 20_000);
}

#[test]
fn small_data_travels_inside_the_response() {
    let (mut world, peer) = connected(World::with(|config| config.most_inline = 100));
    for len in [1, 16, 17, 100] {
        let (tag, _) = world.post_receive(0, 2, 4096);
        world.peer_sends(peer, data(0, len));
        let responses = world.received(0);
        assert_eq!(responses.len(), 1);
        assert_eq!(
            (responses[0].response.tag, responses[0].response.status),
            (tag, Status::Ok)
        );
        assert_eq!(responses[0].inline, Some(data(0, len)));
    }
    assert_eq!(world.adapter.stats().writes, 0);
    let large = world.post_receive(0, 2, 4096);
    world.peer_sends(peer, data(0, 101));
    assert_eq!(world.answers(0), [received(2, large, Status::Ok, 101)]);
    let short = world.post_receive(0, 2, 10);
    world.peer_sends(peer, data(0, 50));
    assert_eq!(
        world.answers(0),
        [received(2, short, Status::Ok, 10)],
        "a short buffer still limits the data"
    );
}

#[test]
fn inline_data_does_not_overtake_what_is_being_transferred() {
    let (mut world, peer) = connected(World::with(|config| config.most_inline = 100));
    world.apps[0].faults.delay_dma(3);
    let buffers = [0, 1, 2].map(|_| world.post_receive(0, 2, 200));
    world.peer_sends(peer, data(0, 450));
    let lens: Vec<Outcome> = world.answers(0).iter().map(|one| one.outcome).collect();
    let expected = [200, 200, 50].iter().zip(buffers);
    let expected: Vec<Outcome> = expected
        .map(|(&len, buffer)| received(2, buffer, Status::Ok, len).outcome)
        .collect();
    assert_eq!(lens, expected);
}

#[test]
fn the_end_of_stream_follows_the_data() {
    let (mut world, peer) = connected(World::new());
    let buffers = [0, 1, 2].map(|_| world.post_receive(0, 2, 4096));
    assert_eq!(world.peer.write(peer, data(0, 500)), Ok(500));
    world.peer.shutdown(peer);
    world.run();
    assert_eq!(
        world.answers(0),
        [
            received(2, buffers[0], Status::Ok, 500),
            received(2, buffers[1], Status::EndOfStream, 0),
            received(2, buffers[2], Status::EndOfStream, 0),
            peer_closed(2),
        ]
    );
    let late = world.post_receive(0, 2, 4096);
    world.run();
    assert_eq!(
        world.answers(0),
        [received(2, late, Status::EndOfStream, 0)]
    );
    // The other direction is still open.
    world.post_send(0, 2, data(0, 100));
    world.run();
    assert_eq!(world.peer_reads(peer), [data(0, 100)]);
}

#[test]
fn the_end_of_stream_waits_until_the_data_was_received() {
    let (mut world, peer) = connected(World::new());
    assert_eq!(world.peer.write(peer, data(0, 500)), Ok(500));
    world.peer.shutdown(peer);
    world.run();
    assert_eq!(world.answers(0), []);
    world.apps[0].faults.delay_dma(3);
    let buffers = [0, 1].map(|_| world.post_receive(0, 2, 400));
    world.run();
    assert_eq!(
        world.answers(0),
        [
            received(2, buffers[0], Status::Ok, 400),
            received(2, buffers[1], Status::Ok, 100),
            peer_closed(2)
        ]
    );
}

#[test]
fn a_receive_is_cancelled() {
    let (mut world, peer) = connected(World::new());
    let buffers = [0, 1, 2].map(|_| world.post_receive(0, 2, 64));
    let target = buffers[1].0;
    let cancel = world.ask(0, 2, Action::Cancel { target });
    let again = world.ask(0, 2, Action::Cancel { target });
    assert_eq!(
        world.answers(0),
        [
            received(2, buffers[1], Status::Cancelled, 0),
            done(2, cancel, Status::Ok, Opcode::Cancel),
            done(2, again, Status::NoSuchRequest, Opcode::Cancel),
        ]
    );
    world.peer_sends(peer, data(0, 128));
    assert_eq!(
        world.answers(0),
        [
            received(2, buffers[0], Status::Ok, 64),
            received(2, buffers[2], Status::Ok, 64)
        ]
    );
}

#[test]
fn a_receive_that_is_being_filled_is_not_cancelled() {
    let (mut world, peer) = connected(World::new());
    world.apps[0].faults.delay_dma(10);
    let buffer = world.post_receive(0, 2, 64);
    assert_eq!(world.peer.write(peer, data(0, 64)), Ok(64));
    for _ in 0..2 {
        world.turn();
    }
    let cancel = world.post(0, 2, Action::Cancel { target: buffer.0 });
    world.run();
    assert_eq!(
        world.answers(0),
        [
            done(2, cancel, Status::NoSuchRequest, Opcode::Cancel),
            received(2, buffer, Status::Ok, 64),
        ]
    );
}

#[test]
fn receives_have_limits() {
    let (mut world, _) = connected(World::with(|config| config.most_receives = 2));
    let empty = world.post(
        0,
        2,
        Action::Receive {
            address: 0x1_0000,
            len: 0,
        },
    );
    let buffers = [0, 1, 2].map(|_| world.post_receive(0, 2, 64));
    world.run();
    assert_eq!(
        world.answers(0),
        [
            received(2, (empty, 0x1_0000), Status::BadValue, 0),
            received(2, buffers[2], Status::TooManyRequests, 0)
        ]
    );
}

/// Creates a connection, socket 2, whose received data survives a reset, with a small send buffer.
fn connected_keeping(set: impl FnOnce(&mut AdapterConfig)) -> (World, ConnId) {
    let tcp = Config {
        send_buffer: 4096,
        linux: LinuxRules {
            keeps_received: true,
            ..LinuxRules::NONE
        },
        ..Config::default()
    };
    connected(World::with_tcp(set, tcp))
}

/// Lets the peer send 3,000 bytes, and then reset the connection.
fn sends_and_resets(world: &mut World, peer: ConnId) {
    world.peer_sends(peer, data(0, 3000));
    world.peer.abort(peer);
    world.run();
}

#[test]
fn data_from_before_a_reset_is_delivered_and_then_the_reset() {
    let (mut world, peer) = connected_keeping(|_| {});
    sends_and_resets(&mut world, peer);
    let buffers = [0, 1].map(|_| world.post_receive(0, 2, 2000));
    world.run();
    assert_eq!(
        world.answers(0),
        [
            received(2, buffers[0], Status::Ok, 2000),
            received(2, buffers[1], Status::Ok, 1000),
            over(2, Status::Reset),
        ]
    );
}

#[test]
fn a_host_that_sends_learns_of_a_reset_although_data_is_unread() {
    let (mut world, peer) = connected_keeping(|_| {});
    sends_and_resets(&mut world, peer);
    let tag = world.post_send(0, 2, data(0, 100));
    world.run();
    assert_eq!(
        world.answers(0),
        [sent(2, tag, Status::Reset, 100), over(2, Status::Reset)]
    );
}

#[test]
fn a_host_whose_sends_wait_learns_of_a_reset_although_data_is_unread() {
    let (mut world, peer) = connected_keeping(|_| {});
    // The peer does not read: in the end its window and the send buffer are full.
    let waiting = (0..10_000).find_map(|_| {
        let tag = world.post_send(0, 2, data(0, 2000));
        world.run();
        world.answers(0).is_empty().then_some(tag)
    });
    sends_and_resets(&mut world, peer);
    let answers = world.answers(0);
    assert_eq!(answers.last(), Some(&over(2, Status::Reset)));
    let first = answers.first().map(|one| (Some(one.tag), one.status));
    assert_eq!(first, Some((waiting, Status::Reset)));
}

#[test]
fn data_without_a_buffer_is_reported_whenever_more_arrives() {
    let (mut world, peer) = connected(World::with(|config| config.reports_unread = true));
    for count in 1..4 {
        world.peer_sends(peer, data(100 * u64::from(count - 1), 100));
        world.run();
        assert_eq!(
            world.answers(0),
            [unread(2, 100 * count, false, Status::Ok)],
            "{count}"
        );
    }
    world.peer.shutdown(peer);
    world.run();
    let last = world.answers(0).pop();
    assert_eq!(last, Some(unread(2, 300, true, Status::Ok)));
    let buffer = world.post_receive(0, 2, 200);
    world.run();
    assert_eq!(
        world.answers(0),
        [
            received(2, buffer, Status::Ok, 200),
            unread(2, 100, true, Status::Ok)
        ]
    );
    let buffers = [0, 1].map(|_| world.post_receive(0, 2, 200));
    world.run();
    assert_eq!(
        world.answers(0),
        [
            received(2, buffers[0], Status::Ok, 100),
            received(2, buffers[1], Status::EndOfStream, 0),
            peer_closed(2),
        ]
    );
}

#[test]
fn a_reset_behind_unread_data_is_reported_with_it() {
    let (mut world, peer) = connected_keeping(|config| config.reports_unread = true);
    sends_and_resets(&mut world, peer);
    assert_eq!(
        world.answers(0).last(),
        Some(&unread(2, 3000, false, Status::Reset))
    );
}
