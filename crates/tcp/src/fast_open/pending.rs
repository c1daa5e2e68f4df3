//! A listener's Fast Open requests whose handshake is not complete (RFC 7413 5.1).

use super::FastOpenListening;
use crate::types::ConnId;
use baton_wire::{Span, Time};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// Time for which a request that was reset still counts, as in Linux.
const RESET_COUNTS: Span = Span::from_secs(60);

/// Pending requests, and their limit. A request that a reset ended still counts for a while: otherwise the resets from the hosts
/// whose addresses an attacker forges would allow more forged requests (RFC 7413 5.1).
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    pub(crate) rules: FastOpenListening,
    requests: FxHashSet<ConnId>,
    /// When requests that were reset cease to count, in order.
    resets: VecDeque<Time>,
}

impl Pending {
    /// Reports whether another request is allowed.
    pub(crate) fn has_room(&mut self, now: Time) -> bool {
        while self.resets.front().is_some_and(|&until| until <= now) {
            self.resets.pop_front();
        }
        self.requests.len() + self.resets.len() < self.rules.pending
    }

    pub(crate) fn add(&mut self, id: ConnId) {
        self.requests.insert(id);
    }

    /// Removes a request whose handshake is complete, or that is gone.
    pub(crate) fn remove(&mut self, id: ConnId) {
        self.requests.remove(&id);
    }

    /// Records that a reset ended a request.
    pub(crate) fn reset(&mut self, now: Time, id: ConnId) {
        if self.requests.remove(&id) {
            self.resets.push_back(now + RESET_COUNTS);
        }
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.requests.iter().copied()
    }
}
