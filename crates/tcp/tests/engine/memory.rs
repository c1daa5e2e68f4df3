//! A stack with a memory limit: how much it holds, and that everything still arrives.

use baton_tcp::{Config, ConnId, Refusal, Stack};
use baton_testkit::{Pattern, Stacks, endpoint, in_use};
use baton_wire::{Flow, Span};
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

/// Transfers between many clients and a server. The memory of the server's stack is limited.
struct Transfers {
    /// The clients' stack and the server's.
    pair: Stacks<Bytes>,
    /// For each client, the client's and the server's connection.
    conns: Vec<[ConnId; 2]>,
    progress: BTreeMap<(bool, ConnId), Progress>,
}

impl Transfers {
    fn new(config: &Config) -> Self {
        let mut server = Stack::new(config.clone(), 2);
        server.limit_memory(LIMIT);
        server.listen(endpoint(2, 80), 2000);
        // The client's buffer is small, so that the server holds the data that a client does not read.
        let of_client = Config {
            receive_buffer: 16 * 1024,
            ..config.clone()
        };
        Self {
            pair: Stacks::joined([Stack::new(of_client, 1), server]),
            conns: Vec::new(),
            progress: BTreeMap::new(),
        }
    }

    fn server(&mut self) -> &mut Stack<Bytes> {
        &mut self.pair.ends[1]
    }

    /// Opens connections that belong to a user of the server.
    fn open(&mut self, count: usize, user: u32) -> Vec<usize> {
        let first = self.conns.len();
        for index in first..first + count {
            let flow = Flow {
                local: endpoint(1, 1000 + index as u16),
                remote: endpoint(2, 80),
            };
            let client = self.pair.ends[0].connect(self.pair.now, flow);
            self.exchange();
            let server = self.server().find(&flow.reversed()).expect("it is open");
            let listener = self.server().listeners().next().expect("a listener");
            assert_eq!(self.server().accept(listener), Some(server));
            self.server().set_user(server, user);
            self.conns.push([client.expect("a free port"), server]);
        }
        (first..first + count).collect()
    }

    /// Delivers all segments.
    fn exchange(&mut self) {
        self.keeps_its_limit();
        self.pair.settle();
        self.keeps_its_limit();
        for stack in &mut self.pair.ends {
            while stack.poll_event().is_some() {}
        }
    }

    fn keeps_its_limit(&mut self) {
        let memory = self.server().memory().expect("a limit");
        assert!(memory.held <= memory.limit, "{memory:?}");
    }

    /// Advances the clock, and runs timers.
    fn wait(&mut self, time: Span) {
        self.pair.now += time;
        self.exchange();
    }

    /// Returns one end of a connection, and its progress.
    fn end(&mut self, index: usize, by_server: bool) -> (&mut Stack<Bytes>, ConnId, &mut Progress) {
        let id = self.conns[index][usize::from(by_server)];
        let progress = self.progress.entry((by_server, id)).or_default();
        (&mut self.pair.ends[usize::from(by_server)], id, progress)
    }

    /// Lets one end write as much as fits, up to `total` bytes.
    fn write(&mut self, index: usize, by_server: bool, total: u64) {
        let (stack, id, progress) = self.end(index, by_server);
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
        let (stack, id, progress) = self.end(index, by_server);
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

fn config() -> Config {
    Config {
        send_buffer: 1 << 20,
        receive_buffer: 1 << 20,
        ..Config::default()
    }
}

#[test]
fn slow_readers_leave_other_users_their_share() {
    let mut transfers = Transfers::new(&config());
    let slow = transfers.open(200, 1);
    for _ in 0..20 {
        for &index in &slow {
            transfers.write(index, true, 2 * MIB);
        }
        transfers.exchange();
    }
    let memory = transfers.server().memory().expect("a limit");
    assert!(memory.largest_user > LIMIT / 3, "{memory:?}");
    assert!(memory.largest_user < LIMIT * 6 / 10, "{memory:?}");
    assert!(!transfers.server().has_memory_for(Some(1), 1 << 20));
    assert!(transfers.server().has_memory_for(Some(2), 1 << 20));
    let others = transfers.open(4, 2);
    let [_, other] = transfers.conns[others[0]];
    assert!(transfers.server().write_limit(other) > 100_000);
    transfers.finish(&others, true, 4 * MIB);
    transfers.server().check();
    transfers.finish(&slow, true, 2 * MIB);
    transfers.server().check();
}

#[test]
fn windows_close_before_the_memory_is_full() {
    let mut transfers = Transfers::new(&config());
    let senders = transfers.open(8, 1);
    for _ in 0..20 {
        for &index in &senders {
            transfers.write(index, false, MIB);
        }
        transfers.wait(Span::from_ms(300));
    }
    let memory = transfers.server().memory().expect("a limit");
    assert!(memory.largest_user > LIMIT / 3, "{memory:?}");
    let others = transfers.open(2, 2);
    transfers.finish(&others, false, 2 * MIB);
    assert_eq!(transfers.server().stats().refused.get(Refusal::NoMemory), 0);
    transfers.finish(&senders, false, MIB);
    transfers.server().check();
}

#[test]
fn data_beyond_scarce_memory_is_refused_and_arrives_later() {
    let mut transfers = Transfers::new(&Config {
        initial_window_segments: 600,
        ..config()
    });
    // While the server reads all data at once, it offers a large window to each connection. Then all connections use their windows.
    let senders = transfers.open(40, 1);
    transfers.finish(&senders, false, MIB / 2);
    for &index in &senders {
        transfers.write(index, false, MIB);
    }
    transfers.exchange();
    let refused = transfers.server().stats().refused.get(Refusal::NoMemory);
    assert!(refused > 100, "{refused} segments refused");
    let others = transfers.open(1, 2);
    transfers.finish(&others, false, MIB / 4);
    transfers.finish(&senders, false, MIB);
    transfers.server().check();
}

#[test]
fn short_segments_take_no_more_memory_than_they_count_for() {
    for holes in [false, true] {
        let mut transfers = Transfers::new(&config());
        let only = transfers.open(1, 1)[0];
        let [_, conn] = transfers.conns[only];
        transfers.write(only, false, 1);
        let now = transfers.pair.now;
        let [client, server] = &mut transfers.pair.ends;
        let (_, first) = client.poll_transmit(now).expect("a byte");
        let before = in_use();
        for at in 0..20_000 {
            let mut segment = first.clone();
            segment.header.seq = first.header.seq + at;
            segment.payload = [Bytes::copy_from_slice(&Pattern::new(0).piece(at.into(), 1))]
                .into_iter()
                .collect();
            // Every other segment of the first 2,000 is lost.
            if !holes || at >= 2_000 || at % 2 == 1 {
                server.handle_segment(now, segment);
            }
            while server.poll_transmit(now).is_some() {}
        }
        let held = in_use() - before;
        let counted = server.memory().expect("a limit").held;
        assert!(held < counted, "{held} in use, {counted} counted");
        assert!(counted < 600_000, "{counted} counted");
        server.check();
        if !holes {
            let mut read = 0;
            while let Some(piece) = server.read(conn, 1 << 16) {
                Pattern::new(0).check(read, &piece);
                read += piece.len() as u64;
            }
            assert_eq!(read, 20_000);
        }
    }
}
