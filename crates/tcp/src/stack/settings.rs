//! Parameters of live connections.

use super::Stack;
use crate::config::Config;
use crate::types::ConnId;
use baton_wire::{Payload, Time};

impl<P: Payload> Stack<P> {
    /// The connection's parameters.
    pub fn config_of(&self, id: ConnId) -> &Config {
        &self.profiles[self.conn(id).profile]
    }

    /// Changes the connection's parameters, with effect from now on: what runs by the old ones starts anew. What the
    /// handshake settled stays. A window that was offered is not taken back by a smaller buffer, and a smaller send buffer
    /// keeps what it holds. False when the new ones make no sense ([`Config::check`]) or too many different ones are in use:
    /// nothing changed then.
    pub fn configure(&mut self, now: Time, id: ConnId, change: impl FnOnce(&mut Config)) -> bool {
        let conn = &mut self.connections[id.0 as usize];
        let old = conn.profile;
        let mut config = self.profiles[old].clone();
        change(&mut config);
        if config.check().is_err() {
            return false;
        }
        let Some(new) = self.profiles.intern(&config) else {
            return false;
        };
        conn.profile = new;
        conn.reconfigured(now, &self.profiles[old], &self.profiles[new]);
        self.profiles.release(old);
        if self.conn(id).ended.is_none() {
            self.touch(now, id);
        }
        true
    }
}
