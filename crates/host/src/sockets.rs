//! The socket layer as an application sees it: non-blocking sockets and readiness.

use crate::meter::{Access, Op, Pool};

/// A socket's slot; reused after close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u32);

/// A file of the server's file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// Content of a file that is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileContent {
    /// The file.
    pub file: FileId,
    /// Which state of the file it is: another number with each change. Where the system sees changes itself it means nothing.
    pub revision: u32,
    /// Bytes that the file has in this state.
    pub file_len: u64,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Bytes that are to be sent from there on; more than are given at one time, perhaps.
    pub len: u64,
}

impl FileContent {
    /// Content of a file whose changes the system sees itself.
    pub fn new(file: FileId, offset: u64, len: u64) -> Self {
        Self {
            file,
            revision: 0,
            file_len: offset + len,
            offset,
            len,
        }
    }

    /// What is left after the first `taken` bytes.
    #[must_use]
    pub fn after(&self, taken: u64) -> Self {
        Self {
            offset: self.offset + taken,
            len: self.len - taken,
            ..*self
        }
    }
}

/// What was sent of a file without being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromCache {
    /// Bytes.
    pub taken: u64,
    /// What follows them could be sent now, but has to be read. If not, the socket becomes writable later.
    pub has_room: bool,
}

impl FromCache {
    /// Nothing: all has to be read.
    pub const NOTHING: Self = Self {
        taken: 0,
        has_room: true,
    };
}

/// What a wait returns. Connections to accept are reported at each wait while there are any; the state of a connection
/// once per change, so an application that leaves something unread must remember it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A listener has connections to accept.
    Acceptable,
    /// A connection has data, or end of stream, or an error, to read.
    Readable(SocketId),
    /// A connection whose send buffer was full has room again.
    Writable(SocketId),
}

/// What a receive gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Receive<P> {
    /// Bytes, in order.
    Data(P),
    /// Nothing there now.
    WouldBlock,
    /// The peer will send no more.
    EndOfStream,
    /// The connection is gone (reset, timed out).
    Gone,
}

/// What waits in a socket's receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Bytes.
    pub len: usize,
    /// Nothing will follow them: end of stream, or the connection is gone.
    pub ended: bool,
}

/// A send could not be done because the connection is gone or closed for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection is gone")]
pub struct Gone;

/// System calls, as an event-driven application makes them. The same application code runs simulated and live.
pub trait Sockets<P> {
    /// Takes the oldest connection off the listener's queue.
    fn accept(&mut self) -> Option<SocketId>;
    /// Takes at most `max` received bytes, copied to user memory.
    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<P>;
    /// What there is to receive. A wait reports it along with the event (kevent's `data` and `EV_EOF`), so it costs nothing.
    fn unread(&self, socket: SocketId) -> Unread;
    /// Copies `data` into the send buffer; gives how many bytes were taken.
    fn send(&mut self, socket: SocketId, data: P) -> Result<usize, Gone>;
    /// Sends `data`, with which `content` begins, without a copy where that can be; gives how many bytes were taken.
    fn send_file(
        &mut self,
        socket: SocketId,
        _content: FileContent,
        data: P,
    ) -> Result<usize, Gone> {
        self.send(socket, data)
    }
    /// Sends what of `content`, from its start on, stands where it can be sent from without being read here.
    fn send_cached(
        &mut self,
        _socket: SocketId,
        _content: &FileContent,
    ) -> Result<FromCache, Gone> {
        Ok(FromCache::NOTHING)
    }
    /// Holds partial segments back while set.
    fn set_cork(&mut self, socket: SocketId, cork: bool);
    /// Says that nothing more will be sent; what the peer sends can still be received. False where there is no such thing:
    /// then only [`Sockets::close`] ends the connection.
    fn shutdown(&mut self, _socket: SocketId) -> bool {
        false
    }
    /// Closes the socket; its id may be reused.
    fn close(&mut self, socket: SocketId);
    /// Closes the socket, by a reset where that can be; its id may be reused.
    fn abort(&mut self, socket: SocketId) {
        self.close(socket);
    }
    /// Says that the application performed `count` operations of its own, for whoever models what that costs.
    fn work(&mut self, _op: Op, _count: u32) {}
    /// Says that the application read a part of a file that is mapped into its memory, for whoever models what that costs.
    fn read_file(&mut self, _content: &FileContent) {}
    /// Says that the application touched memory of its own, for whoever models what that costs.
    fn touch(&mut self, _pool: Pool, _slot: u32, _offset: u32, _len: u32, _access: Access) {}
}
