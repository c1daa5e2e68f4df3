//! A connection in any state, and a peer and an owner who do anything.

use arbitrary::{Arbitrary, Result, Unstructured};
use baton_tcp::{
    Config, Congestion, ConnId, EcnMode, Event, Keepalive, ListenerId, PathError, Pieces, Portable,
    Segment, Stack, State, Symbolic, SynCookies, WriteFlags,
};
use baton_wire::{
    Ecn, Endpoint, Flags, Flow, Header, Options, SackBlock, SeqNr, Span, Time, Timestamps,
};
use std::net::{IpAddr, Ipv4Addr};

/// Steps of one run at most.
const MOST_STEPS: usize = 300;
/// Segments that one step may call forth at most: a full window of tiny segments, twice.
const MOST_OUTPUT: usize = 20_000;
/// The peer's initial sequence number: near the wrap.
const PEER_ISS: SeqNr = SeqNr(0xffff_f000);
/// A run ends here: clocks of 64 bits in picoseconds end after 213 days.
const LAST_DAY: Time = Time::from_ps(Span::from_secs(200 * 24 * 3600).as_ps());
/// Buffers, bytes.
const BUFFER: u32 = 20_000;

/// Brings a connection into the state that the input asks for, then sends it the segments and calls that follow.
pub fn segments(data: &[u8]) {
    let mut input = Unstructured::new(data);
    if let Ok(mut conversation) = Conversation::begin(&mut input) {
        conversation.go_on(&mut input, MOST_STEPS);
    }
}

/// A number given by its distance from the one that would be right, or freely.
#[derive(Debug, Arbitrary)]
pub(crate) enum Number {
    Right,
    Near(i16),
    Any(u32),
}

impl Number {
    fn from(&self, right: SeqNr) -> SeqNr {
        match *self {
            Self::Right => right,
            Self::Near(distance) => SeqNr(right.0.wrapping_add_signed(distance.into())),
            Self::Any(number) => SeqNr(number),
        }
    }
}

/// What a peer may send.
#[derive(Debug, Arbitrary)]
pub(crate) struct Sent {
    seq: Number,
    ack: Number,
    flags: u8,
    window: u16,
    len: u16,
    congested: bool,
    mss: Option<u16>,
    window_scale: Option<u8>,
    sack_permitted: bool,
    timestamps: Option<i16>,
    sack: [Option<(Number, i16)>; 3],
}

/// What may happen next.
#[derive(Debug, Arbitrary)]
pub(crate) enum Step {
    Segment(Box<Sent>),
    /// A plain acknowledgment of all that was sent.
    Acknowledge,
    /// The next data in order.
    Data(u16),
    Write {
        len: u16,
        more: bool,
        end_of_record: bool,
    },
    Read(u16),
    Consume(u16),
    Shutdown,
    Close,
    Abort,
    NoDelay(bool),
    Cork(bool),
    QuickAck,
    ShutdownReceive,
    Configure(Change),
    PathError {
        seq: Number,
        error: Reported,
    },
    Wait {
        ms: u32,
    },
    Move,
}

/// What an owner may change.
#[derive(Debug, Arbitrary)]
pub(crate) enum Change {
    SendBuffer(u16),
    ReceiveBuffer(u16),
    Keepalive(Option<(u16, u16, u8)>),
    UserTimeout(Option<u16>),
    DelayedAck(u16),
    QuickAcks(u8),
    WindowClamp(u16),
    Mss(u16),
    Congestion(bool),
}

/// What the network may say.
#[derive(Debug, Arbitrary)]
pub(crate) enum Reported {
    FragmentationNeeded(u16),
    HostUnreachable,
    PortUnreachable,
    TimeExceeded,
}

/// How far the connection is led before the input takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
enum Start {
    Listen,
    SynSent,
    SynReceived,
    SimultaneousOpen,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// One stack, one four-tuple, one peer.
pub(crate) struct Conversation {
    stack: Stack<Symbolic>,
    listener: Option<ListenerId>,
    flow: Flow,
    now: Time,
    id: Option<ConnId>,
    /// What the stack sent last.
    heard: Header,
    /// The number after the last that the stack sent.
    heard_end: SeqNr,
    /// Bytes taken by `read` and not yet consumed.
    unconsumed: usize,
    offset: u64,
}

fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port)
}

fn congestion(cubic: bool) -> Congestion {
    if cubic {
        Congestion::Cubic
    } else {
        Congestion::NewReno
    }
}

