//! Types of the interface between a stack and its owner.

use crate::path_error::PathError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A connection's slot in its stack. Slots are reused, last freed first, after [`Event::Closed`] or `export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnId(pub u32);

/// A listener's slot in its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u32);

/// Connection states (RFC 9293 3.3.2). LISTEN and CLOSED are not states of a connection in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Error)]
pub enum CloseReason {
    /// Both directions closed in order.
    #[error("closed in order")]
    Normal,
    /// The peer sent a reset.
    #[error("connection reset by the peer")]
    Reset,
    /// The peer refused the connection (reset in answer to a SYN).
    #[error("connection refused")]
    Refused,
    /// Too many retransmissions, or the user timeout.
    #[error("connection timed out")]
    TimedOut,
    /// The network reported that the peer cannot be reached. Ends a connection immediately while it opens, and otherwise when
    /// retransmissions end (RFC 9293 3.9.2.2).
    #[error("{0}")]
    Unreachable(PathError),
    /// This end aborted the connection.
    #[error("connection aborted")]
    Aborted,
}

/// An event of a connection, for its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An active open succeeded.
    Connected,
    /// A passive open is complete and waits in the listener's accept queue: call [`accept`](crate::Stack::accept).
    Acceptable(ListenerId),
    /// In-order data arrived: call [`read`](crate::Stack::read).
    Readable,
    /// The peer sends urgent data, which may not have arrived yet: see [`urgent_distance`](crate::Stack::urgent_distance).
    Urgent,
    /// The peer acknowledged this many bytes of written data, which left the send buffer. The number may be 0 if a connection that
    /// [settles](crate::Stack::set_settling) has come to rest.
    Acknowledged(u32),
    /// Bytes of interest were sent or acknowledged: call [`poll_transmit_time`](crate::Stack::poll_transmit_time).
    TransmitTimes,
    /// The peer will send no more (its FIN arrived in order).
    PeerClosed,
    /// The connection has ended for its owner; its slot is free (TIME-WAIT needs none).
    Closed(CloseReason),
}

/// Summary of a processed segment, for counters and cost accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handled {
    /// The connection to which the segment belonged, or which it created, if any. May already be closed.
    pub conn: Option<ConnId>,
    /// The segment opened, or tried to open, a connection.
    pub syn: bool,
    /// Bytes of data in the segment.
    pub data_len: u32,
    /// The segment acknowledged new data.
    pub new_ack: bool,
    /// The segment was not acceptable (out of window, bad ACK, PAWS, no such connection ...).
    pub refused: Option<Refusal>,
}

impl Handled {
    /// Sums up several segments of a run, of which this one is the last.
    pub(crate) fn after(self, before: &Self) -> Self {
        Self {
            data_len: before.data_len + self.data_len,
            new_ack: before.new_ack || self.new_ack,
            refused: before.refused.or(self.refused),
            ..self
        }
    }
}

baton_named::named! {
    /// Why a segment was refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Refusal {
        /// The segment has neither a connection nor a listener, and is answered by a reset.
        NoConnection => "no-connection",
        /// The listener's backlog is full.
        BacklogFull => "backlog-full",
        /// Sequence number outside the window (RFC 9293 3.10.7.4).
        OutOfWindow => "out-of-window",
        /// Timestamp too old (RFC 7323 5).
        Paws => "paws",
        /// The ACK is for data that was never sent.
        BadAck => "bad-ack",
        /// The segment belongs to a connection in TIME-WAIT.
        TimeWait => "time-wait",
        /// Any other breach of the protocol.
        Malformed => "malformed",
        /// The accept queue is full: a SYN, or the ACK that would complete a handshake.
        AcceptQueueFull => "accept-queue-full",
        /// A SYN within a connection (RFC 5961 4).
        SynInConnection => "syn-in-connection",
        /// A reset in the window but not at its start (RFC 5961 3).
        BlindReset => "blind-reset",
        /// No ACK flag where there must be one (RFC 9293 3.10.7.4, fifth).
        NoAck => "no-ack",
        /// No timestamps though they were agreed on (RFC 7323 3.2).
        NoTimestamp => "no-timestamp",
        /// Data for an end that its owner closed (RFC 9293 3.6.1).
        DataAfterClose => "data-after-close",
        /// An ACK to a listener that is not the answer to a SYN cookie of ours (RFC 4987 3.6).
        BadCookie => "bad-cookie",
        /// The connection's user holds too much memory for the segment's data, or for another connection.
        NoMemory => "no-memory",
    }
}

