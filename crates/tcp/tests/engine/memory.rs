//! A stack with a memory limit: how much it holds, and that everything still arrives.

use baton_tcp::{Config, ConnId, Refusal, Segment, Stack};
use baton_testkit::{Pattern, endpoint, in_use};
use baton_wire::{Flow, Span, Time};
use bytes::Bytes;
use std::collections::BTreeMap;

const LIMIT: u64 = 8 << 20;
const MIB: u64 = 1 << 20;

/// Progress of one end of a connection in writing and reading its pattern.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    written: u64,
    read: u64,
}

/// Many clients and a server on a link without delay. The memory of the server's stack is limited.
struct World {
    now: Time,
    client: Stack<Bytes>,
    server: Stack<Bytes>,
    /// For each client, the client's and the server's connection.
    pairs: Vec<(ConnId, ConnId)>,
    progress: BTreeMap<(bool, ConnId), Progress>,
    segments: u64,
}

impl World {
    fn new(config: &Config) -> Self {
        let mut server = Stack::new(config.clone(), 2);
        server.limit_memory(LIMIT);
        server.listen(endpoint(2, 80), 2000);
        Self {
            now: Time::ZERO,
            // The client's buffer is small, so that the server holds the data that a client does not read.
            client: Stack::new(
                Config {
                    receive_buffer: 16 * 1024,
                    ..config.clone()
                },
                1,
            ),
            server,
            pairs: Vec::new(),
            progress: BTreeMap::new(),
            segments: 0,
        }
    }

    /// Opens connections that belong to a user of the server.
    fn open(&mut self, count: usize, user: u32) -> Vec<usize> {
        let first = self.pairs.len();
        for index in first..first + count {
            let flow = Flow {
                local: endpoint(1, 1000 + index as u16),
                remote: endpoint(2, 80),
            };
            let client = self.client.connect(self.now, flow).expect("a free port");
            self.exchange();
            let server = self.server.find(&flow.reversed()).expect("it is open");
            let listener = self.server.listeners().next().expect("a listener");
            assert_eq!(self.server.accept(listener), Some(server));
            self.server.set_user(server, user);
            self.pairs.push((client, server));
        }
        (first..first + count).collect()
    }

    /// Delivers all segments, each with its data in newly allocated memory.
    fn exchange(&mut self) {
        loop {
            while self.client.poll_event().is_some() {}
            while self.server.poll_event().is_some() {}
            if let Some((_, segment)) = self.client.poll_transmit(self.now) {
                self.server.handle_segment(self.now, owned(&segment));
                self.keeps_its_limit();
            } else if let Some((_, segment)) = self.server.poll_transmit(self.now) {
                self.client.handle_segment(self.now, owned(&segment));
            } else {
                return;
            }
            self.segments += 1;
        }
    }

    fn keeps_its_limit(&self) {
        let memory = self.server.memory().expect("a limit");
        assert!(memory.held <= memory.limit, "{memory:?}");
    }

    /// Advances the clock, and runs timers.
    fn wait(&mut self, time: Span) {
        self.now += time;
        self.client.handle_timeouts(self.now);
        self.server.handle_timeouts(self.now);
        self.exchange();
    }

    /// Lets one end write as much as fits, up to `total` bytes.
    fn write(&mut self, index: usize, by_server: bool, total: u64) {
        let (client, server) = self.pairs[index];
        let (stack, id) = match by_server {
            true => (&mut self.server, server),
            false => (&mut self.client, client),
        };
        let progress = self.progress.entry((by_server, id)).or_default();
        while progress.written < total {
            let left = (total - progress.written) as usize;
            let piece = Pattern::new(index as u64).piece(progress.written, left);
            // Newly allocated memory, like that of data from another process.
            let took = stack
                .write(id, Bytes::copy_from_slice(&piece))
                .expect("it is open");
            progress.written += took as u64;
            if took < piece.len() {
                break;
            }
        }
    }

    /// Lets one end read everything available; returns how much it has read since the start.
    fn read(&mut self, index: usize, by_server: bool) -> u64 {
        let (client, server) = self.pairs[index];
        let (stack, id) = match by_server {
            true => (&mut self.server, server),
            false => (&mut self.client, client),
        };
        let progress = self.progress.entry((by_server, id)).or_default();
        while let Some(piece) = stack.read(id, 1 << 16) {
            Pattern::new(index as u64).check(progress.read, &piece);
            progress.read += piece.len() as u64;
            stack.consume(id, piece.len());
        }
        progress.read
    }

