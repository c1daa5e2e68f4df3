//! Two hosts on a virtual link that delays, loses and records frames.

#![allow(dead_code, reason = "each test file uses a part")]

use baton_inet::{Host, InterfaceConfig};
use baton_tcp::{CloseReason, Config, ConnId, Event};
use baton_wire::{CaptureWriter, Endpoint, Flow, Span, Time};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::IpAddr;

pub const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
pub const DELAY: Span = Span::from_us(500);

/// Decides whether the link loses a frame, from the number of its sender and its content.
type Loss = Box<dyn FnMut(usize, &[u8]) -> bool>;

pub struct Link {
    pub hosts: [Host; 2],
    pub now: Time,
    frames: VecDeque<(Time, usize, Bytes)>,
    pub loses: Loss,
    /// Frames that each host has sent.
    pub sent: [Vec<Bytes>; 2],
    pub capture: CaptureWriter<Vec<u8>>,
    pub received: [Vec<u8>; 2],
    pub events: [Vec<(ConnId, Event)>; 2],
}

impl Link {
    pub fn new(interfaces: [InterfaceConfig; 2], config: Config) -> Self {
        let [first, second] = interfaces;
        let host = |interface, secret| {
            Host::new(interface, config.clone(), secret).expect("the parameters are valid")
        };
        Self {
            hosts: [host(first, 1), host(second, 2)],
            now: Time::ZERO,
            frames: VecDeque::new(),
            loses: Box::new(|_, _| false),
            sent: [Vec::new(), Vec::new()],
            capture: CaptureWriter::new(Vec::new(), "link").expect("a vector can be written"),
            received: [Vec::new(), Vec::new()],
            events: [Vec::new(), Vec::new()],
        }
    }

    /// Creates two hosts with these addresses on one network.
    pub fn between(networks: [&str; 2]) -> Self {
        Self::new(
            [0, 1].map(|side| interface(side, networks[side])),
            Config::default(),
        )
    }

    /// Lets the second host listen on port 80, and the first one connect to it.
    pub fn connect(&mut self) -> ConnId {
        let remote = Endpoint::new(self.address(1), 80);
        self.hosts[1].stack_mut().listen(remote, 5);
        self.connect_to(remote)
    }

    pub fn connect_to(&mut self, remote: Endpoint) -> ConnId {
        let source = self.hosts[0].interface().source_for(remote.addr);
        let flow = Flow {
            local: Endpoint::new(source.expect("a route"), 5000),
            remote,
        };
        let now = self.now;
        let conn = self.hosts[0].stack_mut().connect(now, flow);
        conn.expect("a free four-tuple")
    }

    pub fn address(&self, side: usize) -> IpAddr {
        self.hosts[side].interface().config().addresses[0].addr()
    }

    /// Runs until `until` holds or `limit_s` seconds have passed; returns whether it holds.
    pub fn run(&mut self, limit_s: u64, until: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + Span::from_secs(limit_s);
        loop {
            while self.settle(0) | self.settle(1) {}
            // A segment that could not be sent causes an event, even if no frame was sent.
            while self.settle(0) | self.settle(1) {}
            if until(self) {
                return true;
            }
            let arrival = self.frames.front().map_or(Time::NEVER, |&(at, ..)| at);
            let timers = self.hosts.iter().filter_map(Host::poll_timeout).min();
            let next = arrival.min(timers.unwrap_or(Time::NEVER));
            if next > end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            let now = self.now;
            self.hosts
                .iter_mut()
                .for_each(|host| host.handle_timeouts(now));
            if arrival <= now {
                let (_, side, frame) = self.frames.pop_front().expect("a frame arrives");
                self.hosts[side].handle_frame(now, frame);
            }
        }
    }

    /// Runs for this many seconds.
    pub fn pass(&mut self, seconds: u64) {
        self.run(seconds, |_| false);
    }

    /// Processes events and sends frames; returns whether there were any.
    fn settle(&mut self, side: usize) -> bool {
        let mut busy = false;
        let host = &mut self.hosts[side];
        while let Some((id, event)) = host.stack_mut().poll_event() {
            match event {
                Event::Acceptable(listener) => {
                    host.stack_mut()
                        .accept(listener)
                        .expect("a connection is pending");
                }
                Event::Readable => {
                    while let Some(piece) = host.stack_mut().read(id, usize::MAX) {
                        self.received[side].extend_from_slice(&piece);
                        host.stack_mut().consume(id, piece.len());
                    }
                }
                _ => {}
            }
            self.events[side].push((id, event));
            busy = true;
        }
        let mut frame = Vec::new();
        while self.hosts[side].poll_frame(self.now, &mut frame) {
            self.put(side, Bytes::copy_from_slice(&frame));
            frame.clear();
            busy = true;
        }
        self.hosts[side].check();
        busy
    }

    /// Puts a frame on the link.
    pub fn put(&mut self, side: usize, frame: Bytes) {
        self.sent[side].push(frame.clone());
        let written = self.capture.write_frame(self.now, &frame, frame.len());
        written.expect("a vector can be written");
        if !(self.loses)(side, &frame) {
            self.frames.push_back((self.now + DELAY, 1 - side, frame));
        }
    }

    pub fn write(&mut self, side: usize, id: ConnId, data: &'static [u8]) {
        let stack = self.hosts[side].stack_mut();
        let taken = stack.write(id, Bytes::from_static(data));
        assert_eq!(taken, Ok(data.len()));
    }

    pub fn connected(&self) -> bool {
        self.events[0]
            .iter()
            .any(|(_, event)| *event == Event::Connected)
    }

    pub fn closed(&self, side: usize) -> Option<CloseReason> {
        self.events[side].iter().find_map(|(_, event)| match event {
            Event::Closed(reason) => Some(*reason),
            _ => None,
        })
    }
}

/// Returns an interface that sends no announcements, so that tests can count frames.
pub fn interface(side: usize, network: &str) -> InterfaceConfig {
    let address = network.parse().expect("a network");
    InterfaceConfig {
        announce: false,
        ..InterfaceConfig::new(MACS[side], vec![address])
    }
}

pub const V4: [&str; 2] = ["10.0.0.1/24", "10.0.0.2/24"];
pub const V6: [&str; 2] = ["fd00::1/64", "fd00::2/64"];
