//! What the directories of the adapters' data caches cost the host's processor (data-caching 4.2).

use super::file_system::FileSockets;
use baton_host::{FileContent, Meter, NicId, Op, SocketId, footprint};

/// What all directories have done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DirectoryWork {
    lookups: u64,
    inserts: u64,
    removals: u64,
}

impl DirectoryWork {
    /// Since the start.
    pub(super) fn of(sockets: &dyn FileSockets) -> Self {
        let mut all = Self::default();
        for end in sockets.adapters() {
            if let Some(stats) = end.os.nic_cache_stats() {
                all.lookups += stats.lookups;
                all.inserts += stats.inserts + stats.updated;
                all.removals += stats.stale + stats.grown + stats.invalidated + stats.updated;
            }
        }
        all
    }

    /// What has been done since then.
    fn since(self, sockets: &dyn FileSockets) -> Self {
        let now = Self::of(sockets);
        Self {
            lookups: now.lookups - self.lookups,
            inserts: now.inserts - self.inserts,
            removals: now.removals - self.removals,
        }
    }

    /// Charges what has been done since then to send `content` by this socket: its blocks were looked up one after the other.
    pub(super) fn charge_since(
        self,
        sockets: &dyn FileSockets,
        socket: SocketId,
        content: &FileContent,
        m: &mut impl Meter,
    ) {
        let done = self.since(sockets);
        if let Some(adapter) = sockets.adapter_of(socket) {
            let (file, os) = (content.file, &sockets.adapters()[usize::from(adapter)].os);
            let first = (content.offset / u64::from(os.config().nic_cache.block_bytes)) as u32;
            for block in first..first + done.lookups as u32 {
                let slot = os.nic_cache_slot(file, block);
                footprint::directory_lookup(m, NicId(adapter), file.0 ^ block, slot);
            }
        }
        // In slots that have been touched.
        done.charge(m);
    }

    /// Charges blocks that have entered the directory since then, and left it.
    pub(super) fn charge_changes(self, sockets: &dyn FileSockets, m: &mut impl Meter) {
        self.since(sockets).charge(m);
    }

    fn charge(self, m: &mut impl Meter) {
        m.run(Op::CacheInsert, self.inserts as u32);
        m.run(Op::CacheRemove, self.removals as u32);
    }
}
