//! Sending of files by sockets on adapters and on the host's own stack.

use super::End;
use super::adapter_calls::AdapterCalls;
use super::data::LinkData;
use super::link::SimulatedLink;
use baton_host::adapter::FileChange;
use baton_host::layer::{AdapterId, LayerCalls};
use baton_host::{Borrowers, FileContent, Gone, NotOffloaded, SocketId, Sockets};
use baton_kernel::Destination;
use baton_tcp::ConnId;
use baton_wire::{SeqNr, Symbolic};

/// Sockets to which files are sent, with the operations that the file system needs.
pub(super) trait FileSockets: Sockets<LinkData> {
    /// Returns approximately how many bytes a socket accepts now.
    ///
    /// # Errors
    /// The connection no longer exists or is closed for writing.
    fn send_room(&mut self, socket: SocketId) -> Result<usize, Gone>;
    /// Requests that a socket becomes writable when it has buffer space.
    fn want_room(&mut self, socket: SocketId);
    /// Returns the connection of a socket that is in the host's stack, and the sequence number after all data given to the socket.
    fn in_stack(&self, socket: SocketId) -> Option<(ConnId, SeqNr)>;
    /// Returns whether the connection of a socket has been on an adapter.
    fn was_away(&self, socket: SocketId) -> bool;
    /// Notes that another NIC than the NIC of arrival answers the connection of a socket in the host's stack.
    fn answer_elsewhere(&mut self, socket: SocketId);
    /// Returns the borrowers that refer to the data that a socket was given last.
    fn borrowers(&mut self, socket: SocketId) -> Borrowers;
    /// Handles a change of a file: see [`Calls::file_changed`](baton_host::adapter::Calls::file_changed).
    fn file_changed(
        &mut self,
        change: &FileChange,
        block: &mut dyn FnMut(u64, u32) -> Option<LinkData>,
    );
    /// Returns the adapters.
    fn adapters(&self) -> &[End];
    /// Returns the adapter of the connection of a socket.
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
        unreachable!("this host has no stack of its own");
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

    /// Excludes the connection from handoffs, because no single NIC sees both directions.
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

/// A socket as the destination of pages of files.
pub(super) struct ToSocket<'a> {
    pub(super) sockets: &'a mut dyn FileSockets,
    pub(super) socket: SocketId,
    /// The adapter that answers the socket's connection.
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
