//! An event-driven web server in the style of Flash: one process, non-blocking sockets, `sendfile` for static content unless another way is
//! configured; headers and dynamic content are copied.

mod connection;
mod http;
mod program;

#[cfg(test)]
mod tests;

pub use http::{Http, Parsed, Program, Request};

use crate::MeteredSockets;
use baton_host::{Ready, SocketId};
use baton_kernel::{Access, Op, Pool};
use baton_wire::Payload;
use connection::{Connection, Progress};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Bytes of the server's global data (event list, free lists, clock) that handling one event touches.
const GLOBAL_BYTES: u32 = 192;
/// Bytes of a connection's block that handling one event touches.
const CONNECTION_BYTES: u32 = 192;
/// Bytes of a connection's block that are initialised.
const NEW_CONNECTION_BYTES: u32 = 512;

/// Parameters of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Maximum number of connections accepted for one event.
    pub accepts_per_event: u32,
    /// Hold partial segments back between header and content (TCP_NOPUSH), so that they share a segment.
    pub cork: bool,
    /// Maximum bytes of requests that are read ahead on one connection while its responses wait for buffer space.
    pub read_ahead_bytes: u32,
    /// Answer more than one request on a connection. If not, the connection is closed after the first response.
    pub keep_alive: bool,
    /// Maximum content that a connection sends before other connections have their turn, bytes (nginx: `sendfile_max_chunk`). Absent: as
    /// much as its socket accepts.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_bytes: Option<u32>,
    /// How the content of files reaches sockets.
    pub file_io: FileIo,
}

/// Ways in which the content of files reaches sockets (data-caching 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileIo {
    /// `sendfile` sends pages of the kernel's file cache, without a copy. Only this content can be in data caches on NICs.
    #[default]
    Sendfile,
    /// The server maps files into its memory, as Flash does, and writes from there: one copy.
    Mapped,
    /// The server reads files into a buffer, and writes from there: two copies.
    Read,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            accepts_per_event: 64,
            cork: true,
            read_ahead_bytes: 16 * 1024,
            keep_alive: true,
            turn_bytes: None,
            file_io: FileIo::default(),
        }
    }
}

/// Counters of a server since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Connections accepted.
    pub accepted: u64,
    /// Responses that were completely given to the socket.
    pub responses: u64,
    /// Responses with dynamic content, included in `responses`.
    pub dynamic: u64,
    /// Content bytes given to sockets.
    pub content_bytes: u64,
    /// Connections that ended in an orderly way.
    pub closed: u64,
    /// Connections that were reset, or that ended while a response was in progress.
    pub lost: u64,
    /// Connections closed because of an invalid request.
    pub bad_requests: u64,
    /// Connections aborted because content changed while it was sent.
    pub changed_content: u64,
    /// Connections closed because they were idle for too long.
    pub idle_closed: u64,
}

/// The web server.
pub struct Server<P, H: Http<P>> {
    config: Config,
    http: H,
    /// Connections by socket.
    connections: Vec<Connection<P, H::Session>>,
    open: u32,
    /// Connections that wait for their next turn: they have more to send, and their sockets accept more.
    turns: VecDeque<SocketId>,
    /// Current time in seconds, as last set.
    clock_s: u32,
    stats: Stats,
}

impl<P: Payload, H: Http<P>> Server<P, H> {
    /// Creates a server that uses the protocol `http`.
    pub fn new(http: H) -> Self {
        Self::with_config(Config::default(), http)
    }

    /// Creates a server with the given parameters.
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

    /// Returns the server's counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> u32 {
        self.open
    }

    /// Returns the sockets of the open connections.
    pub fn sockets(&self) -> impl Iterator<Item = SocketId> {
        let connections = (0..).zip(&self.connections);
        connections
            .filter(|(_, connection)| connection.is_open())
            .map(|(socket, _)| SocketId(socket))
    }

    /// Returns the server's protocol.
    pub fn http(&self) -> &H {
        &self.http
    }

    /// Returns the server's protocol for modification.
    pub fn http_mut(&mut self) -> &mut H {
        &mut self.http
    }

    /// Sets the time, in seconds from any start. Needed only for [`Server::close_idle`].
    pub fn set_clock(&mut self, clock_s: u32) {
        self.clock_s = clock_s;
    }

    /// Closes connections that were idle for `limit_s` seconds. A client that has started a request gets a response that says so. A client
    /// that does not accept its response is reset, as is a client that does not close the connection after the server has.
    pub fn close_idle(&mut self, sockets: &mut impl MeteredSockets<P>, limit_s: u32) {
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

    /// Closes all connections without a response in progress. If `at_once`, resets all other connections.
    pub fn close_all(&mut self, sockets: &mut impl MeteredSockets<P>, at_once: bool) {
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

    /// Reports whether connections wait for their next turn.
    pub fn has_turn(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Returns the connection that has waited longest for its next turn. Its socket is writable, as a level-triggered wait would report.
    /// There are none unless [`Config::turn_bytes`] is set.
    pub fn next_turn(&mut self) -> Option<SocketId> {
        let socket = self.turns.pop_front()?;
        self.connections[socket.0 as usize].take_turn();
        Some(socket)
    }

    /// Handles one event, as far as possible without waiting.
    pub fn step(&mut self, sockets: &mut impl MeteredSockets<P>, ready: Ready) {
        sockets.work(Op::AppLoop, 1);
        sockets.touch(Pool::AppGlobal, 0, 0, GLOBAL_BYTES, Access::Write);
        match ready {
            Ready::Acceptable => self.accept(sockets),
            Ready::Readable(socket) | Ready::Writable(socket) => self.serve(sockets, socket),
        }
    }

    fn accept(&mut self, sockets: &mut impl MeteredSockets<P>) {
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

    fn serve(&mut self, sockets: &mut impl MeteredSockets<P>, socket: SocketId) {
        // The event may have been pending when the connection was closed.
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
                // To a client that does not count bytes, an orderly close would look like the end of the content.
                self.stats.changed_content += 1;
                self.forget(socket);
                sockets.abort(socket);
                return;
            }
        }
        self.end(sockets, socket);
    }

    fn end(&mut self, sockets: &mut impl MeteredSockets<P>, socket: SocketId) {
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
