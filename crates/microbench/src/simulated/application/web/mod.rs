//! The web server of `baton-apps` on the simulated machine. Its sockets are those of a host without an adapter, and its kernel is metered
//! like that of the other simulated servers.

mod clients;
mod metered;

pub(in crate::simulated) use clients::{ClientCounts, Clients};

use super::super::frame::Segment;
use super::super::host::Meter;
use super::{Outgoing, Tcp};
use baton_apps::symbolic::SymbolicHttp;
use baton_apps::web::Server;
use baton_bus::link::MemoryHost;
use baton_host::layer::{AdapterEnd, AdapterId, SocketLayer};
use baton_host::{Ready, SocketId};
use baton_kernel::footprint;
use baton_tcp::ConnId;
use baton_wire::{Flow, Symbolic, Time};
use metered::Metered;
use slab::Slab;

/// The type of the adapter that this host does not have.
type NoAdapter = AdapterEnd<Symbolic, MemoryHost<Symbolic>>;

/// Maximum number of sockets, more than there are clients.
const MOST_SOCKETS: usize = 65_536;

/// Number of events that one wait returns (assumed: as in the other profiles).
const EVENTS_IN_A_WAIT: u32 = 64;

/// A web server.
pub(in crate::simulated) struct WebServer {
    pub(super) tcp: Tcp,
    sockets: SocketLayer<Symbolic>,
    server: Server<Symbolic, SymbolicHttp>,
    /// Events handled since the last wait.
    events: u32,
}

impl std::fmt::Debug for WebServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebServer").finish_non_exhaustive()
    }
}

impl WebServer {
    pub(in crate::simulated) fn new(machine: u8) -> Self {
        let mut tcp = Tcp::new(machine);
        let mut sockets = SocketLayer::new(MOST_SOCKETS, None);
        sockets.add_listener(tcp.listen(machine), AdapterId(0));
        Self {
            tcp,
            sockets,
            server: Server::new(SymbolicHttp),
            events: 0,
        }
    }

    pub(super) fn receive(&mut self, now: Time, segment: Segment) {
        self.tcp.receive(now, segment);
        self.handle_events();
        self.tcp.answer(now);
    }

    pub(super) fn poll_send(
        &mut self,
        now: Time,
        segments: &mut Slab<Segment>,
    ) -> Option<Outgoing> {
        let next = self.tcp.poll_send(now, segments);
        self.handle_events();
        next
    }

    fn handle_events(&mut self) {
        let stack = &mut self.tcp.stack;
        while let Some((connection, event)) = stack.poll_event() {
            self.sockets.handle_event(stack, connection, &event);
        }
    }

    pub(super) fn has_work(&self) -> bool {
        self.sockets.has_ready()
    }

    /// Handles the next event of a socket.
    pub(super) fn work(&mut self, now: Time, meter: &mut Meter<'_>) -> bool {
        let Some(ready) = self.sockets.next_ready() else {
            return false;
        };
        if self.events == 0 {
            footprint::wait(meter);
        }
        let socket = match ready {
            Ready::Acceptable => None,
            Ready::Readable(SocketId(socket)) | Ready::Writable(SocketId(socket)) => Some(socket),
        };
        footprint::wait_event(meter, socket);
        let none: &mut [NoAdapter] = &mut [];
        let calls = self.sockets.calls(now, &mut self.tcp.stack, none);
        let mut metered = Metered::new(calls, meter);
        self.server.step(&mut metered, ready);
        self.handle_events();
        self.events = match self.sockets.has_ready() {
            true => (self.events + 1) % EVENTS_IN_A_WAIT,
            false => 0,
        };
        true
    }

    /// Returns the number of a connection in the kernel's memory.
    pub(super) fn connection(&self, flow: &Flow) -> Option<u32> {
        self.tcp.stack.find(flow).map(|ConnId(number)| number)
    }
}
