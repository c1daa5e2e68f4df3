//! Connections in any state, whose peers and owner (the program that uses the stack) may do anything.

mod peer;

use baton_tcp::{
    ConnId, Event, FastOpen, FastOpenListening, ListenerId, Portable, Stack, State, WriteFlags,
};
use baton_testkit::{Random, any_config, endpoint, symbolic};
use baton_wire::{FastOpenCookie, Flags, Flow, Header, Options, SeqNr, Span, Symbolic, Time};

/// Number of events in a run.
const EVENTS: usize = 150;
/// Maximum number of segments that one step may cause: a full window of tiny segments, twice.
const MOST_OUTPUT: usize = 20_000;
/// The peer's initial sequence number, which is close to the wrap-around.
const PEER_ISS: SeqNr = SeqNr(0xffff_f000);
/// End of a run: 64-bit clocks in picoseconds overflow after 213 days.
const LAST_DAY: Time = Time::from_ps(Span::from_secs(200 * 24 * 3600).as_ps());
/// Maximum number of peers, and therefore of four-tuples.
const MOST_PEERS: u64 = 3;

/// State into which a connection is brought before anything may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The peer's SYN carried data, and the handshake is not complete.
    FastOpened,
    /// The stack's SYN carried data.
    FastSynSent,
}

const STARTS: [Start; 13] = [
    Start::Listen,
    Start::SynSent,
    Start::SynReceived,
    Start::SimultaneousOpen,
    Start::Established,
    Start::FinWait1,
    Start::FinWait2,
    Start::CloseWait,
    Start::Closing,
    Start::LastAck,
    Start::TimeWait,
    Start::FastOpened,
    Start::FastSynSent,
];

/// Brings a connection into the state that the input selects, then applies the segments and calls that follow to it and to other
/// connections. At the end, the owner closes everything and no peer responds any more. The stack must then become empty.
pub fn segments(data: &[u8]) {
    let mut conversation = Conversation::begin(Random::beginning_with(data));
    for _ in 0..EVENTS {
        conversation.event();
    }
    conversation.end();
}

