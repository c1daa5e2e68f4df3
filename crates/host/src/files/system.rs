//! Files for sockets that are another's: what each socket keeps of the file that it sends, who waits for pages, and which pages stay in
//! memory because a stack or an adapter refers to them.

use super::lent::{Borrower, Lent, LentPage, SendPage};
use super::pages::pages;
use super::reader::{Reader, Stop};
use super::transient::{CachedBlock, Transient};
use super::{DiskRead, FileCacheConfig, FileCacheStats, FilePage, FileStore, Files};
use crate::adapter::OsLayer;
use crate::footprint::{self, PAGE_BYTES};
use crate::layer::AdapterId;
use crate::lists::List;
use crate::memory::{Buffers, PageBuffer};
use crate::meter::{Access, Layer, Meter, Owner, Pool};
use crate::sockets::{FileContent, FileId, Gone, SocketId};
use baton_bus::link::Inline;
use baton_tcp::ConnId;
use baton_wire::{Payload, SeqNr};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// A socket that content of a file is sent to.
pub trait Destination<P> {
    /// Bytes that it may take now, about.
    ///
    /// # Errors
    /// The connection is gone.
    fn room(&mut self) -> Result<usize, Gone>;
    /// It is to become writable when it has room again.
    fn want_room(&mut self);
    /// Sends `data`, with which `content` begins; gives how many bytes were taken.
    ///
    /// # Errors
    /// The connection is gone.
    fn send(&mut self, content: FileContent, data: P) -> Result<usize, Gone>;
    /// Those who refer to what was taken last, each with his sequence number behind it. None: it was copied.
    fn borrowers(&mut self) -> Borrowers;
    /// The adapter by which it goes, and the bytes of a block of its data cache. None: there is no cache.
    fn cache(&self) -> Option<(AdapterId, u32)>;
}

/// Those who refer to the same content.
pub type Borrowers = SmallVec<[(Borrower, SeqNr); 2]>;

/// The files of a host: what is in memory, who sends from it, who waits.
///
/// Order of calls: as for the sockets beneath; then [`FileSystem::poll_disk`], [`FileSystem::poll_evicted`] and
/// [`FileSystem::poll_delivered`] until there is nothing, and [`FileSystem::next_writable`] beside what the sockets have to report.
#[derive(Debug)]
pub struct FileSystem<P> {
    files: Files<P>,
    /// By the socket's number.
    readers: Vec<Reader<P>>,
    lent: Lent,
    wired: WiredPages,
    transient: Transient,
    /// Sockets that found no memory.
    waiting: VecDeque<SocketId>,
    /// Sockets whose page has come.
    writable: VecDeque<SocketId>,
    shrunk: u64,
}

/// A page as it was sent from.
#[derive(Debug)]
struct Run<P> {
    page: FilePage,
    /// What there was of it.
    data: P,
    /// How much of that was to go.
    len: usize,
    /// What it is wrapped into.
    buffer: PageBuffer,
}

/// Pages of memory that are wrapped, and the queue of those that are not: the ones that were let go of last at its end. One that was
/// never sent from is in none, as nobody knows its neighbours.
#[derive(Debug, Default)]
struct WiredPages {
    /// How often each is.
    wires: FxHashMap<u32, u32>,
    queue: List,
}

impl WiredPages {
    /// A page is wrapped: it leaves the queue (`vm_page_wire`).
    fn wire<M: Meter>(&mut self, frame: u32, m: &mut M) {
        let wires = self.wires.entry(frame).or_default();
        *wires += 1;
        if *wires == 1 {
            let touched = |page| footprint::page_link(m, Layer::Syscall, page);
            self.queue.remove(frame, touched);
        }
    }

    /// It is let go of, and is in the queue again if it was for the last time (`vm_page_unwire`).
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
    /// Nothing is in memory, unless all is; content comes from `store`.
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

    /// What the file cache did; `None` where all files are always in memory.
    pub fn cache_stats(&self) -> Option<&FileCacheStats> {
        self.files.cache.as_ref().map(|cache| &cache.stats)
    }

    /// mbufs of pages that are lent.
    pub fn mbufs_lent(&self) -> usize {
        self.lent
            .pages()
            .filter(|page| page.buffer.is_some())
            .count()
    }

    /// Times that a file ended before what was asked for.
    pub fn shrunk(&self) -> u64 {
        self.shrunk
    }

    /// Pages that stay in memory because something is sent from them.
    pub fn wired(&self) -> u32 {
        self.files.cache.as_ref().map_or(0, |cache| cache.wired())
    }

    /// Whether the application sleeps until a read of the disk is over: meanwhile it must not run, nothing else is held up.
    pub fn application_sleeps(&self) -> bool {
        self.files.application_sleeps()
    }

    /// Whether [`FileSystem::next_writable`] has something.
    pub fn has_writable(&self) -> bool {
        !self.writable.is_empty()
    }

    // --- events in ---

    /// The disk is done with a read, and its data is in memory.
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

    /// Somebody is done with something that he referred to: all before a sequence number of which `is_done` says so.
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

    /// A page that was wrapped is let go of.
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

