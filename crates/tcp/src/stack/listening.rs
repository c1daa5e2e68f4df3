//! Listeners and their accept queues.

use super::Stack;
use crate::config::Config;
use crate::listener::Listener;
use crate::profiles::ProfileId;
use crate::types::{ConnId, Event, ListenerId};
use baton_wire::{Endpoint, Payload, Time};

impl<P: Payload> Stack<P> {
    /// Listens for connections to `local`. At most `backlog` connections wait to be accepted, and at most as many handshakes are in
    /// progress. An unspecified address stands for all addresses.
    pub fn listen(&mut self, local: Endpoint, backlog: usize) -> ListenerId {
        let profile = self.profiles.share(0);
        self.add_listener(local, backlog, profile)
    }

    /// Listens for connections that have these parameters. Panics if too many different parameters are in use.
    pub fn listen_with(&mut self, local: Endpoint, backlog: usize, config: Config) -> ListenerId {
        self.try_listen_with(local, backlog, config)
            .expect("fewer sets of parameters than numbers for them")
    }

    /// Listens with parameters from an untrusted source: returns `None` if too many different ones are in use.
    pub fn try_listen_with(
        &mut self,
        local: Endpoint,
        backlog: usize,
        config: Config,
    ) -> Option<ListenerId> {
        let profile = self.profiles.intern(&config)?;
        Some(self.add_listener(local, backlog, profile))
    }

    fn add_listener(&mut self, local: Endpoint, backlog: usize, profile: ProfileId) -> ListenerId {
        let profile = self.profile_for(local, profile);
        let listener = Listener::new(local, backlog, profile);
        let id = ListenerId(self.listeners.insert(listener) as u32);
        let previous = self.listening.insert(local, id);
        assert!(previous.is_none(), "{local} has a listener");
        id
    }

    /// Closes a listener and resets its connections that were not accepted. Its slot may be reused.
    pub fn unlisten(&mut self, _now: Time, listener: ListenerId) {
        self.events
            .retain(|(_, event)| *event != Event::Acceptable(listener));
        let of_listener = |(slot, conn): (usize, &crate::connection::Connection<P>)| {
            (conn.listener == Some(listener)).then_some(ConnId(slot as u32))
        };
        let ids: Vec<ConnId> = self.connections.iter().filter_map(of_listener).collect();
        for id in ids {
            self.abort(id);
        }
        let ended = self.listeners.remove(listener.0 as usize);
        self.listening.remove(&ended.local);
        self.fast_open.set_own_keys(ended.local, None);
        self.profiles.release(ended.profile);
    }

    /// Changes the limit of connections that are not yet accepted. Those that wait stay.
    pub fn set_backlog(&mut self, listener: ListenerId, backlog: usize) {
        self.listeners[listener.0 as usize].set_backlog(backlog);
    }

    /// Changes the parameters of future connections; requests that were answered keep theirs. Returns false and changes nothing
    /// if the new ones are invalid ([`Config::check`]) or too many different ones are in use.
    pub fn configure_listener(&mut self, listener: ListenerId, config: &Config) -> bool {
        let new = config
            .check()
            .ok()
            .and_then(|()| self.profiles.intern(config));
        let Some(new) = new else { return false };
        let local = self.listeners[listener.0 as usize].local;
        let new = self.profile_for(local, new);
        let listener = &mut self.listeners[listener.0 as usize];
        let old = std::mem::replace(&mut listener.profile, new);
        self.profiles.release(old);
        true
    }

    /// Takes the oldest established connection off the accept queue.
    pub fn accept(&mut self, listener: ListenerId) -> Option<ConnId> {
        let id = self.listeners[listener.0 as usize].accept()?;
        self.connections[id.0 as usize].listener = None;
        self.tell_what_waited(id);
        Some(id)
    }

    /// Number of established connections that wait for [`Stack::accept`].
    pub fn accept_queue_len(&self, listener: ListenerId) -> usize {
        self.listeners[listener.0 as usize].waiting_len()
    }

    /// The endpoint at which a listener listens.
    pub fn listening_at(&self, listener: ListenerId) -> Endpoint {
        self.listeners[listener.0 as usize].local
    }

    /// All listeners.
    pub fn listeners(&self) -> impl Iterator<Item = ListenerId> + '_ {
        self.listeners
            .iter()
            .map(|(slot, _)| ListenerId(slot as u32))
    }
}
