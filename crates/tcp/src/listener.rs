//! Passive opens that wait: half-open connections and the accept queue.

use crate::cookie;
use crate::fast_open::Pending;
use crate::profiles::ProfileId;
use crate::types::ConnId;
use baton_wire::{Endpoint, Time};
use std::collections::VecDeque;

/// One listening endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub(crate) local: Endpoint,
    /// Its stack's number for the parameters of what it accepts.
    pub(crate) profile: ProfileId,
    /// Limit of the half-open connections, and of the established ones that wait.
    backlog: usize,
    half_open: usize,
    /// When a SYN was last answered by a cookie.
    cookie_at: Option<Time>,
    waiting: VecDeque<ConnId>,
    /// Its requests by Fast Open, once it was said how it takes them.
    pub(crate) fast_open: Option<Box<Pending>>,
}

impl Listener {
    pub(crate) fn new(local: Endpoint, backlog: usize, profile: ProfileId) -> Self {
        Self {
            local,
            profile,
            backlog,
            half_open: 0,
            cookie_at: None,
            waiting: VecDeque::new(),
            fast_open: None,
        }
    }

    /// Changes the limit; what is already there stays.
    pub(crate) fn set_backlog(&mut self, backlog: usize) {
        self.backlog = backlog;
    }

    /// True when one more SYN may be answered.
    pub(crate) fn takes_syn(&self) -> bool {
        self.has_room_for_half_open() && self.takes_established()
    }

    /// True when one more half-open connection may be kept.
    pub(crate) fn has_room_for_half_open(&self) -> bool {
        self.half_open < self.backlog
    }

    /// A SYN was answered by a cookie.
    pub(crate) fn cookie_sent(&mut self, now: Time) {
        self.cookie_at = Some(now);
    }

    /// True while an answer to a cookie may come.
    pub(crate) fn awaits_cookie(&self, now: Time) -> bool {
        self.cookie_at
            .is_some_and(|at| now.saturating_since(at) <= cookie::LIFETIME)
    }

    /// True when one more handshake may be completed.
    pub(crate) fn takes_established(&self) -> bool {
        self.waiting.len() < self.backlog
    }

    /// A SYN was taken.
    pub(crate) fn half_opened(&mut self) {
        self.half_open += 1;
    }

    /// A half-open connection is no more, or no longer half-open.
    pub(crate) fn half_open_ended(&mut self) {
        self.half_open -= 1;
    }

    /// An established connection waits for [`Listener::accept`].
    pub(crate) fn enqueue(&mut self, id: ConnId) {
        self.waiting.push_back(id);
    }

    /// Takes the oldest waiting connection.
    pub(crate) fn accept(&mut self) -> Option<ConnId> {
        self.waiting.pop_front()
    }

    /// A waiting connection ended. Rare, so a search will do.
    pub(crate) fn forget(&mut self, id: ConnId) {
        self.waiting.retain(|&waiting| waiting != id);
    }

    pub(crate) fn half_open(&self) -> usize {
        self.half_open
    }

    pub(crate) fn waiting_len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.waiting.iter().copied()
    }
}
