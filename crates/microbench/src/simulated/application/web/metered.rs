//! Socket calls that cost what FreeBSD's do.

use super::super::super::host::Meter;
use baton_apps::Costs;
use baton_bus::link::MemoryHost;
use baton_host::layer::LayerCalls;
use baton_host::{FileContent, Gone, Receive, SocketId, Sockets, Unread, pages};
use baton_kernel::footprint::{self, APP_HALF_BYTES, APP_RECEIVE_OFFSET, APP_SEND_OFFSET};
use baton_kernel::{Access, Layer, Meter as _, Op, Pool};
use baton_wire::Symbolic;

/// First buffer that refers to pages of files, and the number of such buffers. They follow the buffers of the drivers.
const FIRST_BUFFER: u32 = 1 << 18;
const BUFFERS: u32 = 4_096;

/// Number of pages of memory, 2 GB.
const PAGES: u32 = 1 << 19;

/// Bytes of a page.
const PAGE: u64 = 4_096;

/// Socket calls of a host without an adapter, charged as system calls.
pub(super) struct Metered<'a, 'm> {
    calls: LayerCalls<'a, Symbolic, MemoryHost<Symbolic>>,
    meter: &'a mut Meter<'m>,
}

impl<'a, 'm> Metered<'a, 'm> {
    pub(super) fn new(
        calls: LayerCalls<'a, Symbolic, MemoryHost<Symbolic>>,
        meter: &'a mut Meter<'m>,
    ) -> Self {
        Self { calls, meter }
    }

    fn begin(&mut self, socket: SocketId, body: Op) {
        footprint::syscall(self.meter, body, Some(socket.0));
    }

    fn connection(&self, socket: SocketId) -> Option<u32> {
        self.calls
            .in_stack(socket)
            .map(|(connection, _)| connection.0)
    }

    /// Charges for the release of a connection and its socket.
    fn let_go(&mut self, socket: SocketId) {
        footprint::socket_free(self.meter, socket.0);
        if let Some(connection) = self.connection(socket) {
            footprint::tcp_close(self.meter);
            footprint::tcp_free(self.meter, connection, connection);
        }
    }

    fn copy(&mut self, socket: SocketId, offset: u32, bytes: u32, access: Access) {
        let bytes = bytes.min(APP_HALF_BYTES);
        let (layer, pool) = (Layer::Syscall, Pool::AppBuffer);
        self.meter
            .touch(layer, pool, socket.0, offset, bytes, access);
    }
}

impl Sockets<Symbolic> for Metered<'_, '_> {
    fn accept(&mut self) -> Option<SocketId> {
        footprint::syscall(self.meter, Op::SyscallAccept, None);
        let socket = self.calls.accept()?;
        if let Some(connection) = self.connection(socket) {
            footprint::tcp_open(self.meter, connection, connection);
        }
        footprint::socket_create(self.meter, socket.0);
        footprint::accept(self.meter, socket.0);
        Some(socket)
    }

    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<Symbolic> {
        self.begin(socket, Op::SyscallRead);
        let received = self.calls.receive(socket, max);
        if let Receive::Data(data) = &received {
            footprint::receive_drop(self.meter, socket.0);
            self.copy(socket, APP_RECEIVE_OFFSET, data.len, Access::Write);
        }
        received
    }

    fn unread(&self, socket: SocketId) -> Unread {
        self.calls.unread(socket)
    }

    fn send(&mut self, socket: SocketId, data: Symbolic) -> Result<usize, Gone> {
        self.begin(socket, Op::SyscallWrite);
        let sent = self.calls.send(socket, data)?;
        footprint::send_append(self.meter, socket.0);
        self.copy(socket, APP_SEND_OFFSET, sent as u32, Access::Read);
        Ok(sent)
    }

    /// Sends without a copy: looks up pages and refers to them.
    fn send_file(
        &mut self,
        socket: SocketId,
        content: FileContent,
        data: Symbolic,
    ) -> Result<usize, Gone> {
        self.begin(socket, Op::SyscallSendfile);
        footprint::file_lookup(self.meter, content.file.0);
        let sent = self.calls.send_file(socket, content, data)?;
        for (start, _) in pages(content.offset, sent) {
            let number = (content.offset + start as u64) / PAGE;
            // Scatter a file's pages over memory.
            let page = content.file.0.wrapping_mul(0x9e37_79b1) ^ (number as u32);
            let buffer = FIRST_BUFFER + page % BUFFERS;
            footprint::page_bucket(self.meter, content.file.0, number as u32);
            footprint::file_page(self.meter, (buffer, buffer), page % PAGES);
        }
        if sent > 0 {
            footprint::send_append(self.meter, socket.0);
        }
        Ok(sent)
    }

    fn set_cork(&mut self, socket: SocketId, cork: bool) {
        self.begin(socket, Op::SyscallOption);
        self.calls.set_cork(socket, cork);
    }

    fn shutdown(&mut self, socket: SocketId) -> bool {
        self.begin(socket, Op::SyscallClose);
        self.calls.shutdown(socket)
    }

    fn close(&mut self, socket: SocketId) {
        self.begin(socket, Op::SyscallClose);
        self.let_go(socket);
        self.calls.close(socket);
    }

    fn abort(&mut self, socket: SocketId) {
        self.begin(socket, Op::SyscallClose);
        self.let_go(socket);
        self.calls.abort(socket);
    }
}

impl Costs for Metered<'_, '_> {
    fn work(&mut self, op: Op, count: u32) {
        self.meter.run(op, count);
    }

    fn touch(&mut self, pool: Pool, slot: u32, offset: u32, len: u32, access: Access) {
        let layer = Layer::Application;
        self.meter.touch(layer, pool, slot, offset, len, access);
    }
}
