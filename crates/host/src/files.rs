//! Files: what the kernel knows of them beside what their store holds, and the memory that caches their pages.
//!
//! A file has a revision, which every change makes anew; what `sendfile` puts into a send buffer is annotated with file, offset
//! and revision (data-caching 4.2). A page that is being sent never changes: a change makes a new page, and send buffers keep
//! referring to the old one until it is acknowledged. So nobody ever receives a page that is partly of one revision and partly
//! of another.

mod cache;
mod change;
mod disk;
mod lent;
mod pages;
mod reader;
mod system;
mod transient;

pub use cache::{FileCacheConfig, FileCacheStats};
pub use disk::DiskRead;
pub use lent::{Borrower, SendPage};
pub use system::{Borrowers, Destination, FileSystem};
pub use transient::CachedBlock;

pub(crate) use cache::FileCache;
pub use pages::pages;
pub(crate) use reader::memory_page;

use crate::footprint::PAGE_BYTES;
use crate::sockets::FileId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::fmt::Debug;

/// Where the content of files comes from: what is on the disk.
pub trait FileStore<P>: Debug + Send {
    /// The present length of a file, bytes. `asked` is the end of what somebody asks for: a store that makes its files up may
    /// let them be as long as that.
    fn len(&mut self, file: FileId, asked: u64) -> u64;

    /// `len` bytes from `offset` on as they are now. The range lies within the file and within one page.
    fn read(&self, file: FileId, offset: u64, len: u32) -> P;

    /// `len` bytes from `offset` on are other ones from now on, which makes `revision` of the file. It grows if need be.
    fn edit(&mut self, file: FileId, revision: u32, offset: u64, len: u64);

    /// The file ends at `len` from now on, which makes `revision` of it.
    fn truncate(&mut self, file: FileId, revision: u32, len: u64);
}

/// What a system knows of files.
#[derive(Debug)]
pub(crate) struct Files<P> {
    /// Without a store `sendfile` sends what the application gives it.
    pub(crate) store: Option<Box<dyn FileStore<P>>>,
    /// Revisions of the files that were ever changed.
    revisions: FxHashMap<FileId, Revisions>,
    /// The pages in memory; without it all pages of all files are.
    pub(crate) cache: Option<FileCache>,
    /// Who wants a page that is not in memory sleeps until it is.
    blocking: bool,
    /// The read of the disk that the application sleeps for.
    sleeps_for: Option<u64>,
    /// Pages that have left memory.
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

    /// The present revision of a file.
    pub(crate) fn revision(&self, file: FileId) -> u32 {
        // Most servers never change a file: then nothing is looked up.
        if self.revisions.is_empty() {
            return 0;
        }
        let revisions = self.revisions.get(&file);
        revisions.map_or(0, |revisions| revisions.current)
    }

    /// A file changes. `appends`: nothing that it had does.
    fn next_revision(&mut self, file: FileId, appends: bool) -> u32 {
        let revisions = self.revisions.entry(file).or_default();
        revisions.current += 1;
        if !appends {
            revisions.rewritten = revisions.current;
        }
        revisions.current
    }

    /// Whether anything that a file had at `revision` has changed since.
    fn rewritten_since(&self, file: FileId, revision: u32) -> bool {
        let revisions = self.revisions.get(&file);
        revisions.is_some_and(|revisions| revisions.rewritten > revision)
    }

    /// The next page that has left memory, in order.
    pub(crate) fn poll_evicted(&mut self) -> Option<(FileId, u32)> {
        self.evicted.pop_front()
    }

    /// The page of memory that holds this offset of a file, if one does.
    pub(crate) fn frame(&self, file: FileId, offset: u64) -> Option<u32> {
        match &self.cache {
            None => Some(memory_page(file, offset)),
            Some(cache) => cache.find(file, (offset / u64::from(PAGE_BYTES)) as u32),
        }
    }

    /// Whether all pages of `len` bytes at `offset` of a file, at least one, are in memory.
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
    /// The last one that was more than an append.
    rewritten: u32,
}

/// A run of bytes in one page of a file, as `sendfile` found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePage {
    /// The page of memory.
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
    /// Offset of its `skipped`-th byte within the file.
    pub(crate) fn offset(&self, skipped: u32) -> u64 {
        u64::from(self.number) * u64::from(PAGE_BYTES) + u64::from(self.start) + u64::from(skipped)
    }
}
