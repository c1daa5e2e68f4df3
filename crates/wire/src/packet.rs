//! TCP segments as packets without their data, and errors of encoding and decoding.

use crate::{Ecn, Endpoint, Header};
use std::net::IpAddr;

/// A segment without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Sender.
    pub src: Endpoint,
    /// Receiver.
    pub dst: Endpoint,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// TCP header.
    pub header: Header,
}

impl Packet {
    /// Returns a borrowed view.
    pub fn head(&self) -> Head<'_> {
        Head {
            src: self.src,
            dst: self.dst,
            ecn: self.ecn,
            header: &self.header,
        }
    }
}

/// A segment without its data, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// Sender.
    pub src: Endpoint,
    /// Receiver.
    pub dst: Endpoint,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// TCP header.
    pub header: &'a Header,
}

/// A link, as the Ethernet addresses of its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Sender.
    pub src: [u8; 6],
    /// Receiver.
    pub dst: [u8; 6],
}

impl Link {
    /// Creates locally administered Ethernet addresses that contain the Internet addresses, for simulated links.
    pub fn between(src: IpAddr, dst: IpAddr) -> Self {
        Self {
            src: ethernet_address(src),
            dst: ethernet_address(dst),
        }
    }
}

/// Returns `02:00` followed by the last four bytes of the Internet address.
fn ethernet_address(addr: IpAddr) -> [u8; 6] {
    let [a, b, c, d] = match addr {
        IpAddr::V4(addr) => addr.octets(),
        IpAddr::V6(addr) => (addr.to_bits() as u32).to_be_bytes(),
    };
    [2, 0, a, b, c, d]
}

/// The reason why a segment cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The addresses have different IP versions.
    #[error("one end has an IPv4 address and the other an IPv6 address")]
    MixedVersions,
    /// The segment does not fit into an IP packet.
    #[error("{0} bytes do not fit into an IP packet")]
    TooLong(usize),
    /// The options do not fit into a TCP header, which has space for 40 bytes of them.
    #[error("{0} bytes of options do not fit into a TCP header")]
    TooManyOptions(usize),
}

/// The reason why bytes are not a valid segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DecodeError {
    /// A header or the data is truncated, or a length field is invalid.
    #[error("a header is incomplete or malformed")]
    Malformed,
    /// The packet does not carry TCP over IP.
    #[error("the frame does not carry TCP over IP")]
    NotTcp,
    /// The packet is a fragment.
    #[error("the packet is a fragment")]
    Fragment,
    /// The IPv4 header's checksum is wrong.
    #[error("the IPv4 header checksum is wrong")]
    IpChecksum,
    /// The TCP checksum is wrong.
    #[error("the TCP checksum is wrong")]
    TcpChecksum,
}
