//! Two hosts on a virtual link that delays, loses and records frames.

#![allow(dead_code, reason = "each test file uses a part")]

use baton_inet::{Arrived, Host, InterfaceConfig, LookedUp, Unclaimed};
use baton_iolib::Arena;
use baton_tcp::{CloseReason, Config, ConnId, Event};
use baton_wire::{CaptureWriter, Endpoint, Flow, Span, Time};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

pub const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
pub const DELAY: Span = Span::from_us(500);

/// Decides whether the link loses a frame, from the number of its sender and its content.
type Loss = Box<dyn FnMut(usize, &[u8]) -> bool>;

pub struct Link {
    pub hosts: [Host; 2],
    pub now: Time,
    pub delay: Span,
    /// Whether frames are sent and received in batches.
    pub batches: bool,
    /// Frames that each host has sent and that have not arrived, with their arrival times.
    pub in_flight: [VecDeque<(Time, Bytes)>; 2],
    pub loses: Loss,
    /// Whether frames, data and events are kept, which allocates memory.
    pub keeps: bool,
    /// Frames that each host has sent.
    pub sent: [Vec<Bytes>; 2],
    pub frames: u64,
    pub capture: CaptureWriter<Vec<u8>>,
    /// Connections that each host has opened or accepted.
    pub conns: [Vec<ConnId>; 2],
    /// Data that each host has received, by connection.
    pub received: [BTreeMap<ConnId, Vec<u8>>; 2],
    pub received_len: [u64; 2],
    pub events: [Vec<(ConnId, Event)>; 2],
    pub unclaimed: [Vec<Unclaimed>; 2],
    /// Memory of the frames that each host has sent.
    pub arenas: [Arena; 2],
    frame: Vec<u8>,
    batch: Vec<Bytes>,
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
            delay: DELAY,
            batches: false,
            in_flight: Default::default(),
            loses: Box::new(|_, _| false),
            keeps: true,
            sent: Default::default(),
            frames: 0,
            capture: CaptureWriter::new(Vec::new(), "link").expect("a vector can be written"),
            conns: Default::default(),
            received: Default::default(),
            received_len: [0; 2],
            events: Default::default(),
            unclaimed: Default::default(),
            arenas: Default::default(),
            frame: Vec::new(),
            batch: Vec::new(),
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
        if self.hosts[1].stack().listeners().next().is_none() {
            self.hosts[1].stack_mut().listen(remote, 5);
        }
        self.connect_to(remote)
    }

    pub fn connect_to(&mut self, remote: Endpoint) -> ConnId {
        let source = self.hosts[0].interface().source_for(remote.addr);
        let port = 5000 + self.conns[0].len() as u16;
        let flow = Flow {
            local: Endpoint::new(source.expect("a route"), port),
            remote,
        };
        let conn = self.hosts[0].stack_mut().connect(self.now, flow);
        self.conns[0].extend(conn);
        conn.expect("a free four-tuple")
    }

    pub fn address(&self, side: usize) -> IpAddr {
        self.hosts[side].interface().config().addresses[0].addr()
    }

    /// Runs until `until` holds or `limit_s` seconds have passed; returns whether it holds.
    pub fn run(&mut self, limit_s: u64, until: impl Fn(&Self) -> bool) -> bool {
        self.run_for(Span::from_secs(limit_s), until)
    }

    pub fn run_for(&mut self, limit: Span, until: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + limit;
        loop {
            while self.settle(0) | self.settle(1) {}
            // A segment that could not be sent causes an event, even if no frame was sent.
            while self.settle(0) | self.settle(1) {}
            if until(self) {
                return true;
            }
            let arrivals = [0, 1].map(|side| match self.in_flight[side].front() {
                Some(&(at, _)) => at,
                None => Time::NEVER,
            });
            let timers = self.hosts.iter().filter_map(Host::poll_timeout);
            let next = timers.chain(arrivals).min().unwrap_or(Time::NEVER);
            if next > end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            self.handle_timeouts();
            let from = usize::from(arrivals[1] < arrivals[0]);
            let arrived = self.in_flight[from].iter();
            let arrived = arrived.take_while(|(at, _)| *at <= self.now).count();
            let most = if self.batches { usize::MAX } else { 1 };
            self.deliver(from, arrived.min(most));
        }
    }

    /// Runs for this many seconds.
    pub fn pass(&mut self, seconds: u64) {
        self.run(seconds, |_| false);
    }

    pub fn handle_timeouts(&mut self) {
        for host in &mut self.hosts {
            host.handle_timeouts(self.now);
        }
    }

    /// Delivers up to `most` of the frames that a side has sent, whether or not it is their time.
    pub fn deliver(&mut self, from: usize, most: usize) {
        let most = most.min(self.in_flight[from].len());
        let frames = self.in_flight[from].drain(..most).map(|(_, frame)| frame);
        let host = &mut self.hosts[1 - from];
        if self.batches {
            host.handle_frames(self.now, frames);
            return;
        }
        for frame in frames {
            // A look-up changes nothing, and agrees with what happens to the frame afterwards.
            let looked_up = host.look_up(self.now, &frame);
            match host.handle_frame(self.now, frame) {
                Arrived::Unclaimed => assert_ne!(looked_up, LookedUp::Own),
                Arrived::Segment(_) => assert_ne!(looked_up, LookedUp::Other),
                _ => {}
            }
        }
    }

    /// Processes events and sends frames; returns whether there were any.
    pub fn settle(&mut self, side: usize) -> bool {
        let mut busy = false;
        let host = &mut self.hosts[side];
        while let Some((id, event)) = host.stack_mut().poll_event() {
            let stack = host.stack_mut();
            match event {
                Event::Acceptable(listener) => {
                    let accepted = stack.accept(listener).expect("a connection is pending");
                    self.conns[side].push(accepted);
                }
                Event::Readable => {
                    while let Some(piece) = stack.read(id, usize::MAX) {
                        stack.consume(id, piece.len());
                        self.received_len[side] += piece.len() as u64;
                        if self.keeps {
                            let received = self.received[side].entry(id).or_default();
                            received.extend_from_slice(&piece);
                        }
                    }
                }
                _ => {}
            }
            if self.keeps {
                self.events[side].push((id, event));
            }
            busy = true;
        }
        while let Some(packet) = host.poll_unclaimed() {
            self.unclaimed[side].push(packet);
        }
        busy |= self.transmit(side);
        if self.keeps {
            self.hosts[side].check();
        }
        busy
    }

    fn transmit(&mut self, side: usize) -> bool {
        let (host, arena) = (&mut self.hosts[side], &mut self.arenas[side]);
        let batch = &mut self.batch;
        let mut cut = |frame: &mut Vec<u8>| {
            batch.push(arena.copy(frame));
            frame.clear();
        };
        if self.batches {
            host.poll_frames(self.now, usize::MAX, &mut self.frame, cut);
        } else {
            while host.poll_frame(self.now, &mut self.frame) {
                cut(&mut self.frame);
            }
        }
        let mut batch = std::mem::take(&mut self.batch);
        let did = !batch.is_empty();
        batch.drain(..).for_each(|frame| self.put(side, frame));
        self.batch = batch;
        did
    }

    /// Puts a frame on the link.
    pub fn put(&mut self, side: usize, frame: Bytes) {
        self.frames += 1;
        if self.keeps {
            self.sent[side].push(frame.clone());
            let written = self.capture.write_frame(self.now, &frame, frame.len());
            written.expect("a vector can be written");
        }
        if !(self.loses)(side, &frame) {
            self.in_flight[side].push_back((self.now + self.delay, frame));
        }
    }

    /// Returns the data that a host has received on its only connection.
    pub fn received(&self, side: usize) -> &[u8] {
        self.received[side]
            .values()
            .next()
            .map_or(&[], Vec::as_slice)
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
