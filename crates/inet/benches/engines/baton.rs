//! Two hosts that run Baton.

use crate::{FRAME_LEN, Pair, REQUEST_LEN, RESPONSE_LEN};
use baton_inet::{Host, InterfaceConfig};
use baton_iolib::Arena;
use baton_tcp::{Config, ConnId, Event};
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::{Bytes, BytesMut};
use std::net::{IpAddr, Ipv4Addr};

/// Time that passes in each iteration.
const STEP: Span = Span::from_us(10);

/// Data that applications write. Baton refers to this constant without copying it or counting references.
static BLOCK: [u8; 64 << 10] = [7; 64 << 10];

pub struct Hosts {
    hosts: [Host; 2],
    arenas: [Arena; 2],
    now: Time,
    /// Number of bytes of the current request or response that have arrived, by connection.
    arrived: [Vec<usize>; 2],
    clients: Vec<ConnId>,
    load: Load,
    block: Bytes,
    received: u64,
    answered: u64,
    asked: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Load {
    Bulk { len: u64, written: u64 },
    Requests { count: u64 },
}

impl Pair for Hosts {
    fn new(connections: usize, buffer_len: usize) -> Self {
        let config = Config {
            send_buffer: buffer_len as u32,
            receive_buffer: buffer_len as u32,
            ..Config::default()
        };
        let host = |last: u8| {
            let mac = [2, 0, 0, 0, 0, last];
            let addr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
            let interface = InterfaceConfig::new(
                mac,
                vec![baton_inet::Cidr::new(addr, 24).expect("a network")],
            );
            Host::new(interface, config.clone(), last.into()).expect("the parameters are valid")
        };
        let mut pair = Self {
            hosts: [host(1), host(2)],
            arenas: Default::default(),
            now: Time::ZERO,
            arrived: [vec![0; connections + 1], vec![0; connections + 1]],
            clients: Vec::new(),
            load: Load::Requests { count: 0 },
            block: Bytes::from_static(&BLOCK),
            received: 0,
            answered: 0,
            asked: 0,
        };
        let remote = Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 80);
        pair.hosts[1].stack_mut().listen(remote, connections);
        for number in 0..connections {
            let local = Endpoint::new(
                IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
                10_000 + number as u16,
            );
            let conn = pair.hosts[0]
                .stack_mut()
                .connect(pair.now, Flow { local, remote });
            pair.clients.push(conn.expect("a free four-tuple"));
            // Without this, the server would answer all SYNs at the same time, with more packets than can wait for the neighbour's address.
            (0..8).for_each(|_| pair.turn());
        }
        pair
    }

    fn bulk(&mut self, len: u64) {
        self.received = 0;
        self.load = Load::Bulk { len, written: 0 };
        self.write_bulk();
        while self.received < len {
            self.turn();
        }
    }

    fn requests(&mut self, count: u64) {
        (self.answered, self.asked) = (0, 0);
        self.load = Load::Requests { count };
        for at in 0..self.clients.len() {
            self.ask(self.clients[at]);
        }
        while self.answered < self.asked {
            self.turn();
        }
    }
}

impl Hosts {
    /// Reports events, carries frames to the other host, and advances time.
    fn turn(&mut self) {
        for side in [0, 1] {
            while let Some((id, event)) = self.hosts[side].stack_mut().poll_event() {
                match event {
                    Event::Acceptable(listener) => {
                        self.hosts[side].stack_mut().accept(listener);
                    }
                    Event::Readable => self.read(side, id),
                    Event::Acknowledged(_) if side == 0 => self.write_bulk(),
                    _ => {}
                }
            }
            let (arena, now) = (&mut self.arenas[side], self.now);
            let [sender, receiver] = self
                .hosts
                .get_disjoint_mut([side, 1 - side])
                .expect("two hosts");
            let mut arrivals = receiver.arrivals(now);
            loop {
                let memory = arena.memory(FRAME_LEN);
                let most = memory.capacity() / FRAME_LEN;
                let cut = |memory: &mut BytesMut| arrivals.push(memory.split().freeze());
                let sent = sender.poll_frames(now, most, memory, cut);
                if sent < most {
                    break;
                }
            }
        }
        self.now += STEP;
        for host in &mut self.hosts {
            if host.poll_timeout().is_some_and(|at| at <= self.now) {
                host.handle_timeouts(self.now);
            }
        }
    }

    fn write_bulk(&mut self) {
        if let Load::Bulk { len, written } = &mut self.load {
            let stack = self.hosts[0].stack_mut();
            while *written < *len {
                let most = (*len - *written).min(self.block.len() as u64) as usize;
                let taken = stack
                    .write(self.clients[0], self.block.slice(..most))
                    .expect("it is open");
                if taken == 0 {
                    break;
                }
                *written += taken as u64;
            }
        }
    }

    fn ask(&mut self, conn: ConnId) {
        self.asked += 1;
        let request = self.block.slice(..REQUEST_LEN);
        self.hosts[0]
            .stack_mut()
            .write(conn, request)
            .expect("it is open");
    }

    fn read(&mut self, side: usize, conn: ConnId) {
        let mut len = 0;
        let stack = self.hosts[side].stack_mut();
        while let Some(piece) = stack.read(conn, usize::MAX) {
            stack.consume(conn, piece.len());
            len += piece.len();
        }
        let Load::Requests { count } = self.load else {
            self.received += len as u64;
            return;
        };
        let whole = [RESPONSE_LEN, REQUEST_LEN][side];
        let arrived = &mut self.arrived[side][conn.0 as usize];
        *arrived += len;
        while *arrived >= whole {
            *arrived -= whole;
            if side == 1 {
                let response = self.block.slice(..RESPONSE_LEN);
                stack.write(conn, response).expect("it is open");
                continue;
            }
            self.answered += 1;
            if self.asked < count {
                self.asked += 1;
                let request = self.block.slice(..REQUEST_LEN);
                stack.write(conn, request).expect("it is open");
            }
        }
    }
}
