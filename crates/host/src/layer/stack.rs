//! The interface between the socket layer and the TCP of its host.

use super::Reached;
use crate::{Gone, MoveReason, Receive, Unread};
use baton_tcp::{CloseReason, ConnId, ListenerId, Portable, Stack, State};
use baton_wire::{Flow, Payload, Time};
use std::collections::VecDeque;

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
    /// Sets whether partial segments are sent immediately.
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
    /// Returns whether a connection could leave now, as far as that depends on data in flight.
    fn is_at_rest(&self, _conn: ConnId) -> bool {
        true
    }
    /// Returns whether a connection that is to leave could leave now, like [`is_at_rest`](HostStack::is_at_rest). If not, the connection
    /// takes no more data, so that it soon can, until it leaves or [`unsettle`](HostStack::unsettle) is called.
    fn settle(&mut self, _conn: ConnId) -> bool {
        true
    }
    /// Lets a settling connection that stays take data again.
    fn unsettle(&mut self, _conn: ConnId) {}
    /// Sets the reason of the next export or import, for the record.
    fn say_why(&mut self, _why: MoveReason) {}
    /// Exports a connection. Returns `None` if it cannot leave now; it then continues.
    fn export(&mut self, now: Time, conn: ConnId) -> Option<Portable<P>>;
    /// Returns whether [`HostStack::export`] leaves unread data to [`HostStack::take_unread`].
    fn keeps_unread(&self) -> bool {
        false
    }
    /// Takes the received data of the last exported connection that was not read.
    fn take_unread(&mut self) -> Option<P> {
        None
    }
    /// Imports a connection. On an error the connection is lost, and the error is the reason of its end.
    ///
    /// # Errors
    /// [`CloseReason::Reset`] if the peer has reset the connection meanwhile.
    fn import(&mut self, now: Time, state: Portable<P>) -> Result<ConnId, CloseReason>;
    /// Imports a connection like [`HostStack::import`], together with unread data, which the stack removes from `unread` if it supports
    /// this.
    ///
    /// # Errors
    /// The errors of [`HostStack::import`].
    fn import_unread(
        &mut self,
        now: Time,
        state: Portable<P>,
        _unread: &mut VecDeque<P>,
    ) -> Result<ConnId, CloseReason> {
        self.import(now, state)
    }
    /// Called when an exported connection will not come back.
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

    fn import(&mut self, now: Time, state: Portable<P>) -> Result<ConnId, CloseReason> {
        Self::import(self, now, state).map_err(|_| CloseReason::Aborted)
    }
}
