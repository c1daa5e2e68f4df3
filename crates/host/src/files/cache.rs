//! The file cache: which pages of which files are in main memory.

use crate::footprint::PAGE_BYTES;
use crate::sockets::{FileId, SocketId};
use baton_cache::{Replacement, ReplacementConfig};
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
    /// Memory for it, KiB; 0: as much as all files take, so that nothing is ever read from the disk.
    #[schemars(range(min = Self::LEAST_KIB), extend("x-or-zero" = true))]
    pub kib: u32,
    /// Which page goes when it is full. Pages that are being sent stay.
    pub replacement: ReplacementConfig,
    /// A process that wants a page that is not in memory sleeps until it is (`sendfile` of FreeBSD); otherwise its socket becomes
    /// writable when the page is there.
    pub blocking: bool,
    /// Most pages that one read of the disk fetches.
    #[schemars(range(min = 1))]
    pub read_pages: u32,
    /// Most reads that wait for the disk or are under way.
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
    /// The smallest, KiB: with less a handful of connections could stop all others.
    pub(crate) const LEAST_KIB: u32 = 64;

    fn pages(&self) -> u32 {
        self.kib / (PAGE_BYTES / 1024)
    }
}

/// What the file cache did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCacheStats {
    /// Pages that `sendfile` found in memory.
    pub hits: u64,
    /// Times `sendfile` met a page that was not in memory.
    pub misses: u64,
    /// Reads asked of the disk.
    pub reads: u64,
    /// Pages they fetched.
    pub pages_read: u64,
    /// Pages that made room for others.
    pub evictions: u64,
    /// Times `sendfile` had to wait because all of the cache was being sent or read into.
    pub no_page: u64,
    /// Times it had to wait because as many reads were under way as may be.
    pub no_read: u64,
}

/// Who waits for which page of a read.
type Waiters = SmallVec<[(SocketId, u32); 2]>;

/// A socket and the page of memory that is held for it.
pub(crate) type Held = (SocketId, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    file: FileId,
    number: u32,
    /// Runs of it in send buffers.
    wires: u32,
    /// It is that page of that file; otherwise it is an old one, still being sent, or free.
    current: bool,
}

/// What became of a wish for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// It is being read.
    Read(u64),
    /// It cannot be read now: ask again later.
    Later,
}

/// Pages in memory.
#[derive(Debug)]
pub(crate) struct FileCache {
    pages: FxHashMap<(FileId, u32), u32>,
    frames: Vec<Frame>,
    free: Vec<u32>,
    replacement: Box<dyn Replacement>,
    /// Frames that something is sent from.
    wired: u32,
    /// Pages that reads under way will need.
    reserved: u32,
    next_token: u64,
    reads: FxHashMap<u64, (DiskRead, Waiters)>,
    /// Pages that are being read, by the read.
    arriving: FxHashMap<(FileId, u32), u64>,
    most_reads: usize,
    read_pages: u32,
    /// Reads to ask of the disk.
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

    /// Pages of memory.
    pub(crate) fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Pages that something is sent from.
    pub(crate) fn wired(&self) -> u32 {
        self.wired
    }

    /// The memory of a page, if it is there.
    pub(crate) fn find(&self, file: FileId, number: u32) -> Option<u32> {
        self.pages.get(&(file, number)).copied()
    }

    /// Whether a page could be wired or read into memory now.
    pub(crate) fn has_room(&self) -> bool {
        self.wired + self.reserved < self.frames.len() as u32
    }

    /// A page is in memory, used last of all, without a read: for memory that is warm when a simulation begins.
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

    /// A page is used and sent from once more. None when it is not there, or when all other memory is spoken for.
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

    /// A wired page is sent from once more.
    pub(crate) fn wire(&mut self, frame: u32) {
        let wires = &mut self.frames[frame as usize].wires;
        self.wired += u32::from(*wires == 0);
        *wires += 1;
    }

    /// A run of a page was acknowledged.
    pub(crate) fn unwire(&mut self, frame: u32) {
        let page = &mut self.frames[frame as usize];
        debug_assert!(page.wires > 0, "what is unwired was wired");
        page.wires -= 1;
        if page.wires == 0 {
            self.wired -= 1;
            if !page.current {
                self.free.push(frame);
            }
        }
    }

    /// `socket` wants page `number` of a file, which has `pages`, and which is not there: it is read, and those after it.
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

    /// A read is over: its pages are in memory; those that made room are appended to `evicted`. Gives who waits. What somebody waits
    /// for is wired for him, or it could make room for what another waits for, and so on for ever.
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

    /// A free page of memory; if need be one that is not sent from makes room.
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

    /// A page got new content: if the old one is being sent the new one goes elsewhere. False when it is not in memory now.
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

    /// A page is no more, or no longer in memory; what is sent from it is sent.
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

    /// The numbers of the pages of a file that are in memory, from `first` on.
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

    /// Asserts its invariants. `wires` are the runs of each page of memory in send buffers.
    pub(crate) fn check(&self, wires: &[u32]) {
        self.replacement.check();
        let mut in_use = 0;
        for (frame, page) in self.frames.iter().enumerate() {
            assert_eq!(
                page.wires, wires[frame],
                "page {frame}: each run that is sent wires it"
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
            "every name leads to a page of its own"
        );
        let arriving: u32 = self.reads.values().map(|(read, _)| read.pages).sum();
        assert_eq!(arriving, self.reserved, "reads under way have their memory");
        assert_eq!(
            self.arriving.len(),
            arriving as usize,
            "a page is read once at a time"
        );
        assert!(
            self.wired + self.reserved <= self.frames.len() as u32,
            "there is room for all that is under way"
        );
        assert!(
            self.reads.len() <= self.most_reads,
            "no more reads are under way than may be"
        );
    }
}

/// A page's name for policies.
fn key(file: FileId, number: u32) -> u64 {
    u64::from(file.0) << 32 | u64::from(number)
}
