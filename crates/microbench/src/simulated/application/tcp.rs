//! Bulk data over TCP connections, and what all tests with TCP share.

use super::super::frame::{Body, Segment};
use super::{Outgoing, Share};
use baton_sim::hardware::nic::rss;
use baton_tcp::{Config, Congestion, ConnId, Event, ListenerId, Stack, WindowProbe, WindowUpdate};
use baton_wire::{Endpoint, Flow, Symbolic, Time};
use slab::Slab;
use std::collections::VecDeque;

/// Port on which the partner listens.
pub(super) const PORT: u16 = 80;

/// First port of the machine that opens connections.
const FIRST_PORT: u16 = 1_024;

/// Returns the TCP configuration of the report's system, FreeBSD 4.7, without timestamps, since the report's segments carry 1460 bytes.
fn config() -> Config {
    Config {
        mss: 1_460,
        send_buffer: 32_768,
        receive_buffer: 57_344,
        window_scaling: false,
        timestamps: false,
        sack: false,
        initial_window_segments: 2,
        congestion: Congestion::NewReno,
        hystart: false,
        rack_tlp: false,
        rate_reduction: false,
        duplicate_sack: false,
        forward_rto: false,
        undo: false,
        ecn: baton_tcp::EcnMode::Off,
        rto_initial_ms: 3_000,
        rto_min_ms: 230,
        rto_max_ms: 64_000,
        delayed_ack_ms: 100,
        ack_every_segments: 2,
        window_probe: WindowProbe::NextByte,
        window_update: WindowUpdate::TwoSegments,
        delay_fin_ack: false,
        eager_acks: false,
        quick_acks: 0,
        ack_rate_limit_ms: 0,
        challenge_acks_per_second: 0,
        syn_cookies: baton_tcp::SynCookies::Off,
        // Skip most of TIME-WAIT: a test reuses its ports within a second.
        msl_ms: 1,
        ..Config::default()
    }
}

/// A machine's TCP.
#[derive(Debug)]
pub(in crate::simulated) struct Tcp {
    pub(super) stack: Stack<Symbolic>,
    next_port: u16,
    /// The processor that runs this TCP.
    share: Share,
    /// Segments sent in response to others, which wait for the driver.
    answers: VecDeque<Segment>,
}

impl Tcp {
    pub(super) fn new(machine: u8) -> Self {
        Self::of_core(machine, Share::WHOLE)
    }

    /// Creates the TCP of one processor of a machine.
    pub(super) fn of_core(machine: u8, share: Share) -> Self {
        Self {
            share,
            stack: Stack::new(config(), machine.into()),
            next_port: FIRST_PORT,
            answers: VecDeque::new(),
        }
    }

    fn address(machine: u8) -> std::net::IpAddr {
        [10, 0, 0, machine + 1].into()
    }

    /// Returns the machine that has an address.
    fn machine(address: std::net::IpAddr) -> u8 {
        match address {
            std::net::IpAddr::V4(address) => address.octets()[3] - 1,
            std::net::IpAddr::V6(_) => unreachable!("machines have IPv4 addresses"),
        }
    }

    /// Opens a connection from this machine to another.
    pub(super) fn connect(&mut self, now: Time, [machine, to]: [u8; 2]) -> Option<ConnId> {
        let remote = Endpoint::new(Self::address(to), PORT);
        // Choose a port for which RSS delivers answers to this processor.
        let local = loop {
            let local = Endpoint::new(Self::address(machine), self.next_port);
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
            if rss::hash(remote, local) % u32::from(self.share.cores) == u32::from(self.share.core)
            {
                break local;
            }
        };
        self.stack.connect(now, Flow { local, remote })
    }

    pub(super) fn listen(&mut self, machine: u8) -> ListenerId {
        let address = Endpoint::new(Self::address(machine), PORT);
        self.stack.listen(address, 65_536)
    }

    /// Returns whether there may be something to send.
    pub(super) fn may_transmit(&self) -> bool {
        !self.answers.is_empty() || self.stack.may_transmit()
    }

    pub(super) fn next_due(&self) -> Time {
        self.stack.poll_timeout().unwrap_or(Time::NEVER)
    }

