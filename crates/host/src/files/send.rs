//! `sendfile` of files that the kernel knows: page by page, as far as there are room, memory and pages.

use super::cache::Wanted;
use super::{FilePage, MetEnd, OpenPage};
use crate::footprint::{self, PAGE_BYTES};
use crate::kernel::Kernel;
use crate::meter::Meter;
use crate::socket::{Deferred, Mode, Storage};
use crate::sockets::{FileId, Gone, SocketId};
use crate::stats::DropReason;
use crate::syscalls::memory_page;
use baton_tcp::WriteFlags;
use baton_wire::{Payload, Time};

/// Why no more of a file goes into the send buffer.
enum Stop {
    /// All that was asked for went, or all that there was room for.
    Done,
    /// No mbufs, or no memory for the page.
    NoMemory,
    /// The next page is being read.
    Read,
    /// The file ends here.
    End,
}

impl<P: Payload> Kernel<P> {
    /// Puts `len` bytes of a file, as it is now, into the send buffer, as far as they go.
    pub(crate) fn send_pages<M: Meter>(
        &mut self,
        now: Time,
        id: SocketId,
        (file, offset): (FileId, u64),
        len: usize,
        m: &mut M,
    ) -> Result<usize, Gone> {
        if matches!(self.sockets[id].mode, Mode::Closed(_)) {
            return Err(Gone);
        }
        self.choose_nic(id, file, offset, len as u64, m);
        let fits = len.min(self.send_limit - self.sockets[id].send_len);
        let mut pieces = std::mem::take(&mut self.pieces);
        let (taken, stop) = self.wrap_pages(id, file, offset, fits, &mut pieces, m);
        if fits > 0 {
            self.release_held_page(id);
        }
        self.sockets[id].wants_room = taken < len;
        match stop {
            Stop::Done => {}
            Stop::NoMemory => self.wait_for_memory(id),
            Stop::Read => self.sockets[id].wants_room = false,
            Stop::End => {
                if taken == 0 {
                    self.sockets[id].wants_room = false;
                    self.pieces = pieces;
                    self.stats.drop(DropReason::FileShrunk);
                    return Err(Gone);
                }
            }
        }
        if taken > 0 {
            footprint::send_append(m, id.0);
            self.pass_on_pages(now, id, taken, &mut pieces, m);
        }
        self.pieces = pieces;
        Ok(taken)
    }

    /// Wraps pages into mbufs; gives how many bytes were, and why no more.
    fn wrap_pages<M: Meter>(
        &mut self,
        id: SocketId,
        file: FileId,
        offset: u64,
        fits: usize,
        pieces: &mut Vec<P>,
        m: &mut M,
    ) -> (usize, Stop) {
        let mut taken = 0;
        while taken < fits {
            let at = offset + taken as u64;
            let Some(mbuf) = self.buffers.allocate_mbuf_for_writer() else {
                return (taken, Stop::NoMemory);
            };
            let (page, data) = match self.next_run(id, file, at, offset + fits as u64, m) {
                Ok(run) => run,
                Err(stop) => {
                    self.buffers.mbufs.release(mbuf);
                    return (taken, stop);
                }
            };
            footprint::file_page(m, mbuf, page.frame);
            let run = data.len().min(fits - taken);
            let rest = data.len() - run;
            if rest > 0 {
                // The rest of the page stays with the socket, which keeps the page wired.
                self.wire(page.frame);
                let left = FilePage {
                    start: page.start + run as u16,
                    ..page
                };
                self.sockets[id].open_page = Some(OpenPage {
                    page: left,
                    data: data.slice(run, rest),
                });
            }
            self.refer_to_blocks(id, page, run as u32);
            let socket = &mut self.sockets[id];
            socket.met_end = MetEnd::after(page, run).filter(|_| rest == 0);
            socket.hold(mbuf, Storage::File(page), run as u32, taken as u64);
            pieces.push(if rest > 0 { data.slice(0, run) } else { data });
            taken += run;
        }
        (taken, Stop::Done)
    }

