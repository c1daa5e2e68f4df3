//! Files for sockets of another component: the state of each socket for the file that it sends, the sockets that wait for pages, and the
//! pages that stay in memory because a stack or an adapter refers to them.

use super::lent::{Lent, LentPage, SendPage};
use super::reader::{Reader, Stop};
use super::transient::{CachedBlock, Transient};
use super::{DiskRead, FileCacheConfig, FileCacheStats, FilePage, FileStore, Files};
use crate::footprint::{self, PAGE_BYTES};
use crate::lists::List;
use crate::memory::{Buffers, PageBuffer};
use crate::meter::{Access, Layer, Meter, Owner, Pool};
use baton_bus::link::Inline;
use baton_host::adapter::OsLayer;
use baton_host::layer::AdapterId;
use baton_host::{Borrower, Borrowers, FileContent, FileId, Gone, SocketId, pages};
use baton_tcp::ConnId;
use baton_wire::{Payload, SeqNr};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// A socket to which content of a file is sent.
pub trait Destination<P> {
    /// Returns approximately how many bytes the socket accepts now.
    ///
    /// # Errors
    /// The connection no longer exists.
    fn room(&mut self) -> Result<usize, Gone>;
    /// Requests that the socket becomes writable when it has buffer space again.
    fn want_room(&mut self);
    /// Sends `data`, which is the beginning of `content`. Returns the number of bytes taken.
    ///
    /// # Errors
    /// The connection no longer exists.
    fn send(&mut self, content: FileContent, data: P) -> Result<usize, Gone>;
    /// Returns the components that refer to the data taken last, each with its sequence number after the data; empty if the data was
    /// copied.
    fn borrowers(&mut self) -> Borrowers;
    /// Returns the adapter through which the socket sends, and the block size of its data cache in bytes, or `None` if there is no cache.
    fn cache(&self) -> Option<(AdapterId, u32)>;
}

/// The files of a host: the pages in memory, the sockets that send from them, and the sockets that wait.
///
/// Call its methods in the same order as those of the sockets below it; then call [`FileSystem::poll_disk`], [`FileSystem::poll_evicted`]
/// and [`FileSystem::poll_delivered`] until they return `None`. [`FileSystem::next_writable`] reports sockets in addition to those that the
/// sockets themselves report.
#[derive(Debug)]
pub struct FileSystem<P> {
    files: Files<P>,
    /// Readers by socket number.
    readers: Vec<Reader<P>>,
    lent: Lent,
    wired: WiredPages,
    transient: Transient,
    /// Sockets that wait for memory.
    waiting: VecDeque<SocketId>,
    /// Sockets whose page has arrived.
    writable: VecDeque<SocketId>,
    shrunk: u64,
}

/// A run of a page that is being sent.
#[derive(Debug)]
struct Run<P> {
    page: FilePage,
    /// Content of the page, as far as it was available.
    data: P,
    /// Number of bytes to send.
    len: usize,
    /// The wrapping of the page.
    buffer: PageBuffer,
}

/// Wrapped pages of memory, and the queue of the other pages, the most recently released last. A page that was never sent from is in no
/// queue, because its neighbours are not known.
#[derive(Debug, Default)]
struct WiredPages {
    /// Number of times each page is wrapped.
    wires: FxHashMap<u32, u32>,
    queue: List,
}

impl WiredPages {
    /// Wraps a page, which removes the page from the queue (`vm_page_wire`).
    fn wire<M: Meter>(&mut self, frame: u32, m: &mut M) {
        let wires = self.wires.entry(frame).or_default();
        *wires += 1;
        if *wires == 1 {
            let touched = |page| footprint::page_link(m, Layer::Syscall, page);
            self.queue.remove(frame, touched);
        }
    }

    /// Releases a wrapped page, which returns to the queue if this was the last time (`vm_page_unwire`).
    fn unwire<M: Meter>(&mut self, frame: u32, m: &mut M) {
        let Some(wires) = self.wires.get_mut(&frame) else {
            return;
        };
        *wires -= 1;
        if *wires == 0 {
            self.wires.remove(&frame);
            let touched = |page| footprint::page_link(m, Layer::Socket, page);
            self.queue.push(frame, touched);
        }
    }
}

