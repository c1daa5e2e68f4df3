//! Packets for a router: read from a capture, or generated.

mod stand_ins;
#[cfg(test)]
mod tests;

pub use stand_ins::StandIn;

use crate::capture::{CaptureError, read_routed};
use serde::Serialize;
use std::net::Ipv4Addr;
use std::path::Path;

/// Length of the longest packet that fits in an Ethernet frame, bytes.
pub const MOST_BYTES: u16 = 1_500;

/// The properties of an IPv4 packet that a router uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct TracePacket {
    /// Length including the header, bytes.
    pub len: u16,
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// IP protocol number.
    pub protocol: u8,
    /// Time to live.
    pub ttl: u8,
}

/// Numbers of packets of a capture that are not replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Packets of another protocol.
    pub not_ipv4: u64,
    /// Packets that are longer than a frame.
    pub too_long: u64,
    /// Packets with addresses that no router forwards.
    pub not_forwarded: u64,
}

impl LeftOut {
    /// Returns the total number of packets.
    pub fn total(&self) -> u64 {
        self.not_ipv4 + self.too_long + self.not_forwarded
    }
}

/// A sequence of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketTrace {
    /// Name of the file or of the generator.
    pub name: String,
    /// Packets to replay, at least one.
    pub packets: Vec<TracePacket>,
    /// Numbers of packets that are not replayed.
    pub left_out: LeftOut,
}

impl PacketTrace {
    /// Reads the capture at `path` (pcap, pcapng or ERF, optionally compressed).
    ///
    /// # Errors
    /// The file cannot be read, is not a capture, or has no packet to forward.
    pub fn read(path: &Path) -> Result<Self, CaptureError> {
        read_routed(path)
    }

    /// Returns the mean length of the packets, bytes.
    pub fn mean_bytes(&self) -> f64 {
        let sum: u64 = self
            .packets
            .iter()
            .map(|packet| u64::from(packet.len))
            .sum();
        sum as f64 / self.packets.len() as f64
    }

    /// Returns the share of packets of at most `bytes` bytes, 0 to 1.
    pub fn share_up_to(&self, bytes: u16) -> f64 {
        let within = self.packets.iter().filter(|packet| packet.len <= bytes);
        within.count() as f64 / self.packets.len() as f64
    }
}

/// Returns whether a router forwards packets with these addresses (RFC 1812, 5.3.7). Networks that are reserved for benchmarks are
/// excluded.
pub(crate) fn is_forwarded(packet: &TracePacket) -> bool {
    const TESTS: u32 = 0xc612_0000;
    let is_of_tests = |address: Ipv4Addr| u32::from(address) & 0xfffe_0000 == TESTS;
    let is_of_a_host = |address: Ipv4Addr| {
        let first = address.octets()[0];
        first != 0 && first != 127 && first < 224 && !is_of_tests(address)
    };
    is_of_a_host(packet.src) && is_of_a_host(packet.dst)
}
