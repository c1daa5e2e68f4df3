//! Connections and their lifetimes, where the lifetime of a connection is the number of packets sent on it.

use super::ratio;
use super::sizes::Sizes;
use crate::log::Log;
use crate::session::{SessionRule, Sessions};
use serde::Serialize;

/// Bytes of an HTTP response header, as the simulated server sends it.
const HEADER_BYTES: u64 = 250;
/// Payload of a full segment: a 1500-byte MTU less IPv4 and TCP headers and the timestamps option.
const SEGMENT_BYTES: u64 = 1448;
/// Packets that the server sends in addition to data: SYN with ACK, and FIN.
const CONTROL_PACKETS: u64 = 2;
/// Percentages of connections at which the curve has points.
const TOP_PERCENT: [u64; 8] = [1, 2, 5, 10, 20, 50, 80, 100];

/// How requests are grouped into connections.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Connections {
    /// The rule that grouped them.
    pub rule: SessionRule,
    /// Requests per connection.
    pub requests: Sizes,
}

impl Connections {
    /// Computes the statistics of `sessions`, which were grouped by `rule`.
    pub fn of(sessions: &Sessions, rule: SessionRule) -> Self {
        let requests = sessions.iter().map(|c| c.len() as u64).collect();
        Self {
            rule,
            requests: Sizes::of(requests),
        }
    }
}

/// Curve of connection lifetimes (figure 4 of the handoff policies paper). Connections are ranked by the packets that the server sends on
/// them, and the curve shows the share of all packets and of all content bytes that the top of the ranking has.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Lifetimes {
    /// The curve, by ascending share of connections.
    pub curve: Vec<LifetimePoint>,
    /// Packets sent per connection.
    pub packets: Sizes,
}

/// A point of the curve.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LifetimePoint {
    /// Percentage of connections to which the shares belong: the longest-lived ones.
    pub top_percent: u64,
    /// Share of the packets that these connections have, 0 to 1.
    pub packets: f64,
    /// Share of the content bytes that these connections have, 0 to 1.
    pub bytes: f64,
}

impl Lifetimes {
    /// Computes the lifetimes of the connections of `log`.
    pub fn of(log: &Log, sessions: &Sessions) -> Self {
        let connections = sessions.iter().map(|requests| {
            let bytes = || requests.iter().map(|&i| log.requests[i as usize].bytes);
            (packets_sent(bytes()), bytes().sum())
        });
        Self::of_connections(connections.collect())
    }

    /// Computes the lifetimes of connections, given as the packets and content bytes of each.
    pub fn of_connections(mut connections: Vec<(u64, u64)>) -> Self {
        connections.sort_unstable_by_key(|&c| std::cmp::Reverse(c));
        let packets = Sizes::of(connections.iter().map(|c| c.0).collect());
        let all = sum(&connections);
        let point = |top_percent| {
            let top = sum(&connections[..(connections.len() as u64 * top_percent / 100) as usize]);
            LifetimePoint {
                top_percent,
                packets: ratio(top.0, all.0),
                bytes: ratio(top.1, all.1),
            }
        };
        Self {
            curve: TOP_PERCENT.into_iter().map(point).collect(),
            packets,
        }
    }

    /// Returns the share of packets of the top `percent` percent of connections, if the curve has that point.
    pub fn top_packets(&self, percent: u64) -> Option<f64> {
        self.curve
            .iter()
            .find(|p| p.top_percent == percent)
            .map(|p| p.packets)
    }

    /// Returns the share of packets of the shorter-lived half of the connections.
    pub fn bottom_half_packets(&self) -> f64 {
        1.0 - self.top_packets(50).unwrap_or(1.0)
    }
}

/// Returns the number of packets that a server sends on a connection with these responses (content bytes of each): full segments of
/// header and content for each response, plus SYN with ACK and FIN. Pure ACKs are not counted, since a response acknowledges its request in
/// nearly all cases.
pub fn packets_sent(responses: impl Iterator<Item = u64>) -> u64 {
    CONTROL_PACKETS
        + responses
            .map(|bytes| (bytes + HEADER_BYTES).div_ceil(SEGMENT_BYTES))
            .sum::<u64>()
}

fn sum(connections: &[(u64, u64)]) -> (u64, u64) {
    connections
        .iter()
        .fold((0, 0), |all, c| (all.0 + c.0, all.1 + c.1))
}
