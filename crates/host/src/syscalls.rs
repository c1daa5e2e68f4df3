//! The system calls of an application.

use crate::files::{memory_page, pages};
use crate::footprint::{self, CLUSTER_BYTES, MBUF_DATA_BYTES};
use crate::kernel::Kernel;
use crate::meter::{Access, Layer, Meter, Op, Owner, Pool};
use crate::socket::{Deferred, Mode, Storage};
use crate::sockets::{FileContent, FileId, Gone, Receive, SocketId, Sockets, Unread};
use baton_bus::handoff::Control;
use baton_tcp::CloseReason;
use baton_wire::{Payload, Time};

/// System calls at one moment; made by [`Kernel::sockets`].
#[derive(Debug)]
pub struct Syscalls<'a, P, M> {
    pub(crate) kernel: &'a mut Kernel<P>,
    pub(crate) now: Time,
    pub(crate) meter: &'a mut M,
}

/// Where data to send comes from.
#[derive(Clone, Copy)]
enum Source {
    /// Copied from the application.
    Copy,
    /// Pages of a file, from this offset on, not copied.
    File(FileId, u64),
}

impl<P: Payload, M: Meter> Sockets<P> for Syscalls<'_, P, M> {
    fn accept(&mut self) -> Option<SocketId> {
        self.meter.owner(Owner::Host);
        footprint::syscall(self.meter, Op::SyscallAccept, None);
        let id = self.kernel.accept_queue.pop_front()?;
        footprint::accept(self.meter, id.0);
        self.kernel.begin_reporting(id);
        self.kernel.refill_accept_queue(self.now, self.meter);
        Some(id)
    }

    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<P> {
        self.begin(socket, Op::SyscallRead);
        self.kernel.read(self.now, socket, max, self.meter)
    }

    fn unread(&self, socket: SocketId) -> Unread {
        let socket = self.kernel.open_socket(socket);
        Unread {
            len: socket.receive_len,
            ended: socket.is_at_end(),
        }
    }

    fn send(&mut self, socket: SocketId, data: P) -> Result<usize, Gone> {
        self.begin(socket, Op::SyscallWrite);
        self.kernel
            .enqueue(self.now, socket, data, Source::Copy, self.meter)
    }

    fn send_file(
        &mut self,
        socket: SocketId,
        content: FileContent,
        data: P,
    ) -> Result<usize, Gone> {
        let FileContent { file, offset, .. } = content;
        self.begin(socket, Op::SyscallSendfile);
        footprint::file_lookup(self.meter, file.0);
        if self.kernel.files.store.is_some() {
            let (at, len) = ((file, offset), data.len());
            return self
                .kernel
                .send_pages(self.now, socket, at, len, self.meter);
        }
        self.kernel.enqueue(
            self.now,
            socket,
            data,
            Source::File(file, offset),
            self.meter,
        )
    }

    fn set_cork(&mut self, socket: SocketId, cork: bool) {
        self.begin(socket, Op::SyscallOption);
        self.kernel.set_cork(self.now, socket, cork, self.meter);
    }

    fn close(&mut self, socket: SocketId) {
        self.begin(socket, Op::SyscallClose);
        self.kernel.close(self.now, socket, self.meter);
    }

    fn work(&mut self, op: Op, count: u32) {
        self.meter.run(op, count);
    }

    fn touch(&mut self, pool: Pool, slot: u32, offset: u32, len: u32, access: Access) {
        self.meter
            .touch(Layer::Application, pool, slot, offset, len, access);
    }
}

impl<P: Payload, M: Meter> Syscalls<'_, P, M> {
    /// Changes `len` bytes from `offset` on of a file: see [`Kernel::edit`].
    pub fn edit(&mut self, file: FileId, offset: u64, len: u64) {
        self.kernel.edit(file, offset, len, self.meter);
    }

    /// Keeps what is sent of a transient file now for others, too: see [`Kernel::hold`].
    pub fn hold(&mut self, file: FileId) {
        self.kernel.hold(file);
    }

    /// Ends that: see [`Kernel::let_go`].
    pub fn let_go(&mut self, file: FileId) {
        self.kernel.let_go(file, self.meter);
    }

    fn begin(&mut self, socket: SocketId, body: Op) {
        let on_nic = self.kernel.open_socket(socket).handle().is_some();
        self.meter
            .owner(if on_nic { Owner::Nic } else { Owner::Host });
        footprint::syscall(self.meter, body, Some(socket.0));
    }
}

