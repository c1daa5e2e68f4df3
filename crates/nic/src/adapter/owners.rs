//! To whom the stack's connections and listeners belong.

use baton_tcp::{ConnId, ListenerId};
use baton_wire::Time;
use std::collections::VecDeque;

/// A socket of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The session's slot.
    pub(super) session: u32,
    /// The socket's slot in it.
    pub(super) slot: u32,
}

/// To whom a connection belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Owner {
    /// Not to the adapter.
    #[default]
    Nobody,
    /// To a socket.
    Socket(Place),
    /// To no socket any more. It is on its way to its end, which it reaches by `until` or by a reset.
    Orphan { until: Time },
}

/// The connections and listeners of the adapter, by their numbers in the stack.
#[derive(Debug)]
pub(super) struct Owners {
    conns: Vec<Owner>,
    listeners: Vec<Option<Place>>,
    /// Orphans that have time, by when it ends. Those that are over stay until somebody looks.
    draining: VecDeque<(Time, ConnId)>,
    most_draining: usize,
}

impl Owners {
    /// Nothing belongs to anybody; at most so many connections may drain.
    pub(super) fn new(most_draining: u32) -> Self {
        Self {
            conns: Vec::new(),
            listeners: Vec::new(),
            draining: VecDeque::new(),
            most_draining: most_draining as usize,
        }
    }

    /// To whom a connection belongs.
    #[inline]
    pub(super) fn of(&self, conn: ConnId) -> Owner {
        self.conns.get(conn.0 as usize).copied().unwrap_or_default()
    }

    /// The socket that listens.
    pub(super) fn of_listener(&self, listener: ListenerId) -> Option<Place> {
        self.listeners.get(listener.0 as usize).copied().flatten()
    }

    /// A connection belongs to a socket.
    pub(super) fn give(&mut self, conn: ConnId, place: Place) {
        *self.entry(conn) = Owner::Socket(place);
    }

    /// A listener belongs to a socket, or to nobody any more.
    pub(super) fn set_listener(&mut self, listener: ListenerId, place: Option<Place>) {
        let index = listener.0 as usize;
        if index >= self.listeners.len() {
            self.listeners.resize(index + 1, None);
        }
        self.listeners[index] = place;
    }

    /// A connection is over.
    pub(super) fn forget(&mut self, conn: ConnId) {
        *self.entry(conn) = Owner::Nobody;
    }

    /// A connection is being reset; only its end is still to be heard of.
    pub(super) fn abandon(&mut self, now: Time, conn: ConnId) {
        *self.entry(conn) = Owner::Orphan { until: now };
    }

    /// A connection may come to its end by itself until `until`; false when too many do.
    pub(super) fn drain(&mut self, conn: ConnId, until: Time) -> bool {
        if self.draining.len() >= self.most_draining {
            let mut draining = std::mem::take(&mut self.draining);
            draining.retain(|&(until, conn)| self.of(conn) == Owner::Orphan { until });
            self.draining = draining;
        }
        if self.draining.len() >= self.most_draining {
            return false;
        }
        *self.entry(conn) = Owner::Orphan { until };
        self.draining.push_back((until, conn));
        true
    }

    /// The next orphan whose time is over.
    pub(super) fn pop_overdue(&mut self, now: Time) -> Option<ConnId> {
        while let Some(&(until, conn)) = self.draining.front() {
            let lives = self.of(conn) == Owner::Orphan { until };
            if lives && until > now {
                return None;
            }
            self.draining.pop_front();
            if lives {
                return Some(conn);
            }
        }
        None
    }

    /// When the time of the next orphan is over. May be early.
    pub(super) fn next_overdue(&self) -> Option<Time> {
        self.draining.front().map(|&(until, _)| until)
    }

    /// Connections that belong to no socket any more and are not over.
    pub(super) fn orphans(&self) -> usize {
        let orphans = self.conns.iter();
        orphans
            .filter(|owner| matches!(owner, Owner::Orphan { .. }))
            .count()
    }

    /// Connections of sockets, and those that are not over yet.
    pub(super) fn connections(&self) -> usize {
        let is_own = |owner: &&Owner| !matches!(owner, Owner::Nobody);
        self.conns.iter().filter(is_own).count()
    }

    /// All sockets to which a connection or a listener belongs.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let of_conns = self.conns.iter().filter_map(|owner| match owner {
            Owner::Socket(place) => Some(*place),
            _ => None,
        });
        of_conns.chain(self.listeners.iter().copied().flatten())
    }

    fn entry(&mut self, conn: ConnId) -> &mut Owner {
        let index = conn.0 as usize;
        if index >= self.conns.len() {
            self.conns.resize(index + 1, Owner::Nobody);
        }
        &mut self.conns[index]
    }
}
