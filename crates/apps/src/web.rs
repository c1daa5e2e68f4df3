//! An event-driven web server in the manner of Flash: one process, non-blocking sockets, `sendfile` for static content;
//! headers and dynamic content are copied.

mod connection;
mod http;
mod program;

#[cfg(test)]
mod tests;

pub use http::{Http, Parsed, Program, Request};

use baton_host::{Access, Op, Pool, Ready, SocketId, Sockets};
use baton_wire::Payload;
use connection::{Connection, Progress};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What one event touches of the server's global data (event list, free lists, clock), bytes.
const GLOBAL_BYTES: u32 = 192;
/// What one event touches of a connection's block, bytes.
const CONNECTION_BYTES: u32 = 192;
/// What is initialised of a connection's block, bytes.
const NEW_CONNECTION_BYTES: u32 = 512;

/// Parameters of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Connections accepted at most for one event.
    pub accepts_per_event: u32,
    /// Hold partial segments back between header and content (TCP_NOPUSH), so that they share a segment.
    pub cork: bool,
    /// Bytes of requests that are read ahead on one connection while its responses wait for room.
    pub read_ahead_bytes: u32,
    /// Answer more than one request on a connection. If not, it is closed after the first response.
    pub keep_alive: bool,
    /// Content of a response that a connection is given before others have their turn, bytes (nginx: `sendfile_max_chunk`). None: what its
    /// socket takes.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_bytes: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            accepts_per_event: 64,
            cork: true,
            read_ahead_bytes: 16 * 1024,
            keep_alive: true,
            turn_bytes: None,
        }
    }
}

/// Totals of a server since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Connections accepted.
    pub accepted: u64,
    /// Responses wholly given to the socket.
    pub responses: u64,
    /// Of these, responses with dynamic content.
    pub dynamic: u64,
    /// Content bytes given to sockets.
    pub content_bytes: u64,
    /// Connections ended in order.
    pub closed: u64,
    /// Connections that went away with a response under way, or by a reset.
    pub lost: u64,
    /// Connections closed because of a request that makes no sense.
    pub bad_requests: u64,
    /// Connections given up because content changed while it was sent.
    pub changed_content: u64,
    /// Connections closed because nothing happened on them for too long.
    pub idle_closed: u64,
}

/// The web server.
pub struct Server<P, H: Http<P>> {
    config: Config,
    http: H,
    /// By socket.
    connections: Vec<Connection<P, H::Session>>,
    open: u32,
    /// Connections that wait for their next turn: they have more to send, and their sockets take more.
    turns: VecDeque<SocketId>,
    /// Seconds, as last told.
    clock_s: u32,
    stats: Stats,
}

impl<P: Payload, H: Http<P>> Server<P, H> {
    /// A server that speaks `http`.
    pub fn new(http: H) -> Self {
        Self::with_config(Config::default(), http)
    }

    /// A server with other than the usual parameters.
    pub fn with_config(config: Config, http: H) -> Self {
        Self {
            config,
            http,
            connections: Vec::new(),
            open: 0,
            turns: VecDeque::new(),
            clock_s: 0,
            stats: Stats::default(),
        }
    }

    /// Totals.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Connections it has open.
    pub fn connections(&self) -> u32 {
        self.open
    }

    /// The sockets of the connections it has open.
    pub fn sockets(&self) -> impl Iterator<Item = SocketId> {
        let connections = (0..).zip(&self.connections);
        connections
            .filter(|(_, connection)| connection.is_open())
            .map(|(socket, _)| SocketId(socket))
    }

    /// What it speaks.
    pub fn http(&self) -> &H {
        &self.http
    }

    /// The same, to be told the time or to be changed.
    pub fn http_mut(&mut self) -> &mut H {
        &mut self.http
    }

    /// Tells the time, in seconds from any start. Needed only for [`Server::close_idle`].
    pub fn set_clock(&mut self, clock_s: u32) {
        self.clock_s = clock_s;
    }