impl<P: Payload> FileSystem<P> {
    /// Creates a file system with content from `store`. No page is in memory, unless the cache has no limit.
    pub fn new(config: &FileCacheConfig, store: Box<dyn FileStore<P>>) -> Self {
        let mut files = Files::new(config);
        files.store = Some(store);
        Self {
            files,
            readers: Vec::new(),
            lent: Lent::default(),
            wired: WiredPages::default(),
            transient: Transient::default(),
            waiting: VecDeque::new(),
            writable: VecDeque::new(),
            shrunk: 0,
        }
    }

    /// Returns the counters of the file cache, or `None` if all files are always in memory.
    pub fn cache_stats(&self) -> Option<&FileCacheStats> {
        self.files.cache.as_ref().map(|cache| &cache.stats)
    }

    /// Returns the number of mbufs that wrap lent pages.
    pub fn mbufs_lent(&self) -> usize {
        self.lent
            .pages()
            .filter(|page| page.buffer.is_some())
            .count()
    }

    /// Returns how often a file ended before the requested range.
    pub fn shrunk(&self) -> u64 {
        self.shrunk
    }

    /// Returns the number of pages that stay in memory because data is being sent from them.
    pub fn wired(&self) -> u32 {
        self.files.cache.as_ref().map_or(0, |cache| cache.wired())
    }

    /// Reports whether the application sleeps until a disk read is done. It must not run meanwhile; nothing else is blocked.
    pub fn application_sleeps(&self) -> bool {
        self.files.application_sleeps()
    }

    /// Reports whether [`FileSystem::next_writable`] will return a socket.
    pub fn has_writable(&self) -> bool {
        !self.writable.is_empty()
    }

    // --- events in ---

    /// Completes a disk read, whose data is in memory.
    pub fn handle_disk<M: Meter>(&mut self, token: u64, m: &mut M) {
        m.owner(Owner::Host);
        let readers = &self.readers;
        let waits = |id: SocketId| {
            let reader = readers.get(id.0 as usize);
            reader.is_some_and(|reader| reader.waits_for_read == Some(token))
        };
        for (id, frame) in self.files.disk_done(token, waits, m) {
            self.files.hold_for(&mut self.readers[id.0 as usize], frame);
            self.writable.push_back(id);
        }
    }

    /// Releases the pages that a borrower has finished with; `is_done` reports whether it has finished with all data before a sequence
    /// number.
    pub fn handle_done_with<M: Meter>(
        &mut self,
        borrower: Borrower,
        is_done: impl Fn(SeqNr) -> bool,
        buffers: &mut Buffers,
        m: &mut M,
    ) {
        while let Some(page) = self.lent.give_back(borrower, &is_done) {
            let LentPage {
                frame,
                buffer,
                blocks,
            } = page;
            self.files.unwire(frame);
            if let Some(blocks) = blocks {
                self.transient.release(blocks);
            }
            if let Some(buffer) = buffer {
                self.free_page(frame, buffer, buffers, m);
            }
        }
    }

    /// Releases a page that was wrapped.
    fn free_page<M: Meter>(
        &mut self,
        frame: u32,
        buffer: PageBuffer,
        buffers: &mut Buffers,
        m: &mut M,
    ) {
        footprint::free_mbuf(m, Layer::Socket, buffer.mbuf);
        footprint::free_page(m, buffer.sf_buf, frame);
        self.wired.unwire(frame, m);
        buffers.release_page(buffer);
    }

    /// Returns the pages in the send buffer of a connection of the host's stack, oldest first.
    pub fn in_send_buffer(&self, conn: ConnId) -> impl Iterator<Item = SendPage> {
        self.lent.in_send_buffer(conn)
    }

    /// Releases the pages that an adapter's sockets and cache have finished with.
    pub fn handle_adapter<Q: Inline, M: Meter>(
        &mut self,
        adapter: AdapterId,
        os: &mut OsLayer<Q>,
        buffers: &mut Buffers,
        m: &mut M,
    ) {
        while let Some(socket) = os.poll_done_with() {
            let borrower = Borrower::Socket(adapter, socket);
            let is_done = |end| os.is_done_with(socket, end);
            self.handle_done_with(borrower, is_done, buffers, m);
        }
        if os.has_cache() {
            let is_done = |count| os.is_inserted(count);
            self.handle_done_with(Borrower::Cache(adapter), is_done, buffers, m);
        }
    }

