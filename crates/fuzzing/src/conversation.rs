//! Connections in any state, whose peers and owner (the program that uses the stack) do anything.

mod input;
mod peer;
mod rules;

use arbitrary::{Arbitrary, Result, Unstructured};
use baton_tcp::{
    Config, ConnId, Event, FastOpen, FastOpenListening, ListenerId, Portable, Stack, State,
    WriteFlags,
};
use baton_testkit::{endpoint, symbolic};
use baton_wire::{FastOpenCookie, Flags, Flow, Header, Options, SeqNr, Span, Symbolic, Time};

pub(crate) use input::Step;
use input::{Happening, Start};
use rules::{Rules, change, config};

/// Maximum number of steps in a run.
const MOST_STEPS: usize = 300;
/// Maximum number of segments that one step may cause: a full window of tiny segments, twice.
const MOST_OUTPUT: usize = 20_000;
/// The peer's initial sequence number, which is close to the wrap-around.
const PEER_ISS: SeqNr = SeqNr(0xffff_f000);
/// End of a run: 64-bit clocks in picoseconds overflow after 213 days.
const LAST_DAY: Time = Time::from_ps(Span::from_secs(200 * 24 * 3600).as_ps());
/// Size of buffers, bytes.
const BUFFER: u32 = 20_000;

/// Maximum number of peers, and therefore of four-tuples.
const MOST_PEERS: u16 = 3;

/// Brings a connection into the state that the input selects, then applies the segments and calls that follow to it and to other
/// connections. At the end, the owner closes everything and no peer responds any more. The stack must then become empty.
pub fn segments(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok(mut conversation) = Conversation::begin(&mut input) else {
        return;
    };
    for _ in 0..MOST_STEPS {
        match Happening::arbitrary(&mut input) {
            Ok(happening) if !input.is_empty() => conversation.happens(happening),
            _ => break,
        }
    }
    conversation.end();
}

/// One stack and its peers.
pub(crate) struct Conversation {
    stack: Stack<Symbolic>,
    listener: Option<ListenerId>,
    now: Time,
    peers: Vec<Peer>,
    current: usize,
    /// Connections that the owner has closed because another replaced them, and whose end has not been reported yet.
    left: Vec<ConnId>,
    /// Whether the owner accepts pending connections.
    accepts: bool,
    /// Last Fast Open cookie that the stack issued.
    cookie: FastOpenCookie,
}

/// A peer and its four-tuple.
#[derive(Debug)]
struct Peer {
    /// Flow from the point of view of the stack.
    flow: Flow,
    id: Option<ConnId>,
    /// Header of the last segment that the stack sent.
    received: Header,
    /// Sequence number after the last segment that the stack sent.
    received_end: SeqNr,
    /// Bytes returned by `read` and not yet consumed.
    unconsumed: usize,
    offset: u64,
}

impl Peer {
    fn new(flow: Flow) -> Self {
        Self {
            flow,
            id: None,
            received: Header::default(),
            received_end: SeqNr(0),
            unconsumed: 0,
            offset: 0,
        }
    }
}

