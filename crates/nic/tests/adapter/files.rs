//! SENDs of files, which the adapter reads by itself.

use crate::world::*;
use baton_bus::descriptor::{
    Action, Buffer, FilePlace, MOST_FILE_BYTES, Outcome, Response, Status,
};
use baton_bus::link::{LinkError, Violation};
use baton_tcp::{CloseReason, Config, ConnId, Event};
use baton_testkit::{Random, for_each_seed, symbolic};
use baton_wire::{Payload, Span, Symbolic};

const MIB: u32 = 1 << 20;
const RESET: Event = Event::Closed(CloseReason::Reset);

/// Returns a SEND of `len` bytes from `address` on.
fn from_file(address: u64, len: u32) -> Action {
    Action::send(Buffer::Memory { address, len }, false)
}

/// Creates a world whose connections have send buffers of this many bytes, with a connection, socket 2. Returns the peer's end.
fn with_buffer(send_buffer: u32) -> (World, ConnId) {
    let tcp = Config {
        send_buffer,
        receive_buffer: 4 * MIB,
        ..Config::default()
    };
    connected(World::with_tcp(|_| {}, tcp))
}

/// Adds a connection, socket 2, to a world. Returns the peer's end.
fn connected(mut world: World) -> (World, ConnId) {
    world.listen(0, 1, 80);
    let peer = world.connection(0, 1, 2, 80);
    (world, peer)
}

/// Returns the answer to a SEND.
fn sent(socket: u32, tag: u32, status: Status, len: u32) -> Response {
    let cumulative = false;
    answer(socket, tag, status, Outcome::Sent { len, cumulative })
}

/// Returns the report that a connection has ended.
fn over(socket: u32, status: Status) -> Response {
    answer(socket, 0, status, Outcome::Over)
}

/// Reads what arrives at the peer within a while, unless the connection has been reset.
fn read(world: &mut World, peer: ConnId) -> Vec<Symbolic> {
    let mut pieces = Vec::new();
    for _ in 0..30 {
        world.wait(Span::from_ms(500));
        if world.peer_was_notified(peer, &RESET) {
            break;
        }
        pieces.extend(world.peer_reads(peer));
    }
    pieces
}

/// Joins pieces that continue each other.
fn joined(pieces: Vec<Symbolic>) -> Option<Symbolic> {
    let mut pieces = pieces.into_iter();
    let mut all = pieces.next()?;
    assert!(pieces.all(|piece| all.try_append(&piece)), "a gap");
    Some(all)
}

#[test]
fn a_file_is_sent_in_order_with_other_data() {
    let (mut world, peer) = with_buffer(MIB);
    let address = world.apps[0].link.lend(data(0, 300_000));
    let sends = [
        world.post_send(0, 2, data(100, 900)),
        world.post(0, 2, from_file(address + 1000, 200_000)),
        world.post_inline(0, 2, data(201_000, 10)),
        world.post(0, 2, from_file(address + 201_010, 98_990)),
    ];
    let came = joined(read(&mut world, peer));
    let lens = [900, 200_000, 10, 98_990];
    let answers = sends.iter().zip(lens);
    let expected: Vec<Response> = answers
        .map(|(&tag, len)| sent(2, tag, Status::Ok, len))
        .collect();
    assert_eq!(world.answers(0), expected);
    assert_eq!(came, Some(data(100, 299_900)));
}

#[test]
fn a_file_is_read_when_its_bytes_can_be_sent() {
    let (mut world, peer) = with_buffer(4 * MIB);
    let address = world.apps[0].link.lend(data(0, MOST_FILE_BYTES));
    world.is_cut = true;
    let tag = world.post(0, 2, from_file(address, MOST_FILE_BYTES));
    world.run();
    let stats = world.adapter.stats();
    assert!(stats.reads < 8, "{} of 16 pieces", stats.reads);
    assert_eq!(world.answers(0), [], "the file is still needed");
    world.is_cut = false;
    let came = joined(read(&mut world, peer));
    assert_eq!(came, Some(data(0, MOST_FILE_BYTES)));
    let done = sent(2, tag, Status::Ok, MOST_FILE_BYTES);
    assert_eq!(world.answers(0), [done]);
}

#[test]
fn a_small_send_buffer_holds_a_part_of_a_file() {
    let (mut world, peer) = with_buffer(1000);
    let address = world.apps[0].link.lend(data(0, 5000));
    let tag = world.post(0, 2, from_file(address, 5000));
    world.wait(Span::from_secs(2));
    assert_eq!(world.answers(0), [sent(2, tag, Status::Ok, 5000)]);
    assert_eq!(joined(read(&mut world, peer)), Some(data(0, 5000)));
}

#[test]
fn an_edit_between_two_sends_affects_the_second() {
    let (mut world, peer) = with_buffer(MIB);
    let address = world.apps[0].link.lend(data(0, 5000));
    world.ask(0, 2, from_file(address, 5000));
    world.apps[0].link.change_file(address, data(5000, 6000));
    world.ask(0, 2, from_file(address, 6000));
    assert_eq!(joined(read(&mut world, peer)), Some(data(0, 11_000)));
}

