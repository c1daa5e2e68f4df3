//! The transaction on the bus.

use baton_wire::{Span, Time};

use super::queued::Bursts;
use super::rules::Rules;
use crate::interconnect::DeviceId;

/// A transaction, or a run of bursts that a master makes one after the other while no other wants the bus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction {
    pub(super) master: usize,
    pub(super) device: DeviceId,
    pub(super) kind: Kind,
    /// Time since which no other master could have the bus.
    pub(super) from: Time,
    /// Start of the address phase.
    pub(super) start: Time,
    /// Start of the first data phase, or the end if there is none.
    pub(super) data_at: Time,
    /// Bytes of all bursts.
    pub(super) bytes: u64,
    /// End of the last data phase.
    pub(super) data_end: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Moves data of the master's first transfer.
    Data,
    /// An attempt that the bridge answers with retry.
    Retry,
    /// Asks for `bytes`, which are delivered later.
    SplitRequest,
    /// Delivers the data of a split request.
    SplitCompletion,
}

/// The transaction of a master that gets the bus, if no other master wants it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    /// Time before the first data phase.
    pub(super) head: Span,
    pub(super) bytes: u64,
    /// Time to the end of the last data phase.
    pub(super) time: Span,
}

impl Plan {
    /// Returns one burst of `bytes`.
    pub(super) fn burst(kind: Kind, head: Span, bytes: u64, rules: &Rules) -> Self {
        let time = head + rules.data_phases(bytes);
        Self {
            kind,
            head,
            bytes,
            time,
        }
    }

    /// Returns a transaction without data that asks for `bytes`.
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
    /// Ends a single burst because another master wants the bus from `request_at` on. Returns whether it ends earlier.
    pub(super) fn end_burst(&mut self, request_at: Time, rules: &Rules) -> bool {
        let bytes = rules.shortened(self.bytes, (self.start, self.data_at), request_at);
        let ends_earlier = bytes < self.bytes;
        if ends_earlier {
            self.bytes = bytes;
            self.data_end = self.data_at + rules.data_phases(bytes);
        }
        ends_earlier
    }

    /// Ends a run of bursts because another master wants the bus from `request_at` on. Returns whether it ends earlier.
    pub(super) fn end_run(&mut self, request_at: Time, run: Bursts, rules: &Rules) -> bool {
        let (mut start, mut before) = (self.start, 0);
        for burst in run {
            let data_at = start + burst.head;
            let bytes = burst.bytes.min(self.bytes - before);
            let data_end = data_at + rules.data_phases(bytes);
            let last = before + bytes == self.bytes;
            // This is the burst in which the arbiter sees the request. The other master's turn comes after it.
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
