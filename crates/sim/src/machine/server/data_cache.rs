//! Cost of the directories of the adapters' data caches for the host's processor (data-caching 4.2).

use super::End;
use baton_host::{FileContent, NicId};
use baton_kernel::{Meter, Op, footprint};

/// Counters of all directories.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DirectoryWork {
    lookups: u64,
    inserts: u64,
    removals: u64,
}

impl DirectoryWork {
    /// Returns the counters since the start of the run.
    pub(super) fn of(ends: &[End]) -> Self {
        let mut all = Self::default();
        for end in ends {
            if let Some(stats) = end.os.nic_cache_stats() {
                all.lookups += stats.lookups;
                all.inserts += stats.inserts + stats.updated;
                all.removals += stats.stale + stats.grown + stats.invalidated + stats.updated;
            }
        }
        all
    }

    /// Returns the counters since `self`.
    fn since(self, ends: &[End]) -> Self {
        let now = Self::of(ends);
        Self {
            lookups: now.lookups - self.lookups,
            inserts: now.inserts - self.inserts,
            removals: now.removals - self.removals,
        }
    }

    /// Charges the work since `self` for content sent by this adapter, whose blocks were looked up one after the other.
    pub(super) fn charge_since(
        self,
        ends: &[End],
        adapter: u8,
        contents: impl IntoIterator<Item = FileContent>,
        m: &mut impl Meter,
    ) {
        let done = self.since(ends);
        let os = &ends[usize::from(adapter)].os;
        let block_bytes = u64::from(os.config().nic_cache.block_bytes);
        let mut left = done.lookups;
        for FileContent {
            file, offset, len, ..
        } in contents
        {
            let (first, end) = (offset / block_bytes, (offset + len).div_ceil(block_bytes));
            for block in (first..end).take(left as usize) {
                let block = block as u32;
                let slot = os.nic_cache_slot(file, block);
                footprint::directory_lookup(m, NicId(adapter), file.0 ^ block, slot);
                left -= 1;
            }
        }
        // Inserts and removals are in slots that were already touched.
        done.charge(m);
    }

    /// Charges the insertions and removals of blocks since `self`.
    pub(super) fn charge_changes(self, ends: &[End], m: &mut impl Meter) {
        self.since(ends).charge(m);
    }

    fn charge(self, m: &mut impl Meter) {
        m.run(Op::CacheInsert, self.inserts as u32);
        m.run(Op::CacheRemove, self.removals as u32);
    }
}
