//! Fast Open for listeners and for active opens (RFC 7413).

use super::Stack;
use crate::config::Config;
use crate::connection::Connection;
use crate::fast_open::{FastOpen, FastOpenKeys, FastOpenListening, Offer, Pending, Presented};
use crate::segment::Segment;
use crate::types::{ConnId, Event, ListenerId};
use baton_wire::{Endpoint, Flow, Payload, Pieces, Time};

/// How Fast Open answers a SYN.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Owed {
    /// The SYN's data is accepted, and the connection can be accepted immediately.
    pub(super) opens: bool,
    /// The SYN-ACK is to hold a cookie.
    pub(super) cookie: bool,
}

impl<P: Payload> Stack<P> {
    /// Sets how a listener uses Fast Open, which is off by default. Pending requests stay pending.
    pub fn set_fast_open(&mut self, listener: ListenerId, rules: FastOpenListening) {
        self.listeners[listener.0 as usize]
            .fast_open
            .get_or_insert_default()
            .rules = rules;
    }

    /// Returns how a listener uses Fast Open.
    pub fn fast_open(&self, listener: ListenerId) -> FastOpenListening {
        let pending = &self.listeners[listener.0 as usize].fast_open;
        pending
            .as_ref()
            .map_or_else(FastOpenListening::default, |pending| pending.rules)
    }

    /// Sets the keys of cookies for listeners without keys of their own. The default comes from the stack's secret.
    pub fn set_fast_open_keys(&mut self, keys: FastOpenKeys) {
        self.fast_open.set_keys(keys);
    }

    /// Sets the keys of cookies at `local`; `None`: the stack's keys.
    pub fn set_own_fast_open_keys(&mut self, local: Endpoint, keys: Option<FastOpenKeys>) {
        self.fast_open.set_own_keys(local, keys);
    }

    /// Returns the keys of cookies at `local`.
    pub fn fast_open_keys_at(&self, local: Endpoint) -> &FastOpenKeys {
        self.fast_open.keys_at(local)
    }

    /// Opens a connection by Fast Open. If the server gave a cookie, the SYN carries as much as fits of the data that is written before
    /// it is sent; otherwise the SYN requests a cookie. Where Fast Open failed recently, the connection is opened without it.
    /// Returns `None` in the same cases as [`Stack::connect_with`](Self::connect_with).
    pub fn connect_fast_open(
        &mut self,
        now: Time,
        flow: Flow,
        config: &Config,
        how: FastOpen,
    ) -> Option<ConnId> {
        let profile = self.profiles.intern(config)?;
        let id = self.open_actively(now, flow, profile)?;
        self.connections[id.0 as usize].ask_fast_open(how);
        Some(id)
    }

    /// Reports whether the SYN of a new connection of `flow` would carry data.
    pub fn knows_fast_open(&mut self, now: Time, flow: &Flow, how: FastOpen) -> bool {
        match self.fast_open.servers.offer(now, flow) {
            Offer::Nothing => false,
            Offer::Option(option, _) => {
                how == FastOpen::WithoutCookie || !option.cookie.is_request()
            }
        }
    }

    /// Forgets the cookies of servers, and where Fast Open failed.
    pub fn forget_fast_open_servers(&mut self) {
        self.fast_open.servers.forget();
    }

    /// Bytes of data that the SYN of a connection just opened by Fast Open can carry, if they are written before it is sent.
    pub fn fast_open_room(&mut self, now: Time, id: ConnId) -> usize {
        let conn = &self.connections[id.0 as usize];
        let config = &self.profiles[conn.profile];
        conn.first_syn_room(now, config, &mut self.fast_open.servers) as usize
    }

    /// Reports whether the connection was opened by Fast Open at a listener, so that it can be written to, and its handshake is not
    /// complete.
    pub fn is_opened_fast(&self, id: ConnId) -> bool {
        self.conn(id).is_opened_fast()
    }

