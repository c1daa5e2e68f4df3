//! `sendfile` of files that the kernel knows: page by page, as far as there are room, memory and pages.

use super::Stop;
use crate::footprint;
use crate::kernel::Kernel;
use crate::meter::Meter;
use crate::socket::{Deferred, Mode, Storage};
use crate::sockets::{FileId, Gone, SocketId};
use crate::stats::DropReason;
use baton_tcp::WriteFlags;
use baton_wire::{Payload, Time};

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
            self.files.release_held(&mut self.sockets[id].reader);
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
            let reader = (&mut self.sockets[id].reader, id);
            let asked = offset + fits as u64;
            let (page, data) = match self.files.next_run(reader, file, at, asked, m) {
                Ok(run) => run,
                Err(stop) => {
                    self.buffers.mbufs.release(mbuf);
                    return (taken, stop);
                }
            };
            footprint::file_page(m, mbuf, page.frame);
            let run = data.len().min(fits - taken);
            let reader = &mut self.sockets[id].reader;
            self.files.sent_of(reader, page, data.clone(), run);
            self.refer_to_blocks(id, page, run as u32);
            self.sockets[id].hold(mbuf, Storage::File(page), run as u32, taken as u64);
            let is_all = run == data.len();
            pieces.push(if is_all { data } else { data.slice(0, run) });
            taken += run;
        }
        (taken, Stop::Done)
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

    /// The socket will not send from the pages that are kept for it.
    pub(crate) fn drop_kept_pages(&mut self, id: SocketId) {
        self.files.drop_kept(&mut self.sockets[id].reader);
    }
}
