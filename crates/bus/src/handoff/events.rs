//! What the NIC tells of connections that are handed off, and of itself.

use super::Handle;
use baton_tcp::{CloseReason, Portable};
use serde::{Deserialize, Serialize};

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
    /// The answer to [`CacheCommand::Init`](super::CacheCommand::Init): the size of the cache in bytes; 0 where there is none.
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
