//! State of a connection for tools like ss.

use crate::congestion::Phase;
use crate::types::State;
use baton_wire::Span;
use serde::{Deserialize, Serialize};

baton_named::named! {
    /// Phase of congestion control.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum CongestionPhase {
        /// Nothing is known to be missing.
        Open => "open",
        /// Duplicate ACKs or SACK blocks came, too few to count as a loss.
        Disorder => "disorder",
        /// Fast recovery.
        Recovery => "recovery",
        /// Recovery after a retransmission timeout.
        Loss => "loss",
    }
}

impl CongestionPhase {
    pub(crate) fn of(phase: Phase, duplicates: bool) -> Self {
        match phase {
            Phase::Open if duplicates => Self::Disorder,
            Phase::Open => Self::Open,
            Phase::FastRecovery => Self::Recovery,
            Phase::Timeout => Self::Loss,
        }
    }
}

baton_named::named! {
    /// What keeps a connection from sending more.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Limit {
        /// All that was written has been sent.
        Application => "application",
        /// The peer's receive window is used up.
        PeerWindow => "peer's window",
        /// The congestion window is used up.
        CongestionWindow => "congestion window",
        /// The next segment is paced.
        Pacing => "pacing",
        /// A partial segment waits for more data or for an acknowledgment (Nagle's algorithm, cork).
        Coalescing => "coalescing",
    }
}

/// A timer of a connection, and when it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// Purpose of the timer.
    pub kind: TimerKind,
    /// Time until it fires.
    #[serde(rename = "after_us", with = "microseconds")]
    pub after: Span,
}

baton_named::named! {
    /// Purpose of a timer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TimerKind {
        /// Retransmits unacknowledged data (RFC 6298).
        Retransmission => "retransmission",
        /// Retransmits overtaken segments, or probes the tail (RFC 8985).
        Loss => "loss",
        /// Probes a closed window (RFC 9293 3.8.6.1).
        WindowProbe => "window probe",
        /// Sends paced data.
        Pacing => "pacing",
        /// Sends an acknowledgment (RFC 9293 3.8.6.3).
        DelayedAck => "delayed ack",
        /// Gives up waiting for the peer's FIN.
        FinWait => "fin-wait",
        /// Probes a silent peer (RFC 9293 3.8.4).
        Keepalive => "keepalive",
        /// Ends TIME-WAIT.
        TimeWait => "time-wait",
    }
}

