//! The socket layer of the live machine: [`Sockets`] over a [`Stack`], without a kernel in between.

use baton_host::{Gone, Ready, Receive, SocketId, Sockets, Unread};
use baton_tcp::{CloseReason, ConnId, Event, ListenerId, Stack};
use baton_wire::Time;
use bytes::Bytes;
use slab::Slab;
use std::collections::VecDeque;

/// Room in a full send buffer at which its writer is woken, as a share of the buffer.
const WAKE_SHARE: u32 = 4;

/// One socket.
#[derive(Debug)]
struct Socket {
    /// The connection; none when it is over.
    conn: Option<ConnId>,
    /// How it ended, when it is over.
    ended: Option<CloseReason>,
    /// It waits in the queue of ready sockets to be read.
    readable: bool,
    /// A send found no room.
    wants_room: bool,
}

/// What a table counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketStats {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that ended other than by both sides closing.
    pub ended_abnormally: u64,
    /// Times that connections had to wait to be accepted because there were as many as may be.
    pub accepts_deferred: u64,
}

/// All sockets of an application, and which of them have something to say.
#[derive(Debug)]
pub struct SocketTable {
    sockets: Slab<Socket>,
    /// By connection.
    by_conn: Vec<Option<SocketId>>,
    listeners: Vec<ListenerId>,
    ready: VecDeque<Ready>,
    /// A listener may have connections to accept.
    acceptable: bool,
    most_sockets: usize,
    stats: SocketStats,
}

impl SocketTable {
    /// An empty table for at most so many sockets.
    pub fn new(most_sockets: usize) -> Self {
        Self {
            sockets: Slab::new(),
            by_conn: Vec::new(),
            listeners: Vec::new(),
            ready: VecDeque::new(),
            acceptable: false,
            most_sockets,
            stats: SocketStats::default(),
        }
    }

    /// Accepts connections of this listener.
    pub fn add_listener(&mut self, listener: ListenerId) {
        self.listeners.push(listener);
    }

    /// Accepts no more.
    pub fn take_listeners(&mut self) -> Vec<ListenerId> {
        std::mem::take(&mut self.listeners)
    }

    /// Sockets that are open.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }

    /// True when no socket is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Totals.
    pub fn stats(&self) -> SocketStats {
        self.stats
    }

    /// The socket of a connection, which was accepted or adopted.
    pub fn socket_of(&self, conn: ConnId) -> Option<SocketId> {
        self.by_conn.get(conn.0 as usize).copied().flatten()
    }

    /// Makes a socket of a connection that was opened here.
    pub fn adopt(&mut self, conn: ConnId) -> SocketId {
        let slot = self.sockets.insert(Socket {
            conn: Some(conn),
            ended: None,
            readable: false,
            wants_room: false,
        });
        let id = SocketId(slot as u32);
        let index = conn.0 as usize;
        if index >= self.by_conn.len() {
            self.by_conn.resize(index + 1, None);
        }
        self.by_conn[index] = Some(id);
        id
    }

    /// Something happened to a connection.
    pub fn handle_event(&mut self, stack: &Stack<Bytes>, conn: ConnId, event: &Event) {
        if matches!(event, Event::Acceptable(_)) {
            self.acceptable = true;
            return;
        }
        let Some(id) = self.socket_of(conn) else {
            return;
        };
        match event {
            Event::Readable | Event::PeerClosed => self.wake_reader(id),
            Event::Connected => self.ready.push_back(Ready::Writable(id)),
            Event::Acknowledged(_) => {
                let socket = &mut self.sockets[id.0 as usize];
                let enough = stack.config_of(conn).send_buffer / WAKE_SHARE;
                if socket.wants_room && stack.send_space(conn) >= enough as usize {
                    socket.wants_room = false;
                    self.ready.push_back(Ready::Writable(id));
                }
            }
            Event::Closed(reason) => {
                let socket = &mut self.sockets[id.0 as usize];
                socket.conn = None;
                socket.ended = Some(*reason);
                self.by_conn[conn.0 as usize] = None;
                self.stats.ended_abnormally += u64::from(*reason != CloseReason::Normal);
                self.wake_reader(id);
            }
            Event::Acceptable(_) => {}
        }
    }

    /// The next socket that has something to say.
    pub fn next_ready(&mut self) -> Option<Ready> {
        if std::mem::take(&mut self.acceptable) {
            return Some(Ready::Acceptable);
        }
        let ready = self.ready.pop_front()?;
        if let Ready::Readable(id) = ready
            && let Some(socket) = self.sockets.get_mut(id.0 as usize)
        {
            socket.readable = false;
        }
        Some(ready)
    }

