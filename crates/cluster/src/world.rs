//! Applications that exchange descriptors with an adapter, and a peer on the network.

use baton_bus::Descriptor;
use baton_bus::descriptor::{
    Action, Buffer, Close, Opcode, Outcome, Peer, Request, Response, SocketOption, Status, entries,
    read_peer,
};
use baton_bus::link::{Faults, MemoryAdapter, MemoryConfig, MemoryHost, memory_link};
use baton_bus::link::{HostLink, Inline, LinkError, embed, extract};
use baton_nic::adapter::{Adapter, AdapterConfig, Ending, SessionId, pump};
use baton_tcp::{Config, ConnId, Event, ListenerId, Stack};
use baton_testkit::symbolic;
use baton_wire::{Endpoint, Flow, Payload, Span, Symbolic, Time};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The IPv4 address of the adapter.
pub const ADAPTER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
/// The IPv6 address of the adapter.
pub const ADAPTER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
/// The IPv4 address of the peer.
pub const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// The IPv6 address of the peer.
pub const PEER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
/// Any address.
pub const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Maximum number of turns until a world must be idle.
const MOST_TURNS: usize = 10_000;

/// One response with its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Received<P = Symbolic> {
    /// The response.
    pub response: Response,
    /// The peers of a bulk accept.
    pub peers: Vec<Peer>,
    /// Data inside the response.
    pub inline: Option<P>,
}

/// An application.
pub struct App<P: Inline = Symbolic> {
    /// Its session; `None` once it is detached.
    pub session: Option<SessionId>,
    /// Its end of the link.
    pub link: MemoryHost<P>,
    adapter_end: MemoryAdapter<P>,
    /// Faults of the link.
    pub faults: Faults,
    /// Whether the application may violate the protocol, and is then disconnected.
    pub is_unruly: bool,
    /// Responses that have arrived and were not yet read.
    pub received: Vec<Received<P>>,
    next_tag: u32,
}

impl<P: Payload + Inline> App<P> {
    /// Moves requests and data to the adapter, and responses and data from there, as far as possible.
    ///
    /// # Errors
    /// The application has violated the protocol.
    pub fn pump_adapter(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        stack: &mut Stack<P>,
    ) -> Result<bool, LinkError> {
        let session = self.session.expect("the application is attached");
        pump(now, adapter, stack, session, &mut self.adapter_end)
    }
}

/// Applications, adapter, network and peer.
pub struct World<P: Payload + Inline = Symbolic> {
    /// The time.
    pub now: Time,
    /// The adapter.
    pub adapter: Adapter<P>,
    /// The adapter's TCP.
    pub stack: Stack<P>,
    /// The peer's TCP.
    pub peer: Stack<P>,
    /// The applications.
    pub apps: Vec<App<P>>,
    /// Events of the peer's stack.
    pub peer_events: Vec<(ConnId, Event)>,
    /// While set, no segment arrives on either side.
    pub is_cut: bool,
    /// Percentage of segments that are lost.
    pub loss_percent: u32,
    chance: u32,
    /// Segments that the peer has received.
    pub to_peer: usize,
}

impl Default for World {
    fn default() -> Self {
        Self::with(|_| {})
    }
}

impl World {
    /// Creates a world with one application.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a world with changed parameters of the adapter.
    pub fn with(change: impl FnOnce(&mut AdapterConfig)) -> Self {
        Self::with_tcp(change, Config::default())
    }

    /// Creates a world with changed parameters of the adapter and of its TCP.
    pub fn with_tcp(change: impl FnOnce(&mut AdapterConfig), tcp: Config) -> Self {
        let mut config = AdapterConfig {
            addresses: vec![ADAPTER, ADAPTER_V6],
            ..AdapterConfig::default()
        };
        change(&mut config);
        Self::of(config, tcp, MemoryConfig::default())
    }

    /// Attaches another application; returns its number.
    pub fn attach(&mut self) -> usize {
        self.attach_by(MemoryConfig::default())
    }

    // --- data ---

