//! Applications with TCP connections: what they share, and bulk data.

use super::super::frame::{Body, Frame, Segment};
use super::super::host::{Meter, Traffic};
use super::{Counts, Share};
use baton_sim::hardware::nic::rss;
use baton_tcp::{Config, Congestion, ConnId, Event, ListenerId, Stack, WindowProbe, WindowUpdate};
use baton_wire::{Endpoint, Flow, Symbolic, Time};
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

/// What an application does with its connections.
pub(in crate::simulated) trait Program: std::fmt::Debug {
    /// Returns whether the stack's answers to a segment are created before the segment's events are handled, and not only afterwards.
    fn answers_first(&self) -> bool {
        false
    }

    /// Returns when the program acts next without an event of TCP.
    fn next_due(&self) -> Time {
        Time::NEVER
    }

    /// Acts without an event of TCP.
    fn begin(&mut self, _now: Time, _tcp: &mut Tcp) {}

    /// Handles an event of TCP.
    fn handle_event(&mut self, now: Time, tcp: &mut Tcp, id: ConnId, event: Event);

    /// Returns whether connections are those of a kernel's sockets.
    fn has_sockets(&self) -> bool {
        false
    }

    /// Returns whether there is work other than sending.
    fn has_work(&self) -> bool {
        false
    }

    /// Does the next piece of work; returns false if there was none.
    fn work(&mut self, _now: Time, _tcp: &mut Tcp, _meter: &mut Meter<'_>) -> bool {
        false
    }

    /// Returns the counts by `now`.
    fn counts(&self, _now: Time) -> Counts {
        Counts::default()
    }
}

/// A program with its TCP.
#[derive(Debug)]
pub(in crate::simulated) struct OnTcp {
    tcp: Tcp,
    pub(super) program: Box<dyn Program>,
}

impl OnTcp {
    pub(super) fn new(tcp: Tcp, program: impl Program + 'static) -> Self {
        let program = Box::new(program);
        Self { tcp, program }
    }

    pub(super) fn next_due(&self) -> Time {
        self.program.next_due().min(self.tcp.next_due())
    }

    pub(super) fn wants_to_send(&self, now: Time) -> bool {
        self.tcp.may_transmit() || self.program.next_due() <= now
    }

    /// Returns the next frame to send. Pending segments precede those that the program begins.
    pub(super) fn poll_send(&mut self, now: Time) -> Option<Frame> {
        let mut next = self.tcp.poll_send(now);
        if next.is_none() && self.program.next_due() <= now {
            self.program.begin(now, &mut self.tcp);
            next = self.tcp.poll_send(now);
        }
        self.handle_events(now);
        next
    }

    /// Handles a received segment. The system responds to each segment before it looks at the next: acknowledgments of two segments are not
    /// coalesced with later ones, though the driver cannot send before it returns from the interrupt.
    pub(super) fn receive(&mut self, now: Time, segment: Segment) {
        self.tcp.stack.handle_segment(now, segment);
        if self.program.answers_first() {
            self.tcp.answer(now);
        }
        self.handle_events(now);
        self.tcp.answer(now);
    }

    fn handle_events(&mut self, now: Time) {
        while let Some((id, event)) = self.tcp.stack.poll_event() {
            self.program.handle_event(now, &mut self.tcp, id, event);
        }
    }

    pub(super) fn work(&mut self, now: Time, meter: &mut Meter<'_>) -> bool {
        self.program.work(now, &mut self.tcp, meter)
    }

    /// Returns how the host has to handle a segment of a flow.
    pub(super) fn traffic(&self, flow: &Flow) -> Traffic {
        match self.program.has_sockets() {
            true => Traffic::Socket(self.tcp.stack.find(flow).map(|ConnId(number)| number)),
            false => Traffic::Segment,
        }
    }
}

/// The TCP of a processor.
#[derive(Debug)]
pub(in crate::simulated) struct Tcp {
    pub(super) stack: Stack<Symbolic>,
    machine: u8,
    next_port: u16,
    /// The processor that runs this TCP.
    share: Share,
    /// Segments sent in response to others, which wait for the driver.
    answers: VecDeque<Segment>,
}

