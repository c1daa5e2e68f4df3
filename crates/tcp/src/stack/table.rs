//! Queries for connection tables.

use super::Stack;
use crate::info::Info;
use crate::path_error::PathError;
use crate::types::{CloseReason, ConnId};
use baton_wire::{Flow, Payload, Span, Time};

impl<P: Payload> Stack<P> {
    /// All connections, without those in TIME-WAIT.
    pub fn connections(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.connections.iter().map(|(slot, _)| ConnId(slot as u32))
    }

    /// Connections in TIME-WAIT, and their remaining time.
    pub fn time_waits(&self, now: Time) -> impl Iterator<Item = (Flow, Span)> + '_ {
        self.time_wait.entries(now)
    }

    /// A snapshot of a connection's state.
    pub fn info(&self, now: Time, id: ConnId) -> Info {
        let conn = self.conn(id);
        conn.info(now, &self.profiles[conn.profile])
    }

    /// The last ICMP error about the connection since the peer was last heard (RFC 9293 3.9.2.2).
    pub fn soft_error(&self, id: ConnId) -> Option<PathError> {
        self.conn(id).soft_error
    }

    /// Bytes written and not yet sent.
    pub fn not_sent(&self, id: ConnId) -> usize {
        self.conn(id).not_sent() as usize
    }

    /// Reports whether the peer will send no more: its FIN arrived in order, or the connection has ended.
    pub fn peer_closed(&self, id: ConnId) -> bool {
        self.conn(id).peer_closed()
    }
    /// Reason why the connection ended, if it has ended but its owner has data to read or has not polled
    /// [`Event::Closed`](crate::Event::Closed).
    pub fn ended(&self, id: ConnId) -> Option<CloseReason> {
        self.conn(id).ended
    }
}
