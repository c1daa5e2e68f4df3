//! What caches did since measurement began: their hosts count from the start of the run.

use crate::results::{FileCacheResults, NicCacheResults};
use baton_host::{FileCacheStats, Kernel, NicCacheStats, NicId};
use baton_wire::Symbolic;

/// Counts when measurement began.
#[derive(Debug, Default)]
pub(super) struct CacheCounts {
    files: FileCacheStats,
    nics: Vec<NicCacheStats>,
}

impl CacheCounts {
    /// The present counts.
    pub(super) fn of(kernel: &Kernel<Symbolic>, files: Option<&FileCacheStats>) -> Self {
        Self {
            files: files.copied().unwrap_or_default(),
            nics: kernel
                .nics()
                .map(|nic| kernel.nic_cache_stats(nic).cloned().unwrap_or_default())
                .collect(),
        }
    }

    /// What the file cache did since then.
    pub(super) fn file_cache(&self, now: &FileCacheStats) -> FileCacheResults {
        let before = &self.files;
        FileCacheResults {
            hits: now.hits - before.hits,
            misses: now.misses - before.misses,
            pages_read: now.pages_read - before.pages_read,
            evictions: now.evictions - before.evictions,
        }
    }

    /// What the cache of a NIC did since then.
    pub(super) fn nic_cache(
        &self,
        kernel: &Kernel<Symbolic>,
        nic: NicId,
    ) -> Option<NicCacheResults> {
        let now = kernel.nic_cache_stats(nic)?;
        let nothing = NicCacheStats::default();
        let before = self.nics.get(usize::from(nic.0)).unwrap_or(&nothing);
        Some(of_nic_cache(now, before, kernel.nic_cache_blocks(nic)))
    }
}

/// What the cache of a NIC did since it had done what was before; `blocks` it holds, and may hold.
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
