//! A connection as tools show it.

use crate::congestion::Phase;
use crate::types::State;
use baton_wire::Span;
use serde::{Deserialize, Serialize};

/// Where congestion control stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CongestionPhase {
    /// Nothing is known to be missing.
    Open,
    /// Duplicate ACKs or SACK blocks came, too few to count as a loss.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// Recovery after a retransmission timeout.
    Loss,
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

/// Everything that a line of `ss -ti` or Linux's `tcp_info` shows. Sizes are in bytes unless a name says segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// State of RFC 9293 3.3.2.
    pub state: State,
    /// Where congestion control stands.
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
    /// Shift of the peer's windows.
    pub send_shift: u8,
    /// Shift of our windows.
    pub receive_shift: u8,
    /// Retransmission timeout as it stands.
    pub rto: Span,
    /// Longest delay of an acknowledgment.
    pub ato: Span,
    /// Most data in a segment that is sent.
    pub send_mss: u32,
    /// Largest data seen in a segment that arrived.
    pub receive_mss: u32,
    /// Our MSS option.
    pub advertised_mss: u16,
    /// MTU of the path as far as it is known, IP header included.
    pub path_mtu: u32,
    /// Sequence numbers in flight, in segments of `send_mss`.
    pub unacked_segments: u32,
    /// Bytes that the peer reported to have received beyond holes; without SACK those that its duplicate ACKs stand for.
    pub sacked: u32,
    /// Bytes taken to be lost.
    pub lost: u32,
    /// Bytes sent again and not yet acknowledged.
    pub retransmitted: u32,
    /// Time since data was last sent.
    pub last_data_sent: Span,
    /// Time since data last arrived.
    pub last_data_received: Span,
    /// Time since an acknowledgment last arrived.
    pub last_ack_received: Span,
    /// Slow start threshold; `u32::MAX` before the first loss.
    pub slow_start_threshold: u32,
    /// Congestion window.
    pub congestion_window: u32,
    /// Smoothed round-trip time; none before the first measurement.
    pub srtt: Option<Span>,
    /// Its variation.
    pub rttvar: Option<Span>,
    /// Least round-trip time seen; none before the first measurement.
    pub min_rtt: Option<Span>,
    /// Duplicate acknowledgments that mean a loss.
    pub reordering_segments: u32,
    /// Segments arrived out of the order in which they were sent (RFC 8985).
    pub reordering_seen: bool,
    /// Window that the peer offers.
    pub send_window: u32,
    /// Window that we offer.
    pub receive_window: u32,
    /// Written and not yet sent.
    pub not_sent: u32,
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
    /// The same, of which the peer said that they met congestion.
    pub delivered_ce: u32,
    /// Reports that something arrived twice (RFC 2883).
    pub duplicate_sacks: u32,
    /// Rate at which data left the network lately, bytes a second; 0 before it is known.
    pub delivery_rate: u64,
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
