//! Counters of caches since measurement began, derived from counters since the start of the run.

use crate::results::{FileCacheResults, NicCacheResults};
use baton_host::NicCacheStats;
use baton_kernel::FileCacheStats;

/// Returns the counters of the file cache since `before`.
pub(super) fn of_file_cache(now: &FileCacheStats, before: &FileCacheStats) -> FileCacheResults {
    FileCacheResults {
        hits: now.hits - before.hits,
        misses: now.misses - before.misses,
        pages_read: now.pages_read - before.pages_read,
        evictions: now.evictions - before.evictions,
    }
}

/// Returns the counters of a NIC's cache since `before`. `blocks` are the current and the maximum number of blocks.
pub(super) fn of_nic_cache(
    now: &NicCacheStats,
    before: &NicCacheStats,
    blocks: (u32, u32),
) -> NicCacheResults {
    NicCacheResults {
        blocks,
        lookups: now.lookups - before.lookups,
        hits: now.hits - before.hits,
        hit_bytes: now.hit_bytes - before.hit_bytes,
        inserts: now.inserts - before.inserts,
        inserted_bytes: now.inserted_bytes - before.inserted_bytes,
        evictions: now.evictions - before.evictions,
        stale: now.stale - before.stale,
        invalidated: now.invalidated - before.invalidated,
        updated: now.updated - before.updated,
        excluded: now.excluded - before.excluded,
        delivered: now.delivered - before.delivered,
        bypassed_bytes: now.bypassed_bytes - before.bypassed_bytes,
    }
}
