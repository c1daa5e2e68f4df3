//! EXPORT: when a connection may leave. These tests use real bytes, which the exported state needs.

use crate::world::{ADAPTER, PEER};
use baton_bus::Batching;
use baton_bus::descriptor::{Action, Buffer, Outcome, Request, Response, Status, entries};
use baton_bus::link::{HostLink, MemoryAdapter, MemoryConfig, MemoryHost, memory_link};
use baton_nic::adapter::{Adapter, AdapterConfig, Ending, SessionId, pump};
use baton_tcp::{Config, ConnId, Moved, Stack};
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;

const LONGEST: Span = Span::from_ms(500);
/// Data of a segment with timestamps.
const SEGMENT: usize = 1448;
/// Large enough for a state with its data.
const BUFFER: u32 = 8192;

/// An application with a connection, socket 1, to a peer at no distance.
struct World {
    now: Time,
    adapter: Adapter<Bytes>,
    stack: Stack<Bytes>,
    peer: Stack<Bytes>,
    conn: Option<ConnId>,
    session: SessionId,
    host: MemoryHost<Bytes>,
    link: MemoryAdapter<Bytes>,
    /// Nothing reaches the other side while set.
    is_cut: bool,
    tag: u32,
    answers: Vec<Response>,
}

impl World {
    fn connected(settle: Option<Span>) -> Self {
        let config = AdapterConfig {
            addresses: vec![ADAPTER],
            settle,
            batching: Batching {
                max_transfer_bytes: BUFFER,
                ..Batching::default()
            },
            ..AdapterConfig::default()
        };
        // A segment is in flight at first, and the rest waits.
        let tcp = Config {
            initial_window_segments: 1,
            ..Config::default()
        };
        let mut adapter = Adapter::new(config).expect("right parameters");
        let (host, link) = memory_link(MemoryConfig {
            buffer_bytes: BUFFER,
            ..MemoryConfig::default()
        });
        let mut world = Self {
            now: Time::ZERO + Span::from_ms(1),
            session: adapter.attach().expect("there is room"),
            adapter,
            stack: Stack::new(tcp, 1),
            peer: Stack::new(Config::default(), 2),
            conn: None,
            host,
            link,
            is_cut: false,
            tag: 0,
            answers: Vec::new(),
        };
        let remote = Endpoint::new(PEER, 80);
        let listener = world.peer.listen(remote, 1);
        world.ask(Action::Socket);
        world.ask(Action::Connect(remote));
        world.conn = world.peer.accept(listener);
        assert!(world.conn.is_some());
        world.answers.clear();
        world
    }

    fn ask(&mut self, action: Action) {
        self.tag += 1;
        let request = Request {
            socket: 1,
            tag: self.tag,
            action,
        };
        assert_eq!(self.host.put(self.now, &[request.encode()]), Ok(1));
        self.run();
    }

    /// Two segments are written, of which one is in flight and lost.
    fn send_and_lose(&mut self) {
        self.is_cut = true;
        let data = Bytes::from(vec![7; 2 * SEGMENT]);
        let (len, address) = (data.len() as u32, self.host.place(data));
        let address = address.expect("a buffer is free");
        self.ask(Action::send(Buffer::Memory { address, len }, false));
        self.answers.clear();
    }

    fn export(&mut self) {
        let address = self.host.reserve().expect("a buffer is free");
        self.ask(Action::Export {
            address,
            len: BUFFER,
        });
    }

    /// The connection, if it has left.
    fn left(&mut self) -> Option<Moved<Bytes>> {
        let answer = self.answers.pop()?;
        let Outcome::Exported { address, len, more } = answer.outcome else {
            panic!("{answer:?} is of an EXPORT");
        };
        assert_eq!((answer.status, more), (Status::Ok, false));
        let bytes = self.host.take(address, len).expect("it was written");
        Some(Moved::from_bytes(&bytes).expect("a state"))
    }

    /// How many have left at rest, and how many not.
    fn counts(&self) -> (u64, u64) {
        let stats = self.adapter.stats();
        (stats.exported_at_rest, stats.exported_not_at_rest)
    }

    fn peer_has(&mut self) -> usize {
        let conn = self.conn.expect("it is connected");
        self.peer.readable_len(conn)
    }

    fn run(&mut self) {
        while self.turn() {}
    }

    fn turn(&mut self) -> bool {
        let mut did = false;
        while let Some((_, segment)) = self.stack.poll_transmit(self.now) {
            did = true;
            if !self.is_cut {
                self.peer.handle_segment(self.now, segment);
            }
        }
        while let Some((_, segment)) = self.peer.poll_transmit(self.now) {
            did = true;
            if !self.is_cut {
                self.stack.handle_segment(self.now, segment);
            }
        }
        let (now, stack) = (self.now, &mut self.stack);
        while let Some((conn, event)) = stack.poll_event() {
            did = true;
            assert!(self.adapter.handle_event(now, stack, conn, &event));
        }
        while self.peer.poll_event().is_some() {}
        if self.adapter.sessions().next().is_some() {
            let (adapter, link) = (&mut self.adapter, &mut self.link);
            did |= pump(now, adapter, stack, self.session, link).expect("it keeps the rules");
        }
        let mut taken = Vec::new();
        self.host.get(now, &mut taken).expect("the link is whole");
        did |= !taken.is_empty();
        let read = entries(&taken).map(|entry| Response::decode(&entry.expect("whole entries")[0]));
        self.answers
            .extend(read.map(|response| response.expect("a response")));
        self.adapter.check();
        self.stack.check();
        did
    }

