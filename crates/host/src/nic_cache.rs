//! The host's half of the NICs' data caches: the host decides everything (data-caching 4.2).
//!
//! There is a directory for each NIC. The driver looks up each part of a packet that is content of a file; what is cached goes
//! as a reference into the NIC's memory, and what is not may be put there first. Everything else (headers, dynamic content)
//! bypasses the cache.

mod choice;
mod coherence;
mod directory;
mod locate;
mod packets;
mod stats;

pub(crate) use choice::{Content, Found};
pub use coherence::{Coherence, CoherenceConfig, Eager, Freshness, Lazy, OnChange, Update};
pub use stats::{Bypass, NicCacheStats};

use crate::footprint;
use crate::kernel::Kernel;
use crate::meter::Meter;
use crate::nics::NicId;
use crate::sockets::FileId;
use baton_bus::handoff::{CacheCommand, ToNic};
use baton_cache::{AdmissionConfig, Replacement, ReplacementConfig};
use baton_wire::Payload;
pub(crate) use directory::Block;
use directory::Directory;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How the host uses the data caches of its NICs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NicCacheConfig {
    /// Whether it uses them at all.
    pub enabled: bool,
    /// Size of a block, bytes: a power of two, at least [`baton_bus::handoff::CACHE_UNIT_BYTES`].
    pub block_bytes: u32,
    /// Which block goes when a cache is full.
    pub replacement: ReplacementConfig,
    /// Which blocks are worth a place.
    pub admission: AdmissionConfig,
    /// What becomes of cached blocks when their files change.
    pub coherence: CoherenceConfig,
}

impl Default for NicCacheConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            block_bytes: 4096,
            replacement: ReplacementConfig::Lru,
            admission: AdmissionConfig::All,
            coherence: CoherenceConfig::Lazy,
        }
    }
}

/// What the host knows of the cache of one NIC.
#[derive(Debug)]
pub(crate) struct NicCache {
    config: NicCacheConfig,
    /// `None` until the NIC has said how large its cache is.
    directory: Option<Directory>,
    /// The number of the last insert; it goes on over resets, so that no old reference ever holds again.
    generation: u32,
    /// Runs in send buffers that refer to each block of a transient file.
    references: FxHashMap<(FileId, u32), u32>,
    stats: NicCacheStats,
}

impl NicCache {
    pub(crate) fn new(config: &NicCacheConfig) -> Self {
        Self {
            config: config.clone(),
            directory: None,
            generation: 0,
            references: FxHashMap::default(),
            stats: NicCacheStats::default(),
        }
    }

    /// How many of the first `most` blocks that `len` bytes at `offset` of a file lie in are cached, whatever their revision.
    pub(crate) fn count_cached(&self, file: FileId, offset: u64, len: u64, most: u32) -> u32 {
        let Some(directory) = &self.directory else {
            return 0;
        };
        let blocks = self.blocks(offset, len).take(most as usize);
        blocks
            .filter(|&number| directory.find(file, number).is_some())
            .count() as u32
    }

    /// The number of the block that has the byte at `offset` of a file, and what of the block comes before. Blocks are as long as a
    /// power of two.
    #[inline]
    fn block_at(&self, offset: u64) -> (u32, u32) {
        let block = self.config.block_bytes;
        let within = offset & u64::from(block - 1);
        ((offset >> block.trailing_zeros()) as u32, within as u32)
    }

    /// The numbers of the blocks that `len` bytes at `offset`, at least one, lie in.
    fn blocks(&self, offset: u64, len: u64) -> std::ops::RangeInclusive<u32> {
        let (first, _) = self.block_at(offset);
        let (last, _) = self.block_at(offset + len.max(1) - 1);
        first..=last
    }
}

/// Makes a replacement policy for a cache of so many blocks.
pub(crate) struct MakeReplacement(pub(crate) Box<dyn Fn(u32) -> Box<dyn Replacement> + Send>);

impl fmt::Debug for MakeReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeReplacement")
    }
}

impl<P: Payload> Kernel<P> {
    /// What the cache of a NIC did; `None` where none is used.
    pub fn nic_cache_stats(&self, nic: NicId) -> Option<&NicCacheStats> {
        self.nics[nic].cache.as_deref().map(|cache| &cache.stats)
    }

    /// Blocks that a NIC's cache holds, as the host believes, and how many it may hold.
    pub fn nic_cache_blocks(&self, nic: NicId) -> (u32, u32) {
        let cache = self.nics[nic].cache.as_deref();
        cache.map_or((0, 0), NicCache::len_and_capacity)
    }

    /// Starts the cache of a NIC, if it is to be used.
    pub(crate) fn start_cache(&mut self, nic: NicId) {
        if !self.config.nic_cache.enabled {
            return;
        }
        let config = &self.config.nic_cache;
        let cache = self.nics[nic]
            .cache
            .get_or_insert_with(|| Box::new(NicCache::new(config)));
        cache.directory = None;
        self.nics.post(nic, ToNic::Cache(CacheCommand::Init));
    }

    /// The NIC has started its cache, which has so many bytes; one that has set nothing aside for it has none.
    pub(crate) fn cache_ready(&mut self, nic: NicId, bytes: u32) {
        if bytes == 0 {
            self.nics[nic].cache = None;
        }
        let Some(cache) = &mut self.nics[nic].cache else {
            return;
        };
        let replacement = self.replacement.as_ref();
        cache.start(bytes, |blocks| replacement.map(|make| make.0(blocks)));
    }

    /// The NIC was reset: its cache is empty and must be started again. What of its packets was lost TCP sends again.
    pub(crate) fn nic_was_reset<M: Meter>(&mut self, nic: NicId, m: &mut M) {
        let Some(cache) = &mut self.nics[nic].cache else {
            return;
        };
        cache.stats.resets += 1;
        let entry = self.nics[nic].driver.command_entry();
        footprint::driver_command(m, entry);
        self.start_cache(nic);
    }

    /// Asserts that what the directories say can be: above all inclusion, that main memory has all that the NICs' caches hold.
    pub(crate) fn check_caches(&self) {
        for (id, nic) in self.nics.iter() {
            let Some(directory) = nic
                .cache
                .as_deref()
                .and_then(|cache| cache.directory.as_ref())
            else {
                continue;
            };
            directory.check();
            for block in directory.iter() {
                let offset = u64::from(block.number) * u64::from(self.config.nic_cache.block_bytes);
                assert!(
                    self.files.resident(block.file, offset, block.bytes),
                    "{id:?}: main memory includes {block:?}"
                );
                assert!(
                    block.since <= self.files.revision(block.file),
                    "{id:?}: no block is of a revision to come: {block:?}"
                );
            }
        }
    }
}
