//! Connections in both directions, on which both ends write and read at random.

use super::machine::{Machine, PORT, endpoint};
use super::timed::Timed;
use super::{Application, Summary, run};
use baton_bus::link::MemoryHost;
use baton_host::adapter::Calls;
use baton_host::{FileContent, FileId, Ready, Receive, SocketId, Sockets};
use baton_tcp::{CloseReason, ConnId, Event, ListenerId, State};
use baton_testkit::{Random, for_each_seed, symbolic};
use baton_wire::{Flow, Symbolic};

/// First port on which peers listen: one port for each pair.
const PEER_PORTS: u16 = 2000;

/// Number of files. On each connection, the host sends one of them, repeatedly.
const FILES: u64 = 3;
/// Length of each file.
const FILE_BYTES: u64 = 7000;

/// Goal and progress of one end of a connection.
#[derive(Debug, Default)]
struct End {
    /// Total number of bytes to write.
    total: u64,
    written: u64,
    read: u64,
    closed: bool,
}

/// A connection: the peer's end and the host's.
#[derive(Debug)]
struct Pair {
    /// The file that the host sends.
    file: FileId,
    revision: u32,
    /// The peer's port, if it opens the connection.
    port: u16,
    /// The listener to which the host opens the connection.
    listener: Option<ListenerId>,
    conn: Option<ConnId>,
    socket: Option<SocketId>,
    peer: End,
    host: End,
    peer_half_closes: bool,
    host_half_closes: bool,
    host_closes_first: bool,
    /// Whether the host requests timestamps.
    wants_times: bool,
    /// The timestamps that the host has requested.
    timed: Option<Timed>,
    /// Number of bytes read after which the peer aborts.
    peer_aborts_at: Option<u64>,
    /// Number of bytes read after which the host aborts.
    host_aborts_at: Option<u64>,
    /// Whether the connection may fail.
    excused: bool,
    outcome: Option<CloseReason>,
    /// Whether the host's end is closed.
    host_done: bool,
}

#[derive(Debug)]
pub struct Exchange {
    pairs: Vec<Pair>,
    /// How often each file has changed.
    revisions: [u32; FILES as usize],
    next_port: u16,
    left: u64,
}

impl Exchange {
    pub fn new(random: &mut Random) -> Self {
        Self {
            pairs: Vec::new(),
            revisions: [0; FILES as usize],
            next_port: 1000,
            left: 1 + random.below(5),
        }
    }

    /// Opens another connection, from one side or the other.
    fn open(&mut self, machine: &mut Machine) {
        let by_host = machine.random.percent(30);
        let mut pair = Pair::new(&mut machine.random);
        let file = machine.random.below(FILES) as u32;
        let revision = &mut self.revisions[file as usize];
        *revision += u32::from(machine.random.percent(20));
        (pair.file, pair.revision) = (FileId(file), *revision);
        let number = self.pairs.len();
        if by_host {
            let port = PEER_PORTS + number as u16;
            let remote = endpoint(2, port);
            match machine.os.connect(machine.now, remote) {
                Ok(socket) => pair.socket = Some(socket),
                // All sockets are in use.
                Err(_) => return,
            }
            pair.listener = Some(machine.peers.listen(remote, 1));
            machine.host_rings = true;
        }
        self.pairs.push(pair);
        if !by_host {
            self.connect(machine, number);
        }
        self.left -= 1;
    }

    /// Lets a peer open a connection, or open it again after a refusal.
    fn connect(&mut self, machine: &mut Machine, number: usize) {
        let port = self.next_port;
        self.next_port += 1;
        let flow = Flow {
            local: endpoint(2, port),
            remote: endpoint(1, PORT),
        };
        let pair = &mut self.pairs[number];
        pair.port = port;
        pair.peer.written = 0;
        pair.peer.closed = false;
        pair.conn = machine.peers.connect(machine.now, flow);
    }

    fn accept(&mut self, machine: &mut Machine) {
        // Leave some connections in the queue; the next wait reports them again.
        for _ in 0..1 + machine.random.below(3) {
            let mut calls = machine.os.calls(machine.now, &mut machine.host);
            let Some(socket) = calls.accept() else {
                return;
            };
            let remote = machine.os.peer(socket).expect("a connection");
            let number = self.pairs.iter().position(|pair| pair.port == remote.port);
            match number {
                Some(number)
                    if self.pairs[number].socket.is_none() && !self.pairs[number].host_done =>
                {
                    self.pairs[number].socket = Some(socket);
                    self.host_goes_on(machine, number);
                }
                // A connection that the peer has already given up.
                _ => machine.os.close(machine.now, socket),
            }
        }
    }

