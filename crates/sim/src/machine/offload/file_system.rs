//! Files that are sent by sockets on adapters and on the host's own stack.

use super::End;
use super::adapter_calls::AdapterCalls;
use super::data::LinkData;
use super::link::SimulatedLink;
use baton_host::layer::LayerCalls;
use baton_host::offload::FileChange;
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
    /// A file changes: see [`Calls::file_changed`](baton_host::offload::Calls::file_changed).
    fn file_changed(
        &mut self,
        change: &FileChange,
        block: &mut dyn FnMut(u64, u32) -> Option<LinkData>,
    );
    /// The adapters.
    fn adapters(&self) -> &[End];
    /// The adapter of the connection of a socket.
    fn adapter_of(&self, socket: SocketId) -> Option<u8>;
}

impl FileSockets for AdapterCalls<'_> {
    fn send_room(&mut self, id: SocketId) -> Result<usize, Gone> {
        let (calls, socket) = self.at(id);
        calls.send_room(socket)
    }

    fn want_room(&mut self, id: SocketId) {
        let (mut calls, socket) = self.at(id);
        calls.want_room(socket);
    }

    fn sent_by_stack(&self, _socket: SocketId) -> Option<(ConnId, SeqNr)> {
        None
    }

    fn file_changed(
        &mut self,
        change: &FileChange,
        block: &mut dyn FnMut(u64, u32) -> Option<LinkData>,
    ) {
        for adapter in 0..self.adapters().len() {
            self.of(adapter).file_changed(change, &mut *block);
        }
    }

    fn adapters(&self) -> &[End] {
        AdapterCalls::adapters(self)
    }

    fn adapter_of(&self, socket: SocketId) -> Option<u8> {
        let (adapter, _) = self.parts(socket);
        Some(adapter as u8)
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

    fn adapters(&self) -> &[End] {
        LayerCalls::adapters(self)
    }

    fn adapter_of(&self, socket: SocketId) -> Option<u8> {
        LayerCalls::adapter_of(self, socket).map(|adapter| adapter.0)
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
        let data = LinkData::File(data, content.revision);
        self.sockets.send_file(self.socket, content, data)
    }

    fn refers(&self) -> Option<(ConnId, SeqNr)> {
        self.sockets.sent_by_stack(self.socket)
    }
}
