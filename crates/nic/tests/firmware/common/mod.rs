//! A small world around the firmware: peers with the plain TCP engine, a wire, a bus, and a host that offloads.
#![allow(dead_code)] // each test file uses its part of it

pub mod host;

use host::Host;

use baton_bus::handoff::ToNic;
use baton_nic::{Config, Firmware, NoMeter, Work};
use baton_tcp::{ConnId, Event, Segment, Stack};
use baton_wire::{Endpoint, Flow, Payload, Span, Symbolic, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

pub const SERVER: Endpoint = Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);

pub fn client(port: u16) -> Endpoint {
    Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 1024 + port)
}

/// Source of what the peer of connection `n` writes.
pub fn from_peer(n: usize) -> u64 {
    2 * n as u64
}

/// Source of what the host writes on connection `n`.
pub fn from_host(n: usize) -> u64 {
    2 * n as u64 + 1
}

/// Asserts that `data` goes on where `source` stopped, and moves on.
pub fn take_in_order(received: &mut u64, source: u64, data: Symbolic) {
    assert_eq!(
        (data.source, data.offset),
        (source, *received),
        "every byte once and in order"
    );
    *received += data.len() as u64;
}

/// One connection as its client sees it.
#[derive(Debug)]
pub struct Peer {
    pub conn: Option<ConnId>,
    pub connected: bool,
    pub to_write: u64,
    pub written: u64,
    pub received: u64,
    pub shut: bool,
    pub peer_closed: bool,
    pub closed: Option<baton_tcp::CloseReason>,
}

/// Everything, and the time.
pub struct World {
    pub now: Time,
    pub nic: Firmware<Symbolic>,
    pub host: Host,
    pub peer_stack: Stack<Symbolic>,
    pub peers: Vec<Peer>,
    by_conn: FxHashMap<ConnId, usize>,
    pub to_server: VecDeque<Segment<Symbolic>>,
    pub to_clients: VecDeque<Segment<Symbolic>>,
    /// Work done, in order.
    pub work: Vec<Work>,
}

impl World {
    /// `to_write[n]`: bytes that the host and the peer of connection `n` have for each other.
    pub fn new(config: Config, tcp: baton_tcp::Config, to_write: &[(u64, u64)]) -> Self {
        let mut host = Host::new(tcp.clone());
        let mut world = Self {
            now: Time::from_ps(1),
            nic: Firmware::new(config, tcp.clone(), 2),
            peer_stack: Stack::new(tcp, 3),
            peers: Vec::new(),
            by_conn: FxHashMap::default(),
            to_server: VecDeque::new(),
            to_clients: VecDeque::new(),
            work: Vec::new(),
            host: {
                to_write
                    .iter()
                    .for_each(|(host_len, _)| host.expect(*host_len));
                host
            },
        };
        for (n, (_, peer_len)) in to_write.iter().enumerate() {
            let flow = Flow {
                local: client(n as u16),
                remote: SERVER,
            };
            let conn = world
                .peer_stack
                .connect(world.now, flow)
                .expect("no such connection yet");
            world.by_conn.insert(conn, n);
            world.peers.push(Peer {
                conn: Some(conn),
                connected: false,
                to_write: *peer_len,
                written: 0,
                received: 0,
                shut: false,
                peer_closed: false,
                closed: None,
            });
        }
        world.peer_turn();
        world
    }

    pub fn check(&self) {
        self.nic.check();
        self.host.stack.check();
        self.peer_stack.check();
    }

    // --- single steps; each returns whether there was something to do ---

    /// The oldest frame on the wire reaches the NIC.
    pub fn frame_in(&mut self) -> bool {
        let Some(segment) = self.to_server.pop_front() else {
            return false;
        };
        // A drop is the wire's business: TCP sends again.
        let _ = self.nic.handle_frame(self.now, segment);
        true
    }

    /// The oldest frame on the wire reaches the clients.
    pub fn frame_out(&mut self) -> bool {
        let Some(segment) = self.to_clients.pop_front() else {
            return false;
        };
        self.peer_stack.handle_segment(self.now, segment);
        self.peer_turn();
        true
    }

    /// The oldest descriptor of the host reaches the NIC.
    pub fn descriptor(&mut self) -> bool {
        let Some(descriptor) = self.host.to_nic.pop_front() else {
            return false;
        };
        match self.nic.handle_descriptor(self.now, descriptor) {
            Ok(()) => true,
            Err(descriptor) => {
                self.host.to_nic.push_front(descriptor);
                false
            }
        }
    }

    /// The NIC does one piece of work.
    pub fn work(&mut self) -> bool {
        let Some(work) = self.nic.poll_work(self.now, &mut NoMeter) else {
            return false;
        };
        self.work.push(work);
        while let Some(frame) = self.nic.poll_frame() {
            self.to_clients.push_back(frame.segment);
        }
        while let Some(upcall) = self.nic.poll_upcall() {
            self.host.from_nic.push_back(upcall.item);
        }
        true
    }

    /// The host takes its oldest upcall.
    pub fn upcall(&mut self) -> bool {
        self.host.upcall(self.now)
    }

    /// Time passes until the next timer, but at most `limit`.
    pub fn wait(&mut self, limit: Span) {
        let timers = [
            self.nic.poll_timeout(),
            self.host.stack.poll_timeout(),
            self.peer_stack.poll_timeout(),
        ];
        let next = timers.into_iter().flatten().min().unwrap_or(Time::NEVER);
        self.now = self.now.max(next.min(self.now + limit));
        self.nic.handle_timeouts(self.now);
        self.peer_stack.handle_timeouts(self.now);
        self.peer_turn();
        self.host.handle_timeouts(self.now);
    }

