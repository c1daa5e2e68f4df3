//! Sockets of a host without an adapter, and the cost of its kernel, FreeBSD, for them.

use super::super::super::host::Meter;
use baton_bus::link::MemoryHost;
use baton_host::layer::LayerCalls;
use baton_host::{FileContent, Gone, Receive, SocketId, Sockets, Unread, pages};
use baton_kernel::footprint;
use baton_sim::KernelSockets;
use baton_wire::Symbolic;

/// First buffer that refers to pages of files, and the number of such buffers. They follow the buffers of the drivers.
const FIRST_BUFFER: u32 = 1 << 18;
const BUFFERS: u32 = 4_096;

/// Number of pages of memory, 2 GB.
const PAGES: u32 = 1 << 19;

/// Bytes of a page.
const PAGE: u64 = 4_096;

/// The sockets of a host. All files are in memory.
pub(super) struct InMemory<'a, 'm> {
    pub(super) calls: LayerCalls<'a, Symbolic, MemoryHost<Symbolic>>,
    pub(super) meter: &'a mut Meter<'m>,
}

impl InMemory<'_, '_> {
    fn connection(&self, socket: SocketId) -> Option<u32> {
        self.calls
            .in_stack(socket)
            .map(|(connection, _)| connection.0)
    }
}

impl<'m> KernelSockets for InMemory<'_, 'm> {
    type Data = Symbolic;
    type Meter = Meter<'m>;

    fn parts(&mut self) -> (&mut dyn Sockets<Symbolic>, &mut Meter<'m>) {
        (&mut self.calls, self.meter)
    }

    fn unread(&self, socket: SocketId) -> Unread {
        self.calls.unread(socket)
    }

    fn accept(&mut self) -> Option<SocketId> {
        let socket = self.calls.accept()?;
        if let Some(connection) = self.connection(socket) {
            footprint::tcp_open(self.meter, connection, connection);
        }
        Some(socket)
    }

    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<Symbolic> {
        let received = self.calls.receive(socket, max);
        if let Receive::Data(data) = &received {
            self.copy_out(socket, data.len);
        }
        received
    }

    fn send(&mut self, socket: SocketId, data: Symbolic) -> Result<usize, Gone> {
        let sent = self.calls.send(socket, data)?;
        self.copy_in(socket, sent as u32);
        Ok(sent)
    }

    /// Sends without a copy: looks up pages and refers to them.
    fn send_file(
        &mut self,
        socket: SocketId,
        content: FileContent,
        data: Symbolic,
    ) -> Result<usize, Gone> {
        let sent = self.calls.send_file(socket, content, data)?;
        for (start, _) in pages(content.offset, sent) {
            let number = (content.offset + start as u64) / PAGE;
            // Scatter a file's pages over memory.
            let page = content.file.0.wrapping_mul(0x9e37_79b1) ^ (number as u32);
            let buffer = FIRST_BUFFER + page % BUFFERS;
            footprint::page_bucket(self.meter, content.file.0, number as u32);
            footprint::file_page(self.meter, (buffer, buffer), page % PAGES);
        }
        Ok(sent)
    }

    fn let_go(&mut self, socket: SocketId) {
        footprint::socket_free(self.meter, socket.0);
        if let Some(connection) = self.connection(socket) {
            footprint::tcp_close(self.meter);
            footprint::tcp_free(self.meter, connection, connection);
        }
    }
}
