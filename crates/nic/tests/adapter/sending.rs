//! SEND: sending data.

use crate::connected;
use crate::world::*;
use baton_bus::HostLink;
use baton_bus::descriptor::{Action, Buffer, Close, Opcode, Outcome, SocketOption, Status};
use baton_tcp::Config;

#[test]
fn a_send_is_answered_once_its_data_was_fetched() {
    let (mut world, peer) = connected(World::new());
    world.apps[0].faults.delay_dma(5);
    let tag = world.post_send(0, 2, data(0, 1000));
    for _ in 0..2 {
        world.turn();
    }
    assert_eq!(world.answers(0), []);
    world.is_cut = true;
    world.run();
    assert_eq!(
        world.answers(0),
        [sent(2, tag, Status::Ok, 1000)],
        "an answer does not wait for acknowledgments"
    );
    world.is_cut = false;
    world.wait(baton_wire::Span::from_secs(2));
    assert_eq!(world.peer_reads(peer), [data(0, 1000)]);
}

#[test]
fn sends_keep_their_order_wherever_their_data_is() {
    let (mut world, peer) = connected(World::new());
    world.apps[0].faults.delay_dma(1);
    let mut at = 0;
    let mut expected = Vec::new();
    for len in [3000, 10, 240, 4096, 1, 16, 17, 2000] {
        let piece = data(at, len);
        let tag = match len {
            ..=240 => world.post_inline(0, 2, piece),
            _ => world.post_send(0, 2, piece),
        };
        expected.push(sent(2, tag, Status::Ok, len));
        at += u64::from(len);
    }
    world.run();
    assert_eq!(world.answers(0), expected);
    assert_eq!(world.peer_reads(peer), [data(0, at as u32)]);
    let stats = world.adapter.stats();
    assert_eq!((stats.sends, stats.sent_bytes), (8, at));
    assert_eq!(
        (stats.reads, stats.inline_bytes),
        (3, 10 + 240 + 1 + 16 + 17)
    );
}

#[test]
fn a_send_larger_than_the_whole_buffer_is_fetched_in_parts() {
    let tcp = Config {
        send_buffer: 1000,
        ..Config::default()
    };
    let (mut world, peer) = connected(World::with_tcp(|_| {}, tcp));
    let tag = world.post_send(0, 2, data(0, 4096));
    let last = world.post_inline(0, 2, data(4096, 10));
    world.is_cut = true;
    world.run();
    assert_eq!(world.answers(0), [], "the rest is not fetched yet");
    assert_eq!(world.adapter.stats().reads, 1);
    world.is_cut = false;
    world.wait(baton_wire::Span::from_secs(2));
    let expected = [
        sent(2, tag, Status::Ok, 4096),
        sent(2, last, Status::Ok, 10),
    ];
    assert_eq!(world.answers(0), expected);
    assert_eq!(world.peer_reads(peer), [data(0, 4106)]);
    world.adapter.check();
}

#[test]
fn a_send_is_fetched_when_the_connection_has_room() {
    let tcp = Config {
        send_buffer: 10_000,
        ..Config::default()
    };
    let (mut world, peer) = connected(World::with_tcp(|_| {}, tcp));
    world.is_cut = true;
    let tags: Vec<u32> = (0..4)
        .map(|index| world.post_send(0, 2, data(index * 4096, 4096)))
        .collect();
    let small = world.post_inline(0, 2, data(4 * 4096, 100));
    world.run();
    let first: Vec<_> = tags[..2]
        .iter()
        .map(|&tag| sent(2, tag, Status::Ok, 4096))
        .collect();
    assert_eq!(world.answers(0), first, "the send buffer has space for two");
    let status = world.ask(0, 2, Action::Status);
    let responses = world.answers(0);
    let Outcome::Status(info) = responses[0].outcome else {
        panic!("{responses:?}");
    };
    assert_eq!(responses[0].tag, status);
    assert_eq!((info.send_room, info.sends_waiting), (10_000 - 8192, 3));
    world.is_cut = false;
    world.wait(baton_wire::Span::from_secs(3));
    let mut rest: Vec<_> = tags[2..]
        .iter()
        .map(|&tag| sent(2, tag, Status::Ok, 4096))
        .collect();
    rest.push(sent(2, small, Status::Ok, 100));
    assert_eq!(world.answers(0), rest);
    assert_eq!(world.peer_reads(peer), [data(0, 4 * 4096 + 100)]);
}

#[test]
fn a_send_larger_than_the_send_buffer_completes() {
    let tcp = Config {
        send_buffer: 1500,
        ..Config::default()
    };
    let (mut world, peer) = connected(World::with_tcp(|_| {}, tcp));
    let tags = [0, 1].map(|index| world.post_send(0, 2, data(index * 4096, 4096)));
    world.wait(baton_wire::Span::from_secs(2));
    let expected = tags.map(|tag| sent(2, tag, Status::Ok, 4096));
    assert_eq!(world.answers(0), expected);
    assert_eq!(world.peer_reads(peer), [data(0, 8192)]);
}

