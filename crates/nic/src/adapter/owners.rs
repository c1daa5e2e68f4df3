//! Owners of the stack's connections and listeners.

use super::ports::Sharing;
use baton_tcp::{ConnId, ListenerId};
use baton_wire::Time;
use std::collections::VecDeque;

/// A socket of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Slot of the session.
    pub(super) session: u32,
    /// Slot of the socket in the session.
    pub(super) slot: u32,
}

/// Owner of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Owner {
    /// The connection does not belong to the adapter.
    #[default]
    Nobody,
    /// The connection belongs to a socket.
    Socket(Place),
    /// The connection no longer belongs to a socket and is about to end: in order before `until`, or else by a reset.
    Orphan { until: Time },
}

/// The sockets to which a listener belongs.
#[derive(Debug, Default)]
struct Listening {
    /// Which sockets may join, or `None` if there is only one.
    sharing: Option<Sharing>,
    /// The socket that accepts the next connection comes first.
    places: VecDeque<Place>,
}

/// Owners of the adapter's connections and listeners, by their numbers in the stack.
#[derive(Debug)]
pub(super) struct Owners {
    conns: Vec<Owner>,
    listeners: Vec<Listening>,
    /// Orphans that may still end in order, by deadline. Entries of ended connections are removed lazily.
    draining: VecDeque<(Time, ConnId)>,
    most_draining: usize,
}

impl Owners {
    /// Creates an empty table. At most `most_draining` connections may drain.
    pub(super) fn new(most_draining: u32) -> Self {
        Self {
            conns: Vec::new(),
            listeners: Vec::new(),
            draining: VecDeque::new(),
            most_draining: most_draining as usize,
        }
    }

    /// Returns the owner of a connection.
    #[inline]
    pub(super) fn of(&self, conn: ConnId) -> Owner {
        self.conns.get(conn.0 as usize).copied().unwrap_or_default()
    }

    /// Returns the sockets to which a listener belongs. The first accepts the next connection.
    pub(super) fn of_listener(&self, listener: ListenerId) -> impl ExactSizeIterator<Item = Place> {
        let listening = self.listeners.get(listener.0 as usize);
        let places = listening.map_or(Default::default(), |it| it.places.iter());
        places.copied()
    }

    /// Returns the socket that accepts the listener's next connection, and puts it behind the others that share the listener.
    pub(super) fn next_acceptor(&mut self, listener: ListenerId) -> Option<Place> {
        let places = &mut self.listeners.get_mut(listener.0 as usize)?.places;
        let place = places.pop_front()?;
        places.push_back(place);
        Some(place)
    }

    /// Returns whether sockets with this sharing may join the listener.
    pub(super) fn may_join(&self, listener: ListenerId, sharing: Option<Sharing>) -> bool {
        let listening = self.listeners.get(listener.0 as usize);
        sharing.is_some() && listening.is_some_and(|it| it.sharing == sharing)
    }

    /// Assigns a connection to a socket.
    pub(super) fn give(&mut self, conn: ConnId, place: Place) {
        *self.entry(conn) = Owner::Socket(place);
    }

    /// Adds a socket to those to which a listener belongs.
    pub(super) fn join_listener(
        &mut self,
        listener: ListenerId,
        place: Place,
        sharing: Option<Sharing>,
    ) {
        let index = listener.0 as usize;
        if index >= self.listeners.len() {
            self.listeners.resize_with(index + 1, Listening::default);
        }
        let listening = &mut self.listeners[index];
        listening.sharing = sharing;
        listening.places.push_back(place);
    }

    /// Removes a socket from those to which a listener belongs. Returns whether it was the last one.
    pub(super) fn leave_listener(&mut self, listener: ListenerId, place: Place) -> bool {
        let places = &mut self.listeners[listener.0 as usize].places;
        places.retain(|&other| other != place);
        places.is_empty()
    }

    /// Records that a connection has ended or left.
    pub(super) fn forget(&mut self, conn: ConnId) {
        *self.entry(conn) = Owner::Nobody;
    }

    /// Records that a connection is being reset, so that only its final event is still to come.
    pub(super) fn abandon(&mut self, now: Time, conn: ConnId) {
        *self.entry(conn) = Owner::Orphan { until: now };
    }

    /// Lets a connection end in order until `until`. Returns false if too many connections already do so.
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

    /// Removes and returns the next orphan whose deadline has passed.
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

    /// Returns the deadline of the next orphan. The deadline may be early.
    pub(super) fn next_overdue(&self) -> Option<Time> {
        self.draining.front().map(|&(until, _)| until)
    }

    /// Returns the number of connections that no longer belong to a socket but have not ended.
    pub(super) fn orphans(&self) -> usize {
        let orphans = self.conns.iter();
        orphans
            .filter(|owner| matches!(owner, Owner::Orphan { .. }))
            .count()
    }

    /// Returns the number of connections of sockets, plus the orphans.
    pub(super) fn connections(&self) -> usize {
        let is_own = |owner: &&Owner| !matches!(owner, Owner::Nobody);
        self.conns.iter().filter(is_own).count()
    }

    /// Returns all sockets that own a connection or a listener.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let of_conns = self.conns.iter().filter_map(|owner| match owner {
            Owner::Socket(place) => Some(*place),
            _ => None,
        });
        let of_listeners = self.listeners.iter();
        of_conns.chain(of_listeners.flat_map(|listening| listening.places.iter().copied()))
    }

    fn entry(&mut self, conn: ConnId) -> &mut Owner {
        let index = conn.0 as usize;
        if index >= self.conns.len() {
            self.conns.resize(index + 1, Owner::Nobody);
        }
        &mut self.conns[index]
    }
}
