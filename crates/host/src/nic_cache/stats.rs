//! What the cache of one NIC did.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why content of a file did not come from the cache and was not put there either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bypass {
    /// The NIC has not said yet how large its cache is.
    NotReady,
    /// The packet sends what the file was before its last change.
    OldRevision,
    /// The cached block is newer than what the packet sends.
    NewerCached,
    /// Part of the block is not in main memory, which must include the cache.
    NotResident,
    /// Admission says that the block is not worth a place.
    NotAdmitted,
    /// There is no room to ask for its insert now.
    NoRoom,
}

/// What the host did with the cache of one NIC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicCacheStats {
    /// Parts of packets looked up.
    pub lookups: u64,
    /// Parts that were cached.
    pub hits: u64,
    /// Bytes they had.
    pub hit_bytes: u64,
    /// Blocks put into the cache because they were to be sent.
    pub inserts: u64,
    /// Bytes of all inserts.
    pub inserted_bytes: u64,
    /// Blocks that made room for others.
    pub evictions: u64,
    /// Blocks found to be of an old revision when looked up.
    pub stale: u64,
    /// Blocks found to be shorter than what is asked for: their file has grown.
    pub grown: u64,
    /// Blocks that a change of their file removed at once.
    pub invalidated: u64,
    /// Blocks that a change of their file put into the cache again.
    pub updated: u64,
    /// Inclusion: blocks removed because their page left main memory (data-caching 4.2).
    pub excluded: u64,
    /// Blocks of transient files removed after their delivery.
    pub delivered: u64,
    /// Times the NIC was reset.
    pub resets: u64,
    /// Parts that bypassed the cache, by reason.
    pub bypassed: BTreeMap<Bypass, u64>,
    /// Bytes they had.
    pub bypassed_bytes: u64,
}

impl NicCacheStats {
    pub(crate) fn bypass(&mut self, reason: Bypass, len: u32) {
        *self.bypassed.entry(reason).or_insert(0) += 1;
        self.bypassed_bytes += u64::from(len);
    }
}