    /// Handles a received segment. The system responds to each segment before it looks at the next: acknowledgments of two segments are not
    /// coalesced with later ones, though the driver cannot send before it returns from the interrupt.
    pub(super) fn receive(&mut self, now: Time, segment: Segment) {
        self.stack.handle_segment(now, segment);
    }

    /// Creates the responses to received segments.
    pub(super) fn answer(&mut self, now: Time) {
        while let Some((_, segment)) = self.stack.poll_transmit(now) {
            self.answers.push_back(segment);
        }
    }

    pub(super) fn poll_send(
        &mut self,
        now: Time,
        segments: &mut Slab<Segment>,
    ) -> Option<Outgoing> {
        if self.next_due() <= now {
            self.stack.handle_timeouts(now);
        }
        let segment = match self.answers.pop_front() {
            Some(segment) => segment,
            None => self.stack.poll_transmit(now)?.1,
        };
        Some(Outgoing {
            len: segment.frame_len() as u16,
            to: Self::machine(segment.dst.addr),
            hash: rss::hash(segment.src, segment.dst),
            body: Body::Segment(segments.insert(segment)),
            lies_at: None,
        })
    }
}

/// Sends as fast as TCP lets it.
#[derive(Debug)]
pub(in crate::simulated) struct Source {
    pub(super) tcp: Tcp,
    /// Bytes written to each connection, by its number.
    written: Vec<(ConnId, u64)>,
}

impl Source {
    /// Creates a source with this many connections.
    pub(in crate::simulated) fn new(
        [machine, partner]: [u8; 2],
        share: Share,
        connections: u32,
    ) -> Self {
        let connections = share.of(connections.into());
        let mut tcp = Tcp::of_core(machine, share);
        let opened = (0..connections).filter_map(|_| tcp.connect(Time::ZERO, [machine, partner]));
        Self {
            written: opened.map(|id| (id, 0)).collect(),
            tcp,
        }
    }

    pub(super) fn poll_send(
        &mut self,
        now: Time,
        segments: &mut Slab<Segment>,
    ) -> Option<Outgoing> {
        self.write();
        self.tcp.poll_send(now, segments)
    }

    pub(super) fn receive(&mut self, now: Time, segment: Segment) {
        self.tcp.receive(now, segment);
        self.write();
        self.tcp.answer(now);
    }

    /// Fills the send buffers of connections that have free space.
    fn write(&mut self) {
        while let Some((id, event)) = self.tcp.stack.poll_event() {
            if !matches!(event, Event::Connected | Event::Acknowledged(_)) {
                continue;
            }
            let Some(place) = self.written.iter().position(|(one, _)| *one == id) else {
                continue;
            };
            let offset = &mut self.written[place].1;
            let data = Symbolic {
                source: place as u64,
                offset: *offset,
                len: self.tcp.stack.send_space(id) as u32,
            };
            *offset += self.tcp.stack.write(id, data).unwrap_or(0) as u64;
        }
    }
}

/// Receives and discards data.
#[derive(Debug)]
pub(in crate::simulated) struct Sink {
    pub(super) tcp: Tcp,
    bytes: u64,
}

impl Sink {
    pub(in crate::simulated) fn new(machine: u8) -> Self {
        let mut tcp = Tcp::new(machine);
        tcp.listen(machine);
        Self { tcp, bytes: 0 }
    }

    pub(super) fn receive(&mut self, now: Time, segment: Segment) {
        self.tcp.receive(now, segment);
        let stack = &mut self.tcp.stack;
        while let Some((id, event)) = stack.poll_event() {
            match event {
                Event::Acceptable(listener) => {
                    stack.accept(listener);
                }
                Event::Readable => {
                    while let Some(data) = stack.read(id, usize::MAX) {
                        self.bytes += u64::from(data.len);
                        stack.consume(id, data.len as usize);
                    }
                }
                _ => {}
            }
        }
        self.tcp.answer(now);
    }

    /// Returns the number of bytes read.
    pub(in crate::simulated) fn bytes(&self) -> u64 {
        self.bytes
    }
}