    /// The next run of a file for a socket, to the end of its page: what was left of the page that its last `sendfile` began, or the
    /// page as it is now. The page is wired.
    fn next_run<M: Meter>(
        &mut self,
        id: SocketId,
        file: FileId,
        at: u64,
        asked: u64,
        m: &mut M,
    ) -> Result<(FilePage, P), Stop> {
        if let Some(open) = self.sockets[id].open_page.take() {
            if open.page.file == file && open.page.offset(0) == at {
                return Ok((open.page, open.data));
            }
            self.unwire(open.page.frame);
        }
        if let Some(end) = self.sockets[id].met_end
            && (end.file, end.offset) == (file, at)
            && self.files.rewritten_since(file, end.revision)
        {
            return Err(Stop::End);
        }
        let Some(store) = &mut self.files.store else {
            return Err(Stop::End);
        };
        let file_len = store.len(file, asked);
        if at >= file_len {
            return Err(Stop::End);
        }
        let page_bytes = u64::from(PAGE_BYTES);
        let number = (at / page_bytes) as u32;
        let frame = match &mut self.files.cache {
            None => memory_page(file, at),
            Some(cache) => {
                footprint::file_page_lookup(m, file.0 ^ number);
                match cache.use_and_wire(file, number) {
                    Some(frame) => frame,
                    None if cache.find(file, number).is_some() => {
                        cache.stats.no_page += 1;
                        return Err(Stop::NoMemory);
                    }
                    None => {
                        let pages = file_len.div_ceil(page_bytes) as u32;
                        return Err(self.want_page(id, file, number, pages, m));
                    }
                }
            }
        };
        let end = ((u64::from(number) + 1) * page_bytes).min(file_len);
        let data = store.read(file, at, (end - at) as u32);
        let page = FilePage {
            frame,
            file,
            number,
            start: (at % page_bytes) as u16,
            revision: self.files.revision(file),
        };
        Ok((page, data))
    }

    /// A page is not in memory: it is read, and the socket, or the whole process, waits for it.
    fn want_page<M: Meter>(
        &mut self,
        id: SocketId,
        file: FileId,
        number: u32,
        pages: u32,
        m: &mut M,
    ) -> Stop {
        let Some(cache) = &mut self.files.cache else {
            return Stop::End;
        };
        let before = cache.stats.reads;
        let wanted = cache.want(id, file, number, pages);
        if cache.stats.reads > before {
            footprint::disk_read(m);
        }
        match wanted {
            Wanted::Later => Stop::NoMemory,
            Wanted::Read(token) => {
                self.sockets[id].waits_for_read = Some(token);
                if self.config.file_cache.blocking {
                    self.sleeps_for = Some(token);
                }
                Stop::Read
            }
        }
    }

    /// Gives newly enqueued pages to the connection's owner.
    fn pass_on_pages<M: Meter>(
        &mut self,
        now: Time,
        id: SocketId,
        len: usize,
        pieces: &mut Vec<P>,
        m: &mut M,
    ) {
        let enqueues = pieces.len() as u32;
        let socket = &mut self.sockets[id];
        let position = socket.bytes_sent;
        socket.send_len += len;
        socket.requests += 1;
        socket.enqueues += enqueues;
        socket.bytes_sent += len as u64;
        match socket.mode {
            Mode::Host(conn) => {
                let mut left = pieces.len();
                for piece in pieces.drain(..) {
                    left -= 1;
                    let flags = WriteFlags {
                        more: left > 0,
                        ..WriteFlags::default()
                    };
                    let len = piece.len();
                    let taken = self.stack.write_with(conn, piece, flags);
                    debug_assert_eq!(taken, Ok(len), "what the socket takes the stack takes");
                }
                self.consider_send(now, id, enqueues, m);
                self.settle(now, m);
            }
            Mode::HandingOff(_) | Mode::Restoring(_) => {
                self.stats.deferred_requests += 1;
                socket.deferred.extend(pieces.drain(..).map(Deferred::Send));
            }
            Mode::Offloaded(handle) => {
                let mut position = position;
                for piece in pieces.drain(..) {
                    let len = piece.len() as u64;
                    self.send_offloaded(id, handle, position, piece, m);
                    position += len;
                }
                self.consider_restore(now, id, enqueues, m);
            }
            Mode::Closed(_) => unreachable!("a closed connection takes nothing"),
        }
    }

    pub(crate) fn wire(&mut self, frame: u32) {
        if let Some(cache) = &mut self.files.cache {
            cache.wire(frame);
        }
    }

    pub(crate) fn unwire(&mut self, frame: u32) {
        if let Some(cache) = &mut self.files.cache {
            cache.unwire(frame);
        }
    }

    /// The page that the socket's writer waited for is used, or not wanted any more.
    fn release_held_page(&mut self, id: SocketId) {
        if let Some(frame) = self.sockets[id].held_page.take() {
            self.unwire(frame);
        }
    }

    /// The socket will not send from the pages that are kept for it.
    pub(crate) fn drop_kept_pages(&mut self, id: SocketId) {
        if let Some(open) = self.sockets[id].open_page.take() {
            self.unwire(open.page.frame);
        }
        self.release_held_page(id);
        self.sockets[id].waits_for_read = None;
    }
}
