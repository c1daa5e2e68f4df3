//! Where Linux goes its own way, rule by rule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What Linux does otherwise than the RFCs have it, beyond what [`Config`](super::Config) names by itself. By default
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinuxRules {
    /// PSH is on the last segment of each burst that leaves as one packet, so that a receiver that merges segments passes
    /// them on at once (since 5.4). Otherwise on the last one of a write only (RFC 9293 3.9.1.2).
    pub push_bursts: bool,
    /// With `hystart`: CUBIC leaves slow start when a train of ACKs is as long as half a round trip or round trips get
    /// longer, at once and after a timeout again. Otherwise as RFC 9406 has it.
    pub hystart: bool,
    /// Each ACK of data that was sent once measures the round trip, also without timestamps, on connections that notice
    /// losses by time; the retransmission timeout is from the largest variance of a round trip. Otherwise one segment of a
    /// round trip is timed (RFC 6298 3).
    pub round_trip_each_ack: bool,
    /// How long nothing was received counts from the establishment, until something is. Otherwise from the first segment.
    pub silence_from_establishment: bool,
    /// The duplicate threshold is the largest degree of reordering that was seen, on connections that use SACK. Otherwise
    /// it is three (RFC 5681 3.2, RFC 6675 2).
    pub adaptive_threshold: bool,
    /// Segments without a timestamp are taken where timestamps were agreed on. Otherwise they are dropped (RFC 7323 3.2).
    pub takes_bare_segments: bool,
    /// An ICMP error that says that the peer cannot be reached ends a request that a listener answered. Otherwise it is left
    /// to its retries (RFC 5927 5.2).
    pub unreachable_ends_half_open: bool,
    /// CUBIC counts whole segments. Otherwise bytes (RFC 9438).
    pub cubic: bool,
    /// What each piece of data that was written takes of the send buffer besides its length, bytes (SO_SNDBUF of Linux counts
    /// the memory of its socket buffers). Otherwise nothing.
    #[schemars(extend("x-unit" = "bytes"))]
    pub piece_overhead: u32,
    /// Data is paced whatever the congestion control, as with Linux's fq: two windows a round trip in slow start, 1.2 later.
    /// Otherwise as the congestion control has it.
    pub paces: bool,
    /// Data is sent no faster, bytes a second (SO_MAX_PACING_RATE), whatever the congestion control; none: only as fast as
    /// that wants it.
    #[schemars(range(min = 1))]
    pub max_pacing_rate: Option<u64>,
}

impl LinuxRules {
    /// Data waits for its time whatever the congestion control wants.
    pub(crate) fn limits_rate(&self) -> bool {
        self.paces || self.max_pacing_rate.is_some()
    }

    /// The RFCs' way throughout.
    pub const NONE: Self = Self {
        push_bursts: false,
        hystart: false,
        round_trip_each_ack: false,
        silence_from_establishment: false,
        adaptive_threshold: false,
        takes_bare_segments: false,
        unreachable_ends_half_open: false,
        cubic: false,
        piece_overhead: 0,
        paces: false,
        max_pacing_rate: None,
    };

    /// Linux's way throughout, without a queue that paces.
    pub const ALL: Self = Self {
        push_bursts: true,
        hystart: true,
        round_trip_each_ack: true,
        silence_from_establishment: true,
        adaptive_threshold: true,
        takes_bare_segments: true,
        unreachable_ends_half_open: true,
        cubic: true,
        piece_overhead: 1280,
        paces: false,
        max_pacing_rate: None,
    };
}

impl Default for LinuxRules {
    fn default() -> Self {
        Self::NONE
    }
}
