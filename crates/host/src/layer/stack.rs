//! What the socket layer asks of the TCP of its host.

use super::Reached;
use crate::{Gone, Receive, Unread};
use baton_tcp::{ConnId, ListenerId, Portable, Stack, State};
use baton_wire::{Flow, Payload, Time};

/// The TCP of a host: the engine's ([`Stack`]), or a kernel's.
///
/// Connections are known by numbers, which it gives them when they are accepted or imported.
pub trait HostStack<P> {
    /// The next connection of a listener.
    fn accept(&mut self, listener: ListenerId) -> Option<ConnId>;
    /// Whether a listener may have connections.
    fn has_acceptable(&self, listener: ListenerId) -> bool;
    /// Addresses and ports of a connection.
    fn flow(&self, conn: ConnId) -> Flow;

    /// Takes at most `max` bytes that were received.
    fn receive(&mut self, conn: ConnId, max: usize) -> Receive<P>;
    /// What there is to receive.
    fn unread(&self, conn: ConnId) -> Unread;
    /// Takes what it has room for of `data`; gives how many bytes.
    ///
    /// # Errors
    /// The connection is gone or closed for writing.
    fn send(&mut self, conn: ConnId, data: P) -> Result<usize, Gone>;
    /// Bytes that it would take now, about.
    fn send_space(&self, conn: ConnId) -> usize;
    /// The length of a connection's send buffer, bytes.
    fn send_buffer(&self, conn: ConnId) -> u32;
    /// Bytes in it, as far as is known without asking.
    fn unacknowledged(&self, conn: ConnId) -> usize;
    /// Sends partial segments at once.
    fn set_nodelay(&mut self, conn: ConnId, nodelay: bool);
    /// Holds partial segments back while set.
    fn set_cork(&mut self, conn: ConnId, cork: bool);
    /// Nothing more will be sent.
    fn shutdown(&mut self, conn: ConnId);
    /// Ends a connection and forgets its number.
    fn close(&mut self, conn: ConnId);
    /// Resets a connection and forgets its number.
    fn abort(&mut self, conn: ConnId);

    /// Whether a connection is in a state in which it can move, as far as is known without trying.
    fn may_move(&self, conn: ConnId) -> bool;
    /// Whether a connection can leave now, as far as that depends on what it has sent. If not it takes no more data to send, so that it
    /// soon can: until it leaves or [`unsettle`](HostStack::unsettle) is called.
    fn settle(&mut self, _conn: ConnId) -> bool {
        true
    }
    /// A connection stays that was to settle: it takes data again.
    fn unsettle(&mut self, _conn: ConnId) {}
    /// Takes a connection out. None when it cannot leave now: then it goes on.
    fn export(&mut self, now: Time, conn: ConnId) -> Option<Portable<P>>;
    /// Takes a connection in. None when it cannot: then the connection is lost.
    fn import(&mut self, now: Time, state: Portable<P>) -> Option<ConnId>;
    /// A connection that was taken out will not be back.
    fn forget(&mut self, _flow: &Flow) {}

    /// Whether connections that were taken out can be taken in now.
    fn takes_back(&self) -> bool {
        true
    }
    /// Takes in a connection, taken out in this state, whose adapter is gone and may have begun to go on with it. None when it has, or nobody
    /// knows.
    fn reclaim(&mut self, _now: Time, _state: Portable<P>) -> Option<ConnId> {
        None
    }
    /// Takes in a connection that an adapter had which is gone, and whose owner has got so far. None when nobody knows how it was left.
    fn recover(&mut self, _now: Time, _flow: &Flow, _reached: Reached) -> Option<ConnId> {
        None
    }
}

impl<P: Payload> HostStack<P> for Stack<P> {
    fn accept(&mut self, listener: ListenerId) -> Option<ConnId> {
        Self::accept(self, listener)
    }

    fn has_acceptable(&self, listener: ListenerId) -> bool {
        self.accept_queue_len(listener) > 0
    }

    fn flow(&self, conn: ConnId) -> Flow {
        Self::flow(self, conn)
    }

    fn receive(&mut self, conn: ConnId, max: usize) -> Receive<P> {
        if let Some(data) = self.read(conn, max) {
            self.consume(conn, data.len());
            return Receive::Data(data);
        }
        match self.peer_closed(conn) {
            true => Receive::EndOfStream,
            false => Receive::WouldBlock,
        }
    }

    fn unread(&self, conn: ConnId) -> Unread {
        Unread {
            len: self.readable_len(conn),
            ended: self.peer_closed(conn),
        }
    }

    fn send(&mut self, conn: ConnId, data: P) -> Result<usize, Gone> {
        self.write(conn, data).map_err(|_| Gone)
    }

    fn send_space(&self, conn: ConnId) -> usize {
        Self::send_space(self, conn)
    }

    fn send_buffer(&self, conn: ConnId) -> u32 {
        self.config_of(conn).send_buffer
    }

    fn unacknowledged(&self, conn: ConnId) -> usize {
        Self::unacknowledged(self, conn)
    }

    fn set_nodelay(&mut self, conn: ConnId, nodelay: bool) {
        Self::set_nodelay(self, conn, nodelay);
    }

    fn set_cork(&mut self, conn: ConnId, cork: bool) {
        Self::set_cork(self, conn, cork);
    }

    fn shutdown(&mut self, conn: ConnId) {
        Self::shutdown(self, conn);
    }

    fn close(&mut self, conn: ConnId) {
        Self::close(self, conn);
    }

    fn abort(&mut self, conn: ConnId) {
        Self::abort(self, conn);
    }

    fn may_move(&self, conn: ConnId) -> bool {
        matches!(self.state(conn), State::Established | State::CloseWait)
    }

    fn export(&mut self, now: Time, conn: ConnId) -> Option<Portable<P>> {
        Some(Self::export(self, now, conn))
    }

    fn import(&mut self, now: Time, state: Portable<P>) -> Option<ConnId> {
        Self::import(self, now, state).ok()
    }
}
