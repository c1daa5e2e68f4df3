//! Listeners: half-open connections and the accept queue.

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
    /// The stack's number for the parameters of connections that the listener accepts.
    pub(crate) profile: ProfileId,
    /// Limit of half-open connections, and of established connections that wait.
    backlog: usize,
    half_open: usize,
    /// When a SYN was last answered by a cookie.
    cookie_at: Option<Time>,
    waiting: VecDeque<ConnId>,
    /// Fast Open requests, once Fast Open was configured.
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

    /// Changes the limit; existing connections stay.
    pub(crate) fn set_backlog(&mut self, backlog: usize) {
        self.backlog = backlog;
    }

    /// Reports whether another SYN may be answered.
    pub(crate) fn takes_syn(&self) -> bool {
        self.has_room_for_half_open() && self.takes_established()
    }

    /// Reports whether there may be another half-open connection.
    pub(crate) fn has_room_for_half_open(&self) -> bool {
        self.half_open < self.backlog
    }

    /// Records that a SYN was answered by a cookie.
    pub(crate) fn cookie_sent(&mut self, now: Time) {
        self.cookie_at = Some(now);
    }

    /// Reports whether an answer to a cookie may still come.
    pub(crate) fn awaits_cookie(&self, now: Time) -> bool {
        self.cookie_at
            .is_some_and(|at| now.saturating_since(at) <= cookie::LIFETIME)
    }

    /// Reports whether another handshake may be completed.
    pub(crate) fn takes_established(&self) -> bool {
        self.waiting.len() < self.backlog
    }

    /// Counts a new half-open connection.
    pub(crate) fn half_opened(&mut self) {
        self.half_open += 1;
    }

    /// Counts a half-open connection that ended or is no longer half-open.
    pub(crate) fn half_open_ended(&mut self) {
        self.half_open -= 1;
    }

    /// Adds an established connection, which waits for [`Listener::accept`].
    pub(crate) fn enqueue(&mut self, id: ConnId) {
        self.waiting.push_back(id);
    }

    /// Takes the oldest waiting connection.
    pub(crate) fn accept(&mut self) -> Option<ConnId> {
        self.waiting.pop_front()
    }

    /// Removes a waiting connection that ended. This is rare, so a linear search suffices.
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
