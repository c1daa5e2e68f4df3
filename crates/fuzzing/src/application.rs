//! Applications that may break every rule of the protocol use an adapter that is connected to a network. Whatever they request and whatever
//! the network does, the adapter answers every request once, delivers every byte in order, keeps its invariants, and frees everything that
//! belongs to an application that disconnects.

use arbitrary::{Arbitrary, Unstructured};
use baton_bus::descriptor::{Action, Buffer, Close, Opcode, Outcome, SocketOption, Status};
use baton_bus::link::{Dma, DmaId};
use baton_bus::{Descriptor, HostLink};
use baton_cluster::world::{ADAPTER, ANY, App, PEER, PEER_V6, Received, World, accept, set};
use baton_nic::adapter::Ending;
use baton_tcp::{ConnId, Event};
use baton_testkit::symbolic;
use baton_wire::{Endpoint, Span, Stages, Symbolic};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of steps in a run.
const MOST_STEPS: usize = 400;
/// Upper bound of socket numbers.
const NUMBERS: u32 = 12;
/// First of the ports at which applications listen.
const FIRST_PORT: u16 = 1000;
const PORTS: u16 = 3;
/// Port at which the peer listens.
const PEER_PORT: u16 = 80;
/// Bit that marks the sources of data in caches.
const INSERTED: u64 = 1 << 61;
/// Number of buffers of each application.
const BUFFERS: usize = 1024;

/// Interprets the input as requests, rule violations, network activity and time, and applies them to an adapter.
pub fn application(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok(settings) = input.arbitrary() else {
        return;
    };
    let mut play = Play::new(settings);
    for _ in 0..MOST_STEPS {
        match input.arbitrary() {
            Ok(step) if !input.is_empty() => play.step(step),
            _ => break,
        }
    }
    play.end();
}

#[derive(Debug, Arbitrary)]
struct Settings {
    cumulative_sends: bool,
    inlines: bool,
    level: u8,
}

/// The next action. An even number selects one of the two applications, an odd number the other.
#[derive(Debug, Arbitrary)]
enum Step {
    Ask([Ask; 3]),
    PeerConnects(u16),
    Peer([(u8, PeerDoes); 2]),
    Turn,
    Wait {
        us: u32,
    },
    /// Requests SOCKET and CONNECT.
    Open {
        app: u8,
        socket: u8,
        remote: u8,
    },
    Rare(Rare),
}

/// An action that happens rarely.
#[derive(Debug, Arbitrary)]
enum Rare {
    /// One application leaves and another one replaces it.
    Replace {
        app: u8,
        drains: bool,
    },
    RefuseResponses {
        app: u8,
        refuse: bool,
    },
    DelayDma {
        app: u8,
        polls: u8,
    },
    Lose(u8),
    /// The adapter may disconnect an application that breaks the rules, which discards the state that earlier steps have built up. Only some
    /// breaches are therefore carried out.
    Break {
        app: u8,
        how: Breach,
        is_meant: u8,
    },
}

/// Violation of the rules by an application: any four words, or the completion of a transfer that was not requested.
#[derive(Debug, Arbitrary)]
enum Breach {
    Words([u64; 4]),
    Dma { id: u8, len: u16, is_read: bool },
}

/// Breaches with a smaller `is_meant` are carried out.
const MEANT: u8 = 16;

#[derive(Debug, Arbitrary)]
struct Ask {
    app: u8,
    socket: u8,
    /// If below [`ANY_SOCKET`], use any socket instead of one that the application knows.
    chosen: u8,
    what: Asked,
}

const ANY_SOCKET: u8 = 36;

/// A request by an application.
#[derive(Debug, Arbitrary)]
enum Asked {
    Plain(Plain),
    Accept { first: u8, count: u8, timeout: u8 },
    Send { len: u16, more: bool },
    Receive(u16),
    Odd(Odd),
}

/// A rarer request.
#[derive(Debug, Arbitrary)]
enum Odd {
    /// A SEND with inline data.
    Inline(u8),
    /// A request with a buffer whose content is not a packet or state.
    Buffer { len: u16, how: u8 },
    /// Cancels the request that was `back` requests earlier.
    Cancel { back: u8 },
    /// A request for the data cache.
    Cache { how: u8, unit: u8, len: u16 },
}

