//! What crosses the bus between host and NIC (handoff-policies 2; DESIGN "Handoff").
//!
//! A handed-off connection has two owners and one [`Handle`]. The host chooses the handle and must not use it again before
//! both owners are done with it: the NIC says so with [`Event::Closed`], [`Event::Restored`] or a refusal,
//! the host with [`Command::Release`].

use baton_tcp::{CloseReason, Portable, Segment};
use serde::{Deserialize, Serialize};

/// The name of an offloaded connection, chosen by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle(pub u32);

/// From host to NIC, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum ToNic<P> {
    /// A packet of a host connection, to be sent as it is.
    Packet(Segment<P>),
    /// A command about an offloaded connection.
    Command(Command<P>),
}

/// Handoff commands (host to NIC).
#[derive(Clone, Debug, PartialEq)]
pub enum Command<P> {
    /// Take over this connection. Answered by [`Event::Handoff`].
    Handoff { handle: Handle, state: Box<Portable<P>> },
    /// Give this connection back. Answered by [`Event::Restored`], or by `Closed` if it ended first.
    Restore { handle: Handle },
    /// Append data to its send buffer; the data stays in host memory and is fetched when sent.
    Send { handle: Handle, data: P },
    /// Receive buffers for this many more bytes stand ready in host memory.
    PostReceive { handle: Handle, len: u32 },
    /// The application has read this many bytes: the window may open.
    Received { handle: Handle, len: u32 },
    /// Close it, or change an option.
    Control { handle: Handle, control: Control },
    /// A packet of this connection that reached the host while the handoff was under way.
    Forward { handle: Handle, segment: Segment<P> },
    /// The host has heard of the connection's end and is done with the handle; its NIC memory may be reused.
    Release { handle: Handle },
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
    /// This many packets of the host have left; their buffers may be reused.
    Sent(u32),
}

/// Events (NIC to host).
#[derive(Clone, Debug, PartialEq)]
pub enum Event<P> {
    /// The answer to a handoff. A refusal gives the state back unchanged.
    Handoff { handle: Handle, result: Result<(), (Refusal, Box<Portable<P>>)> },
    /// The answer to a restore; the NIC has forgotten the connection.
    Restored { handle: Handle, state: Box<Portable<P>> },
    /// Received data, already in the posted host buffers.
    Receive { handle: Handle, data: P },
    /// The peer acknowledged this many bytes, of one or many segments: their host buffers may be freed.
    Acknowledged { handle: Handle, len: u32 },
    /// The peer will send no more.
    PeerClosed { handle: Handle },
    /// The connection is over. The NIC keeps its slot until `Release`.
    Closed { handle: Handle, reason: CloseReason },
    /// The NIC asks to be relieved of this connection (active load control): the host should restore it.
    Relief { handle: Handle },
    /// Soft_Limit has changed: the most connections that may be on the NIC now.
    SoftLimit(u32),
    /// Connections that the NIC's free memory could still hold.
    Memory(u32),
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