    /// Posts a SEND of `data`; returns its tag.
    pub fn post_send(&mut self, app: usize, socket: u32, data: Symbolic) -> u32 {
        let len = data.len;
        let address = self.apps[app].link.place(data).expect("a buffer is free");
        let data = Buffer::Memory { address, len };
        self.post(app, socket, Action::send(data, false))
    }

    /// Posts a SEND with inline data; returns its tag.
    pub fn post_inline(&mut self, app: usize, socket: u32, data: Symbolic) -> u32 {
        let tag = self.try_post_inline(app, socket, data);
        tag.expect("the ring has space")
    }

    /// Posts a SEND with inline data; returns its tag, or `None` if the ring is full.
    pub fn try_post_inline(&mut self, app: usize, socket: u32, data: Symbolic) -> Option<u32> {
        let now = self.now;
        let app = &mut self.apps[app];
        let tag = app.next_tag;
        let buffer = Buffer::Inline {
            len: data.len as u16,
        };
        let action = Action::send(buffer, false);
        let request = Request {
            socket,
            tag,
            action,
        };
        let mut entry = vec![request.encode()];
        let mut head = entry[0];
        embed(&data, &mut head, &mut entry);
        entry[0] = head;
        (app.link.put(now, &entry) == Ok(entry.len())).then(|| {
            app.next_tag += 1;
            tag
        })
    }

    /// Takes the data of a RECV's response out of its buffer.
    pub fn take(&mut self, app: usize, outcome: Outcome) -> Symbolic {
        let Outcome::Received(Buffer::Memory { address, len }) = outcome else {
            panic!("{outcome:?} has no data in memory");
        };
        let taken = self.apps[app].link.take(address, len);
        taken.expect("the adapter has written it")
    }

    /// Reads everything that has arrived at the peer.
    pub fn peer_reads(&mut self, conn: ConnId) -> Vec<Symbolic> {
        let mut pieces: Vec<Symbolic> = Vec::new();
        while let Some(piece) = self.peer.read(conn, usize::MAX) {
            self.peer.consume(conn, piece.len as usize);
            let joins = |last: &mut Symbolic| last.try_append(&piece);
            if !pieces.last_mut().is_some_and(joins) {
                pieces.push(piece);
            }
        }
        self.run();
        pieces
    }
}

impl<P: Payload + Inline> World<P> {
    /// Creates a world with one application, whose link has this memory.
    pub fn of(config: AdapterConfig, tcp: Config, memory: MemoryConfig) -> Self {
        let mut world = Self {
            now: Time::ZERO + Span::from_ms(1),
            adapter: Adapter::new(config).expect("the parameters are valid"),
            stack: Stack::new(tcp, 1),
            peer: Stack::new(Config::default(), 2),
            apps: Vec::new(),
            peer_events: Vec::new(),
            is_cut: false,
            loss_percent: 0,
            chance: 1,
            to_peer: 0,
        };
        world.attach_by(memory);
        world
    }

    fn attach_by(&mut self, memory: MemoryConfig) -> usize {
        let (link, adapter_end) = memory_link(memory);
        let session = self
            .adapter
            .attach()
            .expect("the limit of sessions is not reached");
        self.apps.push(App {
            session: Some(session),
            faults: link.faults(),
            link,
            adapter_end,
            received: Vec::new(),
            is_unruly: false,
            next_tag: 1,
        });
        self.apps.len() - 1
    }

    /// Detaches an application.
    pub fn detach(&mut self, app: usize, ending: Ending) {
        let session = self.apps[app]
            .session
            .take()
            .expect("the application is attached");
        let Self {
            now,
            adapter,
            stack,
            ..
        } = self;
        adapter.detach(*now, stack, session, ending);
    }

    // --- the host's side ---

    /// Posts a request without letting anything else happen; returns its tag.
    pub fn post(&mut self, app: usize, socket: u32, action: Action) -> u32 {
        let tag = self.try_post(app, socket, action);
        tag.expect("the ring has space")
    }

    /// Posts a request; returns its tag, or `None` if the ring is full.
    pub fn try_post(&mut self, app: usize, socket: u32, action: Action) -> Option<u32> {
        let now = self.now;
        let app = &mut self.apps[app];
        let tag = app.next_tag;
        let request = Request {
            socket,
            tag,
            action,
        };
        let taken = app.link.put(now, &[request.encode()]);
        (taken == Ok(1)).then(|| {
            app.next_tag += 1;
            tag
        })
    }