    /// Closes connections on which nothing has happened for `limit_s` seconds. One that has begun a request is told so;
    /// one that takes nothing of its response is reset, and so is one that does not close when asked to.
    pub fn close_idle(&mut self, sockets: &mut impl Sockets<P>, limit_s: u32) {
        let Some(latest) = self.clock_s.checked_sub(limit_s) else {
            return;
        };
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            if !connection.is_open() || connection.active_s() > latest {
                continue;
            }
            let socket = SocketId(index as u32);
            self.stats.idle_closed += 1;
            if connection.tell_too_late(&mut self.http, self.clock_s) {
                self.serve(sockets, socket);
            } else if self.connections[index].is_unfinished() {
                self.forget(socket);
                sockets.abort(socket);
            } else {
                self.end(sockets, socket);
            }
        }
    }

    /// Closes all connections on which no response is under way, and the others too, by a reset, if `at_once`.
    pub fn close_all(&mut self, sockets: &mut impl Sockets<P>, at_once: bool) {
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            let socket = SocketId(index as u32);
            if !connection.is_open() {
                continue;
            }
            if !connection.is_unfinished() {
                self.stats.closed += 1;
                self.end(sockets, socket);
            } else if at_once {
                self.stats.lost += 1;
                self.forget(socket);
                sockets.abort(socket);
            }
        }
    }

    /// Whether connections wait for their next turn.
    pub fn has_turn(&self) -> bool {
        !self.turns.is_empty()
    }

    /// The connection that has waited longest for its next turn: its socket is writable, as a wait that tells of levels would say. There are
    /// none unless [`Config::turn_bytes`] is given.
    pub fn next_turn(&mut self) -> Option<SocketId> {
        let socket = self.turns.pop_front()?;
        self.connections[socket.0 as usize].take_turn();
        Some(socket)
    }

    /// Handles one event, as far as that goes without waiting.
    pub fn step(&mut self, sockets: &mut impl Sockets<P>, ready: Ready) {
        sockets.work(Op::AppLoop, 1);
        sockets.touch(Pool::AppGlobal, 0, 0, GLOBAL_BYTES, Access::Write);
        match ready {
            Ready::Acceptable => self.accept(sockets),
            Ready::Readable(socket) | Ready::Writable(socket) => self.serve(sockets, socket),
        }
    }

    fn accept(&mut self, sockets: &mut impl Sockets<P>) {
        for _ in 0..self.config.accepts_per_event {
            let Some(socket) = sockets.accept() else {
                return;
            };
            sockets.work(Op::AppAccept, 1);
            sockets.touch(
                Pool::AppConnection,
                socket.0,
                0,
                NEW_CONNECTION_BYTES,
                Access::Write,
            );
            let index = socket.0 as usize;
            if index >= self.connections.len() {
                self.connections.resize_with(index + 1, Connection::default);
            }
            self.connections[index].open(self.clock_s);
            self.open += 1;
            self.stats.accepted += 1;
        }
    }

    fn serve(&mut self, sockets: &mut impl Sockets<P>, socket: SocketId) {
        // An event may have been waiting while the connection was closed.
        let Some(connection) = self
            .connections
            .get_mut(socket.0 as usize)
            .filter(|c| c.is_open())
        else {
            return;
        };
        sockets.touch(
            Pool::AppConnection,
            socket.0,
            0,
            CONNECTION_BYTES,
            Access::Write,
        );
        connection.acted(self.clock_s);
        match connection.advance(
            &self.config,
            &mut self.http,
            sockets,
            socket,
            &mut self.stats,
        ) {
            Progress::Waits => return,
            Progress::Yields => return self.turns.push_back(socket),
            Progress::Done => self.stats.closed += 1,
            Progress::Lost => self.stats.lost += 1,
            Progress::Bad => self.stats.bad_requests += 1,
            Progress::Changed => {
                // An orderly end would look like the end of the content to a client that does not count.
                self.stats.changed_content += 1;
                self.forget(socket);
                sockets.abort(socket);
                return;
            }
        }
        self.end(sockets, socket);
    }

    fn end(&mut self, sockets: &mut impl Sockets<P>, socket: SocketId) {
        self.forget(socket);
        sockets.close(socket);
    }

    fn forget(&mut self, socket: SocketId) {
        let connection = &mut self.connections[socket.0 as usize];
        if connection.take_turn() {
            self.turns.retain(|other| *other != socket);
        }
        connection.close(&mut self.http);
        self.open -= 1;
    }
}
