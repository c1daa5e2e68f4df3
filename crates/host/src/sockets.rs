//! The socket layer as applications see it: non-blocking sockets and readiness.

/// A socket's slot, which is reused after close.
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
    /// State of the file: every change increments this number. Meaningless if the system detects changes itself.
    pub revision: u32,
    /// Length of the file in this state, in bytes.
    pub file_len: u64,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Number of bytes to send from there on, which may be more than one call supplies.
    pub len: u64,
}

impl FileContent {
    /// Describes content of a file whose changes the system detects itself.
    pub fn new(file: FileId, offset: u64, len: u64) -> Self {
        Self {
            file,
            revision: 0,
            file_len: offset + len,
            offset,
            len,
        }
    }

    /// Returns the rest of the content after the first `taken` bytes.
    #[must_use]
    pub fn after(&self, taken: u64) -> Self {
        Self {
            offset: self.offset + taken,
            len: self.len - taken,
            ..*self
        }
    }
}

/// Result of sending a part of a file that did not have to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromCache {
    /// Number of bytes taken.
    pub taken: u64,
    /// Whether the send buffer has space for the next bytes, which must be read first. If not, the socket becomes writable later.
    pub has_room: bool,
}

impl FromCache {
    /// Nothing was sent, because all content must be read first.
    pub const NOTHING: Self = Self {
        taken: 0,
        has_room: true,
    };
}

/// Events that a wait returns. A wait reports that connections can be accepted for as long as there are any, but reports the state of a
/// connection once per change, so an application that leaves data unread must remember to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A listener has connections to accept.
    Acceptable,
    /// A connection has data, or end of stream, or an error, to read.
    Readable(SocketId),
    /// A connection whose send buffer was full has free space again.
    Writable(SocketId),
}

/// Result of a receive.
#[derive(Clone, Debug, PartialEq)]
pub enum Receive<P> {
    /// Received bytes, in order.
    Data(P),
    /// No data is available now.
    WouldBlock,
    /// The peer has closed its direction of the connection.
    EndOfStream,
    /// The connection no longer exists (reset, timed out).
    Gone,
}

/// Data that waits in a socket's receive buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Number of bytes, including those that an adapter has reported and delivers once there are buffers for them.
    pub len: usize,
    /// Whether no more data will follow, because of an end of stream or because the connection no longer exists.
    pub ended: bool,
}

impl Unread {
    /// The state of a connection that no longer exists.
    pub const GONE: Self = Self {
        len: 0,
        ended: true,
    };
}

/// A send failed because the connection no longer exists or is closed for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection has ended or is closed for writing")]
pub struct Gone;

/// System calls of an event-driven application. The same application code runs simulated and live.
pub trait Sockets<P> {
    /// Accepts the oldest connection in the listener's queue.
    fn accept(&mut self) -> Option<SocketId>;
    /// Receives at most `max` bytes, copied to user memory.
    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<P>;
    /// Returns how much there is to receive. A wait reports this along with the event (kevent's `data` and `EV_EOF`), so the call costs
    /// nothing.
    fn unread(&self, socket: SocketId) -> Unread;
    /// Copies `data` into the send buffer and returns the number of bytes taken.
    fn send(&mut self, socket: SocketId, data: P) -> Result<usize, Gone>;
    /// Sends `data`, which is the beginning of `content`, without a copy where possible. Returns the number of bytes taken.
    fn send_file(
        &mut self,
        socket: SocketId,
        _content: FileContent,
        data: P,
    ) -> Result<usize, Gone> {
        self.send(socket, data)
    }
    /// Sends the beginning of `content`, as far as the system can send it without the application reading it.
    fn send_cached(
        &mut self,
        _socket: SocketId,
        _content: &FileContent,
    ) -> Result<FromCache, Gone> {
        Ok(FromCache::NOTHING)
    }
    /// Holds partial segments back while `cork` is set.
    fn set_cork(&mut self, socket: SocketId, cork: bool);
    /// Closes the sending direction; data from the peer can still be received. Returns false if the system has no such operation: then only
    /// [`Sockets::close`] ends the connection.
    fn shutdown(&mut self, _socket: SocketId) -> bool {
        false
    }
    /// Closes the socket, whose id may then be reused.
    fn close(&mut self, socket: SocketId);
    /// Closes the socket with a reset, where possible; its id may then be reused.
    fn abort(&mut self, socket: SocketId) {
        self.close(socket);
    }
}
