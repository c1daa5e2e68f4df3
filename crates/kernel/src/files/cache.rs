//! The file cache, which holds pages of files in main memory.

use crate::footprint::PAGE_BYTES;
use baton_cache::{Replacement, ReplacementConfig};
use baton_host::{FileId, SocketId};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::VecDeque;

use super::disk::DiskRead;

/// The file cache of main memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FileCacheConfig {
    /// Memory for the cache, KiB; 0: no limit, so that nothing is ever read from the disk.
    #[schemars(range(min = Self::LEAST_KIB), extend("x-or-zero" = true))]
    pub kib: u32,
    /// Policy that chooses the page to evict from a full cache. Pages that are being sent stay.
    pub replacement: ReplacementConfig,
    /// Whether a process that needs a page that is not in memory sleeps until the page is read (`sendfile` of FreeBSD). Otherwise its
    /// socket becomes writable when the page is in memory.
    pub blocking: bool,
    /// Maximum number of pages that one read of the disk fetches.
    #[schemars(range(min = 1))]
    pub read_pages: u32,
    /// Maximum number of reads that wait for the disk or are in progress.
    #[schemars(range(min = 1))]
    pub reads: u32,
}

impl Default for FileCacheConfig {
    fn default() -> Self {
        Self {
            kib: 0,
            replacement: ReplacementConfig::Lru,
            blocking: true,
            read_pages: 16,
            reads: 64,
        }
    }
}

impl FileCacheConfig {
    /// Minimum size, KiB. In a smaller cache a few connections could block all others.
    pub(crate) const LEAST_KIB: u32 = 64;

    fn pages(&self) -> u32 {
        self.kib / (PAGE_BYTES / 1024)
    }
}

/// Counters of the file cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCacheStats {
    /// Pages that `sendfile` found in memory.
    pub hits: u64,
    /// Number of times `sendfile` needed a page that was not in memory.
    pub misses: u64,
    /// Disk reads requested.
    pub reads: u64,
    /// Pages that these reads fetched.
    pub pages_read: u64,
    /// Pages evicted to make space for others.
    pub evictions: u64,
    /// Number of times `sendfile` had to wait because the whole cache was being sent or read into.
    pub no_page: u64,
    /// Number of times `sendfile` had to wait because the maximum number of reads was in progress.
    pub no_read: u64,
}

/// The sockets that wait for pages of a read, with the page numbers.
type Waiters = SmallVec<[(SocketId, u32); 2]>;

/// A socket, and the page of memory that is held for the socket.
pub(crate) type Held = (SocketId, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    file: FileId,
    number: u32,
    /// Number of runs of the page in send buffers.
    wires: u32,
    /// Whether the frame holds the current page; otherwise it is free, or holds an old page that is still being sent.
    current: bool,
}

/// Result of requesting a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The page is being read, by the read with this token.
    Read(u64),
    /// The page cannot be read now; the caller must ask again later.
    Later,
}

/// Pages in memory.
#[derive(Debug)]
pub(crate) struct FileCache {
    pages: FxHashMap<(FileId, u32), u32>,
    frames: Vec<Frame>,
    free: Vec<u32>,
    replacement: Box<dyn Replacement>,
    /// Number of frames from which data is being sent.
    wired: u32,
    /// Number of frames that reads in progress will need.
    reserved: u32,
    next_token: u64,
    reads: FxHashMap<u64, (DiskRead, Waiters)>,
    /// Pages that are being read, with the token of the read.
    arriving: FxHashMap<(FileId, u32), u64>,
    most_reads: usize,
    read_pages: u32,
    /// Reads to be requested from the disk.
    pub(crate) asked: VecDeque<DiskRead>,
    pub(crate) stats: FileCacheStats,
}

impl FileCache {
    pub(crate) fn new(config: &FileCacheConfig) -> Self {
        let pages = config.pages();
        let free = Frame {
            file: FileId(0),
            number: 0,
            wires: 0,
            current: false,
        };
        Self {
            pages: FxHashMap::default(),
            frames: vec![free; pages as usize],
            free: (0..pages).rev().collect(),
            replacement: config.replacement.build(pages),
            wired: 0,
            reserved: 0,
            next_token: 0,
            reads: FxHashMap::default(),
            arriving: FxHashMap::default(),
            most_reads: config.reads as usize,
            read_pages: config.read_pages.max(1),
            asked: VecDeque::new(),
            stats: FileCacheStats::default(),
        }
    }

    /// Returns the number of pages of memory.
    pub(crate) fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Returns the number of pages from which data is being sent.
    pub(crate) fn wired(&self) -> u32 {
        self.wired
    }