    /// Lets the host read all data and write as much as fits, in random portions.
    fn host_goes_on(&mut self, machine: &mut Machine, number: usize) {
        let pair = &mut self.pairs[number];
        let Some(socket) = pair.socket else { return };
        let (now, random) = (machine.now, &mut machine.random);
        if pair.wants_times && pair.timed.is_none() && random.percent(50) {
            pair.timed = Timed::begin(now, &mut machine.os, socket, pair.host.written);
        }
        let mut calls = machine.os.calls(now, &mut machine.host);
        let (mut gone, ended) = pair.host_reads(number, socket, &mut calls, random);
        gone |= pair.host_writes(socket, &mut calls, random).is_err();
        if let Some(timed) = &mut pair.timed {
            timed.check(now, calls.os(), socket);
        }
        let wrote_all = pair.host.written == pair.host.total;
        if wrote_all && !pair.host.closed && !gone {
            calls.set_cork(socket, false);
            if pair.host_half_closes {
                pair.host.closed = true;
                calls.os().shutdown(machine.now, socket);
            }
        }
        let aborts = pair.host_aborts_at.is_some_and(|at| pair.host.read >= at);
        let all = wrote_all && pair.host.read == pair.peer.total;
        let may_close = ended || pair.host_closes_first;
        if gone {
            let why = machine.os.error_of(socket);
            assert!(
                pair.excused || pair.peer_aborts_at.is_some() || all,
                "connection {number} ended early: {why:?}"
            );
        }
        if aborts {
            pair.excused = true;
            machine.os.abort(machine.now, socket);
        } else if gone || all && may_close || ended && pair.excused {
            assert!(all || pair.excused || pair.peer_aborts_at.is_some());
            machine.os.close(machine.now, socket);
        } else {
            return;
        }
        pair.socket = None;
        pair.host_done = true;
        machine.host_rings = true;
    }

    fn peer_closes_when_done(&mut self, machine: &mut Machine, number: usize) {
        let pair = &mut self.pairs[number];
        let done = pair.peer.written == pair.peer.total && pair.peer.read == pair.host.total;
        if let Some(conn) = pair.conn.filter(|_| done && !pair.peer.closed)
            && machine.peers.state(conn) != State::SynSent
        {
            pair.peer.closed = true;
            machine.peers.close(conn);
        }
    }

    fn peer_reads(&mut self, machine: &mut Machine, number: usize, conn: ConnId) {
        let pair = &mut self.pairs[number];
        let peers = &mut machine.peers;
        while let Some(data) = peers.read(conn, 1 + machine.random.below(3000) as usize) {
            let expected = (pair.source(), pair.peer.read % FILE_BYTES);
            assert_eq!((data.source, data.offset), expected, "connection {number}");
            pair.peer.read += u64::from(data.len);
            peers.consume(conn, data.len as usize);
        }
    }
}

impl Pair {
    fn new(random: &mut Random) -> Self {
        let mut end = || End {
            total: random.below(30_000) * random.below(2),
            ..End::default()
        };
        let (peer, host) = (end(), end());
        let peer_aborts_at = random.percent(10).then(|| random.below(host.total + 1));
        let host_aborts_at = random.percent(5).then(|| random.below(peer.total + 1));
        Self {
            port: 0,
            file: FileId(0),
            revision: 0,
            listener: None,
            conn: None,
            socket: None,
            peer,
            host,
            peer_half_closes: random.percent(50),
            host_half_closes: random.percent(30),
            host_closes_first: random.percent(50),
            wants_times: random.percent(30),
            timed: None,
            peer_aborts_at,
            host_aborts_at,
            excused: false,
            outcome: None,
            host_done: false,
        }
    }

    fn is_over(&self) -> bool {
        self.host_done && self.outcome.is_some()
    }

    /// Lets both sides abort the connection: a lost reset is not repeated, and a connection that was never opened does not end by itself.
    fn give_up(&mut self, machine: &mut Machine) {
        if let Some(conn) = self.conn {
            machine.peers.abort(conn);
        } else {
            self.outcome.get_or_insert(CloseReason::Aborted);
        }
        if let Some(socket) = self.socket.take_if(|_| self.outcome.is_some()) {
            machine.os.abort(machine.now, socket);
            machine.host_rings = true;
        }
        self.host_done |= self.socket.is_none();
    }

