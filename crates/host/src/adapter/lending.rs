//! Tracks which of the data lent by reference the adapter no longer needs, so that its owner can release it.
//!
//! All bytes given to a socket have sequence numbers, which continue when the socket's number is reused, so a report about a socket cannot
//! be mistaken for one about its successor. A SEND needs its data until it is answered, because an adapter may answer a refused SEND before
//! it has fetched the data of an earlier one. INSERTs are counted separately, in the order in which an adapter fetches them: an INSERT that
//! a socket has caused may outlive all of the socket's SENDs, if those are refused.
//!
//! Data that comes back with a connection is part of its state, or was held back here: the adapter needs neither any longer.

use super::OsLayer;
use super::socket::Operation;
use crate::layer::AdapterId;
use crate::{Borrower, Borrowers, SocketId};
use baton_bus::link::Inline;
use baton_wire::SeqNr;

impl<P: Inline> OsLayer<P> {
    /// Returns who refers to the data that was last given to a socket of this adapter. From now on [`OsLayer::poll_done_with`]
    /// reports the socket.
    pub fn borrowers(&mut self, adapter: AdapterId, socket: SocketId) -> Borrowers {
        let mut borrowers = Borrowers::new();
        if let Some(entry) = self.sockets.get_mut(socket.0 as usize) {
            entry.lends = true;
            borrowers.push((Borrower::Socket(adapter, socket), entry.given));
        }
        let caching = self.caching.as_ref();
        if let Some(caching) = caching.filter(|caching| caching.inserts_answered != caching.inserts)
        {
            borrowers.push((Borrower::Cache(adapter), caching.inserts));
        }
        borrowers
    }

    /// Returns the sequence number after all data that was given to a socket.
    pub fn given(&self, socket: SocketId) -> SeqNr {
        let entry = self.sockets.get(socket.0 as usize);
        entry.map_or(SeqNr(0), |entry| entry.given)
    }

    /// Returns whether the adapter no longer needs the data before `end`: it was fetched, or never will be.
    pub fn is_done_with(&self, socket: SocketId, end: SeqNr) -> bool {
        let Some(entry) = self.sockets.get(socket.0 as usize) else {
            return true;
        };
        let first = self.requests.first(&entry.sends);
        let oldest = first.and_then(|tag| Some(self.requests.get(tag)?.operation));
        let needed_from = match oldest {
            Some(Operation::Send { end, len, .. }) => end - len,
            _ => entry.given - entry.held_len,
        };
        needed_from.at_or_after(end)
    }

    /// Returns a socket some of whose data the adapter may no longer need; [`OsLayer::is_done_with`] says which.
    pub fn poll_done_with(&mut self) -> Option<SocketId> {
        let number = self.done_with.pop_front()?;
        self.socket_mut(number).queued.done_with = false;
        Some(SocketId(number))
    }

    /// Returns whether this many INSERTs have been answered.
    pub fn is_inserted(&self, count: SeqNr) -> bool {
        let caching = self.caching.as_ref();
        caching.is_none_or(|caching| caching.inserts_answered.at_or_after(count))
    }

    /// Assigns sequence numbers to `len` bytes of a socket. Returns the number after them.
    pub(super) fn give(&mut self, number: u32, len: u32) -> SeqNr {
        let entry = self.socket_mut(number);
        entry.given += len;
        entry.given
    }

    /// Records that the adapter may no longer need some data of a socket.
    pub(super) fn tell_done_with(&mut self, number: u32) {
        let entry = &mut self.sockets[number as usize];
        if entry.lends && !std::mem::replace(&mut entry.queued.done_with, true) {
            self.done_with.push_back(number);
        }
    }
}
