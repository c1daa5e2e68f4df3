//! ICMP errors about connections.

use super::Stack;
use crate::connection::Context;
use crate::path_error::PathError;
use crate::types::{ConnId, Refusal};
use baton_wire::{Flow, Payload, SeqNr, Time};

impl<P: Payload> Stack<P> {
    /// Processes an ICMP error that quotes a segment of `flow` (as this end names it) with sequence number `seq`.
    /// Refuses an error about a number that is not in flight, which anybody could have sent (RFC 5927 4.1).
    ///
    /// # Errors
    /// Returns why the error was refused, and counts it.
    pub fn handle_path_error(
        &mut self,
        now: Time,
        flow: &Flow,
        seq: SeqNr,
        error: PathError,
    ) -> Result<(), Refusal> {
        let outcome = match self.find(flow) {
            Some(id) => {
                let Self {
                    connections,
                    profiles,
                    stats,
                    challenges,
                    fast_open,
                    ..
                } = self;
                let conn = &mut connections[id.0 as usize];
                let mut effects = conn.handle_path_error(
                    &mut Context {
                        now,
                        config: &profiles[conn.profile],
                        stats,
                        challenges,
                        fast_open,
                    },
                    seq,
                    error,
                );
                let refused = effects.refused;
                if refused.is_none() && matches!(error, PathError::FragmentationNeeded { .. }) {
                    self.tell_path(now, id);
                }
                self.apply(now, id, &mut effects);
                refused.map_or(Ok(()), Err)
            }
            None => Err(Refusal::NoConnection),
        };
        if let Err(reason) = outcome {
            self.stats.path_errors_refused += u64::from(reason == Refusal::OutOfWindow);
            self.stats.refused.count(reason);
        }
        outcome
    }

    /// Remembers the path's MTU that was reported to a connection, for new connections, and for others when a timer fires.
    pub(super) fn tell_path(&mut self, now: Time, id: ConnId) {
        let conn = self.conn(id);
        if let Some(mtu) = conn.told_path_mtu() {
            let remote = conn.flow.remote.addr;
            self.path_mtus.learn(now, remote, mtu);
        }
    }

    /// Applies the known MTU of the path to a connection that was opened, accepted or imported.
    pub(super) fn hear_of_path(&mut self, now: Time, id: ConnId) {
        let conn = &mut self.connections[id.0 as usize];
        if let Some(mtu) = self.path_mtus.get(now, conn.flow.remote.addr) {
            conn.hear_of_path(&self.profiles[conn.profile], mtu);
        }
    }
}
