//! Export of connections to another stack, and import from one.

use super::{Stack, push_acknowledged};
use crate::connection::{Connection, Marks};
use crate::essentials::Essentials;
use crate::portable::{Portable, Signals};
use crate::types::{ConnId, Event, State};
use baton_wire::{Payload, Time};

impl<P: Payload> Stack<P> {
    /// Takes a connection out of the stack, with its buffers. Nothing is sent, and its slot is free. No event follows: events
    /// that were not polled move with the connection.
    pub fn export(&mut self, now: Time, id: ConnId) -> Portable<P> {
        let signals = self.take_signals(id);
        self.wheel.cancel(id.0);
        let mut conn = self.connections.remove(id.0 as usize);
        self.memory.release(&mut conn.charge);
        if conn.ended.is_none() {
            self.flows.remove(&conn.flow, id.0);
        }
        if let Some(listener) = conn.listener {
            let listener = &mut self.listeners[listener.0 as usize];
            match conn.is_half_open() {
                true => listener.half_open_ended(),
                false => listener.forget(id),
            }
        }
        if conn.is_opened_fast() {
            self.end_fast_open(id, conn.flow.local);
        }
        self.forget_times(id.0, conn.marks);
        let config = self.profiles[conn.profile].clone();
        self.profiles.release(conn.profile);
        conn.into_portable(now, config, signals)
    }

    /// Takes the events of `id` that wait to be polled.
    fn take_signals(&mut self, id: ConnId) -> Signals {
        let mut signals = Signals::default();
        self.events.retain(|(owner, event)| {
            if *owner != id {
                return true;
            }
            match event {
                Event::Connected => signals.connected = true,
                Event::Readable => signals.readable = true,
                Event::Acknowledged(len) => signals.acknowledged += len,
                Event::PeerClosed => signals.peer_closed = true,
                // The destination derives these events from the state, except for times, which it does not know.
                Event::Acceptable(_) | Event::Urgent | Event::TransmitTimes | Event::Closed(_) => {}
            }
            false
        });
        signals
    }

    /// Adds a connection, as if it had always been in this stack. `poll_transmit` returns its pending output. A connection that was
    /// not accepted waits at this stack's listener, if there is one, and otherwise counts as accepted.
    ///
    /// # Errors
    /// Returns the state if its four-tuple is in use or it violates an invariant, or if it was deserialized and has a custom congestion
    /// controller that no parameters in use in this stack name ([`Custom`](crate::Custom)).
    pub fn import(&mut self, now: Time, state: Portable<P>) -> Result<ConnId, Box<Portable<P>>> {
        let over = state.state == State::TimeWait;
        if state.version != state.needed_version() || (!over && self.find(&state.flow).is_some()) {
            return Err(Box::new(state));
        }
        let (flow, unaccepted) = (state.flow, state.unaccepted);
        let (config, signals) = (self.profiles.with_factory(&state.config), state.signals);
        let mut conn = Connection::from_portable(now, state);
        conn.revive_controller(now, &config);
        let sound = config.check().is_ok() && conn.verify(&config).is_ok();
        let profile = match sound {
            true => self.profiles.intern(&config),
            false => None,
        };
        let Some(profile) = profile else {
            return Err(Box::new(Portable {
                unaccepted,
                ..conn.into_portable(now, config, signals)
            }));
        };
        conn.profile = profile;
        let id = if over {
            ConnId(self.connections.insert(conn) as u32)
        } else {
            self.time_wait.remove(&flow);
            self.insert(conn)
        };
        self.tell_path(now, id);
        self.hear_of_path(now, id);
        self.connections[id.0 as usize]
            .marks
            .remove(Marks::PATH_TOLD);
        if self.conn(id).is_opened_fast() {
            self.take_over_fast_open(id);
        }
        if unaccepted {
            self.wait_for_accept(id);
        }
        if !unaccepted && self.conn(id).urgent_distance().is_some() {
            self.events.push_back((id, Event::Urgent));
        }
        self.tell(id, signals);
        if over {
            self.tell_end_if_read(id);
        } else {
            self.touch(now, id);
        }
        Ok(id)
    }

    /// From now on [`Stack::poll_changed`] returns the connections that change.
    pub fn note_changes(&mut self) {
        self.changed.get_or_insert_default();
    }

    /// Returns a live connection that has changed since it was last returned, other than by sending.
    pub fn poll_changed(&mut self) -> Option<ConnId> {
        loop {
            let slot = self.changed.as_mut()?.pop()?;
            let conn = self.connections.get(slot as usize);
            if conn.is_some_and(|conn| conn.ended.is_none()) {
                return Some(ConnId(slot));
            }
        }
    }

    /// Returns the state that another system's TCP needs, without data, if the connection has little data: it is open in both directions,
    /// at most `most` bytes are unacknowledged, and everything that arrived has been read and consumed. For the data see
    /// [`Stack::unacknowledged_pieces`].
    pub fn nearly_at_rest(&self, now: Time, id: ConnId, most: u32) -> Option<Essentials<P>> {
        self.conn(id).nearly_at_rest(now, most)
    }

    /// Pieces of written data that are not fully acknowledged, and how many of the first bytes of each are acknowledged.
    pub fn unacknowledged_pieces(&self, id: ConnId) -> impl Iterator<Item = (&P, usize)> {
        self.conn(id).unacknowledged_pieces()
    }

    fn wait_for_accept(&mut self, id: ConnId) {
        let Some(listener) = self.listener_of(self.flow(id).local) else {
            self.tell_what_waited(id);
            return;
        };
        let conn = &mut self.connections[id.0 as usize];
        conn.listener = Some(listener);
        let waiting = &mut self.listeners[listener.0 as usize];
        if conn.is_half_open() {
            waiting.half_opened();
        } else {
            waiting.enqueue(id);
            self.events.push_back((id, Event::Acceptable(listener)));
        }
    }

    /// Reports the events that were pending when the connection was exported.
    fn tell(&mut self, id: ConnId, signals: Signals) {
        if signals.connected {
            self.events.push_back((id, Event::Connected));
        }
        if signals.acknowledged > 0 {
            push_acknowledged(&mut self.events, id, signals.acknowledged);
        }
        if signals.readable {
            self.events.push_back((id, Event::Readable));
        }
        if signals.peer_closed {
            self.events.push_back((id, Event::PeerClosed));
        }
    }
}
