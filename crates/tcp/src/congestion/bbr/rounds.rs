//! Packet-timed round trips (5.5.1): from a transmission to its acknowledgment, however long that takes.

use serde::{Deserialize, Serialize};

/// BBR.round_count, BBR.round_start and BBR.next_round_delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rounds {
    pub(super) count: u64,
    /// This acknowledgment ended a round.
    pub(super) start: bool,
    next_delivered: u64,
    /// C.delivered.
    delivered: u64,
}

impl Rounds {
    /// StartRound.
    pub(super) fn begin(&mut self) {
        self.next_delivered = self.delivered;
    }

    /// Sets the number of bytes delivered since the connection's start.
    pub(super) fn delivered(&mut self, total: u64) {
        self.delivered = total;
    }

    /// UpdateRound. Returns true if a round ended.
    pub(super) fn update(&mut self, prior_delivered: u64) -> bool {
        self.start = prior_delivered >= self.next_delivered;
        if self.start {
            self.begin();
            self.count = self.count.saturating_add(1);
        }
        self.start
    }
}
