//! What the host asks of the NIC for connections that are handed off.

use super::{CacheReference, Handle};
use baton_tcp::{Portable, Segment};

/// Handoff commands (host to NIC).
///
/// Commands are carried out in the order they were issued, so more may follow a `Handoff` before its answer;
/// after a refusal they are ignored (packets are given back). After a `Restore` none may follow before its answer:
/// what the host wants sent meanwhile would be lost with the connection it was meant for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command<P> {
    /// Take over this connection. Answered by [`Event::Handoff`](super::Event::Handoff). Connections that are not yet established, or in TIME-WAIT,
    /// are refused.
    Handoff {
        /// A free handle, for the connection from now on.
        handle: Handle,
        /// What the host's TCP engine exported.
        state: Box<Portable<P>>,
        /// Where data in its send buffer also stands in the cache: runs from its first byte on, as [`Command::Send`] would tell them.
        cached: Vec<CachedRun>,
    },
    /// Give this connection back. Answered by [`Event::Restored`](super::Event::Restored), or by [`Event::Closed`](super::Event::Closed) if it ended first.
    Restore {
        /// The connection.
        handle: Handle,
    },
    /// Append data to its send buffer; the data stays in host memory and is fetched when sent.
    /// The host bounds how much; the NIC does not.
    Send {
        /// The connection.
        handle: Handle,
        /// What to append.
        data: P,
        /// Where it also stands in the cache. Used if that is still so when the data is sent.
        cached: Option<CacheReference>,
    },
    /// Receive buffers for this many more bytes stand ready in host memory.
    PostReceive {
        /// The connection.
        handle: Handle,
        /// Bytes.
        len: u32,
    },
    /// The application has read this many bytes: the window may open.
    Received {
        /// The connection.
        handle: Handle,
        /// Bytes.
        len: u32,
    },
    /// Close it, or change an option.
    Control {
        /// The connection.
        handle: Handle,
        /// What to do.
        control: Control,
    },
    /// A packet of this connection that reached the host while the handoff was under way.
    /// If the NIC has not got the handle, the packet comes back as [`ToHost::Packet`](super::ToHost::Packet).
    Forward {
        /// The connection.
        handle: Handle,
        /// The packet as it was received.
        segment: Segment<P>,
    },
    /// The host has heard of the connection's end and is done with the handle; its NIC memory may be reused.
    Release {
        /// The connection.
        handle: Handle,
    },
}

/// A run of data to send, and where it also stands in the cache, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedRun {
    /// Bytes.
    pub len: u32,
    /// Its place.
    pub cached: Option<CacheReference>,
}

/// What a socket call other than send and receive asks of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Half close.
    Shutdown,
    /// Close both directions.
    Close,
    /// Reset.
    Abort,
    /// TCP_NODELAY.
    NoDelay(bool),
    /// TCP_NOPUSH / TCP_CORK.
    Cork(bool),
}