    fn wait(&mut self, span: Span) {
        let until = self.now + span;
        loop {
            self.run();
            let due = [
                self.stack.poll_timeout(),
                self.peer.poll_timeout(),
                self.adapter.poll_timeout(),
            ];
            match due.into_iter().flatten().min() {
                Some(due) if due <= until => self.now = due.max(self.now),
                _ => break,
            }
            self.stack.handle_timeouts(self.now);
            self.peer.handle_timeouts(self.now);
            self.adapter.handle_timeouts(self.now, &mut self.stack);
        }
        self.now = until;
        self.run();
    }
}

#[test]
fn without_the_parameter_a_connection_leaves_as_it_is() {
    let mut world = World::connected(None);
    world.send_and_lose();
    world.export();
    let moved = world.left().expect("it leaves at once");
    assert_eq!(moved.state.unacknowledged(), 2 * SEGMENT);
    let told = moved.state.essentials().expect("it is open");
    assert_eq!(told.send_next - told.send_una, SEGMENT as u32);
    assert_eq!(world.counts(), (0, 0));
}

#[test]
fn a_connection_at_rest_leaves_at_once() {
    let mut world = World::connected(Some(LONGEST));
    world.export();
    assert!(world.left().is_some());
    assert_eq!(world.counts(), (1, 0));
    assert_eq!(world.adapter.stats().exported, 1);
}

#[test]
fn a_connection_leaves_once_what_was_lost_has_arrived() {
    let mut world = World::connected(Some(LONGEST));
    world.send_and_lose();
    world.export();
    assert_eq!(world.left(), None);
    world.is_cut = false;
    // The retransmission timeout is at least 200 ms.
    world.wait(Span::from_ms(400));
    let moved = world.left().expect("it is at rest");
    let told = moved.state.essentials().expect("it is open");
    assert_eq!(told.send_next, told.send_una);
    assert_eq!(moved.state.unacknowledged(), SEGMENT, "this was not sent");
    assert_eq!(world.peer_has(), SEGMENT);
    assert_eq!(world.counts(), (1, 0));
}

#[test]
fn with_a_silent_peer_a_connection_leaves_when_time_is_over() {
    let mut world = World::connected(Some(LONGEST));
    world.send_and_lose();
    world.export();
    world.wait(Span::from_ms(499));
    assert_eq!(world.left(), None);
    world.wait(Span::from_ms(1));
    let moved = world.left().expect("time is over");
    assert_eq!(moved.state.unacknowledged(), 2 * SEGMENT);
    assert_eq!(world.counts(), (0, 1));
}

#[test]
fn data_of_the_peer_beyond_a_hole_is_waited_for() {
    let mut world = World::connected(Some(LONGEST));
    let conn = world.conn.expect("it is connected");
    let data = Bytes::from(vec![8; SEGMENT]);
    world.is_cut = true;
    assert_eq!(world.peer.write(conn, data.clone()), Ok(SEGMENT));
    world.run();
    assert_eq!(world.peer.write(conn, data), Ok(SEGMENT));
    let second = world.peer.poll_transmit(world.now).expect("there is room");
    world.stack.handle_segment(world.now, second.1);
    world.export();
    assert_eq!(world.left(), None);
    world.is_cut = false;
    world.wait(Span::from_ms(400));
    let moved = world.left().expect("the peer has sent it again");
    assert_eq!(moved.state.unread(), 2 * SEGMENT);
    assert_eq!(world.counts(), (1, 0));
}

#[test]
fn an_application_that_is_gone_settles_nothing() {
    let mut world = World::connected(Some(LONGEST));
    world.send_and_lose();
    world.export();
    let session = world.session;
    world
        .adapter
        .detach(world.now, &mut world.stack, session, Ending::Drain);
    world.is_cut = false;
    world.wait(Span::from_ms(400));
    assert_eq!(world.peer_has(), 2 * SEGMENT, "all of it is sent");
    let conn = world.conn.expect("it is connected");
    assert!(world.peer.peer_closed(conn), "and then the end");
    assert_eq!(world.counts(), (0, 0));
}

#[test]
fn a_connection_that_ends_while_it_settles_stays() {
    let mut world = World::connected(Some(LONGEST));
    world.send_and_lose();
    world.export();
    world.is_cut = false;
    let conn = world.conn.expect("it is connected");
    world.peer.abort(conn);
    world.run();
    let statuses: Vec<Status> = world.answers.iter().map(|answer| answer.status).collect();
    assert!(statuses.contains(&Status::WrongState), "{statuses:?}");
    world.wait(LONGEST);
    assert_eq!(world.counts(), (0, 0));
}
