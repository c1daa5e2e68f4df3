//! What the directory of the adapter's data cache costs the host's processor (data-caching 4.2).

use super::file_system::FileSockets;
use baton_host::{FileContent, Meter, NicId, Op, footprint};

/// The adapter, the only NIC there is.
const ADAPTER: NicId = NicId(0);

/// What a directory has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DirectoryWork {
    lookups: u64,
    inserts: u64,
    removals: u64,
}

impl DirectoryWork {
    /// Since the start.
    pub(super) fn of(sockets: &mut dyn FileSockets) -> Self {
        let stats = sockets.adapter().and_then(|os| os.nic_cache_stats());
        stats.map_or(Self::default(), |stats| Self {
            lookups: stats.lookups,
            inserts: stats.inserts + stats.updated,
            removals: stats.stale + stats.grown + stats.invalidated + stats.updated,
        })
    }

    /// Charges what has been done since then to send `content`: its blocks were looked up one after the other.
    pub(super) fn charge_since(
        self,
        sockets: &mut dyn FileSockets,
        content: &FileContent,
        m: &mut impl Meter,
    ) {
        let lookups = Self::of(sockets).lookups - self.lookups;
        if let Some(os) = sockets.adapter() {
            let file = content.file;
            let first = (content.offset / u64::from(os.config().nic_cache.block_bytes)) as u32;
            for block in first..first + lookups as u32 {
                let slot = os.nic_cache_slot(file, block);
                footprint::directory_lookup(m, ADAPTER, file.0 ^ block, slot);
            }
        }
        // In slots that have been touched.
        self.charge_changes(sockets, m);
    }

    /// Charges blocks that have entered the directory since then, and left it.
    pub(super) fn charge_changes(self, sockets: &mut dyn FileSockets, m: &mut impl Meter) {
        let now = Self::of(sockets);
        m.run(Op::CacheInsert, (now.inserts - self.inserts) as u32);
        m.run(Op::CacheRemove, (now.removals - self.removals) as u32);
    }
}
