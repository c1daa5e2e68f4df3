//! A flow, and all there are.

use super::stats::CapturedStats;
use crate::broker::memory::Place;
use crate::broker::notice::BrokerNotice;
use crate::broker::record::{Said, data_len};
use crate::broker::seal::Ticket;
use crate::broker::session::{FreePlaces, Session};
use baton_wire::Flow;
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Notices that wait to be told of at most; those that come after are not told of.
const MOST_NOTICES: usize = 4096;

/// A flow whose packets come to the adapter.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) session: Arc<Session>,
    pub(super) place: u32,
    /// Its number among those that have had the place.
    pub(super) number: u32,
    /// Who took it out of the kernel, and may put it back.
    pub(super) taker: Taker,
    /// Since when that application is gone, or not known.
    pub(super) orphan: Option<Instant>,
}

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

    /// What its adapter has left of it, with its data.
    pub(super) fn remains(&self) -> (Said, Bytes) {
        let said = self.place().record.read();
        let data = match &said {
            Said::Complete(words) => self.session.memory.data(self.place).read(data_len(words)),
            Said::Untouched | Said::Incomplete => Bytes::new(),
        };
        (said, data)
    }

    /// Whether this application may put it back. Of one that nobody has asked for since the broker before this one is gone, any of the same user
    /// may, and has it from then on.
    pub(super) fn belongs_to(&mut self, taker: Taker) -> bool {
        let is_free = self.taker.number == NOBODY;
        if is_free && (taker.user == 0 || taker.user == self.taker.user) {
            self.taker = taker;
            self.orphan = None;
        }
        self.taker == taker
    }
}

/// An application's connection to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::broker) struct Taker {
    /// Its number.
    pub(in crate::broker) number: u64,
    /// Who the application belongs to.
    pub(in crate::broker) user: u32,
}

/// The number of none.
const NOBODY: u64 = u64::MAX;

impl Taker {
    /// An application of this user that has not asked for anything yet.
    pub(super) fn unknown(user: u32) -> Self {
        let number = NOBODY;
        Self { number, user }
    }
}

#[derive(Debug, Default)]
pub(super) struct Flows {
    pub(super) entries: FxHashMap<Flow, Entry>,
    pub(super) adapter: Option<Arc<Session>>,
    /// In that one's memory.
    pub(super) free: FreePlaces,
    pub(super) notices: VecDeque<BrokerNotice>,
    pub(super) stats: CapturedStats,
    /// Flows that the kernel has had back for a moment, oldest first: the adapter may still have packets of them.
    pub(super) returned: VecDeque<(Instant, Flow)>,
}

/// Packets of a connection that has gone back arrive within this time.
const LONGEST_STRAY: Duration = Duration::from_secs(5);
/// Flows of which that is known.
const MOST_RETURNED: usize = 65_536;

impl Flows {
    /// A connection has gone back to the kernel.
    pub(super) fn note_returned(&mut self, flow: &Flow) {
        let is_old = |(since, _): &(Instant, Flow)| since.elapsed() > LONGEST_STRAY;
        while self.returned.len() >= MOST_RETURNED || self.returned.front().is_some_and(is_old) {
            self.returned.pop_front();
        }
        self.returned.push_back((Instant::now(), *flow));
    }

    /// Whether the adapter may have packets of a flow.
    pub(super) fn knows(&self, flow: &Flow) -> bool {
        let is_it =
            |(since, other): &(Instant, Flow)| other == flow && since.elapsed() <= LONGEST_STRAY;
        // What has come back last is asked for most.
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
