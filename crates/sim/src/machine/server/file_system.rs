//! Files that are sent by sockets on adapters and on the host's own stack.

use super::End;
use super::adapter_calls::AdapterCalls;
use super::data::LinkData;
use super::link::SimulatedLink;
use baton_host::adapter::FileChange;
use baton_host::layer::{AdapterId, LayerCalls};
use baton_host::{Borrowers, Destination, FileContent, Gone, NotOffloaded, SocketId, Sockets};
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
    /// The connection of a socket that is in the host's stack, and the sequence number behind all that it was given.
    fn in_stack(&self, socket: SocketId) -> Option<(ConnId, SeqNr)>;
    /// Whether the connection of a socket has been on an adapter.
    fn was_away(&self, socket: SocketId) -> bool;
    /// The connection of a socket that is in the host's stack is answered by another NIC than the one on which it came.
    fn answer_elsewhere(&mut self, socket: SocketId);
    /// Those who refer to what a socket was given last.
    fn borrowers(&mut self, socket: SocketId) -> Borrowers;
    /// A file changes: see [`Calls::file_changed`](baton_host::adapter::Calls::file_changed).
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

    fn in_stack(&self, _id: SocketId) -> Option<(ConnId, SeqNr)> {
        None
    }

    fn was_away(&self, _id: SocketId) -> bool {
        true
    }

    fn answer_elsewhere(&mut self, _id: SocketId) {
        unreachable!("no socket is in a stack");
    }

    fn borrowers(&mut self, id: SocketId) -> Borrowers {
        let (adapter, socket) = self.parts(id);
        self.of(adapter)
            .os()
            .borrowers(AdapterId(adapter as u8), socket)
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

    fn in_stack(&self, socket: SocketId) -> Option<(ConnId, SeqNr)> {
        LayerCalls::in_stack(self, socket)
    }

    fn was_away(&self, socket: SocketId) -> bool {
        self.was_handed_off(socket)
    }

    /// No one NIC sees both directions: it is not handed off.
    fn answer_elsewhere(&mut self, socket: SocketId) {
        self.stay(socket, NotOffloaded::Affinity);
    }

    fn borrowers(&mut self, socket: SocketId) -> Borrowers {
        LayerCalls::borrowers(self, socket)
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
    /// The adapter by which it is answered.
    pub(super) adapter: Option<u8>,
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

    fn borrowers(&mut self) -> Borrowers {
        self.sockets.borrowers(self.socket)
    }

    fn cache(&self) -> Option<(AdapterId, u32)> {
        let adapter = self.adapter?;
        let os = &self.sockets.adapters()[usize::from(adapter)].os;
        let cache = &os.config().nic_cache;
        cache
            .enabled
            .then_some((AdapterId(adapter), cache.block_bytes))
    }
}