    /// Returns the frame of a page, or `None` if the page is not in memory.
    pub(crate) fn find(&self, file: FileId, number: u32) -> Option<u32> {
        self.pages.get(&(file, number)).copied()
    }

    /// Reports whether a page could be wired or read into memory now.
    pub(crate) fn has_room(&self) -> bool {
        self.wired + self.reserved < self.frames.len() as u32
    }

    /// Puts a page into memory as the most recently used, without a read: for memory that is warm when a simulation begins.
    pub(crate) fn preload(
        &mut self,
        file: FileId,
        number: u32,
        evicted: &mut VecDeque<(FileId, u32)>,
    ) {
        if let Some(frame) = self.find(file, number) {
            self.replacement.used(frame);
        } else if self.has_room()
            && let Some(frame) = self.make_room(evicted)
        {
            self.name(frame, file, number);
        }
    }

    /// Marks a page as used and wires it once more. Returns `None` if the page is not in memory, or if all other memory is reserved.
    pub(crate) fn use_and_wire(&mut self, file: FileId, number: u32) -> Option<u32> {
        let frame = self.find(file, number)?;
        if self.frames[frame as usize].wires == 0 && !self.has_room() {
            return None;
        }
        self.replacement.used(frame);
        self.stats.hits += 1;
        self.wire(frame);
        Some(frame)
    }

    /// Wires a wired page once more.
    pub(crate) fn wire(&mut self, frame: u32) {
        let wires = &mut self.frames[frame as usize].wires;
        self.wired += u32::from(*wires == 0);
        *wires += 1;
    }

    /// Unwires a page after a run of it was acknowledged.
    pub(crate) fn unwire(&mut self, frame: u32) {
        let page = &mut self.frames[frame as usize];
        debug_assert!(page.wires > 0, "only a wired page is unwired");
        page.wires -= 1;
        if page.wires == 0 {
            self.wired -= 1;
            if !page.current {
                self.free.push(frame);
            }
        }
    }

    /// Requests page `number`, which is not in memory, of a file with `pages` pages, for `socket`. The read also includes the following
    /// pages.
    pub(crate) fn want(
        &mut self,
        socket: SocketId,
        file: FileId,
        number: u32,
        pages: u32,
    ) -> Wanted {
        self.stats.misses += 1;
        if let Some(&token) = self.arriving.get(&(file, number)) {
            if let Some((_, waiters)) = self.reads.get_mut(&token)
                && !waiters.contains(&(socket, number))
            {
                waiters.push((socket, number));
            }
            return Wanted::Read(token);
        }
        if self.reads.len() >= self.most_reads {
            self.stats.no_read += 1;
            return Wanted::Later;
        }
        let room = self.frames.len() as u32 - self.wired - self.reserved;
        let most = self.read_pages.min(room).min(pages - number);
        if most == 0 {
            self.stats.no_page += 1;
            return Wanted::Later;
        }
        let further = (1..most).take_while(|ahead| {
            let key = (file, number + ahead);
            !self.pages.contains_key(&key) && !self.arriving.contains_key(&key)
        });
        let count = 1 + further.count() as u32;
        let token = self.next_token;
        self.next_token += 1;
        let read = DiskRead {
            token,
            file,
            first_page: number,
            pages: count,
        };
        for ahead in 0..count {
            self.arriving.insert((file, number + ahead), token);
        }
        self.reserved += count;
        self.stats.reads += 1;
        self.asked.push_back(read);
        self.reads
            .insert(token, (read, std::iter::once((socket, number)).collect()));
        Wanted::Read(token)
    }

    /// Completes a read: puts its pages into memory and appends evicted pages to `evicted`. Returns the waiting sockets, whose pages are
    /// wired for them. Otherwise sockets that wait could evict each other's pages without end.
    pub(crate) fn arrived(
        &mut self,
        token: u64,
        waits: impl Fn(SocketId) -> bool,
        evicted: &mut VecDeque<(FileId, u32)>,
    ) -> Option<(DiskRead, SmallVec<[Held; 2]>)> {
        let (read, waiters) = self.reads.remove(&token)?;
        let mut held = SmallVec::new();
        self.reserved -= read.pages;
        self.stats.pages_read += u64::from(read.pages);
        for number in read.first_page..read.first_page + read.pages {
            self.arriving.remove(&(read.file, number));
            if let Some(frame) = self.make_room(evicted) {
                self.name(frame, read.file, number);
                for &(socket, wanted) in &waiters {
                    if wanted == number && waits(socket) {
                        self.wire(frame);
                        held.push((socket, frame));
                    }
                }
            }
        }
        Some((read, held))
    }

