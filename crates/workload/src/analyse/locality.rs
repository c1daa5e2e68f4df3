//! Temporal locality: what LRU caches of several sizes would hit.

use super::ratio;
use crate::log::Log;
use crate::lru::StackDistance;
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

/// What LRU caches hit, starting empty.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Locality {
    /// Caches of 4 KB blocks by size in bytes; empty if the log has no sizes.
    pub caches: Vec<CachePoint>,
    /// Caches of a number of files, whatever their size.
    pub files: Vec<FilePoint>,
}

/// What an LRU cache of 4 KB file blocks hits.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CachePoint {
    /// Size of the cache.
    pub cache_bytes: u64,
    /// Share of content bytes found in the cache, 0 to 1.
    pub byte_hits: f64,
}

/// What an LRU cache of whole files hits.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FilePoint {
    /// How many files it holds.
    pub files: u64,
    /// Share of requests found in the cache, 0 to 1.
    pub request_hits: f64,
}

impl Locality {
    /// The locality of `log` in its order of requests.
    pub fn of(log: &Log) -> Self {
        let requests = log.requests.iter().map(|r| (r.file, r.bytes));
        let caches = if log.has_sizes {
            byte_hits(requests, &CACHE_BYTES)
        } else {
            Vec::new()
        };
        Self {
            caches,
            files: request_hits(log),
        }
    }

    /// Share of content bytes that a cache of `cache_mib` MiB hits, if that is one of the sizes computed.
    pub fn byte_hits(&self, cache_mib: u64) -> Option<f64> {
        self.caches
            .iter()
            .find(|c| c.cache_bytes == cache_mib << 20)
            .map(|c| c.byte_hits)
    }
}

/// Replays every block of every response (file and content bytes) through LRU caches of these sizes, in ascending
/// order.
pub(crate) fn byte_hits(
    requests: impl Iterator<Item = (u32, u64)>,
    cache_bytes: &[u64],
) -> Vec<CachePoint> {
    debug_assert!(cache_bytes.is_sorted());
    let mut stack = StackDistance::new();
    // Bytes whose distance first fits the cache of this index.
    let mut hits = vec![0u64; cache_bytes.len()];
    let mut total = 0;
    for (file, content) in requests {
        let mut left = content;
        let mut block = u64::from(file) << 32;
        while left > 0 {
            let bytes = left.min(BLOCK_BYTES);
            if let Some(distance) = stack.reference(block) {
                let fits =
                    cache_bytes.partition_point(|&size| size / BLOCK_BYTES <= u64::from(distance));
                if let Some(hit) = hits.get_mut(fits) {
                    *hit += bytes;
                }
            }
            total += bytes;
            left -= bytes;
            block += 1;
        }
    }
    let mut so_far = 0;
    let point = |(&cache_bytes, hit)| {
        so_far += hit;
        CachePoint {
            cache_bytes,
            byte_hits: ratio(so_far, total),
        }
    };
    cache_bytes.iter().zip(hits).map(point).collect()
}

fn request_hits(log: &Log) -> Vec<FilePoint> {
    let mut stack = StackDistance::new();
    let mut hits = [0u64; CACHE_FILES.len()];
    for request in &log.requests {
        if let Some(distance) = stack.reference(u64::from(request.file)) {
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