/// A request without a buffer.
#[derive(Debug, Arbitrary)]
enum Plain {
    Socket,
    Bind { port: u16, any_addr: bool },
    Listen(u8),
    Connect(u8),
    Close(u8),
    SetOption { which: u8, value: u8 },
    Status,
    PacketSocket,
}

/// An action of the peer on a connection.
#[derive(Debug, Arbitrary)]
enum PeerDoes {
    Write(u16),
    Read,
    WriteAndRead(u16),
    /// Shuts down, closes or aborts the connection, or does nothing.
    End(u8),
}

const CLOSES: [Close; 3] = [Close::Write, Close::Both, Close::Abort];
/// Index of [`Close::Abort`] in [`CLOSES`].
const ABORT: u8 = 2;

/// Returns the element with index `which`, modulo their number.
fn one_of<T: Copy>(all: &[T], which: u8) -> T {
    all[usize::from(which) % all.len()]
}

fn port(number: u16) -> u16 {
    FIRST_PORT + number % PORTS
}

fn remote(which: u8) -> Endpoint {
    let all = [(PEER, PEER_PORT), (PEER_V6, PEER_PORT), (PEER, 9)];
    let (addr, port) = one_of(&all, which);
    Endpoint::new(addr, port)
}

/// Returns a length that is nearly always within a buffer.
fn buffer_len(len: u16) -> u32 {
    match len {
        0xff00.. => len.into(),
        _ => u32::from(len % 4096) + 1,
    }
}

impl Plain {
    fn action(&self) -> Action {
        match *self {
            Self::Socket => Action::Socket,
            Self::Bind {
                port: number,
                any_addr,
            } => {
                let addr = if any_addr { ANY } else { ADAPTER };
                Action::Bind(Endpoint::new(addr, port(number)))
            }
            Self::Listen(backlog) => Action::Listen {
                backlog: (backlog % 5).into(),
            },
            Self::Connect(which) => Action::Connect(remote(which)),
            Self::Close(how) => Action::Close(one_of(&CLOSES, how)),
            // Any combination of the three flags, or the undefined bit above them.
            Self::SetOption { which, value }
                if one_of(&SocketOption::ALL, which) == SocketOption::Times =>
            {
                set(SocketOption::Times, u32::from(value % 9))
            }
            Self::SetOption { which, value } => set(
                one_of(&SocketOption::ALL, which),
                one_of(&[0, 1, 4096, 9000, 1 << 16], value),
            ),
            Self::Status => Action::Status,
            Self::PacketSocket => Action::PacketSocket,
        }
    }
}

/// A request that has not been answered.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    socket: u32,
    kind: Kind,
    /// Its buffer.
    address: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    /// An ACCEPT, with the first socket number that it reserves.
    Accept {
        first: u32,
    },
    /// A CLOSE of both directions.
    Close,
    /// SETSOCKOPT of times.
    Times,
    /// A SEND with data in its buffer or inline.
    Send,
    Receive,
    /// A SEND from the cache, with the bytes of an earlier INSERT.
    Cached,
    Export,
}

/// Expected state of an application.
#[derive(Default)]
struct Model {
    /// Index of the application in the world.
    app: usize,
    /// Whether the application has violated the rules. Responses to it are then not checked, as long as the adapter keeps the session.
    is_unruly: bool,
    /// Unanswered requests, by tag.
    waiting: BTreeMap<u32, Waiting>,
    /// Sockets of SENDs that were answered with `Ok`, by tag.
    sent: BTreeMap<u32, u32>,
    /// Source and number of the bytes that each socket has received.
    received: BTreeMap<u32, (u64, u64)>,
    last_tag: u32,
    /// Sockets that may exist.
    known: BTreeSet<u32>,
    /// Sockets in `known` that have a connection.
    open: BTreeSet<u32>,
    /// Sockets for which times were requested successfully.
    timed: BTreeSet<u32>,
}

/// Value at `Time::ZERO` of the clock that the adapter shares with applications.
const EPOCH_NS: u64 = 1 << 40;

/// Expected state of a connection at the peer.
struct PeerConn {
    id: ConnId,
    is_open: bool,
    /// Source of the data that the peer sends on it.
    source: u64,
    written: u64,
    read: Vec<Symbolic>,
}

struct Play {
    world: World,
    models: Vec<Model>,
    peers: Vec<PeerConn>,
}

