//! The web server of `baton-apps` on the simulated machine. Its sockets are those of a host without an adapter, and its kernel is metered
//! like that of the other simulated servers.

mod clients;
mod metered;

pub(in crate::simulated) use clients::Clients;

use super::super::host::Meter;
use super::tcp::Program;
use super::{Application, Share, Tcp};
use baton_apps::symbolic::SymbolicHttp;
use baton_apps::web::Server;
use baton_bus::link::MemoryHost;
use baton_host::layer::{AdapterEnd, AdapterId, SocketLayer};
use baton_host::{Ready, SocketId};
use baton_kernel::footprint;
use baton_sim::SystemCalls;
use baton_tcp::{ConnId, Event};
use baton_wire::{Symbolic, Time};
use metered::InMemory;

/// The type of the adapter that this host does not have.
type NoAdapter = AdapterEnd<Symbolic, MemoryHost<Symbolic>>;

/// Maximum number of sockets, more than there are clients.
const MOST_SOCKETS: usize = 65_536;

/// Number of events that one wait returns (assumed: as in the other profiles).
const EVENTS_IN_A_WAIT: u32 = 64;

/// A web server.
pub(in crate::simulated) struct WebServer {
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
    /// Creates the application of a machine that is a web server.
    pub(in crate::simulated) fn application(machine: u8) -> Application {
        let mut tcp = Tcp::new(machine, Share::WHOLE);
        let mut sockets = SocketLayer::new(MOST_SOCKETS, None);
        sockets.add_listener(tcp.listen(), AdapterId(0));
        let server = Self {
            sockets,
            server: Server::new(SymbolicHttp),
            events: 0,
        };
        Application::on(tcp, server)
    }
}

impl Program for WebServer {
    fn handle_event(&mut self, _now: Time, tcp: &mut Tcp, id: ConnId, event: Event) {
        self.sockets.handle_event(&mut tcp.stack, id, &event);
    }

    fn has_sockets(&self) -> bool {
        true
    }

    fn has_work(&self) -> bool {
        self.sockets.has_ready()
    }

    /// Handles the next event of a socket.
    fn work(&mut self, now: Time, tcp: &mut Tcp, meter: &mut Meter<'_>) -> bool {
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
        let calls = self.sockets.calls(now, &mut tcp.stack, none);
        let mut system = SystemCalls(InMemory { calls, meter });
        self.server.step(&mut system, ready);
        while let Some((id, event)) = tcp.stack.poll_event() {
            self.handle_event(now, tcp, id, event);
        }
        self.events = match self.has_work() {
            true => (self.events + 1) % EVENTS_IN_A_WAIT,
            false => 0,
        };
        true
    }
}