    /// Pages in the send buffer of a connection of the host's stack, oldest first.
    pub fn in_send_buffer(&self, conn: ConnId) -> impl Iterator<Item = SendPage> {
        self.lent.in_send_buffer(conn)
    }

    /// An adapter may be done with something that it referred to.
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

    /// Somebody is no more, or has all that he referred to elsewhere.
    pub fn handle_left<M: Meter>(&mut self, borrower: Borrower, buffers: &mut Buffers, m: &mut M) {
        self.handle_done_with(borrower, |_| true, buffers, m);
    }

    // --- mutators ---

    /// The first `len` bytes of a file are in memory, as if they had been sent just now.
    pub fn preload(&mut self, file: FileId, len: u64) {
        self.files.preload(file, len);
    }

    /// The present revision of a file.
    pub fn revision(&self, file: FileId) -> u32 {
        self.files.revision(file)
    }

    /// At most `most` bytes of a file from `offset` on as they are now, up to its end; nothing if they are not all in memory, or not of one
    /// piece.
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

    /// The application reads a part of a file by its mapping. What is not in memory it has from elsewhere: no page is read for it.
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

    /// `len` bytes from `offset` on of a file are changed. What is being sent goes on as it was.
    pub fn edit(&mut self, file: FileId, offset: u64, len: u64) {
        if len > 0 {
            self.files.edit(file, offset, len);
        }
    }

    /// A file ends at `len` from now on. Of what is beyond, only that is still sent which was given to a socket before, and the rest of the
    /// page of which some was: [`FileSystem::send`] of more answers [`Gone`], and the application must close the connection.
    pub fn truncate(&mut self, file: FileId, len: u64) {
        self.files.truncate(file, len);
    }

    /// What is sent of `file` from now on is not asked for again (a live stream): its blocks leave an adapter's cache as soon as nothing
    /// given to sockets needs them. A connection of the host's stack does until its peer has acknowledged it, a socket on an adapter until
    /// its SENDs have been answered.
    pub fn set_transient(&mut self, file: FileId) {
        self.transient.add(file);
    }

    /// What is sent of a transient file now will be sent to others, too: its blocks stay until [`FileSystem::let_go`].
    pub fn hold(&mut self, file: FileId) {
        self.transient.hold(file);
    }

    /// All that are to have what is in the blocks of a transient file have been given it: a block goes as soon as it is delivered.
    pub fn let_go(&mut self, file: FileId) {
        self.transient.let_go(file);
    }

    /// Sends the first `len` bytes of `content`, as the file is now, as far as there are room, memory and pages; gives how many bytes were
    /// taken. If a page has to be read the socket becomes writable when it is there.
    ///
    /// # Errors
    /// The connection is gone, or the file ends before.
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
            // The next call goes on, or finds that the file ends.
            Stop::Done | Stop::End if taken < len => to.want_room(),
            Stop::NoMemory => self.wait_for_memory(id),
            Stop::Done | Stop::Read | Stop::End => {}
        }
        Ok(taken)
    }

    /// A writer found no memory: it is [woken](FileSystem::wake_waiting) when there is some.
    pub fn wait_for_memory(&mut self, id: SocketId) {
        if !self.waiting.contains(&id) {
            self.waiting.push_back(id);
        }
    }

    /// The application lets go of a socket.
    pub fn close(&mut self, id: SocketId) {
        if let Some(reader) = self.readers.get_mut(id.0 as usize) {
            self.files.drop_kept(reader);
            reader.met_end = None;
        }
        self.waiting.retain(|&other| other != id);
        self.writable.retain(|&other| other != id);
    }

    /// Wakes the writer that has waited longest for memory, if there is some; to be called once for each piece of work.
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

    /// The next read for the disk.
    pub fn poll_disk(&mut self) -> Option<DiskRead> {
        self.files.poll_disk()
    }

    /// The next page that has left memory: its file, and its first byte there. What a NIC's cache holds of it leaves, too.
    pub fn poll_evicted(&mut self) -> Option<(FileId, u64)> {
        let (file, number) = self.files.poll_evicted()?;
        Some((file, u64::from(number) * u64::from(PAGE_BYTES)))
    }

    /// The next block of a transient file that has been delivered: it leaves the adapter's cache, if it is there.
    pub fn poll_delivered(&mut self) -> Option<CachedBlock> {
        self.transient.poll_delivered()
    }

    /// The next socket that waited for a page or for memory and may go on.
    pub fn next_writable(&mut self) -> Option<SocketId> {
        self.writable.pop_front()
    }

    // --- inside ---

    /// Pages of at most `most` bytes that continue each other, as one piece; and why there are no more, if all of `most` is not there.
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

    /// Sends pages as one piece of content; those of which nothing goes are let go of.
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
            // It had at least what is still sent of it.
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
                    // It may have been given also what did not go.
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

    /// Asserts that the pages in memory are those that something is sent from, and others.
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

/// The blocks of a cache in which the first `len` bytes lie of what there is of a page, at least one.
fn blocks_of(page: FilePage, len: usize, block_bytes: u32) -> RangeInclusive<u32> {
    let (start, bytes) = (page.offset(0), u64::from(block_bytes));
    let last = start + len.max(1) as u64 - 1;
    (start / bytes) as u32..=(last / bytes) as u32
}