    /// Reads all data that has arrived; returns whether the connection is gone, and whether the stream has ended.
    fn host_reads(
        &mut self,
        number: usize,
        socket: SocketId,
        calls: &mut impl Sockets<Symbolic>,
        random: &mut Random,
    ) -> (bool, bool) {
        loop {
            let unread = calls.unread(socket);
            match calls.receive(socket, 1 + random.below(4000) as usize) {
                Receive::Data(data) => {
                    assert!(unread.len >= data.len as usize);
                    let expected = (number as u64 * 2, self.host.read);
                    assert_eq!((data.source, data.offset), expected, "connection {number}");
                    self.host.read += u64::from(data.len);
                }
                Receive::WouldBlock => {
                    assert_eq!((unread.len, unread.ended), (0, false));
                    return (false, false);
                }
                Receive::EndOfStream => {
                    assert!(unread.ended);
                    let all = self.host.read == self.peer.total;
                    assert!(
                        all || self.excused || self.peer_aborts_at.is_some(),
                        "connection {number} ended early"
                    );
                    return (false, true);
                }
                Receive::Gone => return (true, true),
            }
        }
    }

    fn host_writes(
        &mut self,
        socket: SocketId,
        calls: &mut Calls<'_, Symbolic, MemoryHost<Symbolic>>,
        random: &mut Random,
    ) -> Result<(), baton_host::Gone> {
        if random.percent(20) {
            calls.set_cork(socket, random.percent(50));
        }
        while self.host.written < self.host.total {
            let offset = self.host.written % FILE_BYTES;
            let most = (self.host.total - self.host.written).min(FILE_BYTES - offset);
            let len = (1 + random.below(6000)).min(most);
            let taken = match random.percent(30) {
                true => self.host_writes_timed(socket, calls, random, (offset, len))?,
                false => self.host_writes_file(socket, calls, offset, len)?,
            };
            self.host.written += taken;
            if taken < len {
                break;
            }
        }
        Ok(())
    }

    /// Sends with random requests for timestamps; returns the number of bytes.
    fn host_writes_timed(
        &mut self,
        socket: SocketId,
        calls: &mut Calls<'_, Symbolic, MemoryHost<Symbolic>>,
        random: &mut Random,
        (offset, len): (u64, u64),
    ) -> Result<u64, baton_host::Gone> {
        let data = symbolic(self.source(), offset, len as u32);
        let Some(timed) = &mut self.timed else {
            return Ok(calls.send(socket, data)? as u64);
        };
        timed.ask(calls.os(), socket, random);
        let taken = calls.send(socket, data)?;
        let written = self.host.written + taken as u64;
        timed.wrote(calls.now(), calls.os(), socket, (written, taken));
        Ok(taken as u64)
    }

    /// Returns the source of the symbolic bytes that the host sends.
    fn source(&self) -> u64 {
        u64::from(self.file.0 << 16 | self.revision) * 2 + 1
    }

    /// Sends content of a file, from the adapter's cache where possible; returns the number of bytes.
    fn host_writes_file(
        &self,
        socket: SocketId,
        calls: &mut impl Sockets<Symbolic>,
        offset: u64,
        len: u64,
    ) -> Result<u64, baton_host::Gone> {
        let content = FileContent {
            file: self.file,
            revision: self.revision,
            file_len: FILE_BYTES,
            offset,
            len,
        };
        let cached = calls.send_cached(socket, &content)?;
        let rest = content.after(cached.taken);
        if rest.len == 0 || !cached.has_room {
            return Ok(cached.taken);
        }
        let data = symbolic(self.source(), rest.offset, rest.len as u32);
        Ok(cached.taken + calls.send_file(socket, rest, data)? as u64)
    }
}

impl Application for Exchange {
    fn start(&mut self, machine: &mut Machine) {
        machine.listen();
        self.open(machine);
    }

    fn handle_ready(&mut self, machine: &mut Machine, ready: Ready) {
        match ready {
            Ready::Acceptable => self.accept(machine),
            Ready::Readable(socket) | Ready::Writable(socket) => {
                let is_listener = machine.listeners.contains(&socket);
                let error = machine.os.error_of(socket);
                assert!(!is_listener, "the listener failed: {error:?}");
                let number = self
                    .pairs
                    .iter()
                    .position(|pair| pair.socket == Some(socket));
                if let Some(number) = number {
                    self.host_goes_on(machine, number);
                }
            }
        }
    }

