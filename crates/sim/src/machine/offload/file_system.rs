//! Files that are sent by sockets on the adapter and on the host's own stack.

use super::data::LinkData;
use super::link::SimulatedLink;
use baton_host::layer::LayerCalls;
use baton_host::offload::{Calls, FileChange, OsLayer};
use baton_host::{Destination, FileContent, Gone, SocketId, Sockets};
use baton_tcp::ConnId;
use baton_wire::{SeqNr, Symbolic};

/// Sockets that files are sent to: how much they would take, and what there is of files beneath them.
pub(super) trait FileSockets: Sockets<LinkData> {
    /// Bytes that a socket would take now, about.
    ///
    /// # Errors
    /// The connection is gone or closed for writing.
    fn send_room(&mut self, socket: SocketId) -> Result<usize, Gone>;
    /// A socket is to become writable when it has room.
    fn want_room(&mut self, socket: SocketId);
    /// The connection of the host's stack that refers to what a socket has been given, and the sequence number behind all of that.
    fn sent_by_stack(&self, socket: SocketId) -> Option<(ConnId, SeqNr)>;
    /// A file changes: see [`Calls::file_changed`].
    fn file_changed(
        &mut self,
        change: &FileChange,
        block: &mut dyn FnMut(u64, u32) -> Option<LinkData>,
    );
    /// The adapter's sockets, if there is an adapter.
    fn adapter(&mut self) -> Option<&mut OsLayer<LinkData>>;
}

impl FileSockets for Calls<'_, LinkData, SimulatedLink> {
    fn send_room(&mut self, socket: SocketId) -> Result<usize, Gone> {
        Calls::send_room(self, socket)
    }

    fn want_room(&mut self, socket: SocketId) {
        Calls::want_room(self, socket);
    }

    fn sent_by_stack(&self, _socket: SocketId) -> Option<(ConnId, SeqNr)> {
        None
    }

    fn file_changed(
        &mut self,
        change: &FileChange,
        block: &mut dyn FnMut(u64, u32) -> Option<LinkData>,
    ) {
        Calls::file_changed(self, change, block);
    }

    fn adapter(&mut self) -> Option<&mut OsLayer<LinkData>> {
        Some(self.os())
    }
}

impl FileSockets for LayerCalls<'_, LinkData, SimulatedLink> {
    fn send_room(&mut self, socket: SocketId) -> Result<usize, Gone> {
        LayerCalls::send_room(self, socket)
    }

    fn want_room(&mut self, socket: SocketId) {
        LayerCalls::want_room(self, socket);
    }

    fn sent_by_stack(&self, socket: SocketId) -> Option<(ConnId, SeqNr)> {
        LayerCalls::sent_by_stack(self, socket)
    }

    fn file_changed(
        &mut self,
        change: &FileChange,
        block: &mut dyn FnMut(u64, u32) -> Option<LinkData>,
    ) {
        LayerCalls::file_changed(self, change, block);
    }

    fn adapter(&mut self) -> Option<&mut OsLayer<LinkData>> {
        self.os()
    }
}

/// One of these sockets, as pages of files are sent to it.
pub(super) struct ToSocket<'a> {
    pub(super) sockets: &'a mut dyn FileSockets,
    pub(super) socket: SocketId,
}

impl Destination<Symbolic> for ToSocket<'_> {
    fn room(&mut self) -> Result<usize, Gone> {
        self.sockets.send_room(self.socket)
    }

    fn want_room(&mut self) {
        self.sockets.want_room(self.socket);
    }

    fn send(&mut self, content: FileContent, data: Symbolic) -> Result<usize, Gone> {
        let data = LinkData::Content(data);
        self.sockets.send_file(self.socket, content, data)
    }

    fn refers(&self) -> Option<(ConnId, SeqNr)> {
        self.sockets.sent_by_stack(self.socket)
    }
}
