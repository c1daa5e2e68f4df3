//! Fast Open at listeners and for those who connect (RFC 7413).

use super::Stack;
use crate::config::Config;
use crate::connection::Connection;
use crate::fast_open::{FastOpen, FastOpenKeys, FastOpenListening, Offer, Pending, Presented};
use crate::segment::Segment;
use crate::types::{ConnId, Event, ListenerId};
use baton_wire::{Endpoint, Flow, Payload, Pieces, Time};

/// What a SYN is owed by way of Fast Open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Owed {
    /// Its data is taken, and the connection can be accepted at once.
    pub(super) opens: bool,
    /// The SYN-ACK is to hold a cookie.
    pub(super) cookie: bool,
}

impl<P: Payload> Stack<P> {
    /// How a listener takes Fast Open; by default not at all. Requests that are pending stay so.
    pub fn set_fast_open(&mut self, listener: ListenerId, rules: FastOpenListening) {
        self.listeners[listener.0 as usize]
            .fast_open
            .get_or_insert_default()
            .rules = rules;
    }

    /// How a listener takes Fast Open.
    pub fn fast_open(&self, listener: ListenerId) -> FastOpenListening {
        let pending = &self.listeners[listener.0 as usize].fast_open;
        pending
            .as_ref()
            .map_or_else(FastOpenListening::default, |pending| pending.rules)
    }

    /// What cookies are made with from now on, but at listeners that have their own. By default from the stack's secret.
    pub fn set_fast_open_keys(&mut self, keys: FastOpenKeys) {
        self.fast_open.set_keys(keys);
    }

    /// What cookies are made with at `local`; none: as everywhere else.
    pub fn set_own_fast_open_keys(&mut self, local: Endpoint, keys: Option<FastOpenKeys>) {
        self.fast_open.set_own_keys(local, keys);
    }

    /// What cookies are made with at `local`.
    pub fn fast_open_keys_at(&self, local: Endpoint) -> &FastOpenKeys {
        self.fast_open.keys_at(local)
    }

    /// Opens a connection by Fast Open: what is written before the SYN is sent goes with it, as much as fits, if the server gave a
    /// cookie; otherwise one is asked for. Where that did not work lately the connection is opened without.
    /// `None` as [`Stack::connect_with`](Self::connect_with) has it.
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

    /// Whether data written now would go with the SYN of a connection of `flow`.
    pub fn knows_fast_open(&mut self, now: Time, flow: &Flow, how: FastOpen) -> bool {
        match self.fast_open.servers.offer(now, flow) {
            Offer::Nothing => false,
            Offer::Option(option, _) => {
                how == FastOpen::WithoutCookie || !option.cookie.is_request()
            }
        }
    }

    /// Forgets what servers gave and where Fast Open did not work: all clients begin anew.
    pub fn forget_fast_open_servers(&mut self) {
        self.fast_open.servers.forget();
    }

    /// Bytes that would go with the SYN of a connection opened just now by Fast Open, if they are written before it is sent.
    pub fn fast_open_room(&mut self, now: Time, id: ConnId) -> usize {
        let conn = &self.connections[id.0 as usize];
        let config = &self.profiles[conn.profile];
        conn.first_syn_room(now, config, &mut self.fast_open.servers) as usize
    }

    /// True while the handshake of a connection is not complete that came by Fast Open, and so can be written to.
    pub fn is_opened_fast(&self, id: ConnId) -> bool {
        self.conn(id).is_opened_fast()
    }

    /// Judges a SYN that a listener takes (RFC 7413 4.2.2).
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
        // Over the limit nothing is taken and no cookie given, which would only bring more (RFC 7413 5.1).
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

    /// A listener's connection whose SYN is being taken begins by Fast Open: it can be accepted at once.
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

    /// The handshake of a connection that began by Fast Open is complete, or the connection is gone.
    pub(super) fn end_fast_open(&mut self, id: ConnId, local: Endpoint) {
        self.pending_at(local)
            .for_each(|pending| pending.remove(id));
    }

    /// A reset ended it.
    pub(super) fn reset_fast_open(&mut self, now: Time, id: ConnId) {
        let local = self.conn(id).flow.local;
        self.pending_at(local)
            .for_each(|pending| pending.reset(now, id));
    }

    /// It came from elsewhere with its handshake under way.
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
