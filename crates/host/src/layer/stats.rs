//! What the socket layer counts.

use crate::NotOffloaded;
use serde::Serialize;
use std::collections::BTreeMap;

/// Totals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LayerStats {
    /// Connections taken from listeners.
    pub accepted: u64,
    /// Connections that ended other than in order.
    pub ended_abnormally: u64,
    /// Accepts put off because there were as many sockets as may be.
    pub accepts_deferred: u64,
    /// Connections that were to go to the adapter.
    pub handoffs_attempted: u64,
    /// Those that it took.
    pub handoffs_accepted: u64,
    /// Those that it refused.
    pub handoffs_refused: u64,
    /// Connections that were to come back.
    pub restores_attempted: u64,
    /// Those that came back.
    pub restored: u64,
    /// Connections that were on the adapter, or on their way, when it was lost.
    pub lost_with_adapter: u64,
    /// Of these, connections that went on in the stack.
    pub recovered: u64,
    /// States that came back and could not be taken in.
    pub bad_states: u64,
    /// Packets kept for connections on their way.
    pub packets_kept: u64,
    /// Packets that went to the adapter after a connection.
    pub packets_forwarded: u64,
    /// Packets dropped because too many were kept for one connection.
    pub packets_dropped: u64,
    /// How often each reason was the one why a connection is not on the adapter.
    #[serde(skip)]
    pub not_offloaded: Reasons,
}

/// Counts of reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(BTreeMap<NotOffloaded, u64>);

impl Reasons {
    pub(super) fn count(&mut self, why: NotOffloaded) {
        *self.0.entry(why).or_insert(0) += 1;
    }

    /// The reasons that there were, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (NotOffloaded, u64)> + '_ {
        self.0.iter().map(|(why, count)| (*why, *count))
    }
}