impl Tcp {
    pub(super) fn new(machine: u8, share: Share) -> Self {
        Self {
            share,
            stack: Stack::new(config(), machine.into()),
            machine,
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

    /// Opens a connection to another machine.
    pub(super) fn connect(&mut self, now: Time, to: u8) -> Option<ConnId> {
        let remote = Endpoint::new(Self::address(to), PORT);
        // Choose a port for which RSS delivers answers to this processor.
        let local = loop {
            let local = Endpoint::new(Self::address(self.machine), self.next_port);
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
            if rss::hash(remote, local) % u32::from(self.share.cores) == u32::from(self.share.core)
            {
                break local;
            }
        };
        self.stack.connect(now, Flow { local, remote })
    }

    pub(super) fn listen(&mut self) -> ListenerId {
        let address = Endpoint::new(Self::address(self.machine), PORT);
        self.stack.listen(address, 65_536)
    }

    /// Returns whether there may be something to send.
    fn may_transmit(&self) -> bool {
        !self.answers.is_empty() || self.stack.may_transmit()
    }

    fn next_due(&self) -> Time {
        self.stack.poll_timeout().unwrap_or(Time::NEVER)
    }

    /// Creates the responses to received segments.
    fn answer(&mut self, now: Time) {
        while let Some((_, segment)) = self.stack.poll_transmit(now) {
            self.answers.push_back(segment);
        }
    }

    fn poll_send(&mut self, now: Time) -> Option<Frame> {
        if self.next_due() <= now {
            self.stack.handle_timeouts(now);
        }
        let segment = match self.answers.pop_front() {
            Some(segment) => segment,
            None => self.stack.poll_transmit(now)?.1,
        };
        Some(Frame::new(
            segment.frame_len() as u16,
            Self::machine(segment.dst.addr),
            rss::hash(segment.src, segment.dst),
            Body::Segment(Box::new(segment)),
        ))
    }
}

/// Sends as fast as TCP lets it.
#[derive(Debug)]
pub(in crate::simulated) struct Source {
    /// Bytes written to each connection, by its number.
    written: Vec<(ConnId, u64)>,
}

impl Source {
    /// Creates a source with its part of this many connections.
    pub(super) fn new(tcp: &mut Tcp, partner: u8, connections: u32) -> Self {
        let connections = tcp.share.of(connections.into());
        let opened = (0..connections).filter_map(|_| tcp.connect(Time::ZERO, partner));
        Self {
            written: opened.map(|id| (id, 0)).collect(),
        }
    }
}

impl Program for Source {
    /// Fills the send buffers of connections that have free space.
    fn handle_event(&mut self, _now: Time, tcp: &mut Tcp, id: ConnId, event: Event) {
        if !matches!(event, Event::Connected | Event::Acknowledged(_)) {
            return;
        }
        let Some(place) = self.written.iter().position(|(one, _)| *one == id) else {
            return;
        };
        let offset = &mut self.written[place].1;
        let data = Symbolic {
            source: place as u64,
            offset: *offset,
            len: tcp.stack.send_space(id) as u32,
        };
        *offset += tcp.stack.write(id, data).unwrap_or(0) as u64;
    }
}

/// Receives and discards data.
#[derive(Debug, Default)]
pub(in crate::simulated) struct Sink {
    bytes: u64,
}

impl Program for Sink {
    fn handle_event(&mut self, _now: Time, tcp: &mut Tcp, id: ConnId, event: Event) {
        match event {
            Event::Acceptable(listener) => {
                tcp.stack.accept(listener);
            }
            Event::Readable => {
                while let Some(data) = tcp.stack.read(id, usize::MAX) {
                    self.bytes += u64::from(data.len);
                    tcp.stack.consume(id, data.len as usize);
                }
            }
            _ => {}
        }
    }

    /// Returns the number of bytes read.
    fn counts(&self, _now: Time) -> Counts {
        Counts {
            goodput_bytes: self.bytes,
            ..Counts::default()
        }
    }
}
