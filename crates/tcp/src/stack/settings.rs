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

    /// Changes the connection's parameters from now on, and restarts what depends on the old ones. Results of the handshake
    /// stay. A smaller receive buffer does not take back an offered window, and a smaller send buffer keeps its data. Returns
    /// false and changes nothing if the new parameters are invalid ([`Config::check`]) or too many different ones are in use.
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
        if self.profiles[old].route_mss != config.route_mss {
            self.path_mtus.forget(conn.flow.remote.addr);
        }
        conn.reconfigured(now, &self.profiles[old], &self.profiles[new]);
        self.profiles.release(old);
        if self.conn(id).ended.is_none() {
            self.touch(now, id);
        }
        true
    }
}
