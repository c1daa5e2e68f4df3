//! EXPORT: when a connection may leave the adapter. These tests use real bytes, because exported states need them.

use crate::world::{ADAPTER, PEER, World};
use baton_bus::Batching;
use baton_bus::descriptor::{Action, Buffer, Outcome, Status};
use baton_bus::link::{HostLink, MemoryConfig};
use baton_nic::adapter::{AdapterConfig, Ending};
use baton_tcp::{Config, ConnId, Moved};
use baton_wire::{Endpoint, Span};
use bytes::Bytes;

const LONGEST: Span = Span::from_ms(500);
/// Length of the data in a segment with timestamps.
const SEGMENT: usize = 1448;
/// Size of a buffer, which is enough for a state with its data.
const BUFFER: u32 = 8192;

/// Creates an application with a connection, socket 1, to a peer, without a network in between. Returns the peer's end.
fn connected(settle: Option<Span>) -> (World<Bytes>, ConnId) {
    let config = AdapterConfig {
        addresses: vec![ADAPTER],
        settle,
        batching: Batching {
            max_transfer_bytes: BUFFER,
            ..Batching::default()
        },
        ..AdapterConfig::default()
    };
    // One segment is in flight at first, and the rest waits.
    let tcp = Config {
        initial_window_segments: 1,
        ..Config::default()
    };
    let memory = MemoryConfig {
        buffer_bytes: BUFFER,
        ..MemoryConfig::default()
    };
    let mut world = World::of(config, tcp, memory);
    let remote = Endpoint::new(PEER, 80);
    let listener = world.peer_listens(remote);
    world.ask(0, 1, Action::Socket);
    world.ask(0, 1, Action::Connect(remote));
    let conn = world.peer_accepts(listener);
    world.answers(0);
    (world, conn)
}

/// Writes two segments, of which one is in flight and gets lost.
fn send_and_lose(world: &mut World<Bytes>) {
    world.is_cut = true;
    let data = Bytes::from(vec![7; 2 * SEGMENT]);
    let (len, address) = (data.len() as u32, world.apps[0].link.place(data));
    let address = address.expect("a buffer is free");
    let data = Buffer::Memory { address, len };
    world.ask(0, 1, Action::send(data, false));
    world.answers(0);
}

fn export(world: &mut World<Bytes>) {
    let address = world.apps[0].link.reserve().expect("a buffer is free");
    let len = BUFFER;
    world.ask(0, 1, Action::Export { address, len });
}

/// Returns the exported connection, or `None` if it has not been exported yet.
fn left(world: &mut World<Bytes>) -> Option<Moved<Bytes>> {
    let answer = world.answers(0).pop()?;
    let Outcome::Exported { address, len, more } = answer.outcome else {
        panic!("{answer:?} is not the answer to an EXPORT");
    };
    assert_eq!((answer.status, more), (Status::Ok, false));
    let bytes = world.apps[0].link.take(address, len);
    Some(Moved::from_bytes(&bytes.expect("it was written")).expect("it is a state"))
}

/// Returns how many connections were exported at rest, and how many while not at rest.
fn counts(world: &World<Bytes>) -> (u64, u64) {
    let stats = world.adapter.stats();
    (stats.exported_at_rest, stats.exported_not_at_rest)
}

#[test]
fn without_settling_a_connection_leaves_at_once() {
    let (mut world, _) = connected(None);
    send_and_lose(&mut world);
    export(&mut world);
    let moved = left(&mut world).expect("it leaves at once");
    assert_eq!(moved.state.unacknowledged(), 2 * SEGMENT);
    let told = moved.state.essentials().expect("it is open");
    assert_eq!(told.send_next - told.send_una, SEGMENT as u32);
    assert_eq!(counts(&world), (0, 0));
}

#[test]
fn a_connection_at_rest_leaves_at_once() {
    let (mut world, _) = connected(Some(LONGEST));
    export(&mut world);
    assert!(left(&mut world).is_some());
    assert_eq!(counts(&world), (1, 0));
    assert_eq!(world.adapter.stats().exported, 1);
}

#[test]
fn a_connection_leaves_once_what_was_lost_has_arrived() {
    let (mut world, conn) = connected(Some(LONGEST));
    send_and_lose(&mut world);
    export(&mut world);
    assert_eq!(left(&mut world), None);
    world.is_cut = false;
    // The retransmission timeout is at least 200 ms.
    world.wait(Span::from_ms(400));
    let moved = left(&mut world).expect("it is at rest");
    let told = moved.state.essentials().expect("it is open");
    assert_eq!(told.send_next, told.send_una);
    assert_eq!(
        moved.state.unacknowledged(),
        SEGMENT,
        "the second segment was not sent"
    );
    assert_eq!(world.peer.readable_len(conn), SEGMENT);
    assert_eq!(counts(&world), (1, 0));
}