    fn handle_peer_event(&mut self, machine: &mut Machine, conn: ConnId, event: Event) {
        if let Event::Acceptable(listener) = event {
            let conn = machine.peers.accept(listener);
            let pair = self
                .pairs
                .iter_mut()
                .find(|pair| pair.listener == Some(listener));
            if let Some(pair) = pair
                && pair.conn.is_none()
            {
                pair.conn = conn;
            }
            return;
        }
        let Some(number) = self.pairs.iter().position(|pair| pair.conn == Some(conn)) else {
            return;
        };
        if event == Event::Readable {
            self.peer_reads(machine, number, conn);
        }
        let pair = &mut self.pairs[number];
        match event {
            Event::PeerClosed => {
                let all = pair.peer.read == pair.host.total;
                assert!(all || pair.excused, "connection {number} ended early");
            }
            Event::Closed(reason) => {
                pair.conn = None;
                // There is no listener yet, or the host is between two adapters.
                if reason == CloseReason::Refused && !pair.excused {
                    return self.connect(machine, number);
                }
                pair.outcome = Some(reason);
                if !(pair.excused || pair.peer_aborts_at.is_some()) {
                    assert_eq!(reason, CloseReason::Normal, "{pair:#?}");
                    assert_eq!(pair.peer.read, pair.host.total, "{pair:#?}");
                }
                return;
            }
            _ => {}
        }
        self.peer_closes_when_done(machine, number);
    }

    fn act(&mut self, machine: &mut Machine) -> bool {
        if self.left > 0 && machine.random.percent(5) {
            self.open(machine);
        }
        if self.pairs.is_empty() {
            return false;
        }
        let number = machine.random.below(self.pairs.len() as u64) as usize;
        let pair = &mut self.pairs[number];
        if pair.excused && machine.random.percent(5) {
            pair.give_up(machine);
        }
        let Some(conn) = pair.conn else { return false };
        if pair.outcome.is_none() && machine.random.percent(5) {
            self.peer_closes_when_done(machine, number);
        }
        let pair = &mut self.pairs[number];
        if pair.peer_aborts_at.is_some_and(|at| pair.peer.read >= at) {
            pair.excused = true;
            machine.peers.abort(conn);
            return true;
        }
        if pair.peer.closed || pair.peer.written == pair.peer.total {
            return false;
        }
        let left = pair.peer.total - pair.peer.written;
        let len = (1 + machine.random.below(5000)).min(left) as u32;
        let data = symbolic(number as u64 * 2, pair.peer.written, len);
        let taken = machine.peers.write(conn, data).unwrap_or(0);
        pair.peer.written += taken as u64;
        if pair.peer_half_closes && pair.peer.written == pair.peer.total {
            pair.peer.closed = true;
            machine.peers.shutdown(conn);
        }
        taken > 0
    }

    fn handle_loss(&mut self, _machine: &mut Machine) {
        for pair in &mut self.pairs {
            pair.excused |= !pair.is_over();
        }
        self.left += 2;
    }

    fn is_done(&self, _machine: &Machine) -> bool {
        self.left == 0 && self.pairs.iter().all(Pair::is_over)
    }
}

fn exchange(seed: u64) -> Summary {
    let mut machine = Machine::new(seed);
    let mut application = Exchange::new(&mut machine.random);
    run(machine, &mut application)
}

#[test]
fn every_byte_arrives_and_every_request_is_answered() {
    let runs = for_each_seed(400, exchange);
    if runs.len() < 300 {
        return;
    }
    let reached = |name, count: fn(&Summary) -> u64| {
        let times: u64 = runs.iter().map(count).sum();
        assert!(
            times > 20,
            "the runs reach {name} too rarely: {times} times"
        );
    };
    reached("accepts", |run| run.host.accepted);
    reached("connects", |run| run.host.connected);
    reached("data in descriptors", |run| run.host.inline_sends);
    reached("cumulative completion", |run| run.host.completed_by_later);
    reached("sends from the cache", |run| run.host.cached_sends);
    reached("corks that fire", |run| run.host.corks_fired);
    reached("full rings", |run| run.host.no_room.ring);
    reached("few buffers", |run| run.host.no_room.buffers);
    reached("many sends", |run| run.host.no_room.sends);
    reached("times", |run| run.host.times_told);
    reached("lost links", |run| run.host.links_lost);
    reached("abnormal ends", |run| run.host.ended_abnormally);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..20 {
        assert_eq!(exchange(seed), exchange(seed), "seed {seed}");
    }
}
