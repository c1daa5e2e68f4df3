//! Applications that may break every rule of the protocol use an adapter that is connected to a network. Whatever they request and whatever
//! the network does, the adapter answers every request once, delivers every byte in order, keeps its invariants, and frees everything that
//! belongs to an application that disconnects.

use baton_bus::descriptor::{Action, Buffer, Close, Opcode, Outcome, SocketOption, Status};
use baton_bus::link::{Dma, DmaId};
use baton_bus::{Descriptor, HostLink};
use baton_cluster::world::{ADAPTER, ANY, App, PEER, PEER_V6, Received, World, accept, set};
use baton_nic::adapter::Ending;
use baton_tcp::{ConnId, Event};
use baton_testkit::{Random, symbolic};
use baton_wire::{Endpoint, Span, Stages, Symbolic};
use std::collections::{BTreeMap, BTreeSet};

/// Number of steps in a run.
const STEPS: usize = 200;
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
    let mut play = Play::new(Random::beginning_with(data));
    for _ in 0..STEPS {
        play.step();
        play.absorb();
    }
    play.end();
}

/// Numbers of rarer requests that have a buffer.
const FORWARD: u64 = 6;
const IMPORT: u64 = 7;
const EXPORT: u64 = 8;

const CLOSES: [Close; 3] = [Close::Write, Close::Both, Close::Abort];

fn port(random: &mut Random) -> u16 {
    FIRST_PORT + random.below(PORTS.into()) as u16
}

fn remote(random: &mut Random) -> Endpoint {
    let (addr, port) = random.one_of(&[(PEER, PEER_PORT), (PEER_V6, PEER_PORT), (PEER, 9)]);
    Endpoint::new(addr, port)
}

/// Draws a length that is nearly always within a buffer.
fn buffer_len(random: &mut Random) -> u32 {
    match random.below(1 << 16) as u32 {
        len @ 0xff00.. => len,
        len => len % 4096 + 1,
    }
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Plain,
    Close,
    Accept,
    Send,
    Receive,
    /// A SEND with inline data, a buffer whose content is not a packet or state, a CANCEL, or the data cache.
    Odd,
}

/// Draws a request without a buffer.
fn plain(random: &mut Random) -> Action {
    match random.below(7) {
        0 => Action::Socket,
        1 => {
            let addr = random.one_of(&[ANY, ADAPTER]);
            Action::Bind(Endpoint::new(addr, port(random)))
        }
        2 => Action::Listen {
            backlog: random.below(5) as u32,
        },
        3 => Action::Connect(remote(random)),
        4 => match random.one_of(&SocketOption::ALL) {
            // Any combination of the three flags, or the undefined bit above them.
            SocketOption::Times => set(SocketOption::Times, random.below(9) as u32),
            option => set(option, random.one_of(&[0, 1, 4096, 9000, 1 << 16])),
        },
        5 => Action::Status,
        _ => Action::PacketSocket,
    }
}

/// A request that has not been answered.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    socket: u32,
    kind: Kind,
    /// Address of the request's buffer.
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
    random: Random,
    world: World,
    models: Vec<Model>,
    peers: Vec<PeerConn>,
}