    /// Releases all pages of a borrower that no longer exists, or that has its own copy of the data.
    pub fn handle_left<M: Meter>(&mut self, borrower: Borrower, buffers: &mut Buffers, m: &mut M) {
        self.handle_done_with(borrower, |_| true, buffers, m);
    }

    // --- mutators ---

    /// Puts the first `len` bytes of a file into memory, as if they had just been sent.
    pub fn preload(&mut self, file: FileId, len: u64) {
        self.files.preload(file, len);
    }

    /// Returns the current revision of a file.
    pub fn revision(&self, file: FileId) -> u32 {
        self.files.revision(file)
    }

    /// Returns the current content of a file from `offset` on, at most `most` bytes and up to the end of the file. Returns `None` if not
    /// all of it is in memory, or if it cannot be joined to one piece.
    pub fn block(&mut self, file: FileId, offset: u64, most: u32) -> Option<P> {
        let store = self.files.store.as_mut()?;
        let left = store.len(file, 0).saturating_sub(offset);
        let len = left.min(most.into()) as usize;
        if len == 0 || !self.files.resident(file, offset, len as u32) {
            return None;
        }
        let store = self.files.store.as_ref()?;
        let mut runs = pages(offset, len)
            .map(|(start, run)| store.read(file, offset + start as u64, run as u32));
        let mut block = runs.next()?;
        let joins = runs.all(|run| block.try_append(&run));
        joins.then_some(block)
    }

    /// Accounts for a part of a file that the application reads through a mapping. Does not read pages that are not in memory.
    pub fn read_mapped<M: Meter>(&self, content: &FileContent, m: &mut M) {
        for (start, len) in pages(content.offset, content.len as usize) {
            let at = content.offset + start as u64;
            if let Some(frame) = self.files.frame(content.file, at) {
                let offset = (at % u64::from(PAGE_BYTES)) as u32;
                let (layer, pool) = (Layer::Application, Pool::FilePage);
                m.touch(layer, pool, frame, offset, len as u32, Access::Read);
            }
        }
    }

    /// Changes `len` bytes of a file from `offset` on. Data that is being sent does not change.
    pub fn edit(&mut self, file: FileId, offset: u64, len: u64) {
        if len > 0 {
            self.files.edit(file, offset, len);
        }
    }

    /// Truncates a file to `len` bytes. Of the content beyond, a socket still sends only data that it was already given, and the rest of a
    /// page that was given in part. A [`FileSystem::send`] of more returns [`Gone`], and the application must close the connection.
    pub fn truncate(&mut self, file: FileId, len: u64) {
        self.files.truncate(file, len);
    }

    /// Declares that content of `file` sent from now on is not requested again (a live stream). Its blocks leave an adapter's cache as soon
    /// as no socket needs them. A connection of the host's stack needs content until its peer has acknowledged it, a socket on an adapter
    /// until its SENDs have been answered.
    pub fn set_transient(&mut self, file: FileId) {
        self.transient.add(file);
    }

    /// Keeps blocks of a transient file that are sent from now on until [`FileSystem::let_go`], because they will be sent to other sockets,
    /// too.
    pub fn hold(&mut self, file: FileId) {
        self.transient.hold(file);
    }

    /// Ends [`FileSystem::hold`], because the content was given to all sockets that need it. Each block is released as soon as it is
    /// delivered.
    pub fn let_go(&mut self, file: FileId) {
        self.transient.let_go(file);
    }

