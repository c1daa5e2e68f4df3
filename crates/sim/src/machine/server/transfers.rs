//! Transfers on the interconnect, for a timeline.

use baton_bus::interconnect::DeviceId;
use baton_wire::Time;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A transfer that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct BusTransfer {
    /// Whose it was.
    pub(in super::super) device: DeviceId,
    /// What for.
    pub(in super::super) name: &'static str,
    /// What it carried, without the interconnect's own.
    pub(in super::super) bytes: u64,
    /// When it was asked for.
    pub(in super::super) from: Time,
    /// When it was done.
    pub(in super::super) to: Time,
}

/// Those that are under way, by their tags, and those that are over.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    under_way: FxHashMap<u64, (Time, u64)>,
    over: VecDeque<BusTransfer>,
}

impl Transfers {
    /// One of so many bytes begins.
    pub(super) fn begin(&mut self, now: Time, tag: u64, bytes: u64) {
        self.under_way.insert(tag, (now, bytes));
    }

    /// It is done.
    pub(super) fn end(&mut self, tag: u64, device: DeviceId, name: &'static str, to: Time) {
        if let Some((from, bytes)) = self.under_way.remove(&tag) {
            self.push(device, name, bytes, (from, to));
        }
    }

    /// One was under way for that long.
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

    /// The next that is over.
    pub(super) fn poll(&mut self) -> Option<BusTransfer> {
        self.over.pop_front()
    }
}
