//! The engine as an end of the network.

use crate::world::{Host, Role};
use baton_tcp::{Config, ConnId, Event, ListenerId, Portable, Segment, Stack, State};
use baton_testkit::{End, Pattern};
use baton_wire::{Endpoint, Flow, Packet, Time, decode_packet, encode_packet};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr};

/// Port of the listening end.
pub const PORT: u16 = 80;
/// First port of the opening end.
pub const FIRST_PORT: u16 = 50_000;
/// Address of the opening end.
pub const OPENER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Address of the listening end.
pub const LISTENER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Data of every flow.
pub const DATA: Pattern = Pattern::new(0);

/// One flow at this end.
struct Stream {
    id: ConnId,
    /// Bytes written or read so far.
    offset: u64,
}

/// A stack whose connections are all sources or all sinks.
pub struct Engine {
    stack: Stack<Bytes>,
    listener: Option<ListenerId>,
    role: Role,
    /// Flows, by the number in the opener's port.
    streams: Vec<Option<Stream>>,
    /// Flows still to be opened: time, number in the port, and configuration.
    joining: Vec<(Time, u16, Config)>,
    /// Number of steps after which all connections are exported as bytes and imported again; 0 stands for never.
    move_every: u64,
    steps: u64,
}

impl Engine {
    /// Creates an end that opens one connection for each of `configs`.
    pub fn opening(role: Role, configs: &[Config]) -> Self {
        let mut stack = Stack::new(configs[0].clone(), 1);
        let open = |(port, config): (u16, &Config)| {
            let flow = flow_to_listener(port);
            let id = stack.connect_with(Time::ZERO, flow, config.clone())?;
            Some(Stream { id, offset: 0 })
        };
        let streams = (FIRST_PORT..).zip(configs).map(open).collect();
        Self {
            stack,
            listener: None,
            role,
            streams,
            joining: Vec::new(),
            move_every: 0,
            steps: 0,
        }
    }

    /// Creates an end that listens for `flows` connections.
    pub fn listening(role: Role, config: &Config, flows: usize) -> Self {
        let mut stack = Stack::new(config.clone(), 2);
        let listener = stack.listen(Endpoint::new(IpAddr::V4(LISTENER), PORT), flows);
        Self {
            stack,
            listener: Some(listener),
            role,
            streams: (0..flows).map(|_| None).collect(),
            joining: Vec::new(),
            move_every: 0,
            steps: 0,
        }
    }

    /// Moves all connections every `steps` steps.
    pub fn moving_every(mut self, steps: u64) -> Self {
        self.move_every = steps;
        self
    }

    fn relocate(&mut self, now: Time) {
        self.steps += 1;
        if self.move_every == 0 || !self.steps.is_multiple_of(self.move_every) {
            return;
        }
        for stream in self.streams.iter_mut().flatten() {
            let bytes = self.stack.export(now, stream.id).to_bytes();
            let state = Portable::from_bytes(&bytes).expect("an exported state can be decoded");
            let id = self.stack.import(now, state);
            stream.id = id.expect("the stack had it before");
        }
    }

    /// Opens another flow at `at`.
    pub fn joins_at(mut self, at: Time, config: &Config) -> Self {
        let number = self.streams.len() as u16;
        self.joining.push((at, number, config.clone()));
        self.streams.push(None);
        self
    }

    fn join(&mut self, now: Time) {
        while let Some((_, number, config)) = self.joining.pop_if(|(at, _, _)| *at <= now) {
            let id = self
                .stack
                .connect_with(now, flow_to_listener(FIRST_PORT + number), config);
            self.streams[usize::from(number)] = id.map(|id| Stream { id, offset: 0 });
        }
    }

    fn accept(&mut self) {
        let Some(listener) = self.listener else {
            return;
        };
        while let Some(id) = self.stack.accept(listener) {
            let number = self.stack.flow(id).remote.port - FIRST_PORT;
            self.streams[usize::from(number)] = Some(Stream { id, offset: 0 });
        }
    }

    /// Writes or reads as much as possible.
    fn work(&mut self) {
        let stack = &mut self.stack;
        for stream in self.streams.iter_mut().flatten() {
            match self.role {
                Role::Source => fill(stack, stream),
                Role::Sink => drain(stack, stream),
            }
        }
    }
}

fn flow_to_listener(port: u16) -> Flow {
    Flow {
        local: Endpoint::new(IpAddr::V4(OPENER), port),
        remote: Endpoint::new(IpAddr::V4(LISTENER), PORT),
    }
}

fn fill(stack: &mut Stack<Bytes>, stream: &mut Stream) {
    if !matches!(stack.state(stream.id), State::Established) {
        return;
    }
    loop {
        let len = stack.send_space(stream.id).min(Pattern::LONGEST);
        // Small writes would cause small segments.
        if len < Pattern::LONGEST {
            return;
        }
        let taken = stack.write(stream.id, DATA.piece(stream.offset, len));
        stream.offset += taken.expect("the connection is open") as u64;
    }
}

fn drain(stack: &mut Stack<Bytes>, stream: &mut Stream) {
    while let Some(piece) = stack.read(stream.id, usize::MAX) {
        DATA.check(stream.offset, &piece);
        stream.offset += piece.len() as u64;
        stack.consume(stream.id, piece.len());
    }
}

impl End for Engine {
    type Frame = Vec<u8>;

    fn receive(&mut self, now: Time, packet: Vec<u8>) {
        let (packet, payload) = decode_packet(&packet).expect("the other end sends valid packets");
        let mut segment = Segment {
            src: packet.src,
            dst: packet.dst,
            ecn: packet.ecn,
            header: packet.header,
            payload: Default::default(),
        };
        if !payload.is_empty() {
            segment.payload.push(Bytes::copy_from_slice(payload));
        }
        self.stack.handle_segment(now, segment);
    }

    fn step(&mut self, now: Time) {
        self.stack.handle_timeouts(now);
        self.relocate(now);
        self.join(now);
        self.accept();
        while let Some((_, event)) = self.stack.poll_event() {
            assert!(!matches!(event, Event::Closed(_)), "no connection ends");
        }
        self.work();
    }

    fn transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        let (_, segment) = self.stack.poll_transmit(now)?;
        let frame_len = segment.frame_len();
        let packet = Packet {
            src: segment.src,
            dst: segment.dst,
            ecn: segment.ecn,
            header: segment.header,
        };
        let payload: Vec<u8> = segment.payload.concat();
        let mut bytes = Vec::new();
        encode_packet(&packet, &payload, &mut bytes).expect("the engine sends valid segments");
        // Ethernet's header and checksum.
        assert_eq!(frame_len, (14 + bytes.len() + 4).max(64));
        Some(bytes)
    }

    fn next(&mut self, _now: Time) -> Option<Time> {
        let joining = self.joining.iter().map(|(at, _, _)| *at);
        joining.chain(self.stack.poll_timeout()).min()
    }
}

impl Host for Engine {
    fn received(&self) -> Vec<u64> {
        let received = |stream: &Option<Stream>| stream.as_ref().map_or(0, |stream| stream.offset);
        self.streams.iter().map(received).collect()
    }
}
