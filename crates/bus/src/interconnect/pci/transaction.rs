//! What is on the bus.

use baton_wire::{Span, Time};

use super::queued::Bursts;
use super::rules::Rules;
use crate::interconnect::DeviceId;

/// What is on the bus: a transaction, or a run of bursts that a master makes one after the other while no other wants the bus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction {
    pub(super) master: usize,
    pub(super) device: DeviceId,
    pub(super) kind: Kind,
    /// Since when nobody else could have the bus.
    pub(super) from: Time,
    /// Its address phase.
    pub(super) start: Time,
    /// Its first data phase; without one, its end.
    pub(super) data_at: Time,
    /// Bytes of all bursts.
    pub(super) bytes: u64,
    /// When its last data phase ends.
    pub(super) data_end: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Moves data of the master's first transfer.
    Data,
    /// An attempt that the bridge answers with retry.
    Retry,
    /// Asks for `bytes`, which come later.
    SplitRequest,
    /// Brings them.
    SplitCompletion,
}

/// What a master does when it gets the bus, if nobody else wants it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    /// Before the first data phase.
    pub(super) head: Span,
    pub(super) bytes: u64,
    /// To the end of the last data phase.
    pub(super) time: Span,
}

impl Plan {
    /// One burst of `bytes`.
    pub(super) fn burst(kind: Kind, head: Span, bytes: u64, rules: &Rules) -> Self {
        let time = head + rules.data_phases(bytes);
        Self {
            kind,
            head,
            bytes,
            time,
        }
    }

    /// A transaction without data that asks for `bytes`.
    pub(super) fn without_data(kind: Kind, time: Span, bytes: u64) -> Self {
        Self {
            kind,
            head: time,
            bytes,
            time,
        }
    }
}

impl Transaction {
    /// Ends a single burst because another master wants the bus from `request_at` on. Whether it ends earlier.
    pub(super) fn end_burst(&mut self, request_at: Time, rules: &Rules) -> bool {
        let bytes = rules.shortened(self.bytes, (self.start, self.data_at), request_at);
        let ends_earlier = bytes < self.bytes;
        if ends_earlier {
            self.bytes = bytes;
            self.data_end = self.data_at + rules.data_phases(bytes);
        }
        ends_earlier
    }

    /// The same for a run of bursts.
    pub(super) fn end_run(&mut self, request_at: Time, run: Bursts, rules: &Rules) -> bool {
        let (mut start, mut before) = (self.start, 0);
        for burst in run {
            let data_at = start + burst.head;
            let bytes = burst.bytes.min(self.bytes - before);
            let data_end = data_at + rules.data_phases(bytes);
            let last = before + bytes == self.bytes;
            // The burst in which the arbiter sees the request: after it the other master's turn comes.
            if last || request_at <= data_end + rules.idle {
                let bytes = rules.shortened(bytes, (start, data_at), request_at);
                let ends_earlier = before + bytes < self.bytes;
                if ends_earlier {
                    self.bytes = before + bytes;
                    self.data_end = data_at + rules.data_phases(bytes);
                }
                return ends_earlier;
            }
            before += bytes;
            start = data_end + rules.between_bursts;
        }
        false
    }
}
