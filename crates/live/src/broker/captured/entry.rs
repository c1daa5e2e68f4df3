//! A captured flow, and the set of all of them.

use super::stats::CapturedStats;
use crate::broker::limits::Share;
use crate::broker::memory::{CAPACITY, Owner, Place};
use crate::broker::notice::BrokerNotice;
use crate::broker::record::{Said, data_len};
use crate::broker::seal::Ticket;
use crate::broker::session::{FreePlaces, Session};
use baton_wire::Flow;
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry as MapEntry;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of pending notices; later ones are discarded.
const MOST_NOTICES: usize = 4096;

/// A flow whose packets come to the adapter.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) session: Arc<Session>,
    pub(super) place: u32,
    /// Number of the connection among those that have had the place.
    pub(super) number: u32,
    /// The client that took the connection out of the kernel and may put it back.
    pub(super) taker: Taker,
    /// Time since which the client has been disconnected or unknown.
    pub(super) orphan: Option<Instant>,
    /// Keeps the kernel from giving the local port to another connection.
    pub(super) _port: Option<Arc<Port>>,
}

/// A socket without a connection that is bound to a local port, and what its user is charged for it.
#[derive(Debug)]
pub(in crate::broker) struct Port(
    #[expect(dead_code, reason = "it is only kept")] pub(in crate::broker) OwnedFd,
    #[expect(dead_code, reason = "it is only kept")] pub(in crate::broker) Share,
);

impl Entry {
    pub(super) fn ticket(&self) -> Ticket {
        Ticket {
            place: self.place,
            number: self.number,
        }
    }

    pub(super) fn place(&self) -> &Place {
        &self.session.memory.places[self.place as usize]
    }

    /// Returns whether the connection has ended.
    pub(super) fn is_over(&self) -> bool {
        let (number, owner) = self.place().owner();
        number != self.number || matches!(owner, Owner::Over | Owner::Nobody)
    }

    /// Returns what the adapter has recorded of the connection, with its data.
    pub(super) fn remains(&self) -> (Said, Bytes) {
        let said = self.place().record.read();
        let data = match &said {
            Said::Complete(words) => self.session.memory.data(self.place).read(data_len(words)),
            Said::Untouched | Said::Incomplete => Bytes::new(),
        };
        (said, data)
    }

    /// Returns whether this client may put the connection back. If the broker was replaced and nobody has asked for the connection since,
    /// any client of the same user may, and owns the connection from then on.
    pub(super) fn belongs_to(&mut self, taker: Taker) -> bool {
        let is_free = self.taker.number == NOBODY;
        if is_free && (taker.user == 0 || taker.user == self.taker.user) {
            // The connection still counts towards its original user.
            self.taker.number = taker.number;
            self.orphan = None;
        }
        self.taker.number == taker.number
    }
}

/// A client's connection to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::broker) struct Taker {
    /// Number of the client.
    pub(in crate::broker) number: u64,
    /// User of the client.
    pub(in crate::broker) user: u32,
    /// Process ID of the client.
    pub(in crate::broker) pid: u32,
}

/// Number that no client has.
const NOBODY: u64 = u64::MAX;

impl Taker {
    /// Returns a client of this user that has not asked for anything yet.
    pub(super) fn unknown(user: u32) -> Self {
        let number = NOBODY;
        let pid = 0;
        Self { number, user, pid }
    }
}

#[derive(Debug, Default)]
pub(super) struct Flows {
    pub(super) entries: FxHashMap<Flow, Entry>,
    /// Number of entries per user.
    of_users: FxHashMap<u32, usize>,
    pub(super) adapter: Option<Arc<Session>>,
    /// Free places in the memory of `adapter`.
    pub(super) free: FreePlaces,
    pub(super) notices: VecDeque<BrokerNotice>,
    pub(super) stats: CapturedStats,
    /// Flows that went back to the kernel or ended recently, oldest first: the adapter may still have packets of them.
    pub(super) returned: VecDeque<(Instant, Flow)>,
}

/// Maximum number of connections per user other than root: half of all, so that other users can have some, too.
const MOST_OF_USER: usize = CAPACITY / 2;
/// Maximum time that packets of a connection may still arrive at the adapter after the connection has returned to the kernel.
const LONGEST_STRAY: Duration = Duration::from_secs(5);
/// Maximum number of flows in `returned`.
const MOST_RETURNED: usize = 65_536;

impl Flows {
    pub(super) fn insert(&mut self, flow: Flow, entry: Entry) {
        *self.of_users.entry(entry.taker.user).or_default() += 1;
        self.entries.insert(flow, entry);
    }

    pub(super) fn remove(&mut self, flow: &Flow) -> Option<Entry> {
        let entry = self.entries.remove(flow)?;
        if let MapEntry::Occupied(mut count) = self.of_users.entry(entry.taker.user) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        Some(entry)
    }

    /// Returns whether a user other than root has the maximum number of connections out of the kernel.
    pub(super) fn has_its_share(&self, user: u32) -> bool {
        let count = self.of_users.get(&user);
        user != 0 && count.is_some_and(|count| *count >= MOST_OF_USER)
    }

    /// Records that a connection has gone back to the kernel or has ended.
    pub(super) fn note_returned(&mut self, flow: &Flow) {
        let is_old = |(since, _): &(Instant, Flow)| since.elapsed() > LONGEST_STRAY;
        while self.returned.len() >= MOST_RETURNED || self.returned.front().is_some_and(is_old) {
            self.returned.pop_front();
        }
        self.returned.push_back((Instant::now(), *flow));
    }

    /// Returns whether the adapter may have packets of a flow.
    pub(super) fn knows(&self, flow: &Flow) -> bool {
        let is_it =
            |(since, other): &(Instant, Flow)| other == flow && since.elapsed() <= LONGEST_STRAY;
        // Most calls are about connections that came back recently, so the search begins with them.
        self.entries.contains_key(flow) || self.returned.iter().rev().any(is_it)
    }

    pub(super) fn tell(&mut self, notice: BrokerNotice) {
        if self.notices.len() < MOST_NOTICES {
            self.notices.push_back(notice);
        }
    }

    pub(super) fn is_current(&self, session: &Arc<Session>) -> bool {
        (self.adapter.as_ref()).is_some_and(|current| Arc::ptr_eq(current, session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_with_half_of_all_connections_gets_no_more_and_others_do() {
        let mut flows = Flows::default();
        flows.of_users.insert(7, MOST_OF_USER - 1);
        assert!(!flows.has_its_share(7));
        flows.of_users.insert(7, MOST_OF_USER);
        flows.of_users.insert(0, MOST_OF_USER);
        assert!(flows.has_its_share(7));
        assert!(!flows.has_its_share(8), "another user");
        assert!(!flows.has_its_share(0), "root");
    }
}