    fn name(&mut self, frame: u32, file: FileId, number: u32) {
        let page = &mut self.frames[frame as usize];
        debug_assert!(!page.current && page.wires == 0, "the page is free");
        (page.file, page.number, page.current) = (file, number, true);
        let before = self.pages.insert((file, number), frame);
        debug_assert_eq!(before, None, "a page is in memory once");
        self.replacement
            .inserted(frame, key(file, number), PAGE_BYTES);
    }

    /// Returns a free frame. If necessary, evicts a page from which no data is being sent.
    fn make_room(&mut self, evicted: &mut VecDeque<(FileId, u32)>) -> Option<u32> {
        if let Some(frame) = self.free.pop() {
            return Some(frame);
        }
        let mut kept: SmallVec<[u32; 8]> = SmallVec::new();
        let mut found = None;
        while found.is_none()
            && let Some(frame) = self.replacement.victim()
        {
            if self.frames[frame as usize].wires > 0 {
                kept.push(frame);
            } else {
                found = Some(frame);
            }
        }
        for frame in kept {
            let page = self.frames[frame as usize];
            self.replacement
                .inserted(frame, key(page.file, page.number), PAGE_BYTES);
        }
        let frame = found?;
        let page = &mut self.frames[frame as usize];
        page.current = false;
        self.pages.remove(&(page.file, page.number));
        self.stats.evictions += 1;
        evicted.push_back((page.file, page.number));
        Some(frame)
    }

    /// Prepares a page for new content: if the old content is being sent, the new content gets another frame. Returns false if the page is
    /// no longer in memory.
    pub(crate) fn replace(
        &mut self,
        file: FileId,
        number: u32,
        evicted: &mut VecDeque<(FileId, u32)>,
    ) -> bool {
        let Some(frame) = self.find(file, number) else {
            return false;
        };
        if self.frames[frame as usize].wires == 0 {
            return true;
        }
        self.forget(file, number);
        let fresh = self.has_room().then(|| self.make_room(evicted)).flatten();
        if let Some(fresh) = fresh {
            self.name(fresh, file, number);
        }
        fresh.is_some()
    }

    /// Removes a page from memory, because it was deleted or evicted. Data that is being sent from the page is not affected.
    pub(crate) fn forget(&mut self, file: FileId, number: u32) {
        let Some(frame) = self.pages.remove(&(file, number)) else {
            return;
        };
        self.replacement.removed(frame);
        let page = &mut self.frames[frame as usize];
        page.current = false;
        if page.wires == 0 {
            self.free.push(frame);
        }
    }

    /// Returns the numbers of a file's pages in memory, from `first` on.
    pub(crate) fn pages_from(&self, file: FileId, first: u32) -> Vec<u32> {
        let mut numbers: Vec<u32> = self
            .frames
            .iter()
            .filter(|page| page.current && page.file == file && page.number >= first)
            .map(|page| page.number)
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// Asserts all invariants. `wires` has the number of runs in send buffers for each frame.
    pub(crate) fn check(&self, wires: &[u32]) {
        self.replacement.check();
        let mut in_use = 0;
        for (frame, page) in self.frames.iter().enumerate() {
            assert_eq!(
                page.wires, wires[frame],
                "page {frame}: wired once per run that is being sent"
            );
            in_use += usize::from(page.current || page.wires > 0);
            if page.current {
                assert_eq!(
                    self.find(page.file, page.number),
                    Some(frame as u32),
                    "a page is found by its name"
                );
            }
        }
        let wired = self.frames.iter().filter(|page| page.wires > 0).count();
        assert_eq!(wired as u32, self.wired, "wired pages are counted");
        assert_eq!(
            in_use + self.free.len(),
            self.frames.len(),
            "a page is free or in use"
        );
        let current = self.frames.iter().filter(|page| page.current).count();
        assert_eq!(
            current,
            self.pages.len(),
            "every name belongs to exactly one page"
        );
        let arriving: u32 = self.reads.values().map(|(read, _)| read.pages).sum();
        assert_eq!(arriving, self.reserved, "reads in progress have memory");
        assert_eq!(
            self.arriving.len(),
            arriving as usize,
            "a page is read once at a time"
        );
        assert!(
            self.wired + self.reserved <= self.frames.len() as u32,
            "all wired and reserved pages have memory"
        );
        assert!(
            self.reads.len() <= self.most_reads,
            "the number of reads in progress is limited"
        );
    }
}

/// Returns a page's key for policies.
fn key(file: FileId, number: u32) -> u64 {
    u64::from(file.0) << 32 | u64::from(number)
}