    /// Writes, exchanges and reads until all data of each connection has arrived.
    fn finish(&mut self, connections: &[usize], by_server: bool, total: u64) {
        for _ in 0..10_000 {
            let mut missing = 0;
            for &index in connections {
                self.write(index, by_server, total);
                missing += total - self.read(index, !by_server);
            }
            self.exchange();
            if missing == 0 {
                return;
            }
            self.wait(Span::from_ms(50));
        }
        panic!("the transfer makes no progress");
    }
}

/// Returns a copy of the segment with its data in newly allocated memory.
fn owned(segment: &Segment<Bytes>) -> Segment<Bytes> {
    let mut own = segment.clone();
    for piece in &mut own.payload {
        *piece = Bytes::copy_from_slice(piece);
    }
    own
}

fn config() -> Config {
    Config {
        send_buffer: 1 << 20,
        receive_buffer: 1 << 20,
        ..Config::default()
    }
}

#[test]
fn slow_readers_leave_other_users_their_share() {
    let mut world = World::new(&config());
    let slow = world.open(200, 1);
    for _ in 0..20 {
        for &index in &slow {
            world.write(index, true, 2 * MIB);
        }
        world.exchange();
    }
    let memory = world.server.memory().expect("a limit");
    assert!(memory.largest_user > LIMIT / 3, "{memory:?}");
    assert!(memory.largest_user < LIMIT * 6 / 10, "{memory:?}");
    assert!(!world.server.has_memory_for(Some(1), 1 << 20));
    assert!(world.server.has_memory_for(Some(2), 1 << 20));
    let others = world.open(4, 2);
    assert!(world.server.write_limit(world.pairs[others[0]].1) > 100_000);
    world.finish(&others, true, 4 * MIB);
    world.server.check();
    world.finish(&slow, true, 2 * MIB);
    world.server.check();
}

#[test]
fn windows_close_before_the_memory_is_full() {
    let mut world = World::new(&config());
    let senders = world.open(8, 1);
    for _ in 0..20 {
        for &index in &senders {
            world.write(index, false, MIB);
        }
        world.wait(Span::from_ms(300));
    }
    let memory = world.server.memory().expect("a limit");
    assert!(memory.largest_user > LIMIT / 3, "{memory:?}");
    let others = world.open(2, 2);
    world.finish(&others, false, 2 * MIB);
    assert_eq!(world.server.stats().refused.get(Refusal::NoMemory), 0);
    world.finish(&senders, false, MIB);
    world.server.check();
}

#[test]
fn data_beyond_scarce_memory_is_refused_and_arrives_later() {
    let mut world = World::new(&Config {
        initial_window_segments: 600,
        ..config()
    });
    // While the server reads all data at once, it offers a large window to each connection. Then all connections use their windows.
    let senders = world.open(40, 1);
    world.finish(&senders, false, MIB / 2);
    for &index in &senders {
        world.write(index, false, MIB);
    }
    world.exchange();
    let refused = world.server.stats().refused.get(Refusal::NoMemory);
    assert!(refused > 100, "{refused} segments refused");
    let others = world.open(1, 2);
    world.finish(&others, false, MIB / 4);
    world.finish(&senders, false, MIB);
    world.server.check();
}

#[test]
fn short_segments_take_no_more_memory_than_they_count_for() {
    for holes in [false, true] {
        let mut world = World::new(&config());
        let only = world.open(1, 1)[0];
        let (client, server) = world.pairs[only];
        world.write(only, false, 1);
        let (_, first) = world.client.poll_transmit(world.now).expect("a byte");
        let before = in_use();
        for at in 0..20_000 {
            let mut segment = first.clone();
            segment.header.seq = first.header.seq + at;
            segment.payload = [Bytes::copy_from_slice(&Pattern::new(0).piece(at.into(), 1))]
                .into_iter()
                .collect();
            // Every other segment of the first 2,000 is lost.
            if !holes || at >= 2_000 || at % 2 == 1 {
                world.server.handle_segment(world.now, segment);
            }
            while world.server.poll_transmit(world.now).is_some() {}
        }
        let held = in_use() - before;
        let counted = world.server.memory().expect("a limit").held;
        assert!(held < counted, "{held} in use, {counted} counted");
        assert!(counted < 600_000, "{counted} counted");
        world.server.check();
        if !holes {
            let mut read = 0;
            while let Some(piece) = world.server.read(server, 1 << 16) {
                Pattern::new(0).check(read, &piece);
                read += piece.len() as u64;
            }
            assert_eq!(read, 20_000);
        }
        world.client.abort(client);
    }
}
