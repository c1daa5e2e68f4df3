//! The host's half of the NICs' data caches: the host makes all decisions (data-caching 4.2).
//!
//! The host keeps a directory of each NIC's cache. The driver looks up each part of a packet that is content of a file; it sends cached
//! content as a reference into the NIC's memory, and may first put other content there. All other data (headers, dynamic content) bypasses
//! the cache.

mod choice;
mod coherence;
#[cfg(test)]
mod costs;
mod directory;
mod stats;

pub(crate) use choice::{Content, Found};
pub use coherence::{Coherence, CoherenceConfig, Eager, Freshness, Lazy, OnChange, Update};
pub use stats::{Bypass, NicCacheStats};

use crate::sockets::FileId;
use baton_cache::{AdmissionConfig, Replacement, ReplacementConfig};
pub(crate) use directory::Block;
use directory::Directory;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A NIC of the host, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NicId(pub u8);

/// How the host uses the data caches of its NICs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NicCacheConfig {
    /// Whether the host uses the caches at all.
    pub enabled: bool,
    /// Size of a block, bytes: a power of two, at least [`baton_bus::descriptor::CACHE_UNIT_BYTES`].
    #[schemars(range(min = baton_bus::descriptor::CACHE_UNIT_BYTES), extend("x-power-of-two" = true))]
    pub block_bytes: u32,
    /// Which block leaves when a cache is full.
    pub replacement: ReplacementConfig,
    /// Which blocks a cache admits.
    pub admission: AdmissionConfig,
    /// What happens to cached blocks when their files change.
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

/// The host's knowledge about the cache of one NIC.
#[derive(Debug)]
pub(crate) struct NicCache {
    config: NicCacheConfig,
    /// Directory of the cache, or `None` until the NIC has reported the size of its cache.
    directory: Option<Directory>,
    stats: NicCacheStats,
}

impl NicCache {
    pub(crate) fn new(config: &NicCacheConfig) -> Self {
        Self {
            config: config.clone(),
            directory: None,
            stats: NicCacheStats::default(),
        }
    }

    /// Returns how many of the first `most` blocks that cover `len` bytes at `offset` of a file are cached, of any revision.
    pub(crate) fn count_cached(&self, file: FileId, offset: u64, len: u64, most: u32) -> u32 {
        let Some(directory) = &self.directory else {
            return 0;
        };
        let blocks = self.blocks(offset, len).take(most as usize);
        blocks
            .filter(|&number| directory.find(file, number).is_some())
            .count() as u32
    }

    /// Returns the number of the block that contains the byte at `offset` of a file, and the byte's offset within the block. The block size
    /// is a power of two.
    #[inline]
    fn block_at(&self, offset: u64) -> (u32, u32) {
        let block = self.config.block_bytes;
        let within = offset & u64::from(block - 1);
        ((offset >> block.trailing_zeros()) as u32, within as u32)
    }

    /// Returns the numbers of the blocks that cover `len` bytes (at least one) at `offset`.
    fn blocks(&self, offset: u64, len: u64) -> std::ops::RangeInclusive<u32> {
        let (first, _) = self.block_at(offset);
        let (last, _) = self.block_at(offset + len.max(1) - 1);
        first..=last
    }
}

/// Creates a replacement policy for a cache with the given number of blocks.
pub(crate) struct MakeReplacement(pub(crate) Box<dyn Fn(u32) -> Box<dyn Replacement> + Send>);

impl fmt::Debug for MakeReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeReplacement")
    }
}
