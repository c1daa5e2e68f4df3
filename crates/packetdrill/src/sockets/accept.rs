//! accept.

use super::{Association, Socket, SocketId, Waiting};
use crate::descriptors::File;
use crate::errno::{Errno, Outcome, fail, wait};
use crate::receive_window::ReceiveWindow;
use crate::world::World;
use baton_abi::address;
use baton_tcp::{ConnId, ListenerId};
use baton_wire::{Span, Time};
use libc::c_int;

/// accept(2).
#[derive(Debug)]
pub struct Accept {
    fd: c_int,
    limit: Option<Option<Time>>,
}

impl Accept {
    /// Creates the call.
    pub fn new(fd: c_int) -> Self {
        Self { fd, limit: None }
    }

    /// Returns the new descriptor and the peer's address.
    ///
    /// # Errors
    /// EINVAL if the socket does not listen; EAGAIN if no connection arrived in time.
    pub fn attempt(&mut self, world: &mut World) -> Outcome<(c_int, Vec<u8>)> {
        let id = world.socket_id(self.fd)?;
        let now = world.now();
        let socket = &world.sockets[id];
        let Some(listening) = &socket.listening else {
            return fail(libc::EINVAL);
        };
        let limit = *self
            .limit
            .get_or_insert_with(|| socket.receive_limit(now, 0));
        let shown = |waiting: &Waiting| world.is_shown(waiting);
        let Some(place) = listening.queue.iter().position(shown) else {
            // A hidden connection may become visible later without any other event.
            let hidden = listening
                .queue
                .iter()
                .map(|waiting| waiting.hidden_until)
                .min();
            return match (limit, hidden) {
                (Some(limit), Some(hidden)) if hidden > now => wait(now, Some(limit.min(hidden))),
                _ => wait(now, limit),
            };
        };
        let remote = listening.queue[place].remote;
        let remote = address::write((remote.addr, remote.port).into(), socket.family).to_vec();
        let child = world.take_waiting(id, place)?;
        Ok((child, remote))
    }
}

impl World {
    /// Reports whether accept(2) returns the connection. With deferred acceptance, only if it has data (tcp(7), TCP_DEFER_ACCEPT).
    pub(super) fn is_shown(&self, waiting: &Waiting) -> bool {
        let socket = &self.sockets[waiting.socket];
        waiting.hidden_until <= self.now()
            || socket.received.len() > 0
            || socket.receive_shut
            || socket.conn.is_none()
    }

    fn take_waiting(&mut self, listener: SocketId, place: usize) -> Result<c_int, Errno> {
        let listening = self.sockets[listener].listening.as_mut();
        let waiting = listening.and_then(|listening| listening.queue.remove(place));
        let child = waiting.expect("the queue has this position").socket;
        self.adjust_backlog(listener);
        self.sockets[child].options.accepted = true;
        self.apply_options(child);
        self.descriptors.add(File::Socket(child))
    }

    /// Creates a socket for a connection whose handshake is complete; the socket waits to be accepted.
    pub(super) fn child_established(&mut self, listener: ListenerId) {
        let Some(conn) = self.stack.accept(listener) else {
            return;
        };
        let parent = self.sockets.iter().find(|(_, socket)| {
            let listening = socket.listening.as_ref();
            listening.is_some_and(|listening| listening.listeners.contains(&listener))
        });
        let Some((parent, _)) = parent else {
            self.stack.abort(conn);
            return;
        };
        let child = self.child_of(parent, conn);
        let defer_s = u64::from(self.sockets[parent].options.defer_accept_s);
        let waiting = Waiting {
            socket: child,
            remote: self.stack.flow(conn).remote,
            hidden_until: self.now() + Span::from_secs(defer_s),
        };
        if let Some(listening) = &mut self.sockets[parent].listening {
            listening.queue.push_back(waiting);
        }
        self.adjust_backlog(parent);
        self.apply_options(child);
        self.wake_readers(parent);
    }

    /// Creates a socket with the options of its listener.
    fn child_of(&mut self, parent: SocketId, conn: ConnId) -> SocketId {
        let listener = &self.sockets[parent];
        let mut socket = Socket::new(listener.family, &self.settings);
        socket.options = listener.options.clone();
        socket.window = ReceiveWindow::clone(&listener.window);
        socket.bound = Some(self.stack.flow(conn).local);
        socket.association = Association::Connected;
        socket.conn = Some(conn);
        let child = self.sockets.insert(socket);
        self.owners.insert(conn, child);
        child
    }
}
