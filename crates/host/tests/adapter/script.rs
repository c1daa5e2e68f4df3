//! A host whose adapter is played by the test, which sees the requests and chooses the answers.

use baton_bus::descriptor::{Action, Buffer, Close, Outcome, Request, Response, Status, entries};
use baton_bus::link::{LinkError, MemoryAdapter, MemoryConfig, MemoryHost, memory_link};
use baton_bus::{AdapterLink, Batching, Descriptor, HostLink};
use baton_host::adapter::{Calls, OsLayer, OsLayerConfig};
use baton_host::{Ready, SocketId, Sockets};
pub use baton_testkit::endpoint;
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;

/// The host's half of a link whose other end the test holds.
pub struct Script {
    pub os: OsLayer<Bytes>,
    pub host: MemoryHost<Bytes>,
    pub adapter: MemoryAdapter<Bytes>,
    pub now: Time,
}

pub const SERVER: fn() -> Endpoint = || endpoint(1, 80);
pub const CLIENT: fn() -> Endpoint = || endpoint(2, 1000);

pub fn small_link() -> MemoryConfig {
    MemoryConfig {
        buffers: 16,
        ..MemoryConfig::default()
    }
}

impl Script {
    pub fn new(config: OsLayerConfig) -> Self {
        Self::with_link(config, small_link())
    }

    pub fn with_link(config: OsLayerConfig, link: MemoryConfig) -> Self {
        let (host, adapter) = memory_link(link);
        Self {
            os: OsLayer::new(config).expect("the parameters are valid"),
            host,
            adapter,
            now: Time::ZERO,
        }
    }

    /// Creates a script with one connection, accepted by the application, and no pending requests.
    pub fn with_connection(config: OsLayerConfig) -> (Self, SocketId, Request) {
        let mut script = Self::new(config);
        let (socket, receive) = script.open();
        (script, socket, receive)
    }

    /// Opens a connection; returns its socket and the posted RECV.
    pub fn open(&mut self) -> (SocketId, Request) {
        let socket = self
            .os
            .connect(self.now, CLIENT())
            .expect("a number is free");
        self.pass_batching_timer();
        for request in self.requests() {
            let (Action::Socket | Action::Connect(_)) = request.action else {
                panic!("{request:?}");
            };
            self.done(&request, Status::Ok);
        }
        self.pump();
        assert_eq!(self.ready(), [Ready::Writable(socket)]);
        self.pass_batching_timer();
        let [receive] = self.requests()[..] else {
            panic!("expected one posted buffer");
        };
        assert!(matches!(receive.action, Action::Receive { .. }));
        (socket, receive)
    }

    /// Runs the host until there is nothing more to do.
    pub fn pump(&mut self) {
        self.try_pump().expect("the adapter obeys the protocol");
    }

    pub fn try_pump(&mut self) -> Result<(), LinkError> {
        for _ in 0..1000 {
            let did = self.os.pump(self.now, &mut self.host)?;
            self.os.check();
            if !did {
                return Ok(());
            }
        }
        panic!("the host never becomes idle");
    }

    /// Advances the time until batched requests are due.
    fn pass_batching_timer(&mut self) {
        self.pump();
        if let Some(due) = self.os.poll_timeout() {
            self.now = due.max(self.now);
        }
    }

    /// Returns the number of free buffers.
    pub fn free(&self) -> usize {
        self.host.free_buffers()
    }

    /// Returns the number of transfers of requests so far.
    pub fn transfers(&self) -> u64 {
        self.os.queue().stats().per_transfer.transfers
    }

    pub fn wait(&mut self, us: u64) {
        self.now += Span::from_us(us);
    }

    pub fn calls(&mut self) -> Calls<'_, Bytes, MemoryHost<Bytes>> {
        self.os.calls(self.now, &mut self.host)
    }

    pub fn send(&mut self, socket: SocketId, len: usize) -> usize {
        let data = Bytes::from(vec![7; len]);
        self.calls().send(socket, data).expect("it is open")
    }

    /// Takes all notifications for the application.
    pub fn ready(&mut self) -> Vec<Ready> {
        std::iter::from_fn(|| self.os.next_ready()).collect()
    }

    /// Takes the requests transferred to the adapter, after another [`Script::pump`].
    pub fn requests(&mut self) -> Vec<Request> {
        self.pump();
        let mut transfer = Vec::new();
        self.adapter
            .get(self.now, usize::MAX, &mut transfer)
            .expect("the host is connected");
        entries(&transfer)
            .map(|entry| Request::decode(&entry.unwrap()[0]).expect("a request"))
            .collect()
    }

    /// Takes the requests, and returns only their actions.
    pub fn actions(&mut self) -> Vec<Action> {
        let requests = self.requests();
        requests.into_iter().map(|request| request.action).collect()
    }

    /// Sends any entry to the host.
    pub fn put(&mut self, entry: &[Descriptor]) {
        let taken = self.adapter.put(self.now, entry);
        assert_eq!(taken, Ok(entry.len()));
    }

    /// Answers a request; the host handles the answer at the next [`Script::pump`].
    pub fn answer(&mut self, request: &Request, status: Status, outcome: Outcome) {
        self.put(&[response(request, status, outcome)]);
    }

    /// Answers a request with a status, without any further outcome.
    pub fn done(&mut self, request: &Request, status: Status) {
        let outcome = match request.action {
            Action::Name => Outcome::Name(SERVER()),
            action => Outcome::of_failed(&action),
        };
        self.answer(request, status, outcome);
    }

    /// Answers a RECV with this much data.
    pub fn deliver(&mut self, request: &Request, len: u32) {
        let Action::Receive { address, .. } = request.action else {
            panic!("{request:?} is not a RECV");
        };
        let data = Bytes::from(vec![3; len as usize]);
        let id = baton_bus::link::DmaId(0);
        self.adapter
            .write(self.now, id, address, data)
            .expect("the buffer is lent");
        assert!(self.adapter.poll_dma(self.now).unwrap().is_some());
        let outcome = Outcome::Received(Buffer::Memory { address, len });
        self.answer(request, Status::Ok, outcome);
    }

    /// Sends an unsolicited notification for a socket.
    pub fn tell(&mut self, socket: SocketId, status: Status, outcome: Outcome) {
        let news = Response {
            socket: socket.0,
            tag: 0,
            status,
            outcome,
        };
        self.put(&[news.encode()]);
    }

    /// Asserts that no socket, request or buffer is in use.
    pub fn assert_empty(&self) {
        assert_eq!((self.os.sockets(), self.os.outstanding()), (0, 0));
        assert_eq!(self.host.free_buffers(), small_link().buffers);
    }
}

pub fn response(request: &Request, status: Status, outcome: Outcome) -> Descriptor {
    Response {
        socket: request.socket,
        tag: request.tag,
        status,
        outcome,
    }
    .encode()
}

/// Closes both directions.
pub const CLOSE: Action = Action::Close(Close::Both);

pub fn no_batching() -> OsLayerConfig {
    OsLayerConfig::default()
}

pub fn batching(level: u32, timer_us: u32) -> OsLayerConfig {
    OsLayerConfig {
        batching: Batching {
            level,
            timer_us,
            ..Batching::default()
        },
        ..OsLayerConfig::default()
    }
}

/// Returns the lengths of the SENDs among `actions`, and whether more data follows each.
pub fn sends(actions: &[Action]) -> Vec<(u32, bool)> {
    let send = |action: &Action| match *action {
        Action::Send { data, more, .. } => Some((data.len(), more)),
        _ => None,
    };
    actions.iter().filter_map(send).collect()
}