impl<P: Payload> Kernel<P> {
    /// A socket the application may use.
    fn open_socket(&self, id: SocketId) -> &crate::socket::Socket<P> {
        let socket = &self.sockets[id];
        debug_assert!(
            socket.in_use && socket.accepted && !socket.closed,
            "{id:?} is the application's"
        );
        socket
    }

    /// There is room in the accept queue again: connections that waited in the stack get their sockets.
    fn refill_accept_queue<M: Meter>(&mut self, now: Time, m: &mut M) {
        if self.accept_queue.len() + 1 < self.config.backlog as usize {
            return;
        }
        for index in 0..self.listeners.len() {
            self.take_established(now, self.listeners[index], m);
        }
        self.settle(now, m);
    }

    fn read<M: Meter>(&mut self, now: Time, id: SocketId, max: usize, m: &mut M) -> Receive<P> {
        let socket = &mut self.sockets[id];
        let Some(front) = socket.receive.front_mut() else {
            let answer = match socket.mode {
                _ if socket.peer_closed => Receive::EndOfStream,
                Mode::Closed(CloseReason::Normal) => Receive::EndOfStream,
                Mode::Closed(_) => Receive::Gone,
                _ => Receive::WouldBlock,
            };
            self.clear_readable(id);
            return answer;
        };
        let len = front.len().min(max);
        let data = front.slice(0, len);
        if len == front.len() {
            socket.receive.pop_front();
        } else {
            *front = front.slice(len, front.len() - len);
        }
        socket.receive_len -= len;
        self.copy_out(id, len as u32, m);
        self.wake_memory_waiter(m);
        let socket = &self.sockets[id];
        if socket.receive_len == 0 && !socket.is_at_end() {
            self.clear_readable(id);
        }
        self.report_read(now, id, len as u32, m);
        Receive::Data(data)
    }

    /// Copies `len` bytes to the application and frees the buffers they were in.
    fn copy_out<M: Meter>(&mut self, id: SocketId, len: u32, m: &mut M) {
        footprint::receive_drop(m, id.0);
        let mut copied = 0;
        while copied < len {
            let buffer = self.sockets[id]
                .receive_buffers
                .front_mut()
                .expect("unread bytes have buffers");
            let run = buffer.len.min(len - copied);
            footprint::copy_out(m, id.0, buffer.cluster, buffer.offset, run, copied);
            buffer.offset += run;
            buffer.len -= run;
            copied += run;
            if buffer.len == 0 {
                let pair = (buffer.mbuf, buffer.cluster);
                self.sockets[id].receive_buffers.pop_front();
                footprint::free_mbuf(m, Layer::Syscall, pair.0);
                self.buffers.release_pair(pair);
            }
        }
    }

    /// Tells the connection's owner that the application has read: the window may open.
    fn report_read<M: Meter>(&mut self, now: Time, id: SocketId, len: u32, m: &mut M) {
        match self.sockets[id].mode {
            Mode::Host(conn) => {
                footprint::tcp_window(m, conn.0);
                self.stack.consume(conn, len as usize);
                self.settle(now, m);
            }
            Mode::Offloaded(handle) => {
                self.sockets[id].unreported += len;
                self.command_received(id, handle, m);
            }
            Mode::HandingOff(_) | Mode::Restoring(_) => self.sockets[id].unreported += len,
            Mode::Closed(_) => {}
        }
    }

    /// Appends data to the send buffer, as much as fits, and gives it to the connection's owner.
    fn enqueue<M: Meter>(
        &mut self,
        now: Time,
        id: SocketId,
        data: P,
        from: Source,
        m: &mut M,
    ) -> Result<usize, Gone> {
        let socket = &mut self.sockets[id];
        if matches!(socket.mode, Mode::Closed(_)) {
            return Err(Gone);
        }
        let fits = data.len().min(self.send_limit - socket.send_len);
        socket.wants_room = fits < data.len();
        let buffered = match from {
            Source::Copy => self.buffer_copy(id, fits, m),
            Source::File(file, offset) => self.buffer_pages(id, file, offset, fits, m),
        };
        if buffered < fits {
            self.wait_for_memory(id);
        }
        if buffered == 0 {
            return Ok(0);
        }
        footprint::send_append(m, id.0);
        let data = if buffered == data.len() {
            data
        } else {
            data.slice(0, buffered)
        };
        self.pass_on(now, id, data, from, m);
        Ok(buffered)
    }

