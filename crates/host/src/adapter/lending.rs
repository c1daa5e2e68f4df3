//! What the adapter is done with of the data that it was given by reference: whoever keeps such data where it is may let go of it then.
//!
//! Of each socket all bytes that it was given have sequence numbers, which go on where a number is used again: nothing that is said of a
//! socket can be taken for its next one. A SEND needs its data until it is answered, for an adapter may answer one that it refuses before
//! it has fetched what an earlier one has. INSERTs are counted by themselves, in the order in which an adapter fetches them: one that a
//! socket has asked for may outlive all of its SENDs, if those are refused.
//!
//! What comes back with a connection is in its state, or was held back here and goes on by itself: for both the adapter is done with it.

use super::OsLayer;
use super::socket::Operation;
use crate::layer::AdapterId;
use crate::{Borrower, Borrowers, SocketId};
use baton_bus::link::Inline;
use baton_wire::SeqNr;

impl<P: Inline> OsLayer<P> {
    /// Those who refer to what a socket was given last, on the adapter that is known by this number. From now on
    /// [`OsLayer::poll_done_with`] tells of the socket.
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

    /// The sequence number behind all that a socket was given.
    pub fn given(&self, socket: SocketId) -> SeqNr {
        let entry = self.sockets.get(socket.0 as usize);
        entry.map_or(SeqNr(0), |entry| entry.given)
    }

    /// Whether the adapter is done with what a socket was given before `end`: it has been fetched, or never will be.
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

    /// A socket with whose data the adapter may be done, as far as [`OsLayer::is_done_with`] says.
    pub fn poll_done_with(&mut self) -> Option<SocketId> {
        let number = self.done_with.pop_front()?;
        self.socket_mut(number).queued.done_with = false;
        Some(SocketId(number))
    }

    /// Whether so many INSERTs have been answered.
    pub fn is_inserted(&self, count: SeqNr) -> bool {
        let caching = self.caching.as_ref();
        caching.is_none_or(|caching| caching.inserts_answered.at_or_after(count))
    }

    /// A socket is given `len` bytes; gives the sequence number behind them.
    pub(super) fn give(&mut self, number: u32, len: u32) -> SeqNr {
        let entry = self.socket_mut(number);
        entry.given += len;
        entry.given
    }

    /// The adapter is done with something that a socket was given.
    pub(super) fn tell_done_with(&mut self, number: u32) {
        let entry = &mut self.sockets[number as usize];
        if entry.lends && !std::mem::replace(&mut entry.queued.done_with, true) {
            self.done_with.push_back(number);
        }
    }
}