impl Play {
    fn new(mut random: Random) -> Self {
        let mut world = World::with(|config| {
            config.cumulative_sends = random.percent(50);
            config.reports_unread = true;
            config.most_inline = random.one_of(&[0, 100]);
            config.batching.level = 1 + random.below(4) as u32;
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
            introduce(&mut world, app);
        }
        for addr in [PEER, PEER_V6] {
            world.peer_listens(Endpoint::new(addr, PEER_PORT));
        }
        let model = |app| Model {
            app,
            ..Model::default()
        };
        let mut play = Self {
            random,
            world,
            models: vec![model(0), model(1)],
            peers: Vec::new(),
        };
        for model in 0..2 {
            play.begin(model);
        }
        play
    }

    fn step(&mut self) {
        let Self { random, world, .. } = self;
        let model = random.below(2) as usize;
        match random.below(7) {
            0 => {
                for _ in 0..3 {
                    self.request();
                    self.absorb();
                }
            }
            1 => {
                let id = world.peer_connects(port(random));
                self.meet(id);
            }
            2 => {
                self.peer();
                self.peer();
            }
            3 => {
                world.turn();
            }
            4 => world.wait(Span::from_us(random.below(1 << 16) * 6)),
            5 => {
                let (socket, remote) = (random.below(NUMBERS.into()) as u32, remote(random));
                for action in [Action::Socket, Action::Connect(remote)] {
                    self.ask(model, socket, action, Kind::Plain, None);
                }
            }
            _ => match random.below(5) {
                0 => {
                    let ending = random.one_of(&[Ending::Drain, Ending::Reset]);
                    self.replace(model, ending);
                }
                1 => {
                    let refuses = random.percent(50);
                    self.faults(model).refuse_responses(refuses);
                }
                2 => {
                    let polls = random.below(6) as u32;
                    self.faults(model).delay_dma(polls);
                }
                3 => world.loss_percent = random.one_of(&[0, 5, 30]),
                // The adapter may disconnect an application that breaks the rules, which discards the state that earlier steps have built up.
                _ if random.below(16) > 0 => {}
                _ => self.break_rules(model),
            },
        }
    }

    fn faults(&self, model: usize) -> baton_bus::link::Faults {
        self.world.apps[self.models[model].app].faults.clone()
    }

    /// Puts any four words into the ring, or completes a transfer that was not requested.
    fn break_rules(&mut self, model: usize) {
        let (random, app) = (&mut self.random, self.models[model].app);
        if random.percent(50) {
            // The entry continues with arbitrary data.
            let head = Descriptor([(); 4].map(|()| random.word()));
            let mut entry = vec![Descriptor::default(); 1 + head.continuations()];
            entry[0] = head;
            // The ring may be full.
            let _ = self.world.apps[app].link.put(self.world.now, &entry);
            return self.is_unruly(model);
        }
        let (id, len) = (
            DmaId(random.below(256) as u32),
            random.below(1 << 16) as u32,
        );
        let data = symbolic(3, 0, len);
        let over = match random.percent(50) {
            true => Dma::Read { id, data },
            false => Dma::Written { id },
        };
        self.world.run();
        let World {
            now,
            adapter,
            stack,
            apps,
            ..
        } = &mut self.world;
        let Some(session) = apps[app].session else {
            return;
        };
        let handled = adapter.handle_dma(*now, stack, session, over);
        assert!(
            handled.is_err(),
            "no transfer is pending that it could complete"
        );
        self.replace(model, Ending::Reset);
    }

    fn is_unruly(&mut self, model: usize) {
        let model = &mut self.models[model];
        model.is_unruly = true;
        self.world.apps[model.app].is_unruly = true;
    }

    /// Chooses a socket. ACCEPTs mostly use the listener, socket 0, and all other requests use other sockets.
    fn choose(&mut self, model: usize, about: Subject) -> u32 {
        if self.random.below(256) < 36 {
            return self.random.below(NUMBERS.into()) as u32;
        }
        if about == Subject::Accept {
            return 0;
        }
        let Model { known, open, .. } = &self.models[model];
        let is_open = self.random.percent(50)
            && matches!(about, Subject::Close | Subject::Send | Subject::Receive)
            && !open.is_empty();
        let known = if is_open { open } else { known };
        let known: Vec<u32> = known.range(1..).chain(&[0]).copied().collect();
        // Choose 0 only if there is no other number.
        known[self.random.below(known.len().max(2) as u64 - 1) as usize]
    }

    /// Makes the application listen on socket 0, as most applications do.
    fn begin(&mut self, model: usize) {
        let local = Endpoint::new(ANY, FIRST_PORT + model as u16);
        let listen = Action::Listen { backlog: 4 };
        for action in [Action::Socket, Action::Bind(local), listen] {
            self.ask(model, 0, action, Kind::Plain, None);
        }
        self.world.run();
    }

    /// Lets an application make any request.
    fn request(&mut self) {
        let model = self.random.below(2) as usize;
        let about = self.random.one_of(&[
            Subject::Plain,
            Subject::Close,
            Subject::Accept,
            Subject::Send,
            Subject::Send,
            Subject::Receive,
            Subject::Receive,
            Subject::Odd,
            Subject::Odd,
        ]);
        let socket = self.choose(model, about);
        let random = &mut self.random;
        let (action, kind) = match about {
            Subject::Plain => {
                let action = plain(random);
                let option = SocketOption::Times;
                let times = matches!(action, Action::SetOption { option: of, .. } if of == option);
                (action, if times { Kind::Times } else { Kind::Plain })
            }
            Subject::Close => match random.one_of(&CLOSES) {
                Close::Write => (Action::Close(Close::Write), Kind::Plain),
                how => (Action::Close(how), Kind::Close),
            },
            Subject::Accept => {
                let (first, count) = (random.below(NUMBERS.into()) as u32, random.below(3) as u16);
                let action = accept(first, 1 + count, random.one_of(&[0, 500, 5000]));
                (action, Kind::Accept { first })
            }
            Subject::Send => return self.send(model, socket),
            Subject::Receive => {
                let (len, link) = (
                    buffer_len(random),
                    &mut self.world.apps[self.models[model].app].link,
                );
                let Some(address) = link.reserve() else {
                    return;
                };
                if len > link.buffer_bytes() {
                    self.is_unruly(model);
                }
                let action = Action::Receive { address, len };
                return self.ask(model, socket, action, Kind::Receive, Some(address));
            }
            Subject::Odd => return self.request_oddly(model, socket),
        };
        self.ask(model, socket, action, kind, None);
    }

    /// Places data of the next request in a buffer. Its source identifies the request.
    fn place(&mut self, model: usize, mark: u64) -> Option<(u64, u32)> {
        let Model { app, last_tag, .. } = self.models[model];
        let len = buffer_len(&mut self.random).min(4096);
        let source = mark | (app as u64) << 32 | u64::from(last_tag + 1);
        let link = &mut self.world.apps[app].link;
        Some((link.place(symbolic(source, 0, len)).ok()?, len))
    }

    fn send(&mut self, model: usize, socket: u32) {
        let more = self.random.percent(50);
        let mut times = Stages::from_bits_truncate(self.random.below(8) as u8);
        if !self.models[model].timed.contains(&socket) {
            times = Stages::empty();
        }
        if let Some((address, len)) = self.place(model, 0) {
            let data = Buffer::Memory { address, len };
            let action = Action::Send { data, more, times };
            self.ask(model, socket, action, Kind::Send, Some(address));
        }
    }

    /// Lets an application make a rarer request.
    fn request_oddly(&mut self, model: usize, socket: u32) {
        let random = &mut self.random;
        let offset = 512 * random.below(40) as u32;
        match random.below(12) {
            0..3 => {
                let Model { app, last_tag, .. } = self.models[model];
                let source = (app as u64) << 32 | u64::from(last_tag + 1);
                let data = symbolic(source, 0, 1 + random.below(240) as u32);
                let tag = self.world.try_post_inline(app, socket, data);
                let waiting = Waiting {
                    socket,
                    kind: Kind::Send,
                    address: None,
                };
                self.note(model, tag, Action::Status, waiting);
            }
            3..6 => {
                let target = self.models[model].last_tag;
                let target = target.saturating_sub(random.below(20) as u32);
                self.ask(model, socket, Action::Cancel { target }, Kind::Plain, None);
            }
            how @ FORWARD..=EXPORT => {
                let more = random.percent(50);
                self.ask_with_buffer(model, socket, how, more);
            }
            _ => match random.below(8) {
                0 => self.ask(model, socket, Action::CacheInit, Kind::Plain, None),
                1..4 => {
                    if let Some((address, len)) = self.place(model, INSERTED) {
                        let action = Action::CacheInsert {
                            address,
                            len,
                            offset,
                        };
                        self.ask(model, socket, action, Kind::Plain, Some(address));
                    }
                }
                _ => {
                    let len = buffer_len(random).min(4096);
                    let more = random.percent(50);
                    let action = Action::SendCached { offset, len, more };
                    self.ask(model, socket, action, Kind::Cached, None);
                }
            },
        }
    }

    /// Makes a request whose buffer has neither a packet nor a state.
    fn ask_with_buffer(&mut self, model: usize, socket: u32, how: u64, more: bool) {
        let Some((address, len)) = self.place(model, 0) else {
            return;
        };
        let (action, kind) = match how {
            FORWARD => (Action::Forward { address, len }, Kind::Plain),
            IMPORT => (Action::Import { address, len, more }, Kind::Plain),
            _ => (Action::Export { address, len }, Kind::Export),
        };
        self.ask(model, socket, action, kind, Some(address));
    }

    /// Makes a request with a buffer, or without one.
    fn ask(&mut self, model: usize, socket: u32, action: Action, kind: Kind, address: Option<u64>) {
        let tag = self.world.try_post(self.models[model].app, socket, action);
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

    /// Lets the peer write, read, or end a connection.
    fn peer(&mut self) {
        let random = &mut self.random;
        let index = random.below(self.peers.len() as u64) as usize;
        let (does, len, end) = (random.below(4), random.below(20_000), random.below(5));
        let Some(conn) = self.peers.get_mut(index).filter(|conn| conn.is_open) else {
            return;
        };
        let (stack, id) = (&mut self.world.peer, conn.id);
        if does < 2 {
            let piece = symbolic(conn.source, conn.written, 1 + len as u32);
            conn.written += stack.write(id, piece).unwrap_or(0) as u64;
        }
        match (does, end) {
            (1 | 2, _) => read_all(stack, conn),
            (3, 0) => stack.shutdown(id),
            (3, 1) => stack.close(id),
            (3, 2) => stack.abort(id),
            _ => {}
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
        introduce(&mut self.world, app);
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

    /// Lets a moment pass.
    fn pass(&mut self) {
        self.world.wait(Span::from_ms(2));
        self.absorb();
    }

    /// Closes everything, and checks that all requests have been answered and nothing remains.
    fn end(mut self) {
        self.world.loss_percent = 0;
        for model in 0..2 {
            if self.models[model].is_unruly {
                self.replace(model, Ending::Reset);
            }
            self.faults(model).refuse_responses(false);
            self.faults(model).delay_dma(0);
        }
        self.world.wait(Span::from_secs(5));
        self.absorb();
        for model in 0..2 {
            for socket in 0..NUMBERS + 4 {
                // If the socket's connection is being moved, the last IMPORT or EXPORT of the move closes it.
                self.ask(
                    model,
                    socket,
                    Action::Close(Close::Abort),
                    Kind::Close,
                    None,
                );
                self.pass();
                for how in [IMPORT, EXPORT] {
                    self.ask_with_buffer(model, socket, how, false);
                    self.pass();
                }
            }
        }
        for conn in self.peers.iter_mut().filter(|conn| conn.is_open) {
            read_all(&mut self.world.peer, conn);
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

    /// Checks that the data continues the stream of the same peer, or begins the stream of another peer.
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

    /// Checks that the peer has sent the bytes that the adapter reports as unread.
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

/// Enables timestamps for an application, on a clock that it shares with the adapter, and lets it share listeners with the others.
fn introduce(world: &mut World, app: usize) {
    let session = world.apps[app].session.expect("it is attached");
    world.adapter.set_epoch(session, EPOCH_NS);
    world.adapter.set_user(session, 0);
}

fn read_all(stack: &mut baton_tcp::Stack<Symbolic>, conn: &mut PeerConn) {
    while let Some(piece) = stack.read(conn.id, usize::MAX) {
        stack.consume(conn.id, piece.len as usize);
        conn.read.push(piece);
    }
}
