//! What a connection table shows.

use super::Stack;
use crate::info::Info;
use crate::path_error::PathError;
use crate::types::{CloseReason, ConnId};
use baton_wire::{Flow, Payload, Span, Time};

impl<P: Payload> Stack<P> {
    /// All connections it holds, TIME-WAIT not counted.
    pub fn connections(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.connections.iter().map(|(slot, _)| ConnId(slot as u32))
    }

    /// Connections in TIME-WAIT and how long they stay.
    pub fn time_waits(&self, now: Time) -> impl Iterator<Item = (Flow, Span)> + '_ {
        self.time_wait.entries(now)
    }

    /// Everything about a connection.
    pub fn info(&self, now: Time, id: ConnId) -> Info {
        let conn = self.conn(id);
        conn.info(now, &self.profiles[conn.profile])
    }

    /// What the network last said against the connection, since the peer was last heard (RFC 9293 3.9.2.2).
    pub fn soft_error(&self, id: ConnId) -> Option<PathError> {
        self.conn(id).soft_error
    }

    /// Bytes written and not yet sent.
    pub fn not_sent(&self, id: ConnId) -> usize {
        self.conn(id).not_sent() as usize
    }

    /// True when the peer will send no more: its FIN arrived in order, or the connection is over.
    pub fn peer_closed(&self, id: ConnId) -> bool {
        self.conn(id).peer_closed()
    }
    /// How the connection has ended, if it is over but for its owner, who has data left to read or has not polled
    /// [`Event::Closed`](crate::Event::Closed).
    pub fn ended(&self, id: ConnId) -> Option<CloseReason> {
        self.conn(id).ended
    }
}