    /// Posts a request and runs until everything is idle; returns its tag.
    pub fn ask(&mut self, app: usize, socket: u32, action: Action) -> u32 {
        let tag = self.post(app, socket, action);
        self.run();
        tag
    }

    /// Takes the responses that the application has received since the last call.
    pub fn received(&mut self, app: usize) -> Vec<Received<P>> {
        std::mem::take(&mut self.apps[app].received)
    }

    /// Takes the responses, without peers and data.
    pub fn answers(&mut self, app: usize) -> Vec<Response> {
        let all = self.received(app).into_iter();
        all.map(|received| received.response).collect()
    }

    /// Creates a socket that listens on `port` of all addresses.
    pub fn listen(&mut self, app: usize, socket: u32, port: u16) {
        self.post(app, socket, Action::Socket);
        self.post(app, socket, Action::Bind(Endpoint::new(ANY, port)));
        self.ask(app, socket, Action::Listen { backlog: 16 });
        let statuses: Vec<Status> = self.answers(app).iter().map(|one| one.status).collect();
        assert_eq!(statuses, [Status::Ok; 3]);
    }

    /// Creates a connection from the peer to `port`, accepted as `socket` by the listener `listener`. Returns the peer's end.
    pub fn connection(&mut self, app: usize, listener: u32, socket: u32, port: u16) -> ConnId {
        self.post(app, listener, accept(socket, 1, 0));
        let conn = self.peer_connects(port);
        self.run();
        let received = self.answers(app);
        assert_eq!(received.len(), 1, "{received:?}");
        assert!(matches!(received[0].outcome, Outcome::Accepted(_)));
        self.peer_events.clear();
        conn
    }

    // --- the peer's side ---

    /// Lets the peer open a connection to `port` of the adapter.
    pub fn peer_connects(&mut self, port: u16) -> ConnId {
        self.peer_connects_to(Endpoint::new(ADAPTER, port))
    }

    /// Lets the peer open a connection to any address.
    pub fn peer_connects_to(&mut self, remote: Endpoint) -> ConnId {
        let addr = if remote.addr.is_ipv4() { PEER } else { PEER_V6 };
        (40_000..)
            .find_map(|port| {
                let local = Endpoint::new(addr, port);
                self.peer.connect(self.now, Flow { local, remote })
            })
            .expect("a port is free")
    }

    /// Lets the peer listen.
    pub fn peer_listens(&mut self, local: Endpoint) -> ListenerId {
        self.peer.listen(local, 16)
    }

    /// Accepts the next connection at the peer's listener, and returns the peer's end.
    pub fn peer_accepts(&mut self, listener: ListenerId) -> ConnId {
        let conn = self.peer.accept(listener).expect("a connection is pending");
        self.run();
        conn
    }

    /// Returns whether the peer's stack has reported `event`.
    pub fn peer_was_notified(&self, conn: ConnId, event: &Event) -> bool {
        self.peer_events.contains(&(conn, event.clone()))
    }

    // --- time ---

    /// Runs without letting time pass until everything is idle.
    pub fn run(&mut self) {
        for _ in 0..MOST_TURNS {
            if !self.turn() {
                return;
            }
        }
        panic!("the world never becomes idle");
    }

    /// Lets time pass.
    pub fn wait(&mut self, span: Span) {
        let until = self.now + span;
        loop {
            self.run();
            let due = [
                self.stack.poll_timeout(),
                self.peer.poll_timeout(),
                self.adapter.poll_timeout(),
            ];
            match due.into_iter().flatten().min() {
                Some(due) if due <= until => self.now = due.max(self.now),
                _ => break,
            }
            self.stack.handle_timeouts(self.now);
            self.peer.handle_timeouts(self.now);
            self.adapter.handle_timeouts(self.now, &mut self.stack);
        }
        self.now = until;
        self.run();
    }

