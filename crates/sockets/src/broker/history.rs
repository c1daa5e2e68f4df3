//! When and why connections moved, according to the broker.

use baton_wire::Endpoint;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::IpAddr;

/// A filter for connections. A connection must meet all conditions that are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryQuery {
    /// Connections with this address at one end.
    pub addr: Option<IpAddr>,
    /// Connections with this port at one end; at the end with `addr`, if that is given too.
    pub port: Option<u16>,
    /// Whether to include only connections that are not in the kernel now.
    pub away: bool,
    /// Maximum number of connections, most recently moved first. The broker returns no more than fit into its answer.
    pub most: Option<u32>,
}

impl HistoryQuery {
    /// Returns whether the filter includes a connection between these endpoints.
    pub fn is_between(&self, ends: [Endpoint; 2]) -> bool {
        ends.iter().any(|end| {
            self.addr.is_none_or(|addr| addr == end.addr)
                && self.port.is_none_or(|port| port == end.port)
        })
    }
}

/// The broker's answer to a [`HistoryQuery`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryAnswer {
    /// Matching connections, the most recently moved first.
    pub connections: Vec<ConnectionHistory>,
    /// Number of matching connections that were left out because there were too many.
    pub left_out: u64,
    /// Number of connections of all users that the broker has discarded to limit its memory.
    pub forgotten: u64,
}

/// The moves of one connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionHistory {
    /// Local end.
    pub local: Endpoint,
    /// Remote end.
    pub remote: Endpoint,
    /// User ID of the owner.
    pub uid: u32,
    /// Process that first requested a move of the connection.
    pub pid: u32,
    /// Name of that process.
    pub program: String,
    /// Its moves, oldest first.
    pub moves: Vec<MoveRow>,
    /// Number of earlier moves, whose details are discarded.
    pub earlier_moves: u64,
}

/// One move of a connection, or an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveRow {
    /// When the move began, in ms since the start of 1970 (UTC).
    pub at_ms: u64,
    /// Where the connection went.
    pub to: Destination,
    /// Name of the reason.
    pub why: Cow<'static, str>,
    /// For how long neither the kernel nor the adapter had the connection, in microseconds; `None` if unknown or still in progress.
    pub took_us: Option<u32>,
    /// How often the same move happened in succession.
    pub times: u32,
}

/// Where a connection went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// To the adapter.
    Adapter,
    /// Back to the kernel.
    Kernel,
    /// Nowhere: the handoff to the adapter failed, and the connection stayed in the kernel.
    Stayed,
    /// The connection ended on the adapter or during a move.
    Ended,
    /// The connection was reset.
    Reset,
}

impl Destination {
    /// Returns the name to print.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adapter => "to the adapter",
            Self::Kernel => "back to the kernel",
            Self::Stayed => "stayed in the kernel",
            Self::Ended => "ended",
            Self::Reset => "was reset",
        }
    }
}
