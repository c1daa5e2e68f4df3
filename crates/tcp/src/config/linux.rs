//! Deviations of Linux from the RFCs, rule by rule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Deviations of Linux from the RFCs, beyond those that [`Config`](super::Config) names itself. By default none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinuxRules {
    /// Set PSH on the last segment of each burst that leaves as one packet, so that a receiver that merges segments passes them on
    /// immediately (since 5.4). Otherwise PSH is only on the last segment of a write (RFC 9293 3.9.1.2).
    pub push_bursts: bool,
    /// With `hystart`: CUBIC leaves slow start as soon as a train of ACKs lasts half a round trip or round trips get longer, also in the
    /// slow start after a timeout. Otherwise CUBIC follows RFC 9406.
    pub hystart: bool,
    /// Measure the round trip by each ACK of data that was sent once, also without timestamps, on connections that detect losses by time.
    /// The retransmission timeout follows the largest variance of a round trip. Otherwise one segment in a round trip is timed (RFC 6298
    /// 3).
    pub round_trip_each_ack: bool,
    /// Count the time without received data from the establishment of the connection until data arrives. Otherwise this time counts from
    /// the first segment.
    pub silence_from_establishment: bool,
    /// Use the largest degree of reordering seen as duplicate threshold, on connections that use SACK. Otherwise the threshold is three
    /// (RFC 5681 3.2, RFC 6675 2).
    pub adaptive_threshold: bool,
    /// Accept segments without a timestamp where timestamps were negotiated. Otherwise they are dropped (RFC 7323 3.2).
    pub takes_bare_segments: bool,
    /// An ICMP error that reports the peer as unreachable ends a request that a listener has answered. Otherwise the request is left to its
    /// retries (RFC 5927 5.2).
    pub unreachable_ends_half_open: bool,
    /// Data that was received before a reset or a timeout stays readable. Otherwise it is dropped (RFC 9293 3.10.7.4).
    pub keeps_received: bool,
    /// CUBIC counts whole segments. Otherwise it counts bytes (RFC 9438).
    pub cubic: bool,
    /// Send buffer space that each piece of written data takes besides its length, bytes (SO_SNDBUF of Linux counts the memory of its
    /// socket buffers). Otherwise a piece takes nothing more.
    #[schemars(extend("x-unit" = "bytes"))]
    pub piece_overhead: u32,
    /// Pace data under any congestion control, as fq of Linux does: two windows a round trip in slow start, 1.2 later. Otherwise the
    /// congestion control decides.
    pub paces: bool,
    /// Maximum sending rate, bytes a second (SO_MAX_PACING_RATE), under any congestion control; none: only the congestion control limits
    /// the rate.
    #[schemars(range(min = 1))]
    pub max_pacing_rate: Option<u64>,
}

impl LinuxRules {
    /// Reports whether data is paced even if the congestion control does not request it.
    pub(crate) fn limits_rate(&self) -> bool {
        self.paces || self.max_pacing_rate.is_some()
    }

    /// Follows the RFCs in every rule.
    pub const NONE: Self = Self {
        push_bursts: false,
        hystart: false,
        round_trip_each_ack: false,
        silence_from_establishment: false,
        adaptive_threshold: false,
        takes_bare_segments: false,
        unreachable_ends_half_open: false,
        keeps_received: false,
        cubic: false,
        piece_overhead: 0,
        paces: false,
        max_pacing_rate: None,
    };

    /// Follows Linux in every rule, with a queueing discipline that does not pace.
    pub const ALL: Self = Self {
        push_bursts: true,
        hystart: true,
        round_trip_each_ack: true,
        silence_from_establishment: true,
        adaptive_threshold: true,
        takes_bare_segments: true,
        unreachable_ends_half_open: true,
        keeps_received: true,
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