/// The peer must neither wait for the missing bytes nor get others.
#[test]
fn a_file_that_is_shorter_than_what_is_sent_resets_the_connection() {
    let (mut world, peer) = with_buffer(MIB);
    let address = world.apps[0].link.lend(data(0, 100_000));
    world.apps[0].faults.delay_dma(2);
    let tag = world.post(0, 2, from_file(address, 100_000));
    let later = world.post_send(0, 2, data(100_000, 10));
    world.apps[0].link.change_file(address, data(0, 99_999));
    world.wait(Span::from_secs(2));
    let expected = [
        sent(2, tag, Status::NotReadable, 100_000),
        // The data of the other SEND was fetched at the same time.
        sent(2, later, Status::Ok, 10),
        over(2, Status::NotReadable),
    ];
    let mut answers = world.answers(0);
    answers.sort_by_key(|answer| (answer.outcome == Outcome::Over, answer.tag));
    assert_eq!(answers, expected);
    assert!(world.peer_was_notified(peer, &RESET));
    world.adapter.check();
}

#[test]
fn invalid_addresses_in_files_are_violations() {
    let last = FilePlace {
        file: 0,
        offset: FilePlace::BYTES - 10,
    };
    let unknown = FilePlace { file: 1, offset: 0 };
    let (address, len, offset, more) = (unknown.address() - FilePlace::BYTES, 100, 0, false);
    let to_file = [
        Action::Receive { address, len },
        Action::Forward { address, len },
        Action::Import { address, len, more },
        Action::Export { address, len },
        Action::CacheInsert {
            address,
            len,
            offset,
        },
        from_file(last.address(), 100),
        from_file(address, MOST_FILE_BYTES + 1),
        from_file(unknown.address(), 100),
    ];
    for action in to_file {
        let (mut world, _) = connected(World::with(|config| config.cache_bytes = 4096));
        world.apps[0].link.lend(data(0, 2 * MIB));
        world.post(0, 2, action);
        let pumped = world.pump(0);
        assert!(
            matches!(
                pumped,
                Err(LinkError::Violation(
                    Violation::Range { .. } | Violation::Length(_)
                ))
            ),
            "{action:?}: {pumped:?}"
        );
    }
}

#[test]
fn a_packet_socket_sends_no_files() {
    let mut world = World::new();
    world.ask(0, 5, Action::PacketSocket);
    world.answers(0);
    let address = world.apps[0].link.lend(data(0, 100));
    let tag = world.ask(0, 5, from_file(address, 100));
    assert_eq!(world.answers(0), [sent(5, tag, Status::BadValue, 100)]);
}

/// Files, buffers and inline data are sent over a lossy network and a slow link. Files may become shorter at any time: the peer then has
/// received a beginning of the stream. Returns how many bytes it has received.
fn any_order(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let (mut world, peer) = with_buffer(random.one_of(&[3000, 200_000, MIB]));
    world.loss_percent = random.one_of(&[0, 5]);
    let may_shrink = random.percent(30);
    let (mut at, mut sends, mut answers) = (0, 0, Vec::new());
    let mut files = Vec::new();
    let mut came: Vec<Symbolic> = Vec::new();
    for _ in 0..60 {
        let is_over = answers
            .iter()
            .any(|it: &Response| it.outcome == Outcome::Over);
        let may_send = sends - answers.len() < 100 && !is_over;
        let most = random.one_of(&[100, 10_000, 300_000]);
        let len = 1 + random.below(most) as u32;
        let sent = match random.below(8) {
            0..3 if may_send => {
                let address = world.apps[0].link.lend(symbolic(1, at, len));
                world.post(0, 2, from_file(address, len));
                files.push((address, symbolic(1, at, len)));
                len
            }
            3 if may_send => {
                world.post_send(0, 2, symbolic(1, at, len.min(4096)));
                len.min(4096)
            }
            4 if may_send => {
                world.post_inline(0, 2, symbolic(1, at, len.min(200)));
                len.min(200)
            }
            5 if may_shrink && !files.is_empty() => {
                let (address, content) = random.one_of(&files);
                let len = random.below(content.len.into()) as usize;
                let link = &mut world.apps[0].link;
                link.change_file(address, content.slice(0, len));
                0
            }
            6 => {
                world.wait(Span::from_us(1 + random.below(300_000)));
                0
            }
            _ => {
                let polls = random.below(4) as u32;
                world.apps[0].faults.delay_dma(polls);
                world.turn();
                0
            }
        };
        at += u64::from(sent);
        sends += usize::from(sent > 0);
        answers.extend(world.answers(0));
        if !world.peer_was_notified(peer, &RESET) {
            came.extend(world.peer_reads(peer));
        }
    }
    world.loss_percent = 0;
    came.extend(read(&mut world, peer));
    answers.extend(world.answers(0));
    let len: u32 = came.iter().map(|piece| piece.len).sum();
    let mut expected = 0;
    for piece in came {
        assert_eq!(piece, symbolic(1, expected, piece.len));
        expected += u64::from(piece.len);
    }
    let is_over = answers.iter().any(|it| it.outcome == Outcome::Over);
    assert_eq!(answers.len(), sends + usize::from(is_over));
    match is_over {
        true => assert!(may_shrink, "all files could be read"),
        false => assert_eq!(u64::from(len), at),
    }
    len.into()
}

#[test]
fn files_and_other_data_arrive_in_order_or_the_connection_is_reset() {
    let runs = for_each_seed(40, any_order);
    assert!(runs.iter().any(|&len| len > 1_000_000), "much is sent");
}
