//! What crosses the bus between host and NIC (handoff-policies 2).
//!
//! A handed-off connection has two owners and one [`Handle`]. The host chooses the handle and must not use it again before
//! both owners are done with it: the NIC says so with [`Event::Closed`], [`Event::Restored`] or a refusal,
//! the host with [`Command::Release`].

mod attachments;
mod encoding;
mod parts;

pub use attachments::Attachments;
pub use parts::{PacketInParts, Part};

use crate::cache::CacheReference;
use baton_tcp::{CloseReason, Portable, Segment};
use serde::{Deserialize, Serialize};

/// The name of an offloaded connection, chosen by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle(pub u32);

/// From host to NIC, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum ToNic<P> {
    /// A packet of a host connection, to be sent as it is: the run of nic_pkt_append_mm commands of a packet that has
    /// nothing from the cache, as one entry.
    Packet(Segment<P>),
    /// A packet that has something from the cache: the run of its append commands, as one entry.
    Parts(PacketInParts<P>),
    /// A command about an offloaded connection.
    Command(Command<P>),
    /// A command of the data cache, or a part of a packet. Carried out in order with packets.
    Cache(CacheCommand<P>),
}

impl<P> ToNic<P> {
    /// Whether it stands in line with packets to send; otherwise it does with commands.
    pub fn is_in_packet_order(&self) -> bool {
        !matches!(self, Self::Command(_))
    }

    /// Whether it is a part of a packet but not the first.
    pub(crate) fn continues_packet(&self) -> bool {
        match self {
            Self::Cache(
                CacheCommand::AppendMemory { flags, .. } | CacheCommand::AppendCache { flags, .. },
            ) => !flags.first,
            _ => false,
        }
    }

    /// How many commands it is.
    #[inline]
    pub fn commands(&self) -> usize {
        match self {
            Self::Parts(packet) => packet.commands(),
            Self::Packet(_) | Self::Command(_) | Self::Cache(_) => 1,
        }
    }
}

/// Commands of the data cache (data-caching 4.3, Figure 6). They refer to host memory by what stands there.
#[derive(Clone, Debug, PartialEq)]
pub enum CacheCommand<P> {
    /// nic_cache_init: start the cache, empty. Answered by [`Event::CacheReady`].
    Init,
    /// nic_cache_insert(mmaddr, ncoffset, len): fetch data from host memory into the cache.
    Insert {
        /// What stands in host memory, in one piece.
        data: P,
        /// Where it goes, from the start of the cache.
        offset: u32,
        /// The number of this insert, for references to it; not 0.
        generation: u32,
    },
    /// nic_pkt_append_mm(mmaddr, len, flags): append data from host memory to the packet.
    AppendMemory {
        /// What stands in host memory, in one piece.
        part: MainMemory<P>,
        /// Its place in the packet.
        flags: PartFlags,
    },
    /// nic_pkt_append_cache(ncoffset, len, flags): append data from the cache to the packet.
    AppendCache {
        /// First byte, from the start of the cache.
        offset: u32,
        /// Bytes.
        len: u32,
        /// Its place in the packet.
        flags: PartFlags,
    },
}

/// A part of a packet in host memory.
#[derive(Clone, Debug, PartialEq)]
pub enum MainMemory<P> {
    /// The protocol headers; what is in the segment's payload follows them. Always the first part, and only that.
    Headers(Segment<P>),
    /// Data.
    Data(P),
}

/// The place of a part in its packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartFlags {
    /// It begins a packet.
    pub first: bool,
    /// The packet is complete and may go; checksums are computed over what is sent.
    pub last: bool,
}

/// Handoff commands (host to NIC).
///
/// Commands are carried out in the order they were issued, so more may follow a `Handoff` before its answer;
/// after a refusal they are ignored (packets are given back). After a `Restore` none may follow before its answer:
/// what the host wants sent meanwhile would be lost with the connection it was meant for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command<P> {
    /// Take over this connection. Answered by [`Event::Handoff`]. Connections that are not yet established, or in TIME-WAIT,
    /// are refused.
    Handoff {
        /// A free handle, for the connection from now on.
        handle: Handle,
        /// What the host's TCP engine exported.
        state: Box<Portable<P>>,
        /// Where data in its send buffer also stands in the cache: runs from its first byte on, as [`Command::Send`] would tell them.
        cached: Vec<CachedRun>,
    },
    /// Give this connection back. Answered by [`Event::Restored`], or by [`Event::Closed`] if it ended first.
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
    /// If the NIC has not got the handle, the packet comes back as [`ToHost::Packet`].
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

/// From NIC to host, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum ToHost<P> {
    /// A packet that belongs to no connection on the NIC.
    Packet(Segment<P>),
    /// Something happened to an offloaded connection, or to the NIC.
    Event(Event<P>),
    /// The NIC is done with this many packets of the host, sent or not; their buffers may be reused.
    Sent(u32),
}

/// Events (NIC to host).
#[derive(Clone, Debug, PartialEq)]
pub enum Event<P> {
    /// The answer to a handoff. A refusal gives the state back unchanged.
    Handoff {
        /// The handle of the command; free again after a refusal.
        handle: Handle,
        /// Whether the NIC took the connection; why not, and the connection, otherwise.
        result: Result<(), (Refusal, Box<Portable<P>>)>,
    },
    /// The answer to a restore; the NIC has forgotten the connection. Whatever was received or acknowledged up to now and
    /// could be told has been told before. What could not, for want of posted receive buffers, is in the state:
    /// unread data, and a FIN after it, which shows in [`Portable::state`](baton_tcp::Portable).
    Restored {
        /// The connection; the handle is free again.
        handle: Handle,
        /// All the host needs to go on with it.
        state: Box<Portable<P>>,
    },
    /// Received data, already in the posted host buffers.
    Receive {
        /// The connection.
        handle: Handle,
        /// The data, next in order.
        data: P,
    },
    /// The peer acknowledged this many bytes, of one or many segments: their host buffers may be freed.
    Acknowledged {
        /// The connection.
        handle: Handle,
        /// Bytes.
        len: u32,
    },
    /// The peer will send no more, and all it sent has been delivered. Told again after a handoff of a connection whose peer
    /// had closed before, once data that was unread then has been delivered.
    PeerClosed {
        /// The connection.
        handle: Handle,
    },
    /// The connection is over. The NIC keeps its slot until `Release`.
    Closed {
        /// The connection.
        handle: Handle,
        /// How it ended.
        reason: CloseReason,
    },
    /// The NIC asks to be relieved of this connection (active load control): the host should restore it.
    Relief {
        /// The connection.
        handle: Handle,
    },
    /// Soft_Limit has changed: the most connections that may be on the NIC now.
    SoftLimit(u32),
    /// Connections that the NIC's free memory could still hold: 0 told with [`Refusal::Memory`], more once there is room again.
    Memory(u32),
    /// The answer to [`CacheCommand::Init`]: the size of the cache in bytes; 0 where there is none.
    CacheReady(u32),
    /// The NIC has been reset: packets under way, the cache and all commands for it are lost. Connections on the NIC are not.
    Reset,
}

/// Why the NIC refused a handoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Cnum has reached Soft_Limit.
    SoftLimit,
    /// Cnum has reached Hard_Limit.
    HardLimit,
    /// On-board memory is full.
    Memory,
    /// The connection is in a state that cannot be handed off.
    State,
    /// The four-tuple or the handle is on the NIC already.
    Duplicate,
}