    /// Sends the first `len` bytes of `content`, from the current state of the file, as far as buffer space, memory and pages allow.
    /// Returns the number of bytes taken. If a page must be read, the socket becomes writable when the page is in memory.
    ///
    /// # Errors
    /// The connection no longer exists, or the file ends before the content.
    pub fn send<M: Meter>(
        &mut self,
        id: SocketId,
        content: FileContent,
        len: usize,
        to: &mut impl Destination<P>,
        buffers: &mut Buffers,
        m: &mut M,
    ) -> Result<usize, Gone> {
        let fits = len.min(to.room()?);
        let slot = id.0 as usize;
        if slot >= self.readers.len() {
            self.readers.resize_with(slot + 1, Reader::default);
        }
        let (mut taken, mut stop) = (0, Stop::Done);
        while taken < fits && stop == Stop::Done {
            let next = content.after(taken as u64);
            let (runs, data);
            (runs, data, stop) = self.gather(id, &next, fits - taken, buffers, m);
            let Some(data) = data else { break };
            let given = data.len();
            let sent = self.send_runs(id, runs, (next, data), to, (buffers, m))?;
            taken += sent;
            if sent < given {
                break;
            }
        }
        if fits > 0 {
            self.files.release_held(&mut self.readers[slot]);
        }
        match stop {
            Stop::End if taken == 0 => {
                self.shrunk += 1;
                return Err(Gone);
            }
            // The next call continues, or finds that the file has ended.
            Stop::Done | Stop::End if taken < len => to.want_room(),
            Stop::NoMemory => self.wait_for_memory(id),
            Stop::Done | Stop::Read | Stop::End => {}
        }
        Ok(taken)
    }

    /// Registers a writer that found no memory, so that it is [woken up](FileSystem::wake_waiting) when there is some.
    pub fn wait_for_memory(&mut self, id: SocketId) {
        if !self.waiting.contains(&id) {
            self.waiting.push_back(id);
        }
    }

    /// Forgets a socket that the application has closed.
    pub fn close(&mut self, id: SocketId) {
        if let Some(reader) = self.readers.get_mut(id.0 as usize) {
            self.files.drop_kept(reader);
            reader.met_end = None;
        }
        self.waiting.retain(|&other| other != id);
        self.writable.retain(|&other| other != id);
    }

    /// Wakes up the writer that has waited longest for memory, if there is some. Must be called once per piece of work.
    pub fn wake_waiting(&mut self, buffers: &Buffers) {
        let cache = self.files.cache.as_ref();
        if buffers.has_some_for_writers()
            && cache.is_none_or(|cache| cache.has_room())
            && let Some(id) = self.waiting.pop_front()
        {
            self.writable.push_back(id);
        }
    }

    // --- effects out ---

    /// Returns the next read for the disk.
    pub fn poll_disk(&mut self) -> Option<DiskRead> {
        self.files.poll_disk()
    }

    /// Returns the next page that was evicted from memory: its file, and the offset of its first byte. Blocks of the page must leave the
    /// NICs' caches, too.
    pub fn poll_evicted(&mut self) -> Option<(FileId, u64)> {
        let (file, number) = self.files.poll_evicted()?;
        Some((file, u64::from(number) * u64::from(PAGE_BYTES)))
    }

    /// Returns the next block of a transient file that was delivered, and that must leave the adapter's cache if it is there.
    pub fn poll_delivered(&mut self) -> Option<CachedBlock> {
        self.transient.poll_delivered()
    }

    /// Returns the next socket that waited for a page or for memory and may continue.
    pub fn next_writable(&mut self) -> Option<SocketId> {
        self.writable.pop_front()
    }

    // --- inside ---