impl Conversation {
    /// Creates a stack and, unless it only listens, a connection in the state that the input selects.
    pub(crate) fn begin(input: &mut Unstructured<'_>) -> Result<Self> {
        let start = Start::arbitrary(input)?;
        let config = config(input)?;
        let active = matches!(
            start,
            Start::SynSent | Start::SimultaneousOpen | Start::FastSynSent
        );
        let (local, remote) = if active { (5000, 80) } else { (80, 5000) };
        let flow = Flow {
            local: endpoint(1, local),
            remote: endpoint(2, remote),
        };
        let mut conversation = Self {
            stack: Stack::new(config, 7),
            listener: None,
            now: Time::ZERO + Span::from_secs(1000),
            peers: vec![Peer::new(flow)],
            current: 0,
            left: Vec::new(),
            accepts: true,
            cookie: FastOpenCookie::REQUEST,
        };
        if start == Start::FastSynSent {
            conversation.connect_fast(500, true);
        } else if active {
            conversation.connect();
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
            Start::Listen | Start::SynSent | Start::FastSynSent => return,
            Start::FastOpened => {
                self.take_fast_open(2, true);
                return self.send(PEER_ISS, Flags::SYN, 300, syn);
            }
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
                // The FIN crosses the stack's own FIN, so it does not acknowledge that one.
                let ack = self.peer().received_end - 1;
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

    fn peer(&mut self) -> &mut Peer {
        &mut self.peers[self.current]
    }

    fn connect(&mut self) {
        let flow = self.peer().flow;
        if let Some(id) = self.stack.connect(self.now, flow) {
            self.own(self.current, id);
        }
    }

    /// Assigns the connection to the peer with this number; the owner closes the peer's previous connection.
    fn own(&mut self, peer: usize, id: ConnId) {
        if let Some(before) = self.peers[peer].id.replace(id) {
            self.stack.close(before);
            self.left.push(before);
        }
    }

    fn connect_fast(&mut self, len: u16, without_cookie: bool) {
        let how = match without_cookie {
            true => FastOpen::WithoutCookie,
            false => FastOpen::Cookie,
        };
        let (flow, config) = (self.peer().flow, self.stack.config().clone());
        let id = self.stack.connect_fast_open(self.now, flow, &config, how);
        let Some(id) = id else { return };
        self.own(self.current, id);
        self.call(
            id,
            Step::Write {
                len,
                more: false,
                end_of_record: false,
            },
        );
    }

    fn take_fast_open(&mut self, pending: u8, without_cookie: bool) {
        let rules = FastOpenListening {
            pending: usize::from(pending % 4),
            without_cookie,
        };
        if let Some(listener) = self.listener {
            self.stack.set_fast_open(listener, rules);
        }
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::Steps(steps) => steps.into_iter().for_each(|step| self.step(step)),
            Happening::Peer(number) => self.choose(number % MOST_PEERS),
            Happening::Connect => self.connect(),
            Happening::ConnectFast {
                len,
                without_cookie,
            } => self.connect_fast(len, without_cookie),
            Happening::FastOpen {
                pending,
                without_cookie,
            } => self.take_fast_open(pending, without_cookie),
            Happening::Accepts(accepts) => self.accepts = accepts,
            Happening::Backlog(len) => {
                if let Some(listener) = self.listener {
                    self.stack.set_backlog(listener, usize::from(len % 4));
                }
            }
            Happening::Listen(rules) => self.listen(&rules),
            Happening::Configure(rules) => {
                if let Some(id) = self.peer().id {
                    let apply = |config: &mut Config| *config = rules.apply(config.clone());
                    self.stack.configure(self.now, id, apply);
                }
            }
        }
        self.settle();
    }

    fn choose(&mut self, number: u16) {
        let mut flow = self.peers[0].flow;
        flow.remote.port += number;
        let known = self.peers.iter().position(|peer| peer.flow == flow);
        self.current = known.unwrap_or(self.peers.len());
        if known.is_none() {
            self.peers.push(Peer::new(flow));
        }
    }

    fn listen(&mut self, rules: &Rules) {
        if let Some(listener) = self.listener {
            self.stack.unlisten(self.now, listener);
        }
        let config = rules.apply(self.stack.config().clone());
        let local = self.peer().flow.local;
        self.listener = Some(self.stack.listen_with(local, 2, config));
    }

    /// Closes everything, without further responses of peers.
    fn end(mut self) {
        self.accepts = true;
        let end = self.now + Span::from_secs(100_000);
        loop {
            self.accept();
            for id in self.peers.iter().filter_map(|peer| peer.id) {
                self.stack.close(id);
            }
            self.settle();
            match self.stack.poll_timeout() {
                Some(due) if due < end => self.now = self.now.max(due),
                _ => break,
            }
            self.stack.handle_timeouts(self.now);
            self.settle();
        }
        assert!(
            self.stack.is_empty(),
            "{} connections remain",
            self.stack.len()
        );
    }

    /// Executes at most `most` of the steps in the input.
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

    /// Executes one step, lets the stack respond, and checks it.
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
                    let state =
                        Portable::from_bytes(&bytes).expect("an exported state can be decoded");
                    assert!(self.put_in(state), "an exported connection can be imported");
                }
            }
            call => {
                if let Some(id) = self.peer().id {
                    self.call(id, call);
                }
            }
        }
        self.settle();
    }

    /// Executes a system call of the owner.
    fn call(&mut self, id: ConnId, step: Step) {
        let (stack, peer) = (&mut self.stack, &mut self.peers[self.current]);
        match step {
            Step::Write {
                len,
                more,
                end_of_record,
            } => {
                let flags = WriteFlags {
                    more,
                    end_of_record,
                    urgent: more && end_of_record,
                };
                let piece = symbolic(1, peer.offset, len.into());
                peer.offset += stack.write_with(id, piece, flags).unwrap_or(0) as u64;
            }
            Step::Read(max) => {
                let max = usize::from(max).max(1);
                let seen = stack.peek(id, 0, max);
                let piece = stack.read(id, max);
                assert_eq!(seen, piece, "peek and read return the same data");
                peer.unconsumed += piece.map_or(0, |piece| piece.len as usize);
            }
            Step::Consume(len) => {
                let len = usize::from(len).min(peer.unconsumed);
                peer.unconsumed -= len;
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
            | Step::Move => unreachable!("these steps are not calls"),
        }
    }

    /// Exports the connection from the stack and returns its state as bytes.
    pub(crate) fn take_out(&mut self) -> Option<Vec<u8>> {
        let id = self.peer().id.take()?;
        let bytes = self.stack.export(self.now, id).to_bytes();
        self.stack.check();
        Some(bytes)
    }

    /// Imports a connection into the stack; returns false if the stack rejects it.
    pub(crate) fn put_in(&mut self, state: Portable<Symbolic>) -> bool {
        let id = self.stack.import(self.now, state).ok();
        // If the input damaged the state, the flow may have changed.
        let flow = id.map_or(self.peer().flow, |id| self.stack.flow(id));
        let peer = self.peer();
        (peer.id, peer.flow, peer.unconsumed) = (id, flow, 0);
        self.settle();
        self.peer().id.is_some()
    }

    /// Lets time pass, and runs timers when they are due.
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

    /// Processes the output and events of the stack, and checks it.
    fn settle(&mut self) {
        self.stack.check();
        for count in 0.. {
            let Some((_, segment)) = self.stack.poll_transmit(self.now) else {
                break;
            };
            assert!(count < MOST_OUTPUT, "the stack must stop sending");
            if let Some(option) = segment.header.options.fast_open {
                self.cookie = option.cookie;
            }
            let mut peers = self.peers.iter_mut();
            if let Some(peer) = peers.find(|peer| peer.flow.remote == segment.dst) {
                peer.received_end = segment.header.seq + segment.sequence_len();
                peer.received = segment.header;
            }
        }
        self.stack.check();
        while let Some((id, event)) = self.stack.poll_event() {
            self.take_event(id, &event);
        }
        self.stack.check();
        for id in self.peers.iter().filter_map(|peer| peer.id) {
            // Getters must work in every state.
            let (state, space) = (self.stack.state(id), self.stack.send_space(id));
            let info = self.stack.info(self.now, id);
            assert_eq!(info.state, state);
            assert!(state != State::TimeWait || space == 0);
        }
    }

    fn take_event(&mut self, id: ConnId, event: &Event) {
        if let Event::Acceptable(listener) = event {
            assert_eq!(Some(*listener), self.listener);
            if self.accepts {
                self.accept();
            }
            return;
        }
        let left = self.left.iter().position(|left| *left == id);
        if let (Some(left), Event::Closed(_)) = (left, event) {
            self.left.swap_remove(left);
            return;
        }
        let owner = self.peers.iter_mut().find(|peer| peer.id == Some(id));
        let owner = owner.unwrap_or_else(|| panic!("{event:?} is about an unknown connection"));
        if let Event::Closed(_) = event {
            (owner.id, owner.unconsumed) = (None, 0);
        }
    }

    /// Accepts all pending connections.
    fn accept(&mut self) {
        let Some(listener) = self.listener else {
            return;
        };
        while let Some(id) = self.stack.accept(listener) {
            let flow = self.stack.flow(id);
            let peer = self.peers.iter().position(|peer| peer.flow == flow);
            self.own(peer.expect("only these peers connect"), id);
        }
    }
}