impl Play {
    fn new(settings: Settings) -> Self {
        let mut world = World::with(|config| {
            config.cumulative_sends = settings.cumulative_sends;
            config.reports_unread = true;
            config.most_inline = if settings.inlines { 100 } else { 0 };
            config.batching.level = u32::from(settings.level % 4) + 1;
            config.ring_depth = 16;
            config.most_sockets = 10;
            config.most_sends = 5;
            config.most_receives = 5;
            config.most_accepts = 2;
            config.most_backlog = 4;
            config.drain_ms = 1_000;
            config.cache_bytes = 16_384;
            config.most_inserts = 3;
        });
        world.attach();
        for app in 0..2 {
            share_clock(&mut world, app);
        }
        for addr in [PEER, PEER_V6] {
            world.peer_listens(Endpoint::new(addr, PEER_PORT));
        }
        let model = |app| Model {
            app,
            ..Model::default()
        };
        let mut play = Self {
            world,
            models: vec![model(0), model(1)],
            peers: Vec::new(),
        };
        for model in 0..2 {
            play.begin(model);
        }
        play
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Ask(asks) => {
                for Ask {
                    app,
                    socket,
                    chosen,
                    what,
                } in asks
                {
                    let model = usize::from(app % 2);
                    let socket = match chosen {
                        ..ANY_SOCKET => u32::from(socket) % NUMBERS,
                        _ => self.choose(model, socket, &what),
                    };
                    self.ask(model, socket, what);
                    self.absorb();
                }
            }
            Step::PeerConnects(number) => {
                let id = self.world.peer_connects(port(number));
                self.meet(id);
            }
            Step::Peer(acts) => {
                for (conn, does) in &acts {
                    self.peer(usize::from(*conn), does);
                }
            }
            Step::Turn => {
                self.world.turn();
            }
            Step::Wait { us } => self.world.wait(Span::from_us((us % 400_000).into())),
            Step::Open {
                app,
                socket,
                remote: which,
            } => {
                let (model, socket) = (usize::from(app % 2), u32::from(socket) % NUMBERS);
                self.ask(model, socket, Asked::Plain(Plain::Socket));
                self.ask(model, socket, Asked::Plain(Plain::Connect(which)));
            }
            Step::Rare(rare) => self.rare(rare),
        }
        self.absorb();
    }

    fn rare(&mut self, rare: Rare) {
        match rare {
            Rare::Replace { app, drains } => {
                let ending = if drains { Ending::Drain } else { Ending::Reset };
                self.replace(usize::from(app % 2), ending);
            }
            Rare::RefuseResponses { app, refuse } => self.faults(app).refuse_responses(refuse),
            Rare::DelayDma { app, polls } => self.faults(app).delay_dma((polls % 6).into()),
            Rare::Lose(which) => self.world.loss_percent = one_of(&[0, 5, 30], which),
            Rare::Break { is_meant, .. } if is_meant >= MEANT => {}
            Rare::Break { app, how, .. } => self.break_rules(usize::from(app % 2), how),
        }
    }

    fn faults(&self, app: u8) -> baton_bus::link::Faults {
        let app = self.models[usize::from(app % 2)].app;
        self.world.apps[app].faults.clone()
    }

    fn break_rules(&mut self, model: usize, how: Breach) {
        let (now, app) = (self.world.now, self.models[model].app);
        match how {
            Breach::Words(words) => {
                // The entry continues with arbitrary data.
                let head = Descriptor(words);
                let mut entry = vec![Descriptor::default(); 1 + head.continuations()];
                entry[0] = head;
                // The ring may be full.
                let _ = self.world.apps[app].link.put(now, &entry);
                self.is_unruly(model);
            }
            Breach::Dma { id, len, is_read } => {
                self.world.run();
                let Some(session) = self.world.apps[app].session else {
                    return;
                };
                let id = DmaId(id.into());
                let over = match is_read {
                    true => Dma::Read {
                        id,
                        data: symbolic(3, 0, len.into()),
                    },
                    false => Dma::Written { id },
                };
                let World { adapter, stack, .. } = &mut self.world;
                let handled = adapter.handle_dma(now, stack, session, over);
                assert!(
                    handled.is_err(),
                    "no transfer is pending that it could complete"
                );
                self.replace(model, Ending::Reset);
            }
        }
    }

    fn is_unruly(&mut self, model: usize) {
        let model = &mut self.models[model];
        model.is_unruly = true;
        self.world.apps[model.app].is_unruly = true;
    }

    /// Chooses a socket. ACCEPTs mostly use the listener, socket 0, and all other requests use other sockets.
    fn choose(&self, model: usize, index: u8, what: &Asked) -> u32 {
        if matches!(what, Asked::Accept { .. }) {
            return 0;
        }
        let Model { known, open, .. } = &self.models[model];
        let known = match what {
            Asked::Plain(Plain::Close(_)) | Asked::Send { .. } | Asked::Receive(_)
                if !open.is_empty() && index.is_multiple_of(2) =>
            {
                open
            }
            _ => known,
        };
        let known: Vec<u32> = known.range(1..).copied().collect();
        let index = usize::from(index / 2).checked_rem(known.len());
        index.map_or(0, |index| known[index])
    }

    /// Makes the application listen on socket 0, as most applications do.
    fn begin(&mut self, model: usize) {
        let (port, any_addr) = (model as u16, true);
        for plain in [
            Plain::Socket,
            Plain::Bind { port, any_addr },
            Plain::Listen(4),
        ] {
            self.ask(model, 0, Asked::Plain(plain));
        }
        self.world.run();
    }

    fn ask(&mut self, model: usize, socket: u32, what: Asked) {
        let known = &self.models[model];
        let (app, next_tag) = (known.app, known.last_tag + 1);
        // The source identifies the SEND that the data belongs to.
        let source = (app as u64) << 32 | u64::from(next_tag);
        let link = &mut self.world.apps[app].link;
        let (action, kind, address) = match what {
            Asked::Plain(plain) => match plain.action() {
                action @ Action::Close(Close::Both | Close::Abort) => (action, Kind::Close, None),
                action @ Action::SetOption {
                    option: SocketOption::Times,
                    ..
                } => (action, Kind::Times, None),
                action => (action, Kind::Plain, None),
            },
            Asked::Accept {
                first,
                count,
                timeout,
            } => {
                let (first, count) = (u32::from(first) % NUMBERS, u16::from(count % 3) + 1);
                let timeout_us = one_of(&[0, 500, 5000], timeout);
                let action = accept(first, count, timeout_us);
                (action, Kind::Accept { first }, None)
            }
            Asked::Odd(Odd::Cancel { back }) => {
                let target = (next_tag - 1).saturating_sub(u32::from(back % 20));
                (Action::Cancel { target }, Kind::Plain, None)
            }
            Asked::Receive(len) => {
                let Some(address) = link.reserve() else {
                    return;
                };
                let len = buffer_len(len);
                if len > link.buffer_bytes() {
                    self.is_unruly(model);
                }
                let action = Action::Receive { address, len };
                (action, Kind::Receive, Some(address))
            }
            Asked::Odd(Odd::Inline(len)) => {
                let data = symbolic(source, 0, u32::from(len % 240) + 1);
                let tag = self.world.try_post_inline(app, socket, data);
                let waiting = Waiting {
                    socket,
                    kind: Kind::Send,
                    address: None,
                };
                return self.note(model, tag, Action::Status, waiting);
            }
            Asked::Send { len, more } => {
                let len = buffer_len(len).min(4096);
                let Ok(address) = link.place(symbolic(source, 0, len)) else {
                    return;
                };
                let data = Buffer::Memory { address, len };
                let mut times = Stages::empty();
                if self.models[model].timed.contains(&socket) {
                    times = Stages::from_bits_truncate(address as u8 ^ len as u8);
                }
                let send = Action::Send { data, more, times };
                (send, Kind::Send, Some(address))
            }
            Asked::Odd(Odd::Cache { how, unit, len }) => {
                let (offset, len) = (512 * u32::from(unit % 40), buffer_len(len).min(4096));
                match how % 8 {
                    0 => (Action::CacheInit, Kind::Plain, None),
                    1..4 => {
                        let Ok(address) = link.place(symbolic(INSERTED | source, 0, len)) else {
                            return;
                        };
                        let insert = Action::CacheInsert {
                            address,
                            len,
                            offset,
                        };
                        (insert, Kind::Plain, Some(address))
                    }
                    _ => {
                        let more = how & 8 != 0;
                        let send = Action::SendCached { offset, len, more };
                        (send, Kind::Cached, None)
                    }
                }
            }
            Asked::Odd(Odd::Buffer { len, how }) => {
                let len = buffer_len(len).min(4096);
                let Ok(address) = link.place(symbolic(source, 0, len)) else {
                    return;
                };
                let more = how & 4 != 0;
                let (action, kind) = match how % 3 {
                    0 => (Action::Forward { address, len }, Kind::Plain),
                    1 => (Action::Import { address, len, more }, Kind::Plain),
                    _ => (Action::Export { address, len }, Kind::Export),
                };
                (action, kind, Some(address))
            }
        };
        let tag = self.world.try_post(app, socket, action);
        let waiting = Waiting {
            socket,
            kind,
            address,
        };
        self.note(model, tag, action, waiting);
    }

    /// Records a request if the ring had space for it; otherwise frees its buffer.
    fn note(&mut self, model: usize, tag: Option<u32>, action: Action, waiting: Waiting) {
        let model = &mut self.models[model];
        let Some(tag) = tag else {
            if let Some(address) = waiting.address {
                self.world.apps[model.app].link.free(address);
            }
            return;
        };
        assert_eq!(tag, model.last_tag + 1);
        model.last_tag = tag;
        match action {
            Action::Socket | Action::PacketSocket => {
                model.known.insert(waiting.socket);
            }
            Action::Accept { first, count, .. } => {
                model.known.extend(first..first + u32::from(count));
            }
            _ => {}
        }
        model.waiting.insert(tag, waiting);
    }

    fn meet(&mut self, id: ConnId) {
        let source = 1 << 60 | self.peers.len() as u64;
        self.peers.push(PeerConn {
            id,
            is_open: true,
            source,
            written: 0,
            read: Vec::new(),
        });
    }

    fn peer(&mut self, index: usize, does: &PeerDoes) {
        let count = self.peers.len();
        let Some(conn) = self.peers.get_mut(index.checked_rem(count).unwrap_or(0)) else {
            return;
        };
        if !conn.is_open {
            return;
        }
        let (stack, id) = (&mut self.world.peer, conn.id);
        if let PeerDoes::Write(len) | PeerDoes::WriteAndRead(len) = does {
            let piece = symbolic(conn.source, conn.written, u32::from(*len) % 20_000 + 1);
            conn.written += stack.write(id, piece).unwrap_or(0) as u64;
        }
        match does {
            PeerDoes::Write(_) => {}
            PeerDoes::Read | PeerDoes::WriteAndRead(_) => read_all(stack, conn),
            PeerDoes::End(how) => match how % 5 {
                0 => stack.shutdown(id),
                1 => stack.close(id),
                2 => stack.abort(id),
                _ => {}
            },
        }
    }

    fn replace(&mut self, model: usize, ending: Ending) {
        let app = self.models[model].app;
        // The adapter may have disconnected the application itself.
        if self.world.apps[app].session.is_some() {
            self.world.detach(app, ending);
        }
        // Unanswered SENDs may have been sent.
        let sent = std::mem::take(&mut self.models[model].waiting);
        let sent = sent
            .iter()
            .filter(|(_, waiting)| waiting.kind == Kind::Send);
        let maybe_sent: BTreeMap<u32, u32> =
            sent.map(|(&tag, waiting)| (tag, waiting.socket)).collect();
        if !self.models[model].is_unruly {
            self.check_sent(model, &maybe_sent);
        }
        let app = self.world.attach();
        share_clock(&mut self.world, app);
        self.models[model] = Model {
            app,
            ..Model::default()
        };
        self.begin(model);
    }

    /// Processes all responses and events.
    fn absorb(&mut self) {
        for index in 0..self.models.len() {
            let model = &mut self.models[index];
            if self.world.apps[model.app].session.is_none() {
                self.replace(index, Ending::Reset);
                continue;
            }
            for received in self.world.received(model.app) {
                if !model.is_unruly {
                    model.handle_response(&mut self.world.apps[model.app], &self.peers, &received);
                }
            }
        }
        for (id, event) in std::mem::take(&mut self.world.peer_events) {
            match event {
                Event::Acceptable(listener) => {
                    while let Some(id) = self.world.peer.accept(listener) {
                        self.meet(id);
                    }
                }
                Event::Closed(_) => {
                    let open = self
                        .peers
                        .iter_mut()
                        .find(|conn| conn.is_open && conn.id == id);
                    if let Some(conn) = open {
                        conn.is_open = false;
                    }
                }
                _ => {}
            }
        }
    }

    /// Checks that the data which the peer has read from an application consists of whole SENDs that were answered with `Ok`, or may have
    /// been, in the order in which they were requested and without gaps; the last one may be incomplete.
    fn check_sent(&self, model: usize, maybe: &BTreeMap<u32, u32>) {
        let model = &self.models[model];
        for conn in &self.peers {
            let of_model = conn
                .read
                .iter()
                .filter(|piece| (piece.source >> 32) as usize == model.app);
            let mut last: Option<(u32, u32, u64)> = None;
            for piece in of_model {
                let tag = piece.source as u32;
                let socket = model.sent.get(&tag).or(maybe.get(&tag));
                let &socket =
                    socket.expect("only data of SENDs that were answered with Ok arrives");
                match last {
                    Some((before, _, end)) if before == tag => assert_eq!(piece.offset, end),
                    Some((before, of, _)) => {
                        assert!(before < tag && of == socket, "data of one socket, in order");
                        let mut between = model.sent.range(before + 1..tag);
                        assert!(
                            between.all(|(_, &other)| other != socket),
                            "no SEND is missing between {before} and {tag}"
                        );
                        assert_eq!(piece.offset, 0);
                    }
                    None => assert_eq!(piece.offset, 0),
                }
                last = Some((tag, socket, piece.offset + u64::from(piece.len)));
            }
        }
    }

    /// Closes everything, and checks that all requests have been answered and nothing remains.
    fn end(mut self) {
        self.world.loss_percent = 0;
        for model in 0..2 {
            if self.models[model].is_unruly {
                self.replace(model, Ending::Reset);
            }
            self.faults(model as u8).refuse_responses(false);
            self.faults(model as u8).delay_dma(0);
        }
        self.world.wait(Span::from_secs(5));
        self.absorb();
        for model in 0..2 {
            for socket in 0..NUMBERS + 4 {
                // If the socket's connection is being moved, the last IMPORT or EXPORT of the move closes it.
                let (len, abort) = (4095, Asked::Plain(Plain::Close(ABORT)));
                let [import, export] = [1, 2].map(|how| Asked::Odd(Odd::Buffer { len, how }));
                for what in [abort, import, export] {
                    self.ask(model, socket, what);
                    self.world.wait(Span::from_ms(2));
                    self.absorb();
                }
            }
        }
        for index in 0..self.peers.len() {
            self.peer(index, &PeerDoes::Read);
        }
        self.world.run();
        for (index, model) in self.models.iter().enumerate() {
            assert!(model.waiting.is_empty(), "unanswered: {:?}", model.waiting);
            self.check_sent(index, &BTreeMap::new());
            let link = &self.world.apps[model.app].link;
            assert_eq!(link.free_buffers(), BUFFERS, "all buffers are free again");
        }
        assert!(self.world.adapter.sessions().all(|row| row.sockets == 0));
        for model in 0..2 {
            self.world.detach(self.models[model].app, Ending::Reset);
        }
        assert_eq!(self.world.stack.listeners().count(), 0);
        // Draining connections have limited time.
        self.world.wait(Span::from_secs(2));
        self.world.adapter.check();
        assert_eq!(self.world.adapter.orphans(), 0);
        assert!(self.world.stack.is_empty());
        assert_eq!(self.world.adapter.poll_timeout(), None);
    }
}