    /// Decides how Fast Open answers a SYN to a listener (RFC 7413 4.2.2).
    pub(super) fn judge_fast_open(
        &mut self,
        now: Time,
        flow: &Flow,
        listener: ListenerId,
        syn: &Segment<P>,
    ) -> Owed {
        let Some(pending) = &mut self.listeners[listener.0 as usize].fast_open else {
            return Owed::default();
        };
        let rules = pending.rules;
        let option = syn.header.options.fast_open;
        let bare_data = option.is_none() && rules.without_cookie && syn.payload_len() > 0;
        if rules.pending == 0 || (option.is_none() && !bare_data) {
            return Owed::default();
        }
        // Above the limit, accept no data, and send no cookie, which would only cause more requests (RFC 7413 5.1).
        if !pending.has_room(now) {
            self.stats.fast_open_overflows += 1;
            return Owed::default();
        }
        let presented = match option {
            None => Presented::Current,
            Some(option) if option.cookie.is_request() => {
                return Owed {
                    opens: rules.without_cookie && syn.payload_len() > 0,
                    cookie: true,
                };
            }
            Some(option) => {
                let keys = self.fast_open.keys_at(flow.local);
                keys.presented(flow, &option.cookie)
            }
        };
        if presented == Presented::Wrong {
            self.stats.fast_open_cookies_refused += 1;
        }
        Owed {
            opens: presented != Presented::Wrong,
            cookie: presented != Presented::Current,
        }
    }

    /// Opens a listener's connection by Fast Open while its SYN is processed, so that it can be accepted immediately.
    pub(super) fn begin_fast_open(
        &mut self,
        now: Time,
        id: ConnId,
        listener: ListenerId,
        data: &mut Pieces<P>,
    ) {
        let conn = &mut self.connections[id.0 as usize];
        conn.open_fast(now, &self.profiles[conn.profile], data);
        self.stats.fast_open_accepted += 1;
        let waiting = &mut self.listeners[listener.0 as usize];
        waiting.enqueue(id);
        if let Some(pending) = &mut waiting.fast_open {
            pending.add(id);
        }
        self.events.push_back((id, Event::Acceptable(listener)));
    }

    /// The listeners that may count a connection at `local` as pending.
    fn pending_at(&mut self, local: Endpoint) -> impl Iterator<Item = &mut Pending> {
        let of = |local| self.listening.get(&local).copied();
        let (exact, any) = (of(local), of(local.unspecified()));
        self.listeners
            .iter_mut()
            .filter(move |(slot, _)| {
                let id = Some(ListenerId(*slot as u32));
                id == exact || id == any
            })
            .filter_map(|(_, listener)| listener.fast_open.as_deref_mut())
    }

    /// Ends the pending request of a connection whose handshake is complete, or that is gone.
    pub(super) fn end_fast_open(&mut self, id: ConnId, local: Endpoint) {
        self.pending_at(local)
            .for_each(|pending| pending.remove(id));
    }

    /// Records that a reset ended a pending connection.
    pub(super) fn reset_fast_open(&mut self, now: Time, id: ConnId) {
        let local = self.conn(id).flow.local;
        self.pending_at(local)
            .for_each(|pending| pending.reset(now, id));
    }

    /// Counts an imported connection whose handshake is not complete as pending.
    pub(super) fn take_over_fast_open(&mut self, id: ConnId) {
        let local = self.conn(id).flow.local;
        let listener = self.listener_of(local);
        let listener = listener.map(|id| &mut self.listeners[id.0 as usize]);
        if let Some(pending) = listener.and_then(|it| it.fast_open.as_deref_mut()) {
            pending.add(id);
        }
    }

    pub(super) fn check_fast_open(&self) {
        for (_, listener) in &self.listeners {
            let pending = listener.fast_open.iter().flat_map(|it| it.requests());
            for id in pending {
                let conn = self.connections.get(id.0 as usize);
                assert!(
                    conn.is_some_and(Connection::is_opened_fast),
                    "{}: what is pending began by Fast Open",
                    listener.local
                );
            }
        }
    }
}