/// One stack and its peers.
pub(crate) struct Conversation {
    pub(crate) random: Random,
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
    pub(crate) fn begin(mut random: Random) -> Self {
        let start = random.one_of(&STARTS);
        let config = any_config(&mut random);
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
            random,
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
        conversation
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
            self.shutdown();
        }
        match start {
            Start::FinWait2 => self.send(self.peer_next(), Flags::ACK, 0, self.usual()),
            Start::CloseWait => self.send(PEER_ISS + 1, Flags::ACK | Flags::FIN, 0, self.usual()),
            Start::Closing => {
                // The FIN crosses the stack's own FIN, and therefore does not acknowledge it.
                let ack = self.peer().received_end - 1;
                self.send_acknowledging(ack, PEER_ISS + 1, Flags::ACK | Flags::FIN, 0);
            }
            Start::LastAck => {
                self.send(PEER_ISS + 1, Flags::ACK | Flags::FIN, 0, self.usual());
                self.shutdown();
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

    fn shutdown(&mut self) {
        if let Some(id) = self.peer().id {
            self.stack.shutdown(id);
        }
        self.settle();
    }

    fn connect_fast(&mut self, len: u32, without_cookie: bool) {
        let how = match without_cookie {
            true => FastOpen::WithoutCookie,
            false => FastOpen::Cookie,
        };
        let (flow, config) = (self.peer().flow, self.stack.config().clone());
        let id = self.stack.connect_fast_open(self.now, flow, &config, how);
        let Some(id) = id else { return };
        self.own(self.current, id);
        self.write(id, len, WriteFlags::default());
    }

    fn write(&mut self, id: ConnId, len: u32, flags: WriteFlags) {
        let peer = &mut self.peers[self.current];
        let piece = symbolic(1, peer.offset, len);
        peer.offset += self.stack.write_with(id, piece, flags).unwrap_or(0) as u64;
    }

    fn take_fast_open(&mut self, pending: usize, without_cookie: bool) {
        let rules = FastOpenListening {
            pending,
            without_cookie,
        };
        if let Some(listener) = self.listener {
            self.stack.set_fast_open(listener, rules);
        }
    }

    /// Lets something happen, to one connection or to the whole stack.
    fn event(&mut self) {
        let Self {
            random,
            stack,
            listener,
            ..
        } = self;
        match random.below(9) {
            0 => self.steps(6),
            1 => {
                let number = random.below(MOST_PEERS) as u16;
                self.choose(number);
            }
            2 => self.connect(),
            3 => {
                let (len, without_cookie) = (random.below(1 << 16) as u32, random.percent(50));
                self.connect_fast(len, without_cookie);
            }
            4 => {
                let (pending, without_cookie) = (random.below(4) as usize, random.percent(50));
                self.take_fast_open(pending, without_cookie);
            }
            5 => self.accepts = random.percent(50),
            6 => {
                let len = random.below(4) as usize;
                if let Some(listener) = *listener {
                    stack.set_backlog(listener, len);
                }
            }
            7 => {
                let config = any_config(random);
                if let Some(listener) = listener.take() {
                    stack.unlisten(self.now, listener);
                }
                let local = self.peers[self.current].flow.local;
                *listener = Some(stack.listen_with(local, 2, config));
            }
            _ => {
                let new = any_config(random);
                if let Some(id) = self.peers[self.current].id {
                    stack.configure(self.now, id, |config| *config = new);
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

    /// Executes some steps for the connection of the current peer.
    pub(crate) fn steps(&mut self, count: u64) {
        for _ in 0..count {
            self.step();
        }
    }

    /// Executes one step, lets the stack respond, and checks it.
    fn step(&mut self) {
        let random = &mut self.random;
        match random.below(9) {
            0 | 1 => self.send_any(),
            2 => self.send(self.peer_next(), Flags::ACK, 0, self.usual()),
            3 => {
                let (flags, len) = (Flags::ACK | Flags::PSH, random.below(2000) as u32);
                self.send(self.peer_next(), flags, len, self.usual());
            }
            4 => {
                let ms = random.below(1 << 16) << random.one_of(&[0, 0, 16]);
                self.wait(Span::from_ms(ms));
            }
            5 => self.report(),
            6 => {
                if let Some(bytes) = self.take_out() {
                    let state = Portable::from_bytes(&bytes);
                    let state = state.expect("an exported state can be decoded");
                    assert!(self.put_in(state), "an exported connection can be imported");
                }
            }
            _ => {
                if let Some(id) = self.peer().id {
                    self.call(id);
                }
            }
        }
        self.settle();
    }

    /// Executes a system call of the owner.
    fn call(&mut self, id: ConnId) {
        let (random, peer) = (&mut self.random, &mut self.peers[self.current]);
        let (call, len) = (random.below(14), random.below(1 << 16) as usize);
        let (stack, on) = (&mut self.stack, random.percent(50));
        match call {
            0..3 => {
                let flags = WriteFlags {
                    more: on,
                    end_of_record: call == 0,
                    urgent: on && call == 0,
                };
                self.write(id, len as u32, flags);
            }
            3 | 4 => {
                let seen = stack.peek(id, 0, len.max(1));
                let piece = stack.read(id, len.max(1));
                assert_eq!(seen, piece, "peek and read return the same data");
                peer.unconsumed += piece.map_or(0, |piece| piece.len as usize);
            }
            5 | 6 => {
                let len = len.min(peer.unconsumed);
                peer.unconsumed -= len;
                stack.consume(id, len);
            }
            7 => stack.shutdown(id),
            8 => stack.close(id),
            9 => stack.abort(id),
            10 => stack.quick_ack(id),
            11 => stack.shutdown_receive(id),
            12 => stack.set_nodelay(id, on),
            _ => stack.set_cork(id, on),
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
    pub(crate) fn wait(&mut self, span: Span) {
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