impl Model {
    fn handle_response(&mut self, app: &mut App, peers: &[PeerConn], received: &Received) {
        let (response, socket) = (received.response, received.response.socket);
        if response.tag == 0 {
            match response.outcome {
                Outcome::PeerClosed => self.check_complete(peers, socket),
                Outcome::Unread { len, .. } => self.check_unread(peers, socket, len),
                Outcome::Over => {
                    self.received.remove(&socket);
                    self.known.remove(&socket);
                    self.open.remove(&socket);
                }
                Outcome::Time { what, at_ns } => {
                    assert!(self.timed.contains(&socket), "{what:?} was not requested");
                    assert!(at_ns >= EPOCH_NS);
                }
                Outcome::Relief | Outcome::SoftLimit { .. } => {}
                other => panic!("{other:?} must not arrive without a request"),
            }
            return;
        }
        let Some(waiting) = self.waiting.remove(&response.tag) else {
            panic!("{response:?} answers an unknown request, or one that was answered before");
        };
        assert_eq!(waiting.socket, socket);
        let is_ok = response.status == Status::Ok;
        if response.status == Status::NoSuchSocket {
            self.known.remove(&socket);
            self.open.remove(&socket);
        }
        let mut free = waiting.address;
        match (response.outcome, waiting.kind) {
            (Outcome::Sent { cumulative, .. }, Kind::Send | Kind::Cached) => {
                if is_ok && waiting.kind == Kind::Send {
                    self.sent.insert(response.tag, socket);
                }
                if cumulative {
                    self.sent_before(app, response.tag, socket);
                }
            }
            (Outcome::Received(Buffer::Memory { len: 0, .. }), Kind::Receive) => assert!(!is_ok),
            (Outcome::Received(Buffer::Memory { address, len }), Kind::Receive) => {
                free = None;
                let piece = app.link.take(address, len);
                self.take_in(socket, piece.expect("it was written"));
            }
            (Outcome::Received(Buffer::Inline { .. }), Kind::Receive) => {
                let piece = received.inline.expect("an inline response has data");
                self.take_in(socket, piece);
            }
            (Outcome::Done(_), Kind::Times) => {
                if is_ok {
                    self.timed.insert(socket);
                }
            }
            (Outcome::Done(_), Kind::Close) => {
                if response.status != Status::WrongState {
                    self.received.remove(&socket);
                }
            }
            (_, Kind::Export) => {
                if is_ok {
                    self.received.remove(&socket);
                }
            }
            (Outcome::Done(Opcode::Connect), Kind::Plain) if is_ok => {
                self.open.insert(socket);
            }
            (Outcome::Accepted(_), Kind::Accept { first }) => {
                self.open.insert(first);
            }
            (Outcome::AcceptedBulk { .. }, Kind::Accept { .. }) => {
                self.open
                    .extend(received.peers.iter().map(|peer| peer.socket));
            }
            (_, Kind::Plain | Kind::Accept { .. }) => {}
            other => panic!("{other:?}: the response does not match the request"),
        }
        if let Some(address) = free {
            app.link.free(address);
        }
    }