/// How written data relates to data that is written later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFlags {
    /// More data follows soon: a partial segment waits for it (MSG_MORE).
    pub more: bool,
    /// A record ends here: later data never shares a segment with it (MSG_EOR).
    pub end_of_record: bool,
    /// The last byte of the data is urgent (MSG_OOB, RFC 9293 3.8.5).
    pub urgent: bool,
}

/// Why a write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// This direction is closed.
    #[error("the connection is closed for writing")]
    Closed,
}

/// Counts of refused segments by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused([u64; Refusal::ALL.len()]);

impl Refused {
    /// Segments refused for this reason.
    pub fn get(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// Segments refused for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn count(&mut self, reason: Refusal) {
        self.0[reason as usize] += 1;
    }
}

/// Totals of a stack since it was created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Segments received.
    pub segments_received: u64,
    /// Segments sent.
    pub segments_sent: u64,
    /// Segments that carried data sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Challenge ACKs sent (RFC 5961).
    pub challenge_acks: u64,
    /// Answers to unacceptable segments that a rate limit withheld.
    pub acks_withheld: u64,
    /// SYNs answered by a cookie (RFC 4987 3.6).
    pub syn_cookies_sent: u64,
    /// Connections created from a cookie that came back.
    pub syn_cookies_accepted: u64,
    /// ACKs with an invalid or expired cookie while cookies were in use.
    pub syn_cookies_refused: u64,
    /// Cookies of Fast Open sent to clients (RFC 7413).
    pub fast_open_cookies_sent: u64,
    /// SYNs with a valid Fast Open cookie, whose data was accepted.
    pub fast_open_accepted: u64,
    /// SYNs with an invalid Fast Open cookie.
    pub fast_open_cookies_refused: u64,
    /// SYNs that asked for Fast Open while too many requests were pending.
    pub fast_open_overflows: u64,
    /// SYNs sent with data.
    pub fast_open_data_sent: u64,
    /// SYNs sent with data that was acknowledged with the SYN.
    pub fast_open_data_acknowledged: u64,
    /// SYNs sent with data that was not acknowledged with the SYN.
    pub fast_open_data_refused: u64,
    /// SYNs that asked for Fast Open and were not answered in time, or answered by an ICMP error.
    pub fast_open_timeouts: u64,
    /// Connections that were opened without Fast Open because it failed recently.
    pub fast_open_back_offs: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Keepalive probes sent.
    pub keepalive_probes: u64,
    /// Tail loss probes sent.
    pub tail_probes: u64,
    /// Probes for a larger MTU of the path that arrived.
    pub mtu_probes_arrived: u64,
    /// Probes for a larger MTU of the path that were lost.
    pub mtu_probes_lost: u64,
    /// Timeouts after which segments were made smaller because the path may silently drop larger ones.
    pub black_holes: u64,
    /// Recoveries that turned out to be spurious and were undone.
    pub spurious_recoveries: u64,
    /// ACKs that reported a duplicate (D-SACK).
    pub duplicate_reports: u64,
    /// Segments with data that the network had marked (ECN).
    pub congestion_marks: u64,
    /// ACKs that echoed marks (ECN-Echo).
    pub congestion_echoes: u64,
    /// Reductions of a congestion window because of marks.
    pub congestion_reductions: u64,
    /// Resets sent.
    pub resets_sent: u64,
    /// ICMP errors about segments that are not in flight.
    #[serde(default)]
    pub path_errors_refused: u64,
    /// Segments refused, by [`Refusal`].
    pub refused: Refused,
    /// Segments dropped because there were too many holes before them.
    pub out_of_order_dropped: u64,
    /// Answers outside of connections that were dropped because too many waited to be sent.
    pub answers_dropped: u64,
}
