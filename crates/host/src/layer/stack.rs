//! The interface between the socket layer and the TCP of its host.

use super::Reached;
use crate::{Gone, Receive, Unread};
use baton_tcp::{ConnId, ListenerId, Portable, Stack, State};
use baton_wire::{Flow, Payload, Time};

/// The TCP of a host: the engine's ([`Stack`]), or a kernel's.
///
/// Connections are identified by numbers, which the stack assigns when they are accepted or imported.
pub trait HostStack<P> {
    /// Accepts the next connection of a listener.
    fn accept(&mut self, listener: ListenerId) -> Option<ConnId>;
    /// Returns whether a listener may have connections to accept.
    fn has_acceptable(&self, listener: ListenerId) -> bool;
    /// Returns addresses and ports of a connection.
    fn flow(&self, conn: ConnId) -> Flow;

    /// Takes at most `max` received bytes.
    fn receive(&mut self, conn: ConnId, max: usize) -> Receive<P>;
    /// Returns what can be received.
    fn unread(&self, conn: ConnId) -> Unread;
    /// Takes as much of `data` as it has buffer space for. Returns how many bytes.
    ///
    /// # Errors
    /// The connection has ended or is shut down for sending.
    fn send(&mut self, conn: ConnId, data: P) -> Result<usize, Gone>;
    /// Returns approximately how many bytes `send` would take now.
    fn send_space(&self, conn: ConnId) -> usize;
    /// Returns the length of a connection's send buffer in bytes.
    fn send_buffer(&self, conn: ConnId) -> u32;
    /// Returns the number of bytes in the send buffer, as far as is known without a system call.
    fn unacknowledged(&self, conn: ConnId) -> usize;
    /// Sets whether partial segments are sent at once.
    fn set_nodelay(&mut self, conn: ConnId, nodelay: bool);
    /// Holds back partial segments while `cork` is set.
    fn set_cork(&mut self, conn: ConnId, cork: bool);
    /// Shuts down sending.
    fn shutdown(&mut self, conn: ConnId);
    /// Closes a connection and releases its number.
    fn close(&mut self, conn: ConnId);
    /// Resets a connection and releases its number.
    fn abort(&mut self, conn: ConnId);

    /// Returns whether the state of a connection allows a move, as far as is known without trying.
    fn may_move(&self, conn: ConnId) -> bool;
    /// Whether a connection can leave now, as far as that depends on what it has sent. If not it takes no more data to send, so that it
    /// soon can: until it leaves or [`unsettle`](HostStack::unsettle) is called.
    fn settle(&mut self, _conn: ConnId) -> bool {
        true
    }
    /// Lets a settling connection that stays take data again.
    fn unsettle(&mut self, _conn: ConnId) {}
    /// Takes a connection out. None when it cannot leave now: then it goes on.
    fn export(&mut self, now: Time, conn: ConnId) -> Option<Portable<P>>;
    /// Takes a connection in. None when it cannot: then the connection is lost.
    fn import(&mut self, now: Time, state: Portable<P>) -> Option<ConnId>;
    /// A connection that was taken out will not be back.
    fn forget(&mut self, _flow: &Flow) {}

    /// Returns whether exported connections can be imported now.
    fn takes_back(&self) -> bool {
        true
    }
    /// Imports a connection, exported in this state, whose adapter is gone. Returns `None` if that adapter had started to use the
    /// connection, or if this is unknown.
    fn reclaim(&mut self, _now: Time, _state: Portable<P>) -> Option<ConnId> {
        None
    }
    /// Imports a connection whose adapter is gone, given how far its owner has read and written. Returns `None` if the state of the
    /// connection is unknown.
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
