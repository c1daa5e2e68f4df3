//! Counters of the socket layer.

use crate::NotOffloaded;
use serde::Serialize;
use std::collections::BTreeMap;

/// Counters of the socket layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LayerStats {
    /// Connections accepted from listeners.
    pub accepted: u64,
    /// Connections that did not end in an orderly way.
    pub ended_abnormally: u64,
    /// Accepts postponed because the maximum number of sockets was reached.
    pub accepts_deferred: u64,
    /// Connections that were offered to the adapter.
    pub handoffs_attempted: u64,
    /// Handoffs that the adapter accepted.
    pub handoffs_accepted: u64,
    /// Handoffs that the adapter refused.
    pub handoffs_refused: u64,
    /// Restores that were started.
    pub restores_attempted: u64,
    /// Connections that were restored to the host.
    pub restored: u64,
    /// Connections that were on the adapter or moving when the adapter was lost.
    pub lost_with_adapter: u64,
    /// Connections lost with an adapter that continued in the stack.
    pub recovered: u64,
    /// States that came back and could not be imported.
    pub bad_states: u64,
    /// Packets kept for moving connections.
    pub packets_kept: u64,
    /// Packets forwarded to the adapter that has their connection.
    pub packets_forwarded: u64,
    /// Packets dropped because too many were kept for one connection.
    pub packets_dropped: u64,
    /// How often each reason kept a connection off the adapter.
    #[serde(skip)]
    pub not_offloaded: Reasons,
}

/// Counts by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(BTreeMap<NotOffloaded, u64>);

impl Reasons {
    pub(super) fn count(&mut self, why: NotOffloaded) {
        *self.0.entry(why).or_insert(0) += 1;
    }

    /// Returns the reasons that occurred, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (NotOffloaded, u64)> + '_ {
        self.0.iter().map(|(why, count)| (*why, *count))
    }
}