    /// Handles a cumulative response, which also answers all earlier SENDs of the socket.
    fn sent_before(&mut self, app: &mut App, tag: u32, socket: u32) {
        let earlier = self.waiting.extract_if(..tag, |_, waiting| {
            waiting.socket == socket && matches!(waiting.kind, Kind::Send | Kind::Cached)
        });
        for (tag, waiting) in earlier {
            if waiting.kind == Kind::Send {
                self.sent.insert(tag, socket);
            }
            if let Some(address) = waiting.address {
                app.link.free(address);
            }
        }
    }

    /// Checks that the data continues the stream of the same peer, or begins that of another.
    fn take_in(&mut self, socket: u32, piece: Symbolic) {
        let (source, expected) = match self.received.get(&socket) {
            Some(&(source, next)) if source == piece.source => (source, next),
            _ => (piece.source, 0),
        };
        assert_eq!(
            piece.offset, expected,
            "data arrives in order and without gaps"
        );
        let next = expected + u64::from(piece.len);
        self.received.insert(socket, (source, next));
    }

    /// Checks that the peer has sent the bytes of which the adapter says that they wait.
    fn check_unread(&self, peers: &[PeerConn], socket: u32, len: u32) {
        assert!(len > 0);
        if let Some(&(source, next)) = self.received.get(&socket) {
            let peer = peers.iter().find(|conn| conn.source == source);
            assert!(peer.is_some_and(|conn| next + u64::from(len) <= conn.written));
        }
    }

    /// Checks that the socket has received all data before the end of the stream.
    fn check_complete(&self, peers: &[PeerConn], socket: u32) {
        if let Some(&(source, next)) = self.received.get(&socket) {
            let peer = peers.iter().find(|conn| conn.source == source);
            assert_eq!(peer.map(|conn| conn.written), Some(next));
        }
    }
}

/// Enables timestamps for an application, on a clock that it shares with the adapter.
fn share_clock(world: &mut World, app: usize) {
    let session = world.apps[app].session.expect("it is attached");
    world.adapter.set_epoch(session, EPOCH_NS);
}

fn read_all(stack: &mut baton_tcp::Stack<Symbolic>, conn: &mut PeerConn) {
    while let Some(piece) = stack.read(conn.id, usize::MAX) {
        stack.consume(conn.id, piece.len as usize);
        conn.read.push(piece);
    }
}