#[test]
fn a_buffer_that_shrinks_while_data_is_fetched_loses_nothing() {
    let (mut world, peer) = connected(World::new());
    world.apps[0].faults.delay_dma(6);
    for index in 0..5 {
        world.post_send(0, 2, data(index * 4096, 4096));
    }
    world.turn();
    world.post(0, 2, set(SocketOption::SendBuffer, 5000));
    world.wait(baton_wire::Span::from_secs(2));
    assert_eq!(world.peer_reads(peer), [data(0, 5 * 4096)]);
    assert!(world.answers(0).iter().all(|one| one.status == Status::Ok));
}

#[test]
fn one_answer_may_complete_all_earlier_sends() {
    let (mut world, peer) = connected(World::with(|config| config.cumulative_sends = true));
    world.post_send(0, 2, data(0, 1000));
    world.post_send(0, 2, data(1000, 1000));
    let last = world.post_inline(0, 2, data(2000, 100));
    world.run();
    let (len, cumulative) = (100, true);
    let all = Outcome::Sent { len, cumulative };
    assert_eq!(world.answers(0), [answer(2, last, Status::Ok, all)]);
    assert_eq!(world.peer_reads(peer), [data(0, 2100)]);
    // The SEND is answered before the CLOSE.
    let send = world.post_send(0, 2, data(2100, 50));
    let close = world.post(0, 2, Action::Close(Close::Abort));
    world.run();
    let responses = world.answers(0);
    assert_eq!(
        responses.last(),
        Some(&done(2, close, Status::Ok, Opcode::Close))
    );
    let of_send: Vec<_> = responses.iter().filter(|one| one.tag == send).collect();
    assert_eq!(of_send.len(), 1);
}

#[test]
fn sends_have_limits() {
    let (mut world, peer) = connected(World::with(|config| config.most_sends = 2));
    world.apps[0].faults.delay_dma(3);
    let empty = Action::send(
        Buffer::Memory {
            address: 0x1_0000,
            len: 0,
        },
        false,
    );
    let empty = world.post(0, 2, empty);
    let tags = [0, 1, 2].map(|index| world.post_send(0, 2, data(index * 100, 100)));
    world.run();
    assert_eq!(
        world.answers(0),
        [
            sent(2, empty, Status::BadValue, 0),
            sent(2, tags[2], Status::TooManyRequests, 100),
            sent(2, tags[0], Status::Ok, 100),
            sent(2, tags[1], Status::Ok, 100),
        ]
    );
    let shut = world.post(0, 2, Action::Close(Close::Write));
    let late = world.post_send(0, 2, data(0, 5));
    world.run();
    assert_eq!(
        world.answers(0),
        [
            done(2, shut, Status::Ok, Opcode::Close),
            sent(2, late, Status::Shut, 5)
        ]
    );
    assert_eq!(world.peer_reads(peer), [data(0, 200)]);
}

#[test]
fn a_waiting_send_is_cancelled_and_the_next_continues() {
    let tcp = Config {
        send_buffer: 5000,
        ..Config::default()
    };
    let (mut world, peer) = connected(World::with_tcp(|_| {}, tcp));
    world.is_cut = true;
    let first = world.post_send(0, 2, data(0, 4000));
    let second = world.post_send(0, 2, data(50_000, 4000));
    let third = world.post_send(0, 2, data(4000, 500));
    world.run();
    assert_eq!(world.answers(0), [sent(2, first, Status::Ok, 4000)]);
    let gone = world.ask(0, 2, Action::Cancel { target: first });
    let cancel = world.ask(0, 2, Action::Cancel { target: second });
    assert_eq!(
        world.answers(0),
        [
            done(2, gone, Status::NoSuchRequest, Opcode::Cancel),
            sent(2, second, Status::Cancelled, 4000),
            done(2, cancel, Status::Ok, Opcode::Cancel),
            sent(2, third, Status::Ok, 500),
        ]
    );
    world.is_cut = false;
    world.wait(baton_wire::Span::from_secs(2));
    assert_eq!(world.peer_reads(peer), [data(0, 4500)]);
}

#[test]
fn a_partial_segment_waits_when_more_follows() {
    let (mut world, peer) = connected(World::new());
    let address = world.apps[0]
        .link
        .place(data(0, 200))
        .expect("a buffer is free");
    let more = Action::send(Buffer::Memory { address, len: 200 }, true);
    world.ask(0, 2, more);
    assert_eq!(world.peer_reads(peer), []);
    let before = world.to_peer;
    world.post_send(0, 2, data(200, 200));
    world.run();
    assert_eq!(world.peer_reads(peer), [data(0, 400)]);
    assert_eq!(world.to_peer, before + 1, "both in one segment");
}