fn change(config: &mut Config, change: &Change) {
    match *change {
        Change::SendBuffer(len) => config.send_buffer = len.into(),
        Change::ReceiveBuffer(len) => config.receive_buffer = u32::from(len).max(1),
        Change::Keepalive(times) => {
            config.keepalive = times.map(|(idle_ms, interval_ms, probes)| Keepalive {
                idle_ms: u32::from(idle_ms).max(1),
                interval_ms: u32::from(interval_ms).max(1),
                probes: probes.into(),
            });
        }
        Change::UserTimeout(ms) => config.user_timeout_ms = ms.map(u32::from),
        Change::DelayedAck(ms) => config.delayed_ack_ms = u32::from(ms) % 500,
        Change::QuickAcks(count) => config.quick_acks = count.into(),
        Change::WindowClamp(len) => config.window_clamp = len.into(),
        Change::Mss(mss) => config.mss = mss.max(64),
        Change::Congestion(cubic) => config.congestion = congestion(cubic),
    }
}

fn config(input: &mut Unstructured<'_>) -> Result<Config> {
    Ok(Config {
        mss: input.int_in_range(64..=1460)?,
        send_buffer: BUFFER,
        receive_buffer: input.int_in_range(1..=BUFFER)?,
        window_scaling: input.arbitrary()?,
        timestamps: input.arbitrary()?,
        sack: input.arbitrary()?,
        nagle: input.arbitrary()?,
        congestion: congestion(input.arbitrary()?),
        ecn: [EcnMode::Off, EcnMode::Accept, EcnMode::Request][input.int_in_range(0..=2)?],
        rack_tlp: input.arbitrary()?,
        rate_reduction: input.arbitrary()?,
        duplicate_sack: input.arbitrary()?,
        forward_rto: input.arbitrary()?,
        undo: input.arbitrary()?,
        syn_cookies: [SynCookies::Off, SynCookies::OnOverflow, SynCookies::Always]
            [input.int_in_range(0..=2)?],
        data_retries: input.int_in_range(0..=4)?,
        syn_retries: input.int_in_range(0..=2)?,
        ..Config::default()
    })
}

impl Conversation {
    /// A stack and, unless it only listens, a connection in the state that the input asks for.
    pub(crate) fn begin(input: &mut Unstructured<'_>) -> Result<Self> {
        let start = Start::arbitrary(input)?;
        let config = config(input)?;
        let active = matches!(start, Start::SynSent | Start::SimultaneousOpen);
        let (local, remote) = if active { (5000, 80) } else { (80, 5000) };
        let flow = Flow {
            local: endpoint(1, local),
            remote: endpoint(2, remote),
        };
        let mut conversation = Self {
            stack: Stack::new(config, 7),
            listener: None,
            flow,
            now: Time::ZERO + Span::from_secs(1000),
            id: None,
            heard: Header::default(),
            heard_end: SeqNr(0),
            unconsumed: 0,
            offset: 0,
        };
        if active {
            conversation.id = conversation.stack.connect(conversation.now, flow);
        } else {
            conversation.listener = Some(conversation.stack.listen(flow.local, 2));
        }
        conversation.settle();
        conversation.lead_to(start);
        Ok(conversation)
    }

    fn lead_to(&mut self, start: Start) {
        let syn = Options {
            mss: Some(1000),
            window_scale: Some(2),
            sack_permitted: true,
            timestamps: self.timestamps(0),
            ..Options::default()
        };
        match start {
            Start::Listen | Start::SynSent => return,
            Start::SynReceived | Start::SimultaneousOpen => {
                return self.send(PEER_ISS, Flags::SYN, 0, syn);
            }
            _ => self.send(PEER_ISS, Flags::SYN, 0, syn),
        }
        self.send(PEER_ISS + 1, Flags::ACK, 0, self.usual());
        let closes_first = matches!(
            start,
            Start::FinWait1 | Start::FinWait2 | Start::Closing | Start::TimeWait
        );
        if closes_first {
            self.step(Step::Shutdown);
        }
        match start {
            Start::FinWait2 => self.step(Step::Acknowledge),
            Start::CloseWait => self.send(PEER_ISS + 1, Flags::ACK | Flags::FIN, 0, self.usual()),
            Start::Closing => {
                // The FIN crosses ours: it does not acknowledge it.
                let ack = self.heard_end - 1;
                self.send_acknowledging(ack, PEER_ISS + 1, Flags::ACK | Flags::FIN, 0);
            }
            Start::LastAck => {
                self.send(PEER_ISS + 1, Flags::ACK | Flags::FIN, 0, self.usual());
                self.step(Step::Shutdown);
            }
            Start::TimeWait => self.send(PEER_ISS + 1, Flags::ACK | Flags::FIN, 0, self.usual()),
            _ => {}
        }
    }

