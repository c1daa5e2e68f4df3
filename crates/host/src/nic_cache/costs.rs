//! Cost of the directory for the driver, as instructions of this program. Profiles use these numbers for `cache_lookup`, `cache_insert` and
//! `cache_remove`.
//!
//! Each test performs one operation [`TIMES`] times, in [`asked`] or [`removal`], the only functions in which callgrind counts:
//! `cargo test --profile ci -p baton-host --lib --no-run`, then
//! `valgrind --tool=callgrind --toggle-collect='*costs::asked' TEST-BINARY nic_cache::costs::cache_hits_of_packets`, or another test. The
//! cost is the number of collected instructions divided by [`TIMES`].

use super::*;
use baton_cache::Replacement;
use std::hint::black_box;

const TIMES: u32 = 20_000;
const BLOCK: u32 = 4096;
/// Number of blocks of the cache: 16 MB, the largest of the paper.
const CACHED: u32 = 4096;
const FILE_BLOCKS: u32 = 4;

/// Creates a full cache with the first blocks of all files.
fn cache() -> NicCache {
    let mut cache = NicCache::new(&NicCacheConfig::default());
    let configured: Option<Box<dyn Replacement>> = None;
    cache.start(CACHED * BLOCK, |_| configured);
    for number in 0..CACHED {
        assert!(find_or_insert(&mut cache, &block(number, 0, BLOCK)).is_some());
    }
    cache
}

/// Returns content of the block with this number among the blocks of all files.
fn block(number: u32, within: u32, len: u32) -> Content {
    Content {
        file: FileId(number / FILE_BLOCKS),
        number: number % FILE_BLOCKS,
        within,
        len,
        revision: 0,
    }
}

/// Returns one of `all` numbers, in an order unrelated to that of the files.
fn scattered(index: u32, all: u32) -> u32 {
    (u64::from(index) * 2_654_435_761 % u64::from(all)) as u32
}

/// Does what a driver does for content, except for the commands.
#[inline(always)]
fn find_or_insert(cache: &mut NicCache, content: &Content) -> Option<u32> {
    match cache.look_up(content, &Lazy)? {
        Found::Cached { slot } => Some(cache.offset(slot) + content.within),
        Found::Bypassed => None,
        Found::Absent => {
            let slot = cache.make_place(content, BLOCK).ok()?;
            let block = Block {
                file: content.file,
                number: content.number,
                since: content.revision,
                bytes: BLOCK,
            };
            cache.put(slot, block);
            Some(cache.offset(slot) + content.within)
        }
    }
}

#[inline(never)]
fn asked(cache: &mut NicCache, content: &Content) -> Option<u32> {
    find_or_insert(cache, black_box(content))
}

#[inline(never)]
fn removal(cache: &mut NicCache, content: &Content) -> bool {
    cache.remove(black_box(content.file), content.number)
}

#[test]
fn cache_hits_of_packets() {
    let mut cache = cache();
    let before = cache.stats.hits;
    for index in 0..TIMES {
        // Three packets per block, as when a file is sent; the first counts as the request.
        let number = scattered(index / 3, CACHED);
        let within = index % 3 * 1448;
        let content = block(number, within, 1448.min(BLOCK - within));
        assert!(asked(&mut cache, &content).is_some());
    }
    assert_eq!(cache.stats.hits - before, u64::from(TIMES));
}

#[test]
fn cache_misses_that_evict() {
    let mut cache = cache();
    let before = cache.stats.evictions;
    for index in 0..TIMES {
        // The least recently used block is evicted first, so blocks that are requested in turn are never cached.
        let number = (CACHED + index) % (2 * CACHED);
        assert!(asked(&mut cache, &block(number, 0, 1448)).is_some());
    }
    assert_eq!(cache.stats.evictions - before, u64::from(TIMES));
    cache.check();
}

#[test]
fn cache_removals() {
    let mut cache = cache();
    for index in 0..TIMES {
        let content = block(scattered(index, CACHED), 0, BLOCK);
        assert!(removal(&mut cache, &content));
        assert!(find_or_insert(&mut cache, &content).is_some());
    }
    cache.check();
}
