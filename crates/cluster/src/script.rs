//! A host whose adapter is played by the test, which sees the requests and chooses the answers.

use baton_bus::descriptor::{Action, Buffer, Outcome, Request, Response, Status, entries};
use baton_bus::link::{
    Dma, DmaId, Inline, LinkError, MemoryAdapter, MemoryConfig, MemoryHost, memory_link,
};
use baton_bus::{AdapterLink, Descriptor, HostLink};
use baton_host::adapter::{Calls, OsLayer, OsLayerConfig};
use baton_host::{Ready, SocketId, Sockets};
use baton_testkit::endpoint;
use baton_wire::{Endpoint, Payload, Span, Time};
use bytes::Bytes;

/// The host's half of a link whose other end the test holds.
pub struct Script<P = Bytes> {
    /// The host's sockets.
    pub os: OsLayer<P>,
    /// The host's end of the link.
    pub host: MemoryHost<P>,
    /// The adapter's end.
    pub adapter: MemoryAdapter<P>,
    /// The time.
    pub now: Time,
    link: MemoryConfig,
}

/// The address at which the host listens.
pub const SERVER: Endpoint = endpoint(1, 80);
/// The address of a peer.
pub const CLIENT: Endpoint = endpoint(2, 1000);

/// The link of most scripts, with 16 buffers.
pub const LINK: MemoryConfig = MemoryConfig {
    ring_depth: 128,
    buffers: 16,
    buffer_bytes: 4096,
};

impl<P: Payload + Inline> Script<P> {
    /// Creates a script whose link has this memory.
    pub fn with_link(config: OsLayerConfig, link: MemoryConfig) -> Self {
        let (host, adapter) = memory_link(link);
        Self {
            os: OsLayer::new(config).expect("the parameters are valid"),
            host,
            adapter,
            now: Time::ZERO,
            link,
        }
    }

    /// Connects the host to another adapter.
    pub fn reconnect(&mut self) {
        (self.host, self.adapter) = memory_link(self.link);
    }

    /// Opens a connection; returns its socket and the posted RECV.
    pub fn open(&mut self) -> (SocketId, Request) {
        let socket = self.os.connect(self.now, CLIENT).expect("a number is free");
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

    /// Runs the host until there is nothing more to do.
    ///
    /// # Errors
    /// The link is lost, or the adapter has violated the protocol.
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

    /// Lets time pass.
    pub fn wait(&mut self, us: u64) {
        self.now += Span::from_us(us);
    }

    /// Returns the application's system calls.
    pub fn calls(&mut self) -> Calls<'_, P, MemoryHost<P>> {
        self.os.calls(self.now, &mut self.host)
    }

    /// Takes all notifications for the application.
    pub fn ready(&mut self) -> Vec<Ready> {
        std::iter::from_fn(|| self.os.next_ready()).collect()
    }

    /// Takes the requests transferred to the adapter, after another [`Script::pump`].
    pub fn requests(&mut self) -> Vec<Request> {
        self.pump();
        let mut transfer = Vec::new();
        let got = self.adapter.get(self.now, usize::MAX, &mut transfer);
        got.expect("the host is connected");
        let request = |entry: Result<&[Descriptor], _>| {
            Request::decode(&entry.expect("whole entries")[0]).expect("a request")
        };
        entries(&transfer).map(request).collect()
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
            Action::Name => Outcome::Name(SERVER),
            action => Outcome::of_failed(&action),
        };
        self.answer(request, status, outcome);
    }

    /// Returns the data that a request refers to in the host's memory.
    pub fn fetch(&mut self, request: &Request) -> Option<P> {
        let (address, len) = match request.action {
            Action::CacheInsert { address, len, .. } => (address, len),
            Action::Send {
                data: Buffer::Memory { address, len },
                ..
            } => (address, len),
            _ => return None,
        };
        let read = self.adapter.read(self.now, DmaId(0), address, len);
        read.expect("the buffer is lent");
        match self.adapter.poll_dma(self.now) {
            Ok(Some(Dma::Read { data, .. })) => Some(data),
            other => panic!("{other:?}"),
        }
    }

    /// Writes data into the buffer of a RECV.
    pub fn write(&mut self, request: &Request, data: P) {
        let Action::Receive { address, .. } = request.action else {
            panic!("{request:?} is not a RECV");
        };
        let written = self.adapter.write(self.now, DmaId(0), address, data);
        written.expect("the buffer is lent");
        assert!(matches!(self.adapter.poll_dma(self.now), Ok(Some(_))));
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
        assert_eq!(self.host.free_buffers(), self.link.buffers);
    }
}

impl Script {
    /// Creates a script with [`LINK`].
    pub fn new(config: OsLayerConfig) -> Self {
        Self::with_link(config, LINK)
    }

    /// Creates a script with one connection, accepted by the application, and no pending requests.
    pub fn with_connection(config: OsLayerConfig) -> (Self, SocketId, Request) {
        let mut script = Self::new(config);
        let (socket, receive) = script.open();
        (script, socket, receive)
    }

    /// Sends this much data; returns how much was taken.
    pub fn send(&mut self, socket: SocketId, len: usize) -> usize {
        let data = Bytes::from(vec![7; len]);
        self.calls().send(socket, data).expect("it is open")
    }

    /// Answers a RECV with this much data.
    pub fn deliver(&mut self, request: &Request, len: u32) {
        self.write(request, Bytes::from(vec![3; len as usize]));
        let Action::Receive { address, .. } = request.action else {
            unreachable!("data was written");
        };
        let outcome = Outcome::Received(Buffer::Memory { address, len });
        self.answer(request, Status::Ok, outcome);
    }
}

/// Returns the answer to a request.
pub fn response(request: &Request, status: Status, outcome: Outcome) -> Descriptor {
    Response {
        socket: request.socket,
        tag: request.tag,
        status,
        outcome,
    }
    .encode()
}