    /// Joins consecutive pages, at most `most` bytes, to one piece. Also returns why there are no more pages, if they have fewer than
    /// `most` bytes.
    fn gather<M: Meter>(
        &mut self,
        id: SocketId,
        content: &FileContent,
        most: usize,
        buffers: &mut Buffers,
        m: &mut M,
    ) -> (SmallVec<[Run<P>; 16]>, Option<P>, Stop) {
        let mut runs = SmallVec::new();
        let mut gathered: Option<P> = None;
        let mut len = 0;
        let asked = content.offset + most as u64;
        while len < most {
            let Some(buffer) = buffers.allocate_page_for_writer() else {
                return (runs, gathered, Stop::NoMemory);
            };
            let reader = &mut self.readers[id.0 as usize];
            let at = content.offset + len as u64;
            let found = self
                .files
                .next_run((reader, id), content.file, at, asked, m);
            let (page, data) = match found {
                Ok(found) => found,
                Err(stop) => {
                    buffers.release_page(buffer);
                    return (runs, gathered, stop);
                }
            };
            let run = data.len().min(most - len);
            let piece = data.slice(0, run);
            let first = runs.first().map(|run: &Run<P>| run.page.revision);
            let is_same = first.is_none_or(|revision| revision == page.revision);
            let joins = |before: &mut P| is_same && before.try_append(&piece);
            if !gathered.as_mut().is_none_or(joins) {
                self.files.keep_open(reader, page, data);
                buffers.release_page(buffer);
                break;
            }
            gathered.get_or_insert(piece);
            footprint::page_bucket(m, page.file.0, page.number);
            footprint::file_page(m, (buffer.mbuf, buffer.sf_buf), page.frame);
            self.wired.wire(page.frame, m);
            runs.push(Run {
                page,
                data,
                len: run,
                buffer,
            });
            len += run;
        }
        (runs, gathered, Stop::Done)
    }

    /// Sends pages as one piece of content, and releases the pages of which nothing is sent.
    fn send_runs<M: Meter>(
        &mut self,
        id: SocketId,
        runs: SmallVec<[Run<P>; 16]>,
        (content, data): (FileContent, P),
        to: &mut impl Destination<P>,
        (buffers, m): (&mut Buffers, &mut M),
    ) -> Result<usize, Gone> {
        let revision = runs.first().map_or(0, |run| run.page.revision);
        let store = self.files.store.as_mut();
        let asked = content.offset + content.len;
        let file_len = store.map_or(asked, |store| store.len(content.file, asked));
        let named = FileContent {
            revision,
            // The file had at least the length of the content that is still sent.
            file_len: file_len.max(content.offset + data.len() as u64),
            ..content
        };
        let sent = to.send(named, data);
        let mut left = *sent.as_ref().unwrap_or(&0);
        let borrowers = to.borrowers();
        let cache = match self.transient.has(content.file) {
            true => to.cache(),
            false => None,
        };
        for run in runs {
            let Run { page, data, .. } = run;
            let here = run.len.min(left);
            let mut buffer = Some(run.buffer);
            left -= here;
            if here > 0 {
                let reader = &mut self.readers[id.0 as usize];
                self.files.sent_of(reader, page, data, here);
            }
            for &(borrower, end) in &borrowers {
                let end = match borrower {
                    // The cache may also have been given content that was not sent.
                    Borrower::Cache(_) => end,
                    _ if here == 0 => continue,
                    Borrower::Connection(_) | Borrower::Socket(..) => end - left as u32,
                };
                self.files.wire(page.frame);
                let blocks = cache.filter(|_| !matches!(borrower, Borrower::Cache(_)));
                let blocks = blocks.map(|(adapter, block_bytes)| {
                    let numbers = blocks_of(page, here, block_bytes);
                    self.transient.refer(adapter, content.file, numbers)
                });
                let lent = LentPage {
                    frame: page.frame,
                    buffer: buffer.take(),
                    blocks,
                };
                self.lent.lend(borrower, end, lent);
            }
            if let Some(buffer) = buffer {
                self.free_page(page.frame, buffer, buffers, m);
            }
            self.files.unwire(page.frame);
        }
        sent
    }

    /// Asserts that all pages from which data is being sent are in memory.
    pub fn check(&self) {
        (self.transient).check(self.lent.pages().filter_map(|page| page.blocks));
        let Some(cache) = &self.files.cache else {
            return;
        };
        let mut wires = vec![0; cache.frames()];
        let lent = self.lent.pages().map(|page| page.frame);
        for frame in lent.chain(self.readers.iter().flat_map(Reader::frames)) {
            wires[frame as usize] += 1;
        }
        cache.check(&wires);
    }
}

/// Returns the blocks of a cache that contain the first `len` bytes (at least one) of a page's content.
fn blocks_of(page: FilePage, len: usize, block_bytes: u32) -> RangeInclusive<u32> {
    let (start, bytes) = (page.offset(0), u64::from(block_bytes));
    let last = start + len.max(1) as u64 - 1;
    (start / bytes) as u32..=(last / bytes) as u32
}