    /// Gives newly enqueued data to the connection's owner.
    fn pass_on<M: Meter>(&mut self, now: Time, id: SocketId, data: P, from: Source, m: &mut M) {
        let len = data.len();
        let enqueues = match from {
            Source::Copy => 1,
            Source::File(_, offset) => pages(offset, len).count() as u32,
        };
        let socket = &mut self.sockets[id];
        socket.send_len += len;
        socket.requests += 1;
        socket.enqueues += enqueues;
        socket.bytes_sent += len as u64;
        match socket.mode {
            Mode::Host(conn) => {
                let taken = self.stack.write(conn, data);
                debug_assert_eq!(taken, Ok(len), "what the socket takes the stack takes");
                self.consider_send(now, id, enqueues, m);
                self.settle(now, m);
            }
            Mode::HandingOff(_) | Mode::Restoring(_) => {
                socket.deferred.push(Deferred::Send(data));
                self.stats.deferred_requests += 1;
            }
            Mode::Offloaded(handle) => {
                match from {
                    Source::Copy => self.command_send(handle, data, None, m),
                    Source::File(_, offset) => {
                        for (start, run) in pages(offset, len) {
                            self.command_send(handle, data.slice(start, run), None, m);
                        }
                    }
                }
                self.consider_restore(now, id, enqueues, m);
            }
            Mode::Closed(_) => unreachable!("a closed connection takes nothing"),
        }
    }

    /// Copies `len` bytes from the application into fresh buffers; gives how many bytes there was memory for.
    fn buffer_copy<M: Meter>(&mut self, id: SocketId, len: usize, m: &mut M) -> usize {
        let mut copied = 0;
        while copied < len as u32 {
            let left = len as u32 - copied;
            let fresh = if left <= MBUF_DATA_BYTES {
                self.buffers
                    .allocate_mbuf_for_writer()
                    .map(|mbuf| (mbuf, Storage::Internal, left))
            } else {
                let pair = self.buffers.allocate_pair_for_writer();
                pair.map(|(mbuf, cluster)| {
                    (mbuf, Storage::Cluster(cluster), left.min(CLUSTER_BYTES))
                })
            };
            let Some((mbuf, storage, run)) = fresh else {
                break;
            };
            let cluster = match storage {
                Storage::Cluster(cluster) => Some(cluster),
                Storage::Internal | Storage::Page(_) | Storage::File(_) => None,
            };
            footprint::copy_in(m, id.0, mbuf, cluster, copied, run);
            self.sockets[id].hold(mbuf, storage, run, u64::from(copied));
            copied += run;
        }
        copied as usize
    }

    /// Wraps the pages of `len` bytes of a file into fresh mbufs; gives how many bytes there was memory for.
    fn buffer_pages<M: Meter>(
        &mut self,
        id: SocketId,
        file: FileId,
        offset: u64,
        len: usize,
        m: &mut M,
    ) -> usize {
        let mut wrapped = 0;
        for (start, run) in pages(offset, len) {
            let Some(mbuf) = self.buffers.allocate_mbuf_for_writer() else {
                break;
            };
            let page = memory_page(file, offset + start as u64);
            footprint::file_page(m, mbuf, page);
            self.sockets[id].hold(mbuf, Storage::Page(page), run as u32, wrapped as u64);
            wrapped += run;
        }
        wrapped
    }

    fn set_cork<M: Meter>(&mut self, now: Time, id: SocketId, cork: bool, m: &mut M) {
        match self.sockets[id].mode {
            Mode::Host(conn) => {
                self.stack.set_cork(conn, cork);
                self.settle(now, m);
            }
            Mode::Offloaded(handle) => self.command_control(handle, Control::Cork(cork), m),
            Mode::HandingOff(_) | Mode::Restoring(_) => {
                let deferred = &mut self.sockets[id].deferred;
                if let Some(Deferred::Cork(last)) = deferred.last_mut() {
                    *last = cork;
                } else {
                    deferred.push(Deferred::Cork(cork));
                }
                self.stats.deferred_requests += 1;
            }
            Mode::Closed(_) => {}
        }
    }

    fn close<M: Meter>(&mut self, now: Time, id: SocketId, m: &mut M) {
        self.clear_ready(id);
        self.sockets[id].wants_room = false;
        self.drop_kept_pages(id);
        self.drop_received(id);
        self.wake_memory_waiter(m);
        let socket = &mut self.sockets[id];
        match socket.mode {
            Mode::Closed(_) => {
                self.free_socket(id, m);
                return;
            }
            _ => socket.closed = true,
        }
        match socket.mode {
            Mode::Host(conn) => {
                self.stack.close(conn);
                self.settle(now, m);
            }
            Mode::Offloaded(handle) => self.command_control(handle, Control::Close, m),
            Mode::HandingOff(_) | Mode::Restoring(_) => {
                socket.deferred.push(Deferred::Close);
                self.stats.deferred_requests += 1;
            }
            Mode::Closed(_) => unreachable!("freed above"),
        }
    }
}
