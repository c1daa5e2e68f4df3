//! A server (kernel and NIC firmware), clients, and a network between them that loses, delays, reorders and duplicates.
//! Everything that happens is drawn from one seed; every invariant is checked after every event.

use crate::bounds::BoundsMeter;
use crate::tcp::tcp_config;
use baton_testkit::{Network, Random, endpoint};

use baton_bus::handoff::{ToHost, ToNic};
use baton_host::{
    Config, FileContent, Kernel, Mode, NicId, Ready, Receive, SelectionConfig, SocketId, Sockets,
};
use baton_nic::{Firmware, LoadControl, Relief, Scheduler};
use baton_tcp::{CloseReason, ConnId, Event, Segment, Stack};
use baton_wire::{Flow, Span, Symbolic, Time};
use std::collections::VecDeque;

const PORT: u16 = 80;
/// Work done without all connections getting done is a deadlock.
const MOST_EVENTS: u32 = 400_000;

/// Then it is enough: while a connection is on its way it keeps few packets, so that one that never rests starves.
const MOST_MOVES: u32 = 1000;

/// What one end of a connection is to do and has done.
#[derive(Debug, Default)]
struct End {
    /// Bytes to write in all.
    total: u64,
    written: u64,
    read: u64,
    ended: bool,
    closed: bool,
}

/// A client's connection and the server's socket for it.
#[derive(Debug)]
struct Pair {
    conn: Option<ConnId>,
    socket: Option<SocketId>,
    client: End,
    server: End,
    /// The client closes its end for writing as soon as it has written all.
    half_close: bool,
    /// The server closes when it has read and written all, not only when the client has closed.
    server_first: bool,
    /// The client gives up when it has read so much.
    abort_at: Option<u64>,
    /// How it ended, as the client saw it.
    outcome: Option<CloseReason>,
}

/// Everything.
pub struct World {
    pub kernel: Kernel<Symbolic>,
    firmware: Firmware<Symbolic>,
    client: Stack<Symbolic>,
    to_server: Network<Segment<Symbolic>>,
    to_client: Network<Segment<Symbolic>>,
    /// The rings between host and NIC.
    descriptors: VecDeque<ToNic<Symbolic>>,
    ring: VecDeque<ToHost<Symbolic>>,
    pairs: Vec<Pair>,
    random: Random,
    now: Time,
    /// Moves (handoff or restore) asked for, per thousand events.
    moves_per_mille: u64,
    moves_left: u32,
    ready: Vec<Ready>,
}

fn host_config(random: &mut Random) -> Config {
    let selection = match random.below(5) {
        0 => SelectionConfig::Fcfs,
        1 => SelectionConfig::Never,
        2 => SelectionConfig::Alternate {
            enqueues: 1 + random.below(4) as u32,
        },
        _ => SelectionConfig::Threshold {
            enqueues: random.below(5) as u32,
        },
    };
    Config {
        backlog: 1 + random.below(4) as u32,
        send_low_water_bytes: 1 + random.below(3000) as u32,
        mbufs: if random.percent(20) { 60 } else { 100_000 },
        clusters: if random.percent(20) { 30 } else { 100_000 },
        hash_buckets: 16,
        receive_ring_entries: 4,
        transmit_ring_entries: 4,
        transmit_queue_entries: if random.percent(20) { 8 } else { 10_000 },
        selection,
        handles: 1 + random.below(6) as u32,
        deferred_packets: 1 + random.below(20) as u32,
        post_receive_bytes: 1 + random.below(20_000) as u32,
        received_bytes: random.below(20_000) as u32,
        relief: random.percent(80),
        ..Config::default()
    }
}

fn nic_config(random: &mut Random) -> baton_nic::Config {
    baton_nic::Config {
        hard_limit: random.below(6) as u32,
        scheduler: if random.percent(50) {
            Scheduler::Fcfs
        } else {
            Scheduler::HostFirst
        },
        load_control: LoadControl {
            enabled: random.percent(30),
            high_water_packets: 4,
            low_water_packets: 2,
            relief: if random.percent(50) {
                Relief::Active
            } else {
                Relief::Passive
            },
            ..LoadControl::default()
        },
        memory_kib: if random.percent(20) { 16 } else { 1024 },
        acknowledge_bytes: 1 + random.below(10_000) as u32,
        ..baton_nic::Config::default()
    }
}