/// Everything that a line of `ss -ti` or Linux's `tcp_info` shows. Sizes are in bytes unless the name says segments. Times are serialized
/// as whole microseconds, and the serialized names end in `_us`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// State of RFC 9293 3.3.2.
    pub state: State,
    /// Phase of congestion control.
    pub phase: CongestionPhase,
    /// Retransmission timeouts since the last progress.
    pub retransmits: u8,
    /// Window and keepalive probes without an answer.
    pub probes: u8,
    /// Doublings of the retransmission timeout.
    pub backoff: u8,
    /// Timestamps are in use.
    pub timestamps: bool,
    /// SACK is in use.
    pub sack: bool,
    /// Window scaling is in use.
    pub window_scaling: bool,
    /// Explicit congestion notification is in use.
    pub ecn: bool,
    /// Data was sent with the SYN and acknowledged with it (Fast Open).
    #[serde(default)]
    pub syn_data: bool,
    /// Shift of the peer's windows.
    pub send_shift: u8,
    /// Shift of our windows.
    pub receive_shift: u8,
    /// Current retransmission timeout.
    #[serde(rename = "rto_us", with = "microseconds")]
    pub rto: Span,
    /// The timer that fires first, if any is on.
    #[serde(default)]
    pub timer: Option<Timer>,
    /// Longest delay of an acknowledgment.
    #[serde(rename = "ato_us", with = "microseconds")]
    pub ato: Span,
    /// Maximum data of a segment that is sent.
    pub send_mss: u32,
    /// Largest data seen in a segment that arrived.
    pub receive_mss: u32,
    /// Our MSS option.
    pub advertised_mss: u16,
    /// MTU of the path as reported by the network, IP header included; `send_mss` shows what probing found.
    pub path_mtu: u32,
    /// Sequence numbers in flight, in segments of `send_mss`.
    pub unacked_segments: u32,
    /// Bytes beyond holes that the peer reported; without SACK, the bytes that its duplicate ACKs stand for.
    pub sacked: u32,
    /// Bytes that count as lost.
    pub lost: u32,
    /// Bytes sent again and not yet acknowledged.
    pub retransmitted: u32,
    /// Time since data was last sent.
    #[serde(rename = "last_data_sent_us", with = "microseconds")]
    pub last_data_sent: Span,
    /// Time since data last arrived.
    #[serde(rename = "last_data_received_us", with = "microseconds")]
    pub last_data_received: Span,
    /// Time since an acknowledgment last arrived.
    #[serde(rename = "last_ack_received_us", with = "microseconds")]
    pub last_ack_received: Span,
    /// Slow start threshold; `u32::MAX` before the first loss.
    pub slow_start_threshold: u32,
    /// Congestion window.
    pub congestion_window: u32,
    /// Smoothed round-trip time; none before the first measurement.
    #[serde(rename = "srtt_us", with = "microseconds::optional")]
    pub srtt: Option<Span>,
    /// Variation of the round-trip time.
    #[serde(rename = "rttvar_us", with = "microseconds::optional")]
    pub rttvar: Option<Span>,
    /// Least round-trip time seen; none before the first measurement.
    #[serde(rename = "min_rtt_us", with = "microseconds::optional")]
    pub min_rtt: Option<Span>,
    /// Duplicate acknowledgments that mean a loss.
    pub reordering_segments: u32,
    /// Acknowledgments that showed that segments arrived out of order (RFC 8985).
    pub reordering_seen: u32,
    /// Window that the peer offers.
    pub send_window: u32,
    /// Window that we offer.
    pub receive_window: u32,
    /// Bytes written and not yet sent.
    pub not_sent: u32,
    /// What keeps the connection from sending more; `None` if nothing more can be written.
    pub limited_by: Option<Limit>,
    /// Data acknowledged by the peer since the start.
    pub bytes_acked: u64,
    /// Data received in order since the start.
    pub bytes_received: u64,
    /// Data sent since the start, retransmissions included.
    pub bytes_sent: u64,
    /// Data sent again since the start.
    pub bytes_retransmitted: u64,
    /// Segments that arrived.
    pub segments_in: u32,
    /// Segments sent.
    pub segments_out: u32,
    /// Segments with data that arrived.
    pub data_segments_in: u32,
    /// Segments with data that were sent.
    pub data_segments_out: u32,
    /// Segments sent again since the start.
    pub total_retransmissions: u32,
    /// Segments that arrived out of order.
    pub out_of_order_segments: u32,
    /// Segments that left the network, by acknowledgment or report.
    pub delivered: u32,
    /// Delivered segments for which the peer echoed congestion.
    pub delivered_ce: u32,
    /// Reports of duplicates (RFC 2883).
    pub duplicate_sacks: u32,
    /// Recent rate at which data left the network, bytes a second; 0 before it is known.
    #[serde(rename = "delivery_rate_bytes_per_second")]
    pub delivery_rate: u64,
}

impl Info {
    /// Serializes the state, with the number of unacknowledged bytes in the send buffer, for [`Info::from_bytes`].
    pub fn to_bytes(&self, unacknowledged: usize) -> Vec<u8> {
        postcard::to_stdvec(&(unacknowledged, self)).unwrap_or_default()
    }

    /// The inverse of [`Info::to_bytes`]. Returns `None` if `bytes` have another format.
    pub fn from_bytes(bytes: &[u8]) -> Option<(Self, usize)> {
        let (unacknowledged, info) = postcard::from_bytes(bytes).ok()?;
        Some((info, unacknowledged))
    }
}

/// Serialization of times as whole microseconds.
mod microseconds {
    use baton_wire::Span;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
        span.as_us().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Span, D::Error> {
        u64::deserialize(source).map(Span::from_us)
    }

    pub(super) mod optional {
        use super::*;

        pub(in super::super) fn serialize<S: Serializer>(
            span: &Option<Span>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            span.map(Span::as_us).serialize(serializer)
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            source: D,
        ) -> Result<Option<Span>, D::Error> {
            Ok(Option::<u64>::deserialize(source)?.map(Span::from_us))
        }
    }
}

/// Counts of one connection since its start, for [`Info`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_received: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_retransmitted: u64,
    pub(crate) segments_in: u32,
    pub(crate) segments_out: u32,
    pub(crate) data_segments_in: u32,
    pub(crate) data_segments_out: u32,
    pub(crate) total_retransmissions: u32,
    pub(crate) out_of_order_segments: u32,
}
