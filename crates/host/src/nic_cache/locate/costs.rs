//! What the directory costs the driver, as instructions of this program: what profiles have for `cache_lookup`, `cache_insert` and
//! `cache_remove`.
//!
//! Each test does one thing [`TIMES`] times, in [`asked`] or [`removal`], in which alone callgrind counts:
//! `cargo test --profile ci -p baton-host --lib --no-run`, then
//! `valgrind --tool=callgrind --toggle-collect='*costs::asked' TEST-BINARY nic_cache::locate::costs::hits_of_packets`, for the
//! other tests likewise, and the instructions collected divided by [`TIMES`]. With rustc 1.95 on x86-64 the profiles' values were found:
//! a hit 175, a miss that evicts and inserts 737, a removal 190. Since blocks are found once a packet and without dividing: 170, 772, 186.

use super::*;
use crate::config::Config;
use crate::files::{FileCacheConfig, FileStore};
use crate::meter::NoMeter;
use crate::nic_cache::NicCacheConfig;
use baton_wire::Symbolic;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

const TIMES: u32 = 20_000;
const BLOCK: u32 = 4096;
/// Blocks of the cache: 16 MB, the largest of the paper.
const CACHED: u32 = 4096;
/// Files of four blocks each, in main memory: twice as many blocks as the cache has.
const FILES: u32 = 2 * CACHED / FILE_BLOCKS;
const FILE_BLOCKS: u32 = 4;
const NIC: NicId = NicId(0);

/// All files are as long as one asks.
#[derive(Debug)]
struct Endless;

impl FileStore<Symbolic> for Endless {
    fn len(&mut self, _: FileId, _: u64) -> u64 {
        u64::from(FILE_BLOCKS * BLOCK)
    }

    fn read(&self, file: FileId, offset: u64, len: u32) -> Symbolic {
        let source = u64::from(file.0);
        Symbolic {
            source,
            offset,
            len,
        }
    }

    fn edit(&mut self, _: FileId, _: u32, _: u64, _: u64) {}

    fn truncate(&mut self, _: FileId, _: u32, _: u64) {}
}

struct Bench {
    kernel: Kernel<Symbolic>,
    cache: Box<NicCache>,
    parts: Parts,
}

impl Bench {
    /// A kernel whose NIC has the first half of all blocks in its cache.
    fn new() -> Self {
        let config = Config {
            file_cache: FileCacheConfig {
                kib: 4 * CACHED * BLOCK / 1024,
                ..FileCacheConfig::default()
            },
            nic_cache: NicCacheConfig {
                enabled: true,
                ..NicCacheConfig::default()
            },
            ..Config::default()
        };
        let mut kernel = Kernel::new(config, baton_tcp::Config::default(), 1);
        kernel.set_file_store(Box::new(Endless));
        for file in 0..FILES {
            kernel.preload(FileId(file), u64::from(FILE_BLOCKS * BLOCK));
        }
        kernel.attach_nic(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 0);
        kernel.cache_ready(NIC, CACHED * BLOCK);
        let cache = kernel.nics[NIC].cache.take().expect("it is used");
        let mut bench = Self {
            kernel,
            cache,
            parts: Parts::new(),
        };
        for number in 0..CACHED {
            bench.find(block(number, 0, BLOCK));
        }
        bench
    }

    fn find(&mut self, content: Content) -> Option<CacheReference> {
        let Self {
            kernel,
            cache,
            parts,
        } = self;
        let found = kernel.find_or_insert(NIC, cache, content, parts, &mut NoMeter);
        while kernel.poll_descriptor().is_some() {}
        found
    }
}

/// Bytes of the block with this number among those of all files.
fn block(number: u32, within: u32, len: u32) -> Content {
    Content {
        file: FileId(number / FILE_BLOCKS),
        number: number % FILE_BLOCKS,
        within,
        len,
        revision: 0,
    }
}

/// Any of `all`, in an order that is no order of files.
fn scattered(index: u32, all: u32) -> u32 {
    (u64::from(index) * 2_654_435_761 % u64::from(all)) as u32
}

#[inline(never)]
fn asked(bench: &mut Bench, content: Content) -> Option<CacheReference> {
    let Bench {
        kernel,
        cache,
        parts,
    } = bench;
    kernel.find_or_insert(NIC, cache, black_box(content), parts, &mut NoMeter)
}

#[inline(never)]
fn removal(directory: &mut Directory, content: Content) -> bool {
    remove(
        NIC,
        directory,
        black_box(content.file),
        content.number,
        &mut NoMeter,
    )
}

#[test]
fn hits_of_packets() {
    let mut bench = Bench::new();
    let before = bench.cache.stats.hits;
    for index in 0..TIMES {
        // Three packets a block, as a file is sent; the first stands for the request.
        let number = scattered(index / 3, CACHED);
        let within = index % 3 * 1448;
        let content = block(number, within, 1448.min(BLOCK - within));
        assert!(asked(&mut bench, content).is_some());
    }
    assert_eq!(bench.cache.stats.hits - before, u64::from(TIMES));
}

#[test]
fn misses_that_evict() {
    let mut bench = Bench::new();
    let before = bench.cache.stats.evictions;
    for index in 0..TIMES {
        // Least recently used goes first, so that what is asked for in turn is never there.
        let number = (CACHED + index) % (2 * CACHED);
        assert!(asked(&mut bench, block(number, 0, 1448)).is_some());
        assert!(bench.kernel.poll_descriptor().is_some(), "an insert");
    }
    assert_eq!(bench.cache.stats.evictions - before, u64::from(TIMES));
    bench.cache.directory.expect("it is ready").check();
}

#[test]
fn removals() {
    let mut bench = Bench::new();
    for index in 0..TIMES {
        let content = block(scattered(index, CACHED), 0, BLOCK);
        let directory = bench.cache.directory.as_mut().expect("it is ready");
        assert!(removal(directory, content));
        bench.find(content);
    }
    bench.cache.directory.expect("it is ready").check();
}