    /// Runs everything once; returns false if there was nothing to do.
    pub fn turn(&mut self) -> bool {
        let mut did = self.move_segments() | self.tell_events();
        for index in 0..self.apps.len() {
            did |= self.pump(index).unwrap_or_else(|error| {
                assert!(self.apps[index].is_unruly, "{error}");
                self.detach(index, Ending::Reset);
                true
            });
        }
        self.adapter.check();
        self.stack.check();
        did || self.adapter.sessions().any(|row| row.transfers > 0)
    }

    /// Moves requests, responses and data between an application and the adapter as far as possible.
    ///
    /// # Errors
    /// The application has violated the protocol.
    pub fn pump(&mut self, app: usize) -> Result<bool, LinkError> {
        let Self {
            now,
            adapter,
            stack,
            apps,
            ..
        } = self;
        let app = &mut apps[app];
        if app.session.is_none() {
            return Ok(false);
        }
        let did = app.pump_adapter(*now, adapter, stack)?;
        let mut responses = Vec::new();
        app.link.get(*now, &mut responses)?;
        app.received.extend(decode(&responses));
        Ok(did | !responses.is_empty())
    }

    /// Delivers the segments of both stacks, unless they are lost. Returns whether there were any.
    pub fn move_segments(&mut self) -> bool {
        let mut did = false;
        while let Some((_, segment)) = self.stack.poll_transmit(self.now) {
            did = true;
            if self.arrives() {
                self.to_peer += 1;
                self.peer.handle_segment(self.now, segment);
            }
        }
        while let Some((_, segment)) = self.peer.poll_transmit(self.now) {
            did = true;
            if self.arrives() {
                self.stack.handle_segment(self.now, segment);
            }
        }
        did
    }

    /// Draws whether the next segment arrives.
    fn arrives(&mut self) -> bool {
        self.chance = self
            .chance
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        !self.is_cut && (self.chance >> 16) % 100 >= self.loss_percent
    }

    fn tell_events(&mut self) -> bool {
        let mut did = false;
        while let Some((conn, event)) = self.stack.poll_event() {
            did = true;
            let Self {
                now,
                adapter,
                stack,
                ..
            } = self;
            assert!(
                adapter.handle_event(*now, stack, conn, &event),
                "all connections are the adapter's"
            );
            adapter.check();
        }
        while let Some(event) = self.peer.poll_event() {
            did = true;
            self.peer_events.push(event);
        }
        did
    }
}

/// Decodes the responses of a transfer.
pub fn decode<P: Inline>(transfer: &[Descriptor]) -> Vec<Received<P>> {
    let read = |entry: Result<&[Descriptor], _>| {
        let entry = entry.expect("whole entries");
        let response = Response::decode(&entry[0]).expect("a response");
        let inline = match response.outcome {
            Outcome::Received(Buffer::Inline { .. }) => Some(extract(entry).expect("data")),
            _ => None,
        };
        let peers = match response.outcome {
            Outcome::AcceptedBulk { .. } => {
                let peers = entry[1..].iter().map(read_peer);
                peers.map(|peer| peer.expect("a peer")).collect()
            }
            _ => Vec::new(),
        };
        Received {
            response,
            peers,
            inline,
        }
    };
    entries(transfer).map(read).collect()
}

/// Returns `len` bytes, from `offset` on, of the data that every sender in these tests sends.
pub fn data(offset: u64, len: u32) -> Symbolic {
    let source = 7;
    symbolic(source, offset, len)
}

// --- requests and answers ---

/// Returns a request to accept connections as sockets from `first` on.
pub fn accept(first: u32, count: u16, timeout_us: u32) -> Action {
    Action::Accept {
        first,
        count,
        timeout_us,
    }
}

/// Returns a request to close both directions.
pub fn close() -> Action {
    Action::Close(Close::Both)
}

/// Returns a request to set an option.
pub fn set(option: SocketOption, value: u32) -> Action {
    Action::SetOption { option, value }
}

/// Returns an answer.
pub fn answer(socket: u32, tag: u32, status: Status, outcome: Outcome) -> Response {
    Response {
        socket,
        tag,
        status,
        outcome,
    }
}

/// Returns the answer to a request that has no result.
pub fn done(socket: u32, tag: u32, status: Status, opcode: Opcode) -> Response {
    answer(socket, tag, status, Outcome::Done(opcode))
}
