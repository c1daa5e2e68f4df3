//! The socket calls of an application.

use super::{FileChange, OsLayer};
use crate::{FileContent, FromCache, Gone, Receive, SocketId, Sockets, Unread};
use baton_bus::HostLink;
use baton_bus::link::Inline;
use baton_wire::Time;

/// Socket calls on the host's half and its link. Their requests wait until [`OsLayer::pump`].
#[derive(Debug)]
pub struct Calls<'a, P, L> {
    now: Time,
    os: &'a mut OsLayer<P>,
    link: &'a mut L,
}

impl<'a, P: Inline, L: HostLink<Data = P>> Calls<'a, P, L> {
    pub(super) fn new(now: Time, os: &'a mut OsLayer<P>, link: &'a mut L) -> Self {
        os.now = now;
        Self { now, os, link }
    }

    /// Returns the sockets.
    pub fn os(&mut self) -> &mut OsLayer<P> {
        self.os
    }

    /// Returns the time of these calls.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns approximately how many bytes a socket would take now.
    ///
    /// # Errors
    /// The connection has ended or is shut down for sending.
    pub fn send_room(&self, socket: SocketId) -> Result<usize, Gone> {
        self.os.send_room(self.link, socket)
    }

    /// Makes a socket become writable when it has buffer space.
    pub fn want_room(&mut self, socket: SocketId) {
        self.os.want_room(self.link, socket);
    }

    /// Sends as much of `data` as there is buffer space for, and copies it only if the link needs a copy. Returns how many bytes.
    ///
    /// # Errors
    /// The connection has ended or is shut down for sending.
    pub fn send_some(&mut self, socket: SocketId, data: &P) -> Result<usize, Gone> {
        self.os.send(self.now, self.link, socket, data)
    }

    /// Sends `len` bytes from `address` on, in a file that the link lends to the adapter for this call, or as many of them as there is space
    /// for. Returns how many. If it is none, the file stays unused, and the caller ends its use.
    ///
    /// # Errors
    /// The connection has ended or is shut down for sending.
    pub fn send_lent(&mut self, socket: SocketId, (address, len): (u64, u32)) -> Result<u32, Gone> {
        self.os
            .send_lent(self.now, self.link, socket, (address, len))
    }

    /// Sends content of a file: parts that are in the adapter's data cache, or are inserted now, are sent from there.
    ///
    /// # Errors
    /// The connection has ended or is shut down for sending.
    pub fn send_content(
        &mut self,
        socket: SocketId,
        content: &FileContent,
        data: &P,
    ) -> Result<usize, Gone> {
        self.os
            .send_file(self.now, self.link, socket, content, data)
    }

    /// Handles a change of a file as the coherence protocol of the adapter's data cache says; the lazy protocol need not be notified.
    /// `block` returns the current content of the file at an offset, up to a length: less if the file ends before, `None` if the content is
    /// not available.
    pub fn file_changed(&mut self, change: &FileChange, block: impl FnMut(u64, u32) -> Option<P>) {
        self.os.file_changed(self.now, self.link, change, block);
    }
}

impl<P: Inline, L: HostLink<Data = P>> Sockets<P> for Calls<'_, P, L> {
    fn accept(&mut self) -> Option<SocketId> {
        self.os.accept()
    }

    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<P> {
        self.os.receive(socket, max)
    }

    fn unread(&self, socket: SocketId) -> Unread {
        self.os.unread(socket)
    }

    fn send(&mut self, socket: SocketId, data: P) -> Result<usize, Gone> {
        self.send_some(socket, &data)
    }

    fn send_file(
        &mut self,
        socket: SocketId,
        content: FileContent,
        data: P,
    ) -> Result<usize, Gone> {
        self.send_content(socket, &content, &data)
    }

    fn send_cached(&mut self, socket: SocketId, content: &FileContent) -> Result<FromCache, Gone> {
        self.os.send_cached(self.now, self.link, socket, content)
    }

    fn set_cork(&mut self, socket: SocketId, cork: bool) {
        self.os.set_cork(self.now, self.link, socket, cork);
    }

    fn shutdown(&mut self, socket: SocketId) -> bool {
        if self.os.config().half_close {
            self.os.shutdown(self.now, socket);
        }
        self.os.config().half_close
    }

    fn close(&mut self, socket: SocketId) {
        self.os.close(self.now, socket);
    }

    fn abort(&mut self, socket: SocketId) {
        self.os.abort(self.now, socket);
    }
}
