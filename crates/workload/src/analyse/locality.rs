//! Temporal locality: hits of LRU caches of several sizes.

use super::blocks::{Blocks, Sample};
use super::ratio;
use crate::log::Log;
use baton_cache::StackDistance;
use serde::Serialize;

/// Block size of the NIC data cache, network interface data caching paper, section 5.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// Cache sizes in bytes: 64 KB to 64 MB by powers of two (figure 3 of that paper ends at 16 MB).
const CACHE_BYTES: [u64; 11] = [
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
    8 << 20,
    16 << 20,
    32 << 20,
    64 << 20,
];
/// Cache sizes in whole files.
const CACHE_FILES: [u64; 6] = [10, 30, 100, 300, 1000, 3000];

/// Hits of LRU caches that are empty at first.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Locality {
    /// Whether the hits of caches of blocks are estimated from a [`Sample`] of the blocks.
    pub estimated: bool,
    /// Caches of 4 KB blocks by size in bytes; empty if the log has no sizes, or invalid ones.
    pub caches: Vec<CachePoint>,
    /// Caches of a number of files of any size.
    pub files: Vec<FilePoint>,
}

/// Hits of an LRU cache of 4 KB file blocks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CachePoint {
    /// Size of the cache.
    pub cache_bytes: u64,
    /// Share of content bytes found in the cache, 0 to 1.
    pub byte_hits: f64,
}

/// Hits of an LRU cache of whole files.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FilePoint {
    /// Number of files that the cache holds.
    pub files: u64,
    /// Share of requests found in the cache, 0 to 1.
    pub request_hits: f64,
}

impl Locality {
    /// Computes the locality of `log` in its order of requests.
    pub fn of(log: &Log) -> Self {
        // All sizes in one pass, or each with its own sample of blocks.
        let sample = Sample::of(log, BLOCK_BYTES, CACHE_BYTES[0]);
        let sizes = match sample {
            Sample::ALL => CACHE_BYTES.len(),
            _ => 1,
        };
        let hits = |sizes: &[u64]| {
            let sample = Sample::of(log, BLOCK_BYTES, sizes[0]);
            let blocks = Blocks::sampled(log.files.sizes(), BLOCK_BYTES, sample).ok()?;
            let requests = log.requests.iter().map(|r| (r.file, r.bytes));
            Some(byte_hits(&blocks, requests, sizes))
        };
        let caches = CACHE_BYTES.chunks(sizes).map(hits);
        let caches: Option<Vec<_>> = log.has_sizes.then(|| caches.collect()).flatten();
        Self {
            estimated: sample != Sample::ALL,
            caches: caches.unwrap_or_default().concat(),
            files: request_hits(log),
        }
    }

    /// Returns the share of content bytes that a cache of `cache_mib` MiB hits, if that size was computed.
    pub fn byte_hits(&self, cache_mib: u64) -> Option<f64> {
        self.caches
            .iter()
            .find(|c| c.cache_bytes == cache_mib << 20)
            .map(|c| c.byte_hits)
    }
}

/// Replays every block of every response (file and content bytes) through LRU caches of these sizes, which are ascending.
pub(crate) fn byte_hits(
    blocks: &Blocks,
    requests: impl Iterator<Item = (u32, u64)>,
    cache_bytes: &[u64],
) -> Vec<CachePoint> {
    debug_assert!(cache_bytes.is_sorted());
    let slots: Vec<u64> = cache_bytes
        .iter()
        .map(|bytes| bytes / u64::from(blocks.block_bytes()) / u64::from(blocks.step()))
        .collect();
    let mut stack = StackDistance::new(blocks.count() as usize);
    // Bytes of references for which the cache of this index is the smallest that hits.
    let mut hits = vec![0u64; cache_bytes.len()];
    let mut content_bytes = 0;
    let counted = requests.inspect(|(_, content)| content_bytes += content);
    for reference in counted.flat_map(|(file, content)| blocks.of_request(file, content)) {
        let bytes = u64::from(reference.bytes);
        if let Some(distance) = stack.reference(reference.block) {
            let fits = slots.partition_point(|&slots| slots <= u64::from(distance));
            if let Some(hit) = hits.get_mut(fits) {
                *hit += bytes;
            }
        }
    }
    let mut so_far = 0;
    let point = |(&cache_bytes, hit)| {
        so_far += hit;
        CachePoint {
            cache_bytes,
            byte_hits: ratio(so_far * u64::from(blocks.step()), content_bytes).min(1.0),
        }
    };
    cache_bytes.iter().zip(hits).map(point).collect()
}

fn request_hits(log: &Log) -> Vec<FilePoint> {
    let mut stack = StackDistance::new(log.files.len());
    let mut hits = [0u64; CACHE_FILES.len()];
    for request in &log.requests {
        if let Some(distance) = stack.reference(request.file) {
            let fits = CACHE_FILES.partition_point(|&files| files <= u64::from(distance));
            if let Some(hit) = hits.get_mut(fits) {
                *hit += 1;
            }
        }
    }
    let mut so_far = 0;
    let point = |(files, hit)| {
        so_far += hit;
        FilePoint {
            files,
            request_hits: ratio(so_far, log.requests.len() as u64),
        }
    };
    CACHE_FILES.into_iter().zip(hits).map(point).collect()
}
