//! What host and NIC tell each other about connections that are handed off, packets, and the data cache (handoff-policies 2,
//! data-caching 4.3).
//!
//! A handed-off connection has two owners and one [`Handle`]. The host chooses the handle and must not use it again before
//! both owners are done with it: the NIC says so with [`Event::Closed`], [`Event::Restored`] or a refusal,
//! the host with [`Command::Release`].

mod cache_commands;
mod commands;
mod events;
mod packet_parts;

pub use cache_commands::{CACHE_UNIT_BYTES, CacheCommand, CacheReference, MainMemory, PartFlags};
pub use commands::{CachedRun, Command, Control};
pub use events::{Event, Refusal};
pub use packet_parts::{PacketInParts, Part};

use baton_tcp::Segment;
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
    pub fn continues_packet(&self) -> bool {
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