    /// Plays at most `most` of the steps that the input holds.
    pub(crate) fn go_on(&mut self, input: &mut Unstructured<'_>, most: usize) {
        for _ in 0..most {
            if input.is_empty() {
                return;
            }
            let Ok(step) = Step::arbitrary(input) else {
                return;
            };
            self.step(step);
        }
    }

    /// Plays one step, lets the stack answer, and checks it.
    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Segment(sent) => self.send_any(&sent),
            Step::Acknowledge => self.send(self.peer_next(), Flags::ACK, 0, self.usual()),
            Step::Data(len) => self.send(
                self.peer_next(),
                Flags::ACK | Flags::PSH,
                len % 2000,
                self.usual(),
            ),
            Step::Wait { ms } => self.wait(Span::from_ms(ms.into())),
            Step::PathError { seq, error } => self.report(&seq, &error),
            Step::Move => {
                if let Some(bytes) = self.take_out() {
                    let state = Portable::from_bytes(&bytes).expect("what was written can be read");
                    assert!(self.put_in(state), "what was taken out can be put in");
                }
            }
            call => {
                if let Some(id) = self.id {
                    self.call(id, call);
                }
            }
        }
        self.settle();
    }

    /// A system call of the owner.
    fn call(&mut self, id: ConnId, step: Step) {
        let stack = &mut self.stack;
        match step {
            Step::Write {
                len,
                more,
                end_of_record,
            } => {
                let flags = WriteFlags {
                    more,
                    end_of_record,
                };
                let piece = Symbolic {
                    source: 1,
                    offset: self.offset,
                    len: len.into(),
                };
                self.offset += stack.write_with(id, piece, flags).unwrap_or(0) as u64;
            }
            Step::Read(max) => {
                if let Some(piece) = stack.read(id, usize::from(max).max(1)) {
                    self.unconsumed += piece.len as usize;
                }
            }
            Step::Consume(len) => {
                let len = usize::from(len).min(self.unconsumed);
                self.unconsumed -= len;
                stack.consume(id, len);
            }
            Step::Shutdown => stack.shutdown(id),
            Step::Close => stack.close(id),
            Step::Abort => stack.abort(id),
            Step::QuickAck => stack.quick_ack(id),
            Step::ShutdownReceive => stack.shutdown_receive(id),
            Step::Configure(what) => {
                stack.configure(self.now, id, |config| change(config, &what));
            }
            Step::NoDelay(on) => stack.set_nodelay(id, on),
            Step::Cork(on) => stack.set_cork(id, on),
            Step::Segment(_)
            | Step::Acknowledge
            | Step::Data(_)
            | Step::PathError { .. }
            | Step::Wait { .. }
            | Step::Move => unreachable!("these are no calls"),
        }
    }

    /// An ICMP error about a segment that this end may have sent.
    fn report(&mut self, seq: &Number, error: &Reported) {
        let error = match *error {
            Reported::FragmentationNeeded(mtu) => PathError::FragmentationNeeded { mtu },
            Reported::HostUnreachable => PathError::HostUnreachable,
            Reported::PortUnreachable => PathError::PortUnreachable,
            Reported::TimeExceeded => PathError::TimeExceeded,
        };
        let seq = seq.from(self.heard.seq);
        let _ = self
            .stack
            .handle_path_error(self.now, &self.flow, seq, error);
    }

    /// Takes the connection out of the stack, as bytes.
    pub(crate) fn take_out(&mut self) -> Option<Vec<u8>> {
        let id = self.id.take()?;
        let bytes = self.stack.export(self.now, id).to_bytes();
        self.stack.check();
        Some(bytes)
    }

    /// Puts a connection in; false when the stack will not have it.
    pub(crate) fn put_in(&mut self, state: Portable<Symbolic>) -> bool {
        self.id = self.stack.import(self.now, state).ok();
        // Whose it is now may have changed with the damage.
        if let Some(id) = self.id {
            self.flow = self.stack.flow(id);
        }
        self.unconsumed = 0;
        self.settle();
        self.id.is_some()
    }

    fn peer_next(&self) -> SeqNr {
        if self.heard.flags.contains(Flags::ACK) {
            self.heard.ack
        } else {
            PEER_ISS
        }
    }

    fn timestamps(&self, later: i16) -> Option<Timestamps> {
        let echo = self.heard.options.timestamps.map_or(0, |sent| sent.value);
        Some(Timestamps {
            value: 1_000_u32.wrapping_add_signed(later.into()),
            echo,
        })
    }

    fn usual(&self) -> Options {
        Options {
            timestamps: self.timestamps(0),
            ..Options::default()
        }
    }

    fn send(&mut self, seq: SeqNr, flags: Flags, len: u16, options: Options) {
        let header = Header {
            seq,
            ack: self.heard_end,
            flags,
            window: 20_000,
            options,
        };
        self.deliver(header, len, Ecn::NotCapable);
    }

    fn send_acknowledging(&mut self, ack: SeqNr, seq: SeqNr, flags: Flags, len: u16) {
        let header = Header {
            seq,
            ack,
            flags,
            window: 20_000,
            options: self.usual(),
        };
        self.deliver(header, len, Ecn::NotCapable);
    }

    fn send_any(&mut self, sent: &Sent) {
        let blocks = sent
            .sack
            .iter()
            .flatten()
            .map(|(start, len)| {
                let start = start.from(self.heard_end);
                SackBlock {
                    start,
                    end: SeqNr(start.0.wrapping_add_signed((*len).into())),
                }
            })
            .collect();
        let header = Header {
            seq: sent.seq.from(self.peer_next()),
            ack: sent.ack.from(self.heard_end),
            flags: Flags::from_bits_truncate(sent.flags),
            window: sent.window,
            options: Options {
                mss: sent.mss,
                window_scale: sent.window_scale,
                sack_permitted: sent.sack_permitted,
                timestamps: sent.timestamps.and_then(|later| self.timestamps(later)),
                sack: blocks,
            },
        };
        let ecn = if sent.congested {
            Ecn::Congested
        } else {
            Ecn::NotCapable
        };
        self.deliver(header, sent.len, ecn);
    }

    fn deliver(&mut self, header: Header, len: u16, ecn: Ecn) {
        let mut payload = Pieces::new();
        if len > 0 {
            payload.push(Symbolic {
                source: 2,
                offset: header.seq.0.into(),
                len: len.into(),
            });
        }
        let segment = Segment {
            src: self.flow.remote,
            dst: self.flow.local,
            ecn,
            header,
            payload,
        };
        self.stack.handle_segment(self.now, segment);
        self.settle();
    }

    /// Lets time pass; timers run at their moments.
    fn wait(&mut self, span: Span) {
        let until = (self.now + span).min(LAST_DAY);
        for _ in 0..1000 {
            match self.stack.poll_timeout() {
                Some(due) if due <= until => self.now = self.now.max(due),
                _ => break,
            }
            self.stack.handle_timeouts(self.now);
            self.settle();
        }
        self.now = until;
        self.stack.handle_timeouts(self.now);
        self.settle();
    }

    /// Takes what the stack gives, and checks it.
    fn settle(&mut self) {
        self.stack.check();
        for count in 0.. {
            let Some((_, segment)) = self.stack.poll_transmit(self.now) else {
                break;
            };
            assert!(count < MOST_OUTPUT, "a stack stops sending");
            self.heard_end = segment.header.seq + segment.sequence_len();
            self.heard = segment.header;
        }
        self.stack.check();
        while let Some((id, event)) = self.stack.poll_event() {
            self.take_event(id, &event);
        }
        self.stack.check();
        if let Some(id) = self.id {
            // Getters must work in every state.
            let (state, space) = (self.stack.state(id), self.stack.send_space(id));
            let info = self.stack.info(self.now, id);
            assert_eq!(info.state, state);
            assert!(state != State::TimeWait || space == 0);
        }
    }

    fn take_event(&mut self, id: ConnId, event: &Event) {
        match event {
            Event::Acceptable(listener) => {
                self.id = self.stack.accept(*listener).or(self.id);
            }
            Event::Closed(_) if self.id == Some(id) => {
                self.id = None;
                self.unconsumed = 0;
            }
            _ => {}
        }
    }
}
