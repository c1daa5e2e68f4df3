//! TCP segments as packets: all of them but their data, and why bytes and packets do not match.

use crate::{Ecn, Endpoint, Header};
use std::net::IpAddr;

/// All of a segment but its data.
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
    /// The same, lent.
    pub fn head(&self) -> Head<'_> {
        Head {
            src: self.src,
            dst: self.dst,
            ecn: self.ecn,
            header: &self.header,
        }
    }
}

/// All of a segment but its data, lent by whoever holds the segment.
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

/// The two ends of a link, as their Ethernet addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Sender.
    pub src: [u8; 6],
    /// Receiver.
    pub dst: [u8; 6],
}

impl Link {
    /// Made-up, locally administered Ethernet addresses that show the Internet addresses, for simulated links.
    pub fn between(src: IpAddr, dst: IpAddr) -> Self {
        Self {
            src: ethernet_address(src),
            dst: ethernet_address(dst),
        }
    }
}

/// `02:00` and the last four bytes of the Internet address.
fn ethernet_address(addr: IpAddr) -> [u8; 6] {
    let [a, b, c, d] = match addr {
        IpAddr::V4(addr) => addr.octets(),
        IpAddr::V6(addr) => (addr.to_bits() as u32).to_be_bytes(),
    };
    [2, 0, a, b, c, d]
}

/// Why a segment cannot be written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The ends have addresses of different versions.
    #[error("one end has an IPv4 address and the other an IPv6 address")]
    MixedVersions,
    /// It does not fit into an IP packet.
    #[error("{0} bytes do not fit into an IP packet")]
    TooLong(usize),
    /// Its options do not fit into a TCP header, which has room for 40 bytes of them.
    #[error("{0} bytes of options do not fit into a TCP header")]
    TooManyOptions(usize),
}

/// Why bytes are not taken as a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DecodeError {
    /// A header or the data is cut off, or a length field says nonsense.
    #[error("a header is incomplete or breaks its format")]
    Malformed,
    /// It carries something other than TCP over IP.
    #[error("it does not carry TCP over IP")]
    NotTcp,
    /// It is a fragment of a packet.
    #[error("it is a fragment")]
    Fragment,
    /// The IPv4 header's checksum is wrong.
    #[error("the IPv4 header checksum is wrong")]
    IpChecksum,
    /// The TCP checksum is wrong.
    #[error("the TCP checksum is wrong")]
    TcpChecksum,
}
