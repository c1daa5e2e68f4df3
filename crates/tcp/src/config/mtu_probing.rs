//! Finding out the path's MTU by sending larger segments (RFC 4821).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When to probe for the path's MTU (tcp_mtu_probing).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbePathMtu {
    /// Never: only ICMP messages report the MTU.
    #[default]
    Off,
    /// After successive timeouts suggest that packets of the present size are silently lost.
    AfterBlackHole,
    /// From the start, beginning with segments of `base_mss`.
    Always,
}

/// Packetization layer path MTU discovery (RFC 4821). Now and then a segment of queued data is larger than the others; if it arrives,
/// others may be as large. Sizes are bytes of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MtuProbing {
    /// When to probe for the path's MTU.
    pub when: ProbePathMtu,
    /// Size at which the search begins (tcp_base_mss; RFC 4821 7.2: an MTU of 1024 or 1280).
    #[schemars(range(min = LEAST_BASE_MSS), extend("x-unit" = "bytes"))]
    pub base_mss: u16,
    /// Size below which repeated timeouts do not reduce segments (tcp_mtu_probe_floor).
    #[schemars(range(min = 1), extend("x-unit" = "bytes"))]
    pub floor_mss: u16,
    /// Time after which a searched path is searched again for a larger MTU, s (tcp_probe_interval).
    #[schemars(range(min = 1))]
    pub interval_s: u32,
    /// The search ends when the remaining interval is smaller than this (tcp_probe_threshold).
    #[schemars(range(min = LEAST_THRESHOLD), extend("x-unit" = "bytes"))]
    pub threshold: u16,
}

/// Least size to begin with, as for any MSS.
pub(super) const LEAST_BASE_MSS: u64 = 64;

/// Least threshold: no size lies between two adjacent ones.
pub(super) const LEAST_THRESHOLD: u64 = 2;

impl Default for MtuProbing {
    /// Off; all other values are those of Linux.
    fn default() -> Self {
        Self {
            when: ProbePathMtu::Off,
            base_mss: 1024,
            floor_mss: 48,
            interval_s: 600,
            threshold: 8,
        }
    }
}