    /// The peer of connection `n` writes at most `most` bytes; when all is written it closes its side.
    pub fn peer_write(&mut self, n: usize, most: u64) {
        let peer = &mut self.peers[n];
        let Some(conn) = peer.conn.filter(|_| peer.connected && !peer.shut) else {
            return;
        };
        let len = most.min(peer.to_write - peer.written) as u32;
        let data = Symbolic {
            source: from_peer(n),
            offset: peer.written,
            len,
        };
        if len > 0 {
            peer.written += self
                .peer_stack
                .write(conn, data)
                .expect("not closed for writing") as u64;
        }
        if peer.written == peer.to_write {
            peer.shut = true;
            self.peer_stack.shutdown(conn);
        }
        self.peer_turn();
    }

    /// The peers' stack gets its events and segments out. Peers read at once.
    fn peer_turn(&mut self) {
        while let Some((conn, event)) = self.peer_stack.poll_event() {
            let n = self.by_conn[&conn];
            let peer = &mut self.peers[n];
            match event {
                Event::Connected => peer.connected = true,
                Event::Readable => {
                    while let Some(data) = self.peer_stack.read(conn, usize::MAX) {
                        take_in_order(&mut peer.received, from_host(n), data);
                        self.peer_stack.consume(conn, data.len());
                    }
                }
                Event::PeerClosed => peer.peer_closed = true,
                Event::Closed(reason) => {
                    peer.closed = Some(reason);
                    peer.conn = None;
                    self.by_conn.remove(&conn);
                }
                Event::Acknowledged(_) => {}
                Event::Acceptable(_) => panic!("clients do not listen"),
            }
        }
        while let Some((_, segment)) = self.peer_stack.poll_transmit(self.now) {
            self.to_server.push_back(segment);
        }
    }

    /// The client of connection `n`, which is over, opens another from the same port.
    pub fn connect_again(&mut self, n: usize) {
        let flow = Flow {
            local: client(n as u16),
            remote: SERVER,
        };
        let conn = self
            .peer_stack
            .connect(self.now, flow)
            .expect("the old one is over");
        self.by_conn.insert(conn, n);
        self.peers[n].connected = false;
        self.peers[n].conn = Some(conn);
        self.peer_turn();
    }

    // --- many steps ---

    /// Everything that can go on without an application or a timer does.
    pub fn settle(&mut self) {
        for _ in 0..100_000 {
            let went_on = self.work()
                || self.descriptor()
                || self.upcall()
                || self.frame_in()
                || self.frame_out();
            if !went_on {
                return;
            }
            self.check();
        }
        panic!(
            "an exchange that ends: {:#?} {:#?}",
            self.peers, self.host.sockets
        );
    }

    /// Lets what only waits for a short timer happen, such as delayed acknowledgments.
    pub fn finish_waiting(&mut self) {
        for _ in 0..20 {
            self.wait(Span::from_ms(20));
            self.settle();
        }
    }

    /// Opens all connections.
    pub fn connect(&mut self) {
        self.settle();
        assert!(
            self.peers.iter().all(|peer| peer.connected),
            "nothing is lost yet"
        );
    }

    /// Hands connection `n` off and awaits the answer.
    pub fn hand_off(&mut self, n: usize) {
        self.host.hand_off(self.now, n);
        self.settle();
    }

    /// Lets both applications write, read and close until every connection is over on both sides.
    pub fn finish(&mut self) {
        for _ in 0..2_000 {
            self.settle();
            if self.is_over() {
                return;
            }
            for n in 0..self.peers.len() {
                self.peer_write(n, u64::MAX);
                self.host.write(self.now, n, u64::MAX);
                if self.host.sockets[n].posted < 1 << 16 {
                    self.host.post_receive(n, 1 << 16);
                }
                self.host.consume(n, u32::MAX);
            }
            self.settle();
            if !self.is_over() {
                self.wait(Span::from_secs(100));
            }
        }
        panic!(
            "connections that end: {:#?} {:#?}",
            self.peers, self.host.sockets
        );
    }

    fn is_over(&self) -> bool {
        self.peers.iter().all(|peer| peer.closed.is_some())
            && self.host.sockets.iter().all(|socket| socket.is_over())
    }

    /// Asserts that each side has all that the other wrote, and that nothing is left on the NIC.
    pub fn assert_complete(&self) {
        for (peer, socket) in self.peers.iter().zip(&self.host.sockets) {
            assert_eq!(
                (peer.received, socket.received),
                (socket.to_write, peer.to_write),
                "all bytes arrived"
            );
            assert!(
                peer.peer_closed && socket.peer_closed,
                "both heard of the other's end"
            );
            assert_eq!(peer.closed, Some(baton_tcp::CloseReason::Normal));
        }
        assert_eq!(self.nic.connections(), 0);
        assert_eq!(
            self.nic.memory_free(),
            u64::from(self.nic.config().memory_kib - self.nic.config().cache.kib) * 1024
        );
        self.check();
    }
}

/// A packet of nobody's connection, with `len` bytes of data.
pub fn stray(n: u16, len: u32) -> Segment<Symbolic> {
    Segment {
        src: client(n),
        dst: SERVER,
        ecn: Default::default(),
        header: Default::default(),
        payload: [Symbolic {
            source: 0,
            offset: 0,
            len,
        }]
        .into_iter()
        .collect(),
    }
}

/// A packet of the host.
pub fn host_packet(n: u16) -> ToNic<Symbolic> {
    ToNic::Packet(Segment {
        src: SERVER,
        dst: client(n),
        ..stray(n, 100)
    })
}
