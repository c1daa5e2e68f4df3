//! Why a connection is not on a NIC, and why a packet was dropped. Every drop, refusal and fallback has a name.

use serde::Serialize;

/// Why a connection is not on the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotOffloaded {
    /// The selection policy has not chosen it (yet).
    Policy,
    /// Chosen, but the host knew that the NIC holds as many connections as its Soft_Limit allows.
    SoftLimit,
    /// Chosen, but the host knew that the NIC's memory is full.
    Memory,
    /// Chosen, but its state does not allow a handoff (closing, moving already, or over).
    State,
    /// Chosen, but no handle was free.
    Handles,
    /// Chosen, but it is answered by another NIC than the one on which it came.
    Affinity,
    /// Refused by the NIC: Soft_Limit reached.
    RefusedSoftLimit,
    /// Refused by the NIC: Hard_Limit reached.
    RefusedHardLimit,
    /// Refused by the NIC: out of memory.
    RefusedMemory,
    /// Refused by the NIC: state.
    RefusedState,
    /// Refused by the NIC: four-tuple or handle in use.
    RefusedDuplicate,
    /// It was on the NIC and the host took it back.
    Restored,
}

impl NotOffloaded {
    /// All reasons.
    pub const ALL: [Self; 12] = [
        Self::Policy,
        Self::SoftLimit,
        Self::Memory,
        Self::State,
        Self::Handles,
        Self::Affinity,
        Self::RefusedSoftLimit,
        Self::RefusedHardLimit,
        Self::RefusedMemory,
        Self::RefusedState,
        Self::RefusedDuplicate,
        Self::Restored,
    ];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::SoftLimit => "soft_limit",
            Self::Memory => "memory",
            Self::State => "state",
            Self::Handles => "handles",
            Self::Affinity => "affinity",
            Self::RefusedSoftLimit => "refused_soft_limit",
            Self::RefusedHardLimit => "refused_hard_limit",
            Self::RefusedMemory => "refused_memory",
            Self::RefusedState => "refused_state",
            Self::RefusedDuplicate => "refused_duplicate",
            Self::Restored => "restored",
        }
    }
}

/// Why the host dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// A received packet: no fresh buffer to put in its place on the ring.
    ReceiveBuffers,
    /// A packet to send: no mbuf for its headers.
    TransmitBuffers,
    /// TCP: no connection and no listener.
    NoConnection,
    /// TCP: the listener's backlog was full.
    BacklogFull,
    /// TCP: outside the window.
    OutOfWindow,
    /// TCP: timestamp too old.
    Paws,
    /// TCP: acknowledges what was never sent.
    BadAck,
    /// TCP: the connection is in TIME-WAIT.
    TimeWait,
    /// TCP: any other breach of the protocol.
    Malformed,
    /// TCP: the accept queue was full.
    AcceptQueueFull,
    /// TCP: a SYN within a connection.
    SynInConnection,
    /// TCP: a reset in the window but not at its start.
    BlindReset,
    /// TCP: no ACK flag where there must be one.
    NoAck,
    /// TCP: no timestamps though they were agreed on.
    NoTimestamp,
    /// TCP: data for an end that was closed.
    DataAfterClose,
    /// TCP: not the answer to a SYN cookie.
    BadCookie,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [Self; 16] = [
        Self::ReceiveBuffers,
        Self::TransmitBuffers,
        Self::NoConnection,
        Self::BacklogFull,
        Self::OutOfWindow,
        Self::Paws,
        Self::BadAck,
        Self::TimeWait,
        Self::Malformed,
        Self::AcceptQueueFull,
        Self::SynInConnection,
        Self::BlindReset,
        Self::NoAck,
        Self::NoTimestamp,
        Self::DataAfterClose,
        Self::BadCookie,
    ];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReceiveBuffers => "receive_buffers",
            Self::TransmitBuffers => "transmit_buffers",
            Self::NoConnection => "no_connection",
            Self::BacklogFull => "backlog_full",
            Self::OutOfWindow => "out_of_window",
            Self::Paws => "paws",
            Self::BadAck => "bad_ack",
            Self::TimeWait => "time_wait",
            Self::Malformed => "malformed",
            Self::AcceptQueueFull => "accept_queue_full",
            Self::SynInConnection => "syn_in_connection",
            Self::BlindReset => "blind_reset",
            Self::NoAck => "no_ack",
            Self::NoTimestamp => "no_timestamp",
            Self::DataAfterClose => "data_after_close",
            Self::BadCookie => "bad_cookie",
        }
    }
}

impl From<baton_tcp::Refusal> for DropReason {
    fn from(refusal: baton_tcp::Refusal) -> Self {
        match refusal {
            baton_tcp::Refusal::NoConnection => Self::NoConnection,
            baton_tcp::Refusal::BacklogFull => Self::BacklogFull,
            baton_tcp::Refusal::OutOfWindow => Self::OutOfWindow,
            baton_tcp::Refusal::Paws => Self::Paws,
            baton_tcp::Refusal::BadAck => Self::BadAck,
            baton_tcp::Refusal::TimeWait => Self::TimeWait,
            baton_tcp::Refusal::Malformed => Self::Malformed,
            baton_tcp::Refusal::AcceptQueueFull => Self::AcceptQueueFull,
            baton_tcp::Refusal::SynInConnection => Self::SynInConnection,
            baton_tcp::Refusal::BlindReset => Self::BlindReset,
            baton_tcp::Refusal::NoAck => Self::NoAck,
            baton_tcp::Refusal::NoTimestamp => Self::NoTimestamp,
            baton_tcp::Refusal::DataAfterClose => Self::DataAfterClose,
            baton_tcp::Refusal::BadCookie => Self::BadCookie,
        }
    }
}
