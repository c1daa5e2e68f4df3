//! Counters of the cache of one NIC.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Reason why content of a file neither came from the cache nor was put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bypass {
    /// The NIC has not yet reported the size of its cache.
    NotReady,
    /// The packet sends content from before the file's last change.
    OldRevision,
    /// The cached block is newer than the content of the packet.
    NewerCached,
    /// A part of the block is not in main memory, which must include the cache.
    NotResident,
    /// The block was not admitted.
    NotAdmitted,
    /// There is no space to request the insertion now.
    NoRoom,
}

/// Counters of the host's use of the cache of one NIC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicCacheStats {
    /// Parts of packets looked up.
    pub lookups: u64,
    /// Parts that were cached.
    pub hits: u64,
    /// Bytes of the cached parts.
    pub hit_bytes: u64,
    /// Blocks inserted into the cache because they were about to be sent.
    pub inserts: u64,
    /// Bytes of all inserts.
    pub inserted_bytes: u64,
    /// Blocks evicted to make space for others.
    pub evictions: u64,
    /// Blocks whose lookup found an old revision.
    pub stale: u64,
    /// Blocks whose lookup found that they are shorter than the requested content, because their file has grown.
    pub grown: u64,
    /// Blocks removed immediately by a change of their file.
    pub invalidated: u64,
    /// Blocks inserted again because of a change of their file.
    pub updated: u64,
    /// Inclusion: blocks removed because their page left main memory (data-caching 4.2).
    pub excluded: u64,
    /// Blocks of transient files removed after their delivery.
    pub delivered: u64,
    /// Number of times the NIC was reset.
    pub resets: u64,
    /// Parts that bypassed the cache, by reason.
    pub bypassed: BTreeMap<Bypass, u64>,
    /// Bytes of the parts that bypassed the cache.
    pub bypassed_bytes: u64,
}

impl NicCacheStats {
    pub(crate) fn bypass(&mut self, reason: Bypass, len: u32) {
        *self.bypassed.entry(reason).or_insert(0) += 1;
        self.bypassed_bytes += u64::from(len);
    }
}
