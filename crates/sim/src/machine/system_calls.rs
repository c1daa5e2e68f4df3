//! Socket calls of an application, charged as system calls.

use baton_apps::Costs;
use baton_host::{FileContent, Gone, Receive, SocketId, Sockets, Unread};
use baton_kernel::footprint::{self, APP_HALF_BYTES, APP_RECEIVE_OFFSET, APP_SEND_OFFSET};
use baton_kernel::{Access, Layer, Meter, Op, Pool};
use baton_wire::Symbolic;

/// Sockets of a kernel, with the memory and files behind them.
pub trait KernelSockets {
    /// Payload of the sockets.
    type Data;
    /// The meter of the host.
    type Meter: Meter;

    /// Returns the sockets and the meter.
    fn parts(&mut self) -> (&mut dyn Sockets<Self::Data>, &mut Self::Meter);

    /// See [`Sockets::unread`].
    fn unread(&self, socket: SocketId) -> Unread;

    /// Accepts a connection.
    fn accept(&mut self) -> Option<SocketId> {
        self.parts().0.accept()
    }

    /// Called after a connection was accepted and its socket created.
    fn accepted(&mut self, _socket: SocketId) {}

    /// Takes received data, and copies it to the application.
    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<Symbolic>;

    /// Copies data from the application, and sends it.
    ///
    /// # Errors
    /// The connection no longer exists or is closed for writing.
    fn send(&mut self, socket: SocketId, data: Symbolic) -> Result<usize, Gone>;

    /// Sends content of a file from its pages.
    ///
    /// # Errors
    /// The connection no longer exists or is closed for writing.
    fn send_file(
        &mut self,
        socket: SocketId,
        content: FileContent,
        data: Symbolic,
    ) -> Result<usize, Gone>;

    /// Frees everything that belongs to a socket that the application closes.
    fn let_go(&mut self, socket: SocketId);

    /// Called when the application reads a part of a file that is mapped into its memory.
    fn read_file(&mut self, _content: &FileContent) {}

    /// Charges for a copy of data out of a socket whose buffers are not those of the host's own memory.
    fn copy_out(&mut self, socket: SocketId, bytes: u32) {
        footprint::receive_drop(self.parts().1, socket.0);
        self.touch_application(socket, APP_RECEIVE_OFFSET, bytes, Access::Write);
    }

    /// Charges for a copy of data into a socket with buffers outside the host's own memory.
    fn copy_in(&mut self, socket: SocketId, bytes: u32) {
        footprint::send_append(self.parts().1, socket.0);
        self.touch_application(socket, APP_SEND_OFFSET, bytes, Access::Read);
    }

    /// Charges the application's side of a copy.
    fn touch_application(&mut self, socket: SocketId, offset: u32, bytes: u32, access: Access) {
        let (layer, pool) = (Layer::Syscall, Pool::AppBuffer);
        let bytes = bytes.min(APP_HALF_BYTES);
        let (_, meter) = self.parts();
        meter.touch(layer, pool, socket.0, offset, bytes, access);
    }
}

/// System calls on the sockets of a kernel.
pub struct SystemCalls<K>(pub K);

impl<K: KernelSockets> SystemCalls<K> {
    fn begin(&mut self, socket: SocketId, body: Op) {
        footprint::syscall(self.0.parts().1, body, Some(socket.0));
    }
}

impl<K: KernelSockets> Sockets<Symbolic> for SystemCalls<K> {
    fn accept(&mut self) -> Option<SocketId> {
        footprint::syscall(self.0.parts().1, Op::SyscallAccept, None);
        let id = self.0.accept()?;
        let (_, meter) = self.0.parts();
        footprint::socket_create(meter, id.0);
        footprint::accept(meter, id.0);
        self.0.accepted(id);
        Some(id)
    }

    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<Symbolic> {
        self.begin(socket, Op::SyscallRead);
        self.0.receive(socket, max)
    }

    fn unread(&self, socket: SocketId) -> Unread {
        self.0.unread(socket)
    }

    fn send(&mut self, socket: SocketId, data: Symbolic) -> Result<usize, Gone> {
        self.begin(socket, Op::SyscallWrite);
        self.0.send(socket, data)
    }

    fn send_file(
        &mut self,
        socket: SocketId,
        content: FileContent,
        data: Symbolic,
    ) -> Result<usize, Gone> {
        self.begin(socket, Op::SyscallSendfile);
        footprint::file_lookup(self.0.parts().1, content.file.0);
        let sent = self.0.send_file(socket, content, data)?;
        if sent > 0 {
            footprint::send_append(self.0.parts().1, socket.0);
        }
        Ok(sent)
    }

    fn set_cork(&mut self, socket: SocketId, cork: bool) {
        self.begin(socket, Op::SyscallOption);
        self.0.parts().0.set_cork(socket, cork);
    }

    fn shutdown(&mut self, socket: SocketId) -> bool {
        self.begin(socket, Op::SyscallClose);
        self.0.parts().0.shutdown(socket)
    }

    fn close(&mut self, socket: SocketId) {
        self.begin(socket, Op::SyscallClose);
        self.0.let_go(socket);
        self.0.parts().0.close(socket);
    }

    fn abort(&mut self, socket: SocketId) {
        self.begin(socket, Op::SyscallClose);
        self.0.let_go(socket);
        self.0.parts().0.abort(socket);
    }
}

impl<K: KernelSockets> Costs for SystemCalls<K> {
    fn work(&mut self, op: Op, count: u32) {
        self.0.parts().1.run(op, count);
    }

    fn read_file(&mut self, content: &FileContent) {
        self.0.read_file(content);
    }

    fn read(&mut self, socket: SocketId, content: &FileContent) {
        let len = content.len as u32;
        self.begin(socket, Op::SyscallRead);
        footprint::file_lookup(self.0.parts().1, content.file.0);
        self.0.read_file(content);
        self.0.parts().1.run(Op::CopyKilobyte, len.div_ceil(1024));
        (self.0).touch_application(socket, APP_SEND_OFFSET, len, Access::Write);
    }

    fn touch(&mut self, pool: Pool, slot: u32, offset: u32, len: u32, access: Access) {
        let layer = Layer::Application;
        let (_, meter) = self.0.parts();
        meter.touch(layer, pool, slot, offset, len, access);
    }
}
