//! What the kernel counts. Every drop, refusal and fallback has a name.

use baton_bus::handoff::Refusal;
use serde::Serialize;
use std::collections::BTreeMap;

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
    /// Chosen, but the driver's queue to the NIC was full.
    QueueFull,
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
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::SoftLimit => "soft_limit",
            Self::Memory => "memory",
            Self::State => "state",
            Self::Handles => "handles",
            Self::QueueFull => "queue_full",
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

impl From<Refusal> for NotOffloaded {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::SoftLimit => Self::RefusedSoftLimit,
            Refusal::HardLimit => Self::RefusedHardLimit,
            Refusal::Memory => Self::RefusedMemory,
            Refusal::State => Self::RefusedState,
            Refusal::Duplicate => Self::RefusedDuplicate,
        }
    }
}

/// Why the kernel dropped something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// A received packet: no fresh buffer to put in its place on the ring.
    ReceiveBuffers,
    /// A packet to send: no mbuf for its headers.
    TransmitBuffers,
    /// A packet to send: the driver's queue was full.
    TransmitQueue,
    /// A packet of a connection on its way to the NIC or back: too many were kept already.
    DeferredPackets,
    /// A kept packet or request whose connection ended before it came back.
    ConnectionEnded,
    /// An event of the NIC about a handle that is not in use.
    StaleEvent,
    /// A connection's state that came back from the NIC and could not be taken in.
    BadState,
    /// A request to send what a file has no longer: it was truncated while it was being sent.
    FileShrunk,
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
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReceiveBuffers => "receive_buffers",
            Self::TransmitBuffers => "transmit_buffers",
            Self::TransmitQueue => "transmit_queue",
            Self::DeferredPackets => "deferred_packets",
            Self::ConnectionEnded => "connection_ended",
            Self::StaleEvent => "stale_event",
            Self::BadState => "bad_state",
            Self::FileShrunk => "file_shrunk",
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

/// Totals of a kernel since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Connections established.
    pub opened: u64,
    /// Connections over, on either side.
    pub closed: u64,
    /// Of these, connections that did not end in order.
    pub closed_abnormally: u64,
    /// Handoffs asked of the NIC.
    pub handoffs_attempted: u64,
    /// Handoffs the NIC accepted.
    pub handoffs_accepted: u64,
    /// Handoffs the NIC refused.
    pub handoffs_refused: u64,
    /// Restores asked of the NIC.
    pub restores_attempted: u64,
    /// Connections that came back.
    pub restored: u64,
    /// Restores that the NIC asked for (active load control).
    pub reliefs: u64,
    /// Packets that reached the host and were passed to the NIC, their connection being there.
    pub forwarded: u64,
    /// Packets kept while their connection was on its way.
    pub deferred_packets: u64,
    /// Requests of the application kept while its connection was on its way.
    pub deferred_requests: u64,
    /// Packets received by the host's TCP.
    pub packets_received: u64,
    /// Packets sent by the host's TCP.
    pub packets_sent: u64,
    /// Commands given to the NIC.
    pub commands: u64,
    /// Events taken from the NIC.
    pub events: u64,
    /// Commands queued although the driver's queue was full: a command, unlike a packet, cannot be dropped.
    pub commands_over_limit: u64,
    /// Connections that are answered by another NIC than the one on which they came.
    pub answered_elsewhere: u64,
    /// How often each reason was the one why a connection is not on the NIC; a connection counts once for each that held for it in turn.
    pub not_offloaded: BTreeMap<NotOffloaded, u64>,
    /// What was dropped.
    pub drops: BTreeMap<DropReason, u64>,
}

impl Stats {
    /// How often each reason was the one why a connection is not on the NIC, by the reason's name.
    pub fn not_offloaded(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.not_offloaded
            .iter()
            .map(|(reason, &count)| (reason.name(), count))
    }

    /// What was dropped, by the reason's name.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.drops
            .iter()
            .map(|(reason, &count)| (reason.name(), count))
    }

    pub(crate) fn drop(&mut self, reason: DropReason) {
        *self.drops.entry(reason).or_insert(0) += 1;
    }
}

/// Connections by who owns them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connections {
    /// Processed by the host.
    pub host: u32,
    /// On their way to the NIC.
    pub handing_off: u32,
    /// On the NIC.
    pub offloaded: u32,
    /// On their way back.
    pub restoring: u32,
}

impl Connections {
    /// Those that take a place on the NIC, as far as the host knows.
    pub fn on_nic(&self) -> u32 {
        self.handing_off + self.offloaded + self.restoring
    }
}
