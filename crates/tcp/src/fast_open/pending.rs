//! A listener's requests by Fast Open whose handshake is not complete (RFC 7413 5.1).

use super::FastOpenListening;
use crate::types::ConnId;
use baton_wire::{Span, Time};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// How long a request that was reset goes on to count, as Linux has it.
const RESET_COUNTS: Span = Span::from_secs(60);

/// Requests that are pending, and their limit. A request that a reset ended counts for a while: otherwise who forges addresses
/// could have the resets of those at them make room for more (RFC 7413 5.1).
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    pub(crate) rules: FastOpenListening,
    requests: FxHashSet<ConnId>,
    /// When those that were reset count no more, in order.
    resets: VecDeque<Time>,
}

impl Pending {
    /// True when one more may come.
    pub(crate) fn has_room(&mut self, now: Time) -> bool {
        while self.resets.front().is_some_and(|&until| until <= now) {
            self.resets.pop_front();
        }
        self.requests.len() + self.resets.len() < self.rules.pending
    }

    pub(crate) fn add(&mut self, id: ConnId) {
        self.requests.insert(id);
    }

    /// Its handshake is complete, or it is gone.
    pub(crate) fn remove(&mut self, id: ConnId) {
        self.requests.remove(&id);
    }

    /// A reset ended it.
    pub(crate) fn reset(&mut self, now: Time, id: ConnId) {
        if self.requests.remove(&id) {
            self.resets.push_back(now + RESET_COUNTS);
        }
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.requests.iter().copied()
    }
}