#[test]
fn with_a_silent_peer_a_connection_leaves_after_the_time_limit() {
    let (mut world, _) = connected(Some(LONGEST));
    send_and_lose(&mut world);
    export(&mut world);
    world.wait(Span::from_ms(499));
    assert_eq!(left(&mut world), None);
    world.wait(Span::from_ms(1));
    let moved = left(&mut world).expect("the time limit has passed");
    assert_eq!(moved.state.unacknowledged(), 2 * SEGMENT);
    assert_eq!(counts(&world), (0, 1));
}

#[test]
fn a_connection_waits_for_data_missing_before_received_data() {
    let (mut world, conn) = connected(Some(LONGEST));
    let data = Bytes::from(vec![8; SEGMENT]);
    world.is_cut = true;
    assert_eq!(world.peer.write(conn, data.clone()), Ok(SEGMENT));
    world.run();
    assert_eq!(world.peer.write(conn, data), Ok(SEGMENT));
    let second = world
        .peer
        .poll_transmit(world.now)
        .expect("the window has space");
    world.stack.handle_segment(world.now, second.1);
    export(&mut world);
    assert_eq!(left(&mut world), None);
    world.is_cut = false;
    world.wait(Span::from_ms(400));
    let moved = left(&mut world).expect("the peer has retransmitted the first segment");
    assert_eq!(moved.state.unread(), 2 * SEGMENT);
    assert_eq!(counts(&world), (1, 0));
}

#[test]
fn connections_of_a_detached_application_do_not_settle() {
    let (mut world, conn) = connected(Some(LONGEST));
    send_and_lose(&mut world);
    export(&mut world);
    world.detach(0, Ending::Drain);
    world.is_cut = false;
    world.wait(Span::from_ms(400));
    assert_eq!(
        world.peer.readable_len(conn),
        2 * SEGMENT,
        "all data is sent"
    );
    assert!(world.peer.peer_closed(conn), "and then the FIN");
    assert_eq!(counts(&world), (0, 0));
}

#[test]
fn a_connection_that_ends_while_it_settles_does_not_leave() {
    let (mut world, conn) = connected(Some(LONGEST));
    send_and_lose(&mut world);
    export(&mut world);
    world.is_cut = false;
    world.peer.abort(conn);
    world.run();
    let statuses: Vec<Status> = world
        .answers(0)
        .iter()
        .map(|answer| answer.status)
        .collect();
    assert!(statuses.contains(&Status::WrongState), "{statuses:?}");
    world.wait(LONGEST);
    assert_eq!(counts(&world), (0, 0));
}

#[test]
fn states_in_transit_count_as_memory_of_their_user() {
    let (mut world, _) = connected(None);
    world.stack.limit_memory(1 << 20);
    let held = |world: &World<Bytes>| world.stack.memory().map(|memory| memory.held);
    // Connections that were created before the limit was set are not counted.
    assert_eq!(held(&world), Some(0));
    let id = world.apps[0].session.expect("the application is attached");
    world.adapter.set_user(id, 1000);
    let state = Bytes::from(vec![0; BUFFER as usize]);
    let address = world.apps[0].link.place(state).expect("a buffer is free");
    let len = BUFFER;
    let part = |more| Action::Import { address, len, more };
    for _ in 0..4 {
        world.ask(0, 2, part(true));
    }
    assert_eq!(held(&world), Some(4 * u64::from(BUFFER)));
    for _ in 0..200 {
        world.ask(0, 2, part(true));
    }
    assert!(
        held(&world) < Some(600_000),
        "one user may use half of the memory"
    );
    world.answers(0);
    world.ask(0, 2, part(false));
    let last = world.answers(0).pop().expect("an answer");
    assert_eq!((last.socket, last.status), (2, Status::Memory));
    assert_eq!(held(&world), Some(0));
    world.ask(0, 3, part(true));
    world.detach(0, Ending::Reset);
    while world.stack.poll_event().is_some() {}
    assert_eq!(held(&world), Some(0));
    world.stack.check();
}

#[test]
fn what_was_not_read_of_a_file_leaves_with_the_connection() {
    let (mut world, _) = connected(None);
    world.is_cut = true;
    let content: Vec<u8> = (0..2 * SEGMENT).map(|at| at as u8).collect();
    let address = world.apps[0].link.lend(content.clone().into());
    let len = content.len() as u32;
    world.apps[0].faults.delay_dma(3);
    world.post(0, 1, Action::send(Buffer::Memory { address, len }, false));
    export(&mut world);
    world.wait(Span::from_ms(1));
    let moved = left(&mut world).expect("all was read");
    let state = moved.state.essentials().expect("it is open");
    let parts = state.send_buffer.iter().chain(&moved.unsent);
    assert_eq!(parts.cloned().collect::<Vec<_>>().concat(), content);
}
