//! Transfers on the interconnect, for a timeline.

use baton_bus::interconnect::DeviceId;
use baton_wire::Time;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A completed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct BusTransfer {
    /// The device that made the transfer.
    pub(in super::super) device: DeviceId,
    /// Purpose of the transfer.
    pub(in super::super) name: &'static str,
    /// Bytes of payload, without the overhead of the interconnect.
    pub(in super::super) bytes: u64,
    /// Time of the request.
    pub(in super::super) from: Time,
    /// Time of completion.
    pub(in super::super) to: Time,
}

/// Transfers in progress, by tag, and completed transfers.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    under_way: FxHashMap<u64, (Time, u64)>,
    over: VecDeque<BusTransfer>,
}

impl Transfers {
    /// Records the start of a transfer.
    pub(super) fn begin(&mut self, now: Time, tag: u64, bytes: u64) {
        self.under_way.insert(tag, (now, bytes));
    }

    /// Records the end of a transfer.
    pub(super) fn end(&mut self, tag: u64, device: DeviceId, name: &'static str, to: Time) {
        if let Some((from, bytes)) = self.under_way.remove(&tag) {
            self.push(device, name, bytes, (from, to));
        }
    }

    /// Records a completed transfer.
    pub(super) fn push(
        &mut self,
        device: DeviceId,
        name: &'static str,
        bytes: u64,
        (from, to): (Time, Time),
    ) {
        self.over.push_back(BusTransfer {
            device,
            name,
            bytes,
            from,
            to,
        });
    }

    /// Returns the next completed transfer.
    pub(super) fn poll(&mut self) -> Option<BusTransfer> {
        self.over.pop_front()
    }
}
