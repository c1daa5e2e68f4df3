//! Packets for a router: read from a capture, or generated.

mod stand_ins;
#[cfg(test)]
mod tests;

pub use stand_ins::StandIn;

use crate::capture::{CaptureError, read_routed};
use serde::Serialize;
use std::net::Ipv4Addr;
use std::path::Path;

/// The longest packet that an Ethernet frame carries, bytes.
pub const MOST_BYTES: u16 = 1_500;

/// An IPv4 packet, as far as a router looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct TracePacket {
    /// Bytes, header included.
    pub len: u16,
    /// Sender.
    pub src: Ipv4Addr,
    /// Receiver.
    pub dst: Ipv4Addr,
    /// What it carries, by IP's number.
    pub protocol: u8,
    /// Time to live.
    pub ttl: u8,
}

/// Packets of a capture that are not replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// They are of another protocol.
    pub not_ipv4: u64,
    /// They are longer than a frame.
    pub too_long: u64,
    /// No router forwards what has such addresses.
    pub not_forwarded: u64,
}

impl LeftOut {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.not_ipv4 + self.too_long + self.not_forwarded
    }
}

/// Packets in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketTrace {
    /// Its name: that of the file, or of what was generated.
    pub name: String,
    /// Those that are replayed: at least one.
    pub packets: Vec<TracePacket>,
    /// Those that are not.
    pub left_out: LeftOut,
}

impl PacketTrace {
    /// Reads the capture at `path` (pcap, pcapng or ERF, maybe compressed).
    ///
    /// # Errors
    /// It cannot be read, is no capture, or has nothing to forward.
    pub fn read(path: &Path) -> Result<Self, CaptureError> {
        read_routed(path)
    }

    /// Bytes of a packet in the mean.
    pub fn mean_bytes(&self) -> f64 {
        let sum: u64 = self
            .packets
            .iter()
            .map(|packet| u64::from(packet.len))
            .sum();
        sum as f64 / self.packets.len() as f64
    }

    /// The share of packets that have no more than so many bytes, 0 to 1.
    pub fn share_up_to(&self, bytes: u16) -> f64 {
        let within = self.packets.iter().filter(|packet| packet.len <= bytes);
        within.count() as f64 / self.packets.len() as f64
    }
}

/// Whether a router forwards what has these addresses (RFC 1812, 5.3.7). Networks for tests are left to those who test.
pub(crate) fn is_forwarded(packet: &TracePacket) -> bool {
    const TESTS: u32 = 0xc612_0000;
    let is_of_tests = |address: Ipv4Addr| u32::from(address) & 0xfffe_0000 == TESTS;
    let is_of_a_host = |address: Ipv4Addr| {
        let first = address.octets()[0];
        first != 0 && first != 127 && first < 224 && !is_of_tests(address)
    };
    is_of_a_host(packet.src) && is_of_a_host(packet.dst)
}
