//! Files: what the kernel knows about files in addition to their content, and the memory that caches their pages.
//!
//! Every change gives a file a new revision. Content that `sendfile` puts into a send buffer is annotated with file, offset and revision
//! (data-caching 4.2). A page that is being sent never changes: a change creates a new page, and send buffers keep referring to the old
//! page until it is acknowledged. So no peer ever receives a page that mixes two revisions.

mod cache;
mod change;
mod disk;
mod lent;
mod reader;
mod system;
mod transient;

pub use cache::{FileCacheConfig, FileCacheStats};
pub use disk::DiskRead;
pub use lent::SendPage;
pub use system::{Destination, FileSystem};
pub use transient::CachedBlock;

pub(crate) use cache::FileCache;
pub(crate) use reader::memory_page;

use crate::footprint::PAGE_BYTES;
use baton_host::FileId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::fmt::Debug;

/// Source of the content of files, that is, the content of the disk.
pub trait FileStore<P>: Debug + Send {
    /// Returns the current length of a file in bytes. `asked` is the end of the requested range: a store that synthesizes its files may
    /// make a file that long.
    fn len(&mut self, file: FileId, asked: u64) -> u64;

    /// Returns the current content of `len` bytes from `offset` on. The range lies within the file and within one page.
    fn read(&self, file: FileId, offset: u64, len: u32) -> P;

    /// Replaces `len` bytes from `offset` on, which creates `revision` of the file. The file grows if necessary.
    fn edit(&mut self, file: FileId, revision: u32, offset: u64, len: u64);

    /// Truncates the file to `len` bytes, which creates `revision` of the file.
    fn truncate(&mut self, file: FileId, revision: u32, len: u64);
}

/// What a system knows about files.
#[derive(Debug)]
pub(crate) struct Files<P> {
    /// Content of the files. Without a store, `sendfile` sends the data that the application passes.
    pub(crate) store: Option<Box<dyn FileStore<P>>>,
    /// Revisions of all files that have ever been changed.
    revisions: FxHashMap<FileId, Revisions>,
    /// The cache of pages in memory. Without a cache all pages of all files are in memory.
    pub(crate) cache: Option<FileCache>,
    /// Whether a caller that needs a page that is not in memory sleeps until the page is read.
    blocking: bool,
    /// The disk read that the application is waiting for.
    sleeps_for: Option<u64>,
    /// Pages that were evicted from memory.
    evicted: VecDeque<(FileId, u32)>,
}

impl<P> Files<P> {
    pub(crate) fn new(config: &FileCacheConfig) -> Self {
        Self {
            store: None,
            revisions: FxHashMap::default(),
            cache: (config.kib > 0).then(|| FileCache::new(config)),
            blocking: config.blocking,
            sleeps_for: None,
            evicted: VecDeque::new(),
        }
    }

    /// Returns the current revision of a file.
    pub(crate) fn revision(&self, file: FileId) -> u32 {
        // Most servers never change a file, so avoid the lookup.
        if self.revisions.is_empty() {
            return 0;
        }
        let revisions = self.revisions.get(&file);
        revisions.map_or(0, |revisions| revisions.current)
    }

    /// Starts a new revision of a file. `appends` says that the change leaves the existing content as it is.
    fn next_revision(&mut self, file: FileId, appends: bool) -> u32 {
        let revisions = self.revisions.entry(file).or_default();
        revisions.current += 1;
        if !appends {
            revisions.rewritten = revisions.current;
        }
        revisions.current
    }

    /// Reports whether any content that the file had at `revision` has changed since.
    fn rewritten_since(&self, file: FileId, revision: u32) -> bool {
        let revisions = self.revisions.get(&file);
        revisions.is_some_and(|revisions| revisions.rewritten > revision)
    }

    /// Returns the next page that was evicted from memory, in order of eviction.
    pub(crate) fn poll_evicted(&mut self) -> Option<(FileId, u32)> {
        self.evicted.pop_front()
    }

    /// Returns the page of memory that holds this offset of a file, or `None` if the page is not in memory.
    pub(crate) fn frame(&self, file: FileId, offset: u64) -> Option<u32> {
        match &self.cache {
            None => Some(memory_page(file, offset)),
            Some(cache) => cache.find(file, (offset / u64::from(PAGE_BYTES)) as u32),
        }
    }

    /// Reports whether all pages of `len` bytes (at least one) at `offset` of a file are in memory.
    pub(crate) fn resident(&self, file: FileId, offset: u64, len: u32) -> bool {
        let page_bytes = u64::from(PAGE_BYTES);
        let last = offset + u64::from(len.max(1)) - 1;
        (offset / page_bytes..=last / page_bytes)
            .all(|number| self.frame(file, number * page_bytes).is_some())
    }
}

/// Revisions of one file.
#[derive(Clone, Copy, Debug, Default)]
struct Revisions {
    current: u32,
    /// The last revision that was not just an append.
    rewritten: u32,
}

/// A run of bytes within one page of a file, as `sendfile` found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePage {
    /// Number of the page of memory.
    pub(crate) frame: u32,
    pub(crate) file: FileId,
    /// Number of the page within the file.
    pub(crate) number: u32,
    /// First byte within the page.
    pub(crate) start: u16,
    /// Revision of the file.
    pub(crate) revision: u32,
}

impl FilePage {
    /// Returns the offset within the file of the run's byte number `skipped`.
    pub(crate) fn offset(&self, skipped: u32) -> u64 {
        u64::from(self.number) * u64::from(PAGE_BYTES) + u64::from(self.start) + u64::from(skipped)
    }
}
