//! Statistics of the connections in a capture.

use super::connections::Connection;
use super::{CaptureFormat, Connections, PacketCounts};
use crate::analyse::{Lifetimes, Sizes};
use serde::Serialize;

/// Statistics of a packet capture.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CaptureAnalysis {
    /// File format of the capture.
    pub format: CaptureFormat,
    /// Counts of its packets.
    pub packets: PacketCounts,
    /// Time of the first segment, microseconds since 1970.
    pub first_us: u64,
    /// Time of the last segment, microseconds since 1970.
    pub last_us: u64,
    /// Counts of its connections.
    pub connections: ConnectionCounts,
    /// Time from the first to the last segment of connections that were captured completely, milliseconds.
    pub lifetime_ms: Sizes,
    /// Time from the first to the last segment of all other connections, which is a lower bound of their lifetime, milliseconds.
    pub at_least_ms: Sizes,
    /// Bytes that clients sent, for all connections.
    pub client_bytes: Sizes,
    /// Bytes that servers sent, for all connections.
    pub server_bytes: Sizes,
    /// Distribution of segments and bytes over connections.
    pub lifetimes: Lifetimes,
    /// Limits of what the capture shows, in sentences.
    pub limits: Vec<String>,
}

/// Counts of the connections in a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ConnectionCounts {
    /// All connections.
    pub all: u64,
    /// Connections that began and ended within the capture.
    pub whole: u64,
    /// Connections that existed before the capture began.
    pub begun_before: u64,
    /// Connections whose end was not captured.
    pub not_ended: u64,
    /// Connections of which only one direction was captured.
    pub one_way: u64,
    /// Segments and acknowledgments whose sequence numbers are too far from all others of their connection.
    pub stray_segments: u64,
}

impl CaptureAnalysis {
    /// Analyses these connections; `cut_off` is set if the capture ends within a packet.
    pub(super) fn of(
        format: CaptureFormat,
        packets: PacketCounts,
        connections: &Connections,
        cut_off: bool,
    ) -> Self {
        let all = connections.all();
        let (whole, rest): (Vec<&Connection>, Vec<&Connection>) =
            all.iter().partition(|one| one.begun && one.ended());
        let count = |is: fn(&Connection) -> bool| all.iter().filter(|one| is(one)).count() as u64;
        let counts = ConnectionCounts {
            all: all.len() as u64,
            whole: whole.len() as u64,
            begun_before: count(|one| !one.begun),
            not_ended: count(|one| !one.ended()),
            one_way: count(Connection::is_one_way),
            stray_segments: all.iter().map(Connection::strays).sum(),
        };
        let limits = limits(&packets, &counts, cut_off);
        let lifetimes_ms = |some: &[&Connection]| {
            let ms = some.iter().map(|one| (one.last_us - one.first_us) / 1000);
            Sizes::of(ms.collect())
        };
        let bytes = |one: &Connection| one.bytes(0) + one.bytes(1);
        Self {
            format,
            packets,
            first_us: all.iter().map(|one| one.first_us).min().unwrap_or(0),
            last_us: all.iter().map(|one| one.last_us).max().unwrap_or(0),
            connections: counts,
            lifetime_ms: lifetimes_ms(&whole),
            at_least_ms: lifetimes_ms(&rest),
            client_bytes: Sizes::of(all.iter().map(|one| one.bytes(1 - one.server)).collect()),
            server_bytes: Sizes::of(all.iter().map(|one| one.bytes(one.server)).collect()),
            lifetimes: Lifetimes::of_connections(
                all.iter().map(|one| (one.packets(), bytes(one))).collect(),
            ),
            limits,
        }
    }
}

fn limits(packets: &PacketCounts, counts: &ConnectionCounts, cut_off: bool) -> Vec<String> {
    let ConnectionCounts {
        all,
        begun_before,
        not_ended,
        one_way,
        stray_segments,
        ..
    } = counts;
    let PacketCounts {
        fragments,
        headers_cut,
        truncated,
        without_time,
        not_looked_into,
        ..
    } = packets;
    let limit = |holds: bool, text: String| holds.then_some(text);
    let limits = [
        limit(
            *begun_before > 0,
            format!(
                "{begun_before} of {all} connections began before the capture: their lifetimes and bytes are lower bounds, and the end \
                 with the lower port is taken for the server"
            ),
        ),
        limit(
            *not_ended > 0,
            format!(
                "{not_ended} of {all} connections had not ended when the capture ended, or their end was not captured: their lifetimes are \
                 lower bounds"
            ),
        ),
        limit(
            *one_way > 0,
            format!(
                "{one_way} of {all} connections were captured in one direction only: the bytes of the other end are taken from the \
                 acknowledgments and may be one too many, its packets are not counted, and it may have sent more after the last captured segment"
            ),
        ),
        limit(
            *truncated > 0,
            format!(
                "{truncated} packets were captured in part: the sizes of segments are taken from their headers, and their content, such as \
                 requests, is unknown"
            ),
        ),
        limit(
            *headers_cut > 0,
            format!(
                "{headers_cut} segments are left out, because their TCP flags were not captured"
            ),
        ),
        limit(
            *fragments > 0,
            format!(
                "{fragments} fragments are left out, because only the first fragment of a packet says to which connection it belongs"
            ),
        ),
        limit(
            *stray_segments > 0,
            format!(
                "{stray_segments} numbers of segments or acknowledgments are beyond the window, and no other segment follows them: they add \
                 no bytes"
            ),
        ),
        limit(
            *without_time > 0,
            format!(
                "{without_time} packets have no time (simple packet blocks): they count as captured at the time of the packet before"
            ),
        ),
        limit(
            cut_off,
            "the capture ends within a packet, which is left out".to_owned(),
        ),
    ];
    let unread = not_looked_into.iter().map(|(name, packets)| {
        format!("{packets} packets are in {name}, which is not looked into")
    });
    limits.into_iter().flatten().chain(unread).collect()
}
