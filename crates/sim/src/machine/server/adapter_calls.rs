//! Socket calls of an application whose sockets are on several adapters, each of which has its own socket numbers.

use super::End;
use super::data::LinkData;
use super::link::SimulatedLink;
use baton_host::adapter::Calls;
use baton_host::{FileContent, FromCache, Gone, Ready, Receive, SocketId, Sockets, Unread};
use baton_wire::Time;

/// Returns the application's number of an adapter's socket. The adapters' numbers are interleaved, so that numbers stay small.
pub(super) fn number(adapters: usize, adapter: usize, socket: u32) -> u32 {
    socket * adapters as u32 + adapter as u32
}

/// Converts a readiness event of an adapter's socket to the application's numbers.
pub(super) fn numbered(adapters: usize, adapter: usize, ready: Ready) -> Ready {
    let id = |socket: SocketId| SocketId(number(adapters, adapter, socket.0));
    match ready {
        Ready::Acceptable => Ready::Acceptable,
        Ready::Readable(socket) => Ready::Readable(id(socket)),
        Ready::Writable(socket) => Ready::Writable(id(socket)),
    }
}

/// Socket calls on all adapters.
pub(super) struct AdapterCalls<'a> {
    now: Time,
    ends: &'a mut [End],
}

impl<'a> AdapterCalls<'a> {
    pub(super) fn new(now: Time, ends: &'a mut [End]) -> Self {
        Self { now, ends }
    }

    /// Returns the adapters.
    pub(super) fn adapters(&self) -> &[End] {
        self.ends
    }

    /// Returns the adapter of the socket with this number, and the adapter's own number of the socket.
    pub(super) fn parts(&self, id: SocketId) -> (usize, SocketId) {
        let adapters = self.ends.len() as u32;
        ((id.0 % adapters) as usize, SocketId(id.0 / adapters))
    }

    /// Returns the calls of the adapter that has this socket, and the adapter's own number of the socket.
    pub(super) fn at(&mut self, id: SocketId) -> (Calls<'_, LinkData, SimulatedLink>, SocketId) {
        let (adapter, socket) = self.parts(id);
        (self.of(adapter), socket)
    }

    /// Returns the calls of an adapter.
    pub(super) fn of(&mut self, adapter: usize) -> Calls<'_, LinkData, SimulatedLink> {
        let End { os, link } = &mut self.ends[adapter];
        os.calls(self.now, link)
    }
}

impl Sockets<LinkData> for AdapterCalls<'_> {
    fn accept(&mut self) -> Option<SocketId> {
        let adapters = self.ends.len();
        (0..adapters).find_map(|adapter| {
            let socket = self.of(adapter).accept()?;
            Some(SocketId(number(adapters, adapter, socket.0)))
        })
    }

    fn receive(&mut self, id: SocketId, max: usize) -> Receive<LinkData> {
        let (mut calls, socket) = self.at(id);
        calls.receive(socket, max)
    }

    fn unread(&self, id: SocketId) -> Unread {
        let (adapter, socket) = self.parts(id);
        self.ends[adapter].os.unread(socket)
    }

    fn send(&mut self, id: SocketId, data: LinkData) -> Result<usize, Gone> {
        let (mut calls, socket) = self.at(id);
        calls.send(socket, data)
    }

    fn send_file(
        &mut self,
        id: SocketId,
        content: FileContent,
        data: LinkData,
    ) -> Result<usize, Gone> {
        let (mut calls, socket) = self.at(id);
        calls.send_file(socket, content, data)
    }

    fn send_cached(&mut self, id: SocketId, content: &FileContent) -> Result<FromCache, Gone> {
        let (mut calls, socket) = self.at(id);
        calls.send_cached(socket, content)
    }

    fn set_cork(&mut self, id: SocketId, cork: bool) {
        let (mut calls, socket) = self.at(id);
        calls.set_cork(socket, cork);
    }

    fn shutdown(&mut self, id: SocketId) -> bool {
        let (mut calls, socket) = self.at(id);
        calls.shutdown(socket)
    }

    fn close(&mut self, id: SocketId) {
        let (mut calls, socket) = self.at(id);
        calls.close(socket);
    }

    fn abort(&mut self, id: SocketId) {
        let (mut calls, socket) = self.at(id);
        calls.abort(socket);
    }
}