impl World {
    /// A world in which everything is drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let tcp = tcp_config(random);
        let mut kernel = Kernel::new(host_config(random), tcp.clone(), random.draw());
        kernel.listen(endpoint(1, PORT));
        let nic = nic_config(random);
        let known = random.percent(50);
        let connections = if known { nic.hard_limit } else { u32::MAX };
        kernel.attach_nic(endpoint(1, PORT).addr, connections);
        let firmware = Firmware::new(nic, tcp, random.draw());
        let client_tcp = tcp_config(random);
        let mut client = Stack::new(client_tcp, random.draw());
        let lossy = random.percent(60);
        let mut network = || Network {
            frames: Vec::new(),
            loss_percent: if lossy { random.below(15) } else { 0 },
            duplicate_percent: if lossy { random.below(10) } else { 0 },
            most_delay_us: 1 + random.below(300),
        };
        let (to_server, to_client) = (network(), network());
        let mut pairs = Vec::new();
        for number in 0..1 + random.below(4) {
            let flow = Flow {
                local: endpoint(2, 1000 + number as u16),
                remote: endpoint(1, PORT),
            };
            let conn = client
                .connect(Time::ZERO, flow)
                .expect("the four-tuple is free");
            pairs.push(Pair::new(conn, random));
        }
        Self {
            kernel,
            firmware,
            client,
            to_server,
            to_client,
            descriptors: VecDeque::new(),
            ring: VecDeque::new(),
            pairs,
            moves_per_mille: random.below(150),
            moves_left: MOST_MOVES,
            random: random.clone(),
            now: Time::ZERO,
            ready: Vec::new(),
        }
    }

    /// Runs until all connections are over; then asserts that nothing was lost.
    pub fn run(&mut self) {
        self.client_settles();
        for _ in 0..MOST_EVENTS {
            self.event();
            if self.is_over() {
                return self.assert_complete();
            }
        }
        panic!(
            "stuck at {:?}: {:#?}, {:#?}",
            self.now,
            self.pairs,
            self.kernel.stats()
        );
    }

    fn is_over(&self) -> bool {
        let clients = self.pairs.iter().all(|pair| pair.outcome.is_some());
        clients && self.kernel.socket_ids().next().is_none() && self.firmware.connections() == 0
    }

    fn assert_complete(&self) {
        for pair in &self.pairs {
            if pair.abort_at.is_some() {
                continue;
            }
            assert_eq!(pair.outcome, Some(CloseReason::Normal), "{pair:#?}");
            assert_eq!(pair.client.read, pair.server.total, "{pair:#?}");
            assert_eq!(pair.server.read, pair.client.total, "{pair:#?}");
        }
        let stats = self.kernel.stats();
        assert_eq!(stats.closed, stats.opened);
        assert_eq!(
            self.kernel.connections(),
            baton_host::Connections::default()
        );
    }

    /// The kernel has done something: its descriptors go to its ring.
    fn kernel_settles(&mut self) {
        while let Some((_, descriptor)) = self.kernel.poll_descriptor() {
            self.descriptors.push_back(descriptor);
        }
        self.kernel.check();
    }

    /// One thing happens, or time passes.
    fn event(&mut self) {
        if self.moves_left > 0 && self.random.below(1000) < self.moves_per_mille {
            self.moves_left -= 1;
            self.ask_for_a_move();
        }
        let acted = match self.random.below(7) {
            0 => self.frame_to_server(),
            1 => self.frame_to_client(),
            2 => self.nic_works(),
            3 => self.descriptor_to_nic(),
            4 => self.upcall_to_host(),
            5 => self.server_acts(),
            _ => self.client_acts(),
        };
        if !acted && self.random.percent(20) {
            self.pass_time();
        }
    }

    /// Time goes on to the next thing that is due, or a little.
    fn pass_time(&mut self) {
        let frames = [self.to_server.next_arrival(), self.to_client.next_arrival()];
        let timers = [
            self.kernel.poll_timeout(),
            self.firmware.poll_timeout(),
            self.client.poll_timeout(),
        ];
        let due = frames.into_iter().chain(timers).flatten().min();
        let little = self.now + Span::from_us(1 + self.random.below(20));
        let busy = !self.ring.is_empty()
            || !self.descriptors.is_empty()
            || self.firmware.has_work()
            || self.kernel.has_ready();
        self.now = match due {
            Some(due) if !busy => due.max(self.now),
            _ => little,
        };
        if self
            .kernel
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.kernel.handle_timeouts(self.now, &mut BoundsMeter);
            self.kernel_settles();
        }
        self.firmware.handle_timeouts(self.now);
        if self
            .client
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.client.handle_timeouts(self.now);
            self.client_settles();
        }
    }

    fn frame_to_server(&mut self) -> bool {
        let Some(segment) = self.to_server.receive(self.now) else {
            return false;
        };
        // A full queue drops it, which is one more loss.
        let _ = self.firmware.handle_frame(self.now, segment);
        self.firmware.check();
        true
    }

    fn frame_to_client(&mut self) -> bool {
        let Some(segment) = self.to_client.receive(self.now) else {
            return false;
        };
        self.client.handle_segment(self.now, segment);
        self.client_settles();
        true
    }

    fn nic_works(&mut self) -> bool {
        let worked = self
            .firmware
            .poll_work(self.now, &mut baton_nic::NoMeter)
            .is_some();
        while let Some(frame) = self.firmware.poll_frame() {
            self.to_client
                .send(self.now, frame.segment, &mut self.random);
        }
        while let Some(upcall) = self.firmware.poll_upcall() {
            self.ring.push_back(upcall.item);
        }
        if worked {
            self.firmware.check();
        }
        worked
    }

    fn descriptor_to_nic(&mut self) -> bool {
        let Some(descriptor) = self.descriptors.pop_front() else {
            return false;
        };
        let taken = self.firmware.handle_descriptor(self.now, descriptor);
        assert!(
            taken.is_ok(),
            "the NIC's queues are long enough for this test"
        );
        true
    }

    fn upcall_to_host(&mut self) -> bool {
        let Some(item) = self.ring.pop_front() else {
            return false;
        };
        let (nic, m) = (NicId(0), &mut BoundsMeter);
        self.kernel.handle_interrupt(m);
        self.kernel.handle_upcall(self.now, nic, item, m);
        self.kernel_settles();
        true
    }

    /// Some connection is to change its owner, whatever it is doing.
    fn ask_for_a_move(&mut self) {
        let ids: Vec<_> = self.kernel.socket_ids().collect();
        if ids.is_empty() {
            return;
        }
        let id = ids[self.random.below(ids.len() as u64) as usize];
        match self.kernel.mode(id) {
            Some(Mode::Host(_)) => {
                let _ = self.kernel.hand_off(self.now, id, &mut BoundsMeter);
            }
            _ => {
                self.kernel.restore(id, &mut BoundsMeter);
            }
        }
        self.kernel_settles();
    }

    // --- the server's application ---

    fn server_acts(&mut self) -> bool {
        if self.kernel.has_ready() {
            let mut ready = std::mem::take(&mut self.ready);
            let max = 1 + self.random.below(4) as usize;
            self.kernel.wait(&mut BoundsMeter, &mut ready, max);
            for event in ready.drain(..) {
                self.server_handles(event);
                self.kernel_settles();
            }
            self.ready = ready;
            return true;
        }
        // Now and then it does something that no event asked for.
        let number = self.random.below(self.pairs.len() as u64) as usize;
        if self.random.percent(10) && self.pairs[number].socket.is_some() {
            self.server_goes_on(number);
            self.kernel_settles();
        }
        false
    }

    fn server_handles(&mut self, event: Ready) {
        let mut meter = BoundsMeter;
        let mut sockets = self.kernel.sockets(self.now, &mut meter);
        match event {
            Ready::Acceptable => {
                let Some(id) = sockets.accept() else { return };
                let port = self
                    .kernel
                    .flow(id)
                    .expect("an accepted socket")
                    .remote
                    .port;
                let pair = &mut self.pairs[(port - 1000) as usize];
                assert_eq!(pair.socket, None, "one socket a connection");
                pair.socket = Some(id);
                self.server_goes_on((port - 1000) as usize);
            }
            Ready::Readable(id) | Ready::Writable(id) => {
                let number = self.pairs.iter().position(|pair| pair.socket == Some(id));
                if let Some(number) = number {
                    self.server_goes_on(number);
                }
            }
        }
    }

    /// Reads all there is and writes what fits, in random portions.
    fn server_goes_on(&mut self, number: usize) {
        let pair = &mut self.pairs[number];
        let id = pair.socket.expect("an open socket");
        let random = &mut self.random;
        let mut meter = BoundsMeter;
        let mut sockets = self.kernel.sockets(self.now, &mut meter);
        let mut gone = false;
        loop {
            let unread = sockets.unread(id);
            match sockets.receive(id, 1 + random.below(4000) as usize) {
                Receive::Data(data) => {
                    assert!(unread.len >= data.len as usize);
                    assert_eq!(
                        (data.source, data.offset),
                        (number as u64 * 2, pair.server.read)
                    );
                    pair.server.read += u64::from(data.len);
                }
                Receive::WouldBlock => {
                    assert_eq!((unread.len, unread.ended), (0, false));
                    break;
                }
                Receive::EndOfStream => {
                    assert!(unread.ended);
                    assert!(pair.abort_at.is_some() || pair.server.read == pair.client.total);
                    pair.server.ended = true;
                    break;
                }
                Receive::Gone => {
                    gone = true;
                    break;
                }
            }
        }
        if random.percent(10) {
            sockets.set_cork(id, random.percent(50));
        }
        while !gone && pair.server.written < pair.server.total {
            let len = (1 + random.below(6000)).min(pair.server.total - pair.server.written) as u32;
            let offset = pair.server.written;
            let data = Symbolic {
                source: number as u64 * 2 + 1,
                offset,
                len,
            };
            let sent = if random.percent(50) {
                sockets.send(id, data)
            } else {
                sockets.send_file(
                    id,
                    FileContent::new(baton_host::FileId(0), offset, data.len.into()),
                    data,
                )
            };
            match sent {
                Ok(taken) => pair.server.written += taken as u64,
                Err(_) => gone = true,
            }
            if sent.is_ok_and(|taken| taken < len as usize) {
                break;
            }
        }
        if pair.server.written == pair.server.total {
            sockets.set_cork(id, false);
        }
        let all = pair.server.written == pair.server.total && pair.server.read == pair.client.total;
        let may_close = pair.server.ended || pair.server_first;
        // Nobody repeats a lost reset, so that only a time limit ends a connection whose client has given up.
        let given_up = pair.abort_at.is_some() && (pair.server.ended || pair.outcome.is_some());
        if gone || (all && may_close) || given_up {
            assert!(
                !gone || pair.abort_at.is_some() || all,
                "{number} is gone early"
            );
            sockets.close(id);
            pair.socket = None;
            pair.server.closed = true;
        }
    }

    // --- clients ---

    fn client_acts(&mut self) -> bool {
        let number = self.random.below(self.pairs.len() as u64) as usize;
        let pair = &mut self.pairs[number];
        let Some(conn) = pair.conn else { return false };
        if pair.abort_at.is_some_and(|at| pair.client.read >= at) {
            self.client.abort(conn);
            self.client_settles();
            return true;
        }
        if pair.client.closed || pair.client.written == pair.client.total {
            return false;
        }
        let len = (1 + self.random.below(5000)).min(pair.client.total - pair.client.written) as u32;
        let data = Symbolic {
            source: number as u64 * 2,
            offset: pair.client.written,
            len,
        };
        let taken = self.client.write(conn, data).unwrap_or(0);
        pair.client.written += taken as u64;
        if pair.half_close && pair.client.written == pair.client.total {
            pair.client.closed = true;
            self.client.shutdown(conn);
        }
        self.client_settles();
        taken > 0
    }

    fn client_settles(&mut self) {
        loop {
            let mut idle = true;
            while let Some((conn, event)) = self.client.poll_event() {
                idle = false;
                self.client_event(conn, event);
            }
            while let Some((_, segment)) = self.client.poll_transmit(self.now) {
                idle = false;
                self.to_server.send(self.now, segment, &mut self.random);
            }
            if idle {
                return self.client.check();
            }
        }
    }

    fn client_event(&mut self, conn: ConnId, event: Event) {
        let number = self
            .pairs
            .iter()
            .position(|pair| pair.conn == Some(conn))
            .expect("a client's");
        let pair = &mut self.pairs[number];
        match event {
            Event::Readable => {
                while let Some(data) = self.client.read(conn, 1 + self.random.below(3000) as usize)
                {
                    let expected = (number as u64 * 2 + 1, pair.client.read);
                    assert_eq!((data.source, data.offset), expected, "connection {number}");
                    pair.client.read += u64::from(data.len);
                    self.client.consume(conn, data.len as usize);
                }
            }
            Event::PeerClosed => {
                let all = pair.client.read == pair.server.total;
                assert!(
                    all || pair.abort_at.is_some(),
                    "connection {number} ended early"
                );
                pair.client.ended = true;
            }
            Event::Closed(reason) => {
                pair.conn = None;
                pair.outcome = Some(reason);
                return;
            }
            Event::Connected | Event::Acknowledged(_) | Event::Acceptable(_) => {}
        }
        let done =
            pair.client.written == pair.client.total && pair.client.read == pair.server.total;
        if done && !pair.client.closed {
            pair.client.closed = true;
            self.client.close(conn);
        }
    }
}

impl Pair {
    fn new(conn: ConnId, random: &mut Random) -> Self {
        let mut end = || End {
            total: random.below(40_000) * random.below(2),
            ..End::default()
        };
        let (client, server) = (end(), end());
        let abort_at = random.percent(10).then(|| random.below(server.total + 1));
        Self {
            conn: Some(conn),
            socket: None,
            client,
            server,
            half_close: random.percent(50),
            server_first: random.percent(50),
            abort_at,
            outcome: None,
        }
    }
}