    /// The calls that an application can make now.
    pub fn calls<'a>(&'a mut self, now: Time, stack: &'a mut Stack<Bytes>) -> SocketCalls<'a> {
        SocketCalls {
            now,
            table: self,
            stack,
        }
    }

    /// How a connection ended, when it is over.
    pub fn end_of(&self, id: SocketId) -> Option<CloseReason> {
        self.sockets.get(id.0 as usize)?.ended
    }

    fn wake_reader(&mut self, id: SocketId) {
        let socket = &mut self.sockets[id.0 as usize];
        if !std::mem::replace(&mut socket.readable, true) {
            self.ready.push_back(Ready::Readable(id));
        }
    }

    fn remove(&mut self, id: SocketId) -> Option<ConnId> {
        let socket = self.sockets.try_remove(id.0 as usize)?;
        // Its slot may be used again while the old one is still in the queue.
        if socket.readable || socket.wants_room {
            self.ready.retain(|ready| match ready {
                Ready::Readable(other) | Ready::Writable(other) => *other != id,
                Ready::Acceptable => true,
            });
        }
        if let Some(conn) = socket.conn {
            self.by_conn[conn.0 as usize] = None;
        }
        // Those that waited for a place may have it.
        self.acceptable |= self.sockets.len() + 1 == self.most_sockets;
        socket.conn
    }

    /// Asserts its invariants.
    pub fn check(&self) {
        assert!(
            self.sockets.len() <= self.most_sockets,
            "sockets are limited"
        );
        for (slot, socket) in &self.sockets {
            if let Some(conn) = socket.conn {
                assert_eq!(self.socket_of(conn), Some(SocketId(slot as u32)));
            }
            assert_eq!(socket.conn.is_none(), socket.ended.is_some());
        }
    }
}

/// Socket calls on a table and its stack.
#[derive(Debug)]
pub struct SocketCalls<'a> {
    now: Time,
    table: &'a mut SocketTable,
    stack: &'a mut Stack<Bytes>,
}

impl SocketCalls<'_> {
    fn conn(&self, socket: SocketId) -> Option<ConnId> {
        self.table.sockets.get(socket.0 as usize)?.conn
    }
}

impl Sockets<Bytes> for SocketCalls<'_> {
    fn accept(&mut self) -> Option<SocketId> {
        if self.table.sockets.len() >= self.table.most_sockets {
            self.table.stats.accepts_deferred += 1;
            return None;
        }
        let listeners = self.table.listeners.iter();
        let conn = listeners.copied().find_map(|id| self.stack.accept(id))?;
        // Responses are written as a whole: there is nothing to wait for.
        self.stack.set_nodelay(conn, true);
        self.table.stats.accepted += 1;
        // Another may wait; a wait reports it again as long as there is one.
        self.table.acceptable = true;
        Some(self.table.adopt(conn))
    }

    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<Bytes> {
        let Some(conn) = self.conn(socket) else {
            return match self.table.end_of(socket) {
                Some(CloseReason::Normal) => Receive::EndOfStream,
                _ => Receive::Gone,
            };
        };
        if let Some(data) = self.stack.read(conn, max) {
            self.stack.consume(conn, data.len());
            return Receive::Data(data);
        }
        if self.stack.peer_closed(conn) {
            Receive::EndOfStream
        } else {
            Receive::WouldBlock
        }
    }

    fn unread(&self, socket: SocketId) -> Unread {
        match self.conn(socket) {
            None => Unread {
                len: 0,
                ended: true,
            },
            Some(conn) => Unread {
                len: self.stack.readable_len(conn),
                ended: self.stack.peer_closed(conn),
            },
        }
    }

    fn send(&mut self, socket: SocketId, data: Bytes) -> Result<usize, Gone> {
        let conn = self.conn(socket).ok_or(Gone)?;
        let len = data.len();
        let taken = self.stack.write(conn, data).map_err(|_| Gone)?;
        self.table.sockets[socket.0 as usize].wants_room = taken < len;
        Ok(taken)
    }

    fn set_cork(&mut self, socket: SocketId, cork: bool) {
        if let Some(conn) = self.conn(socket) {
            self.stack.set_cork(conn, cork);
        }
    }

    fn shutdown(&mut self, socket: SocketId) -> bool {
        if let Some(conn) = self.conn(socket) {
            self.stack.shutdown(conn);
        }
        true
    }

    fn close(&mut self, socket: SocketId) {
        if let Some(conn) = self.table.remove(socket) {
            self.stack.close(conn);
        }
    }

    fn abort(&mut self, socket: SocketId) {
        if let Some(conn) = self.table.remove(socket) {
            self.stack.abort(conn);
        }
    }
}

impl SocketCalls<'_> {
    /// The time of these calls.
    pub fn now(&self) -> Time {
        self.now
    }
}
