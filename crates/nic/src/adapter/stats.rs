//! Counters of an adapter.

use baton_bus::descriptor::Status;
use serde::Serialize;
use std::ops::AddAssign;

/// Counts of responses by status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByStatus([u64; Status::ALL.len()]);

impl Default for ByStatus {
    fn default() -> Self {
        Self([0; Status::ALL.len()])
    }
}

impl ByStatus {
    /// Returns the number of responses with this status.
    pub fn get(&self, status: Status) -> u64 {
        self.0[status as usize]
    }

    /// Returns each status that occurred and its count.
    pub fn iter(&self) -> impl Iterator<Item = (Status, u64)> + '_ {
        let counted = Status::ALL.iter().map(|&status| (status, self.get(status)));
        counted.filter(|&(_, count)| count > 0)
    }

    pub(super) fn count(&mut self, status: Status) {
        self.0[status as usize] += 1;
    }
}

impl AddAssign for ByStatus {
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}

/// Totals of one application or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionStats {
    /// Requests received.
    pub requests: u64,
    /// Responses, including notifications.
    pub responses: u64,
    /// Responses by status.
    #[serde(skip)]
    pub by_status: ByStatus,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections opened.
    pub connected: u64,
    /// SENDs whose data was fetched or was in the data cache.
    pub sends: u64,
    /// Bytes of these SENDs.
    pub sent_bytes: u64,
    /// RECVs that returned data.
    pub receives: u64,
    /// Bytes of these RECVs.
    pub received_bytes: u64,
    /// INSERTs whose data was fetched.
    pub cache_inserts: u64,
    /// Bytes of these INSERTs.
    pub cache_inserted_bytes: u64,
    /// Accepted SENDs from the data cache.
    pub cache_sends: u64,
    /// Bytes of these SENDs.
    pub cache_sent_bytes: u64,
    /// Times reported: of bytes sent or acknowledged, and of arrivals.
    pub times_told: u64,
    /// SENDs whose times were requested but cannot be reported, because too many others are pending.
    pub times_dropped: u64,
    /// Requested data transfers from the host.
    pub reads: u64,
    /// Requested data transfers to the host.
    pub writes: u64,
    /// Bytes that travelled inside descriptors, in both directions.
    pub inline_bytes: u64,
    /// Connections imported.
    pub imported: u64,
    /// IMPORTs refused.
    pub imports_refused: u64,
    /// Connections exported.
    pub exported: u64,
    /// Exported connections that settled first.
    pub exported_at_rest: u64,
    /// Exported connections that did not settle in time.
    pub exported_not_at_rest: u64,
    /// Connections that the host was asked to take back.
    pub relief_asked: u64,
    /// Packets passed to the host.
    pub packets_passed: u64,
    /// Packets dropped because the host had posted no buffer for them.
    pub packets_without_buffer: u64,
    /// Packets dropped because they were longer than the host's buffer.
    pub packets_too_long: u64,
    /// Packets sent for the host.
    pub packets_sent: u64,
    /// Packets that the host gave back because their connection had left.
    pub packets_forwarded: u64,
}

impl AddAssign for SessionStats {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.responses += other.responses;
        self.by_status += other.by_status;
        self.accepted += other.accepted;
        self.connected += other.connected;
        self.sends += other.sends;
        self.sent_bytes += other.sent_bytes;
        self.receives += other.receives;
        self.received_bytes += other.received_bytes;
        self.cache_inserts += other.cache_inserts;
        self.cache_inserted_bytes += other.cache_inserted_bytes;
        self.cache_sends += other.cache_sends;
        self.cache_sent_bytes += other.cache_sent_bytes;
        self.times_told += other.times_told;
        self.times_dropped += other.times_dropped;
        self.reads += other.reads;
        self.writes += other.writes;
        self.inline_bytes += other.inline_bytes;
        self.imported += other.imported;
        self.imports_refused += other.imports_refused;
        self.exported += other.exported;
        self.exported_at_rest += other.exported_at_rest;
        self.exported_not_at_rest += other.exported_not_at_rest;
        self.relief_asked += other.relief_asked;
        self.packets_passed += other.packets_passed;
        self.packets_without_buffer += other.packets_without_buffer;
        self.packets_too_long += other.packets_too_long;
        self.packets_sent += other.packets_sent;
        self.packets_forwarded += other.packets_forwarded;
    }
}
