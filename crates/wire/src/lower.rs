//! The headers below TCP, built once for all segments from one address to another.

use crate::encode::MOST_TCP_HEADER_LEN;
use crate::{Checksum, EncodeError, Head, Link};
use etherparse::{EtherType, Ethernet2Header, IpNumber, Ipv4Header, Ipv6Header};
use std::net::IpAddr;

/// Hop limit of packets: the usual value, which RFC 1700 recommends.
pub const HOP_LIMIT: u8 = 64;

/// Maximum length of all headers, bytes.
pub(crate) const MOST_LEN: usize = ETHERNET_LEN + IPV6_LEN + MOST_TCP_HEADER_LEN;

const ETHERNET_LEN: usize = 14;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;

/// Minimum length of the data of a segment whose checksum is left to a device, bytes. Others are cheap to compute.
const LEAST_LEFT: usize = 256;

/// Offsets of fields in an IPv4 header (RFC 791 3.1).
const IPV4_TYPE_OF_SERVICE_AT: usize = 1;
const IPV4_LENGTH_AT: usize = 2;
const IPV4_CHECKSUM_AT: usize = 10;

/// Offsets of fields in an IPv6 header (RFC 8200 3). The ECN field is the lower half of the byte's upper half.
const IPV6_TRAFFIC_CLASS_AT: usize = 1;
/// The lower 16 of the flow label's 20 bits. The others share a byte with the ECN field.
const IPV6_FLOW_LABEL_AT: usize = 2;
const IPV6_LENGTH_AT: usize = 4;

/// The headers below TCP of segments from one address to another, optionally including Ethernet's. Only few of their fields differ between
/// segments, the length, the ECN field and IPv6's flow label: a library builds the rest once.
#[derive(Clone, Copy, Debug)]
pub struct LowerHeaders {
    /// The headers, followed by zeros as space for a TCP header: the beginning of a frame is copied from here.
    bytes: [u8; MOST_LEN],
    len: usize,
    /// Offset of the IP header.
    ip_start: usize,
    version: Version,
    /// Sum of the pseudo-header without the length.
    pseudo_header: Checksum,
    /// Whether a device completes the checksums of segments with much data.
    leaves_checksums: bool,
}

#[derive(Clone, Copy, Debug)]
enum Version {
    /// Contains the sum of the header without the two fields.
    V4(Checksum),
    /// Contains the key of the flow labels, if packets have them.
    V6(Option<u64>),
}

impl LowerHeaders {
    /// Builds the headers of segments from `src` to `dst`, including Ethernet's if `link` is given. IPv4 packets must not be fragmented on
    /// their way (RFC 1191 3).
    ///
    /// # Errors
    /// When the addresses are of different versions.
    pub fn new(link: Option<Link>, src: IpAddr, dst: IpAddr) -> Result<Self, EncodeError> {
        let mut bytes = [0; MOST_LEN];
        let mut len = 0;
        let mut append = |part: &[u8]| {
            bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        };
        if let Some(link) = link {
            append(&ethernet_header(link, src));
        }
        let version = match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let (src, dst) = (src.octets(), dst.octets());
                let mut ip = Ipv4Header::new(0, HOP_LIMIT, IpNumber::TCP, src, dst)
                    .map_err(|_| EncodeError::TooLong(0))?;
                ip.total_len = 0;
                let ip = ip.to_bytes();
                append(&ip);
                Version::V4(Checksum::new().add_bytes(&ip))
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let ip = Ipv6Header {
                    next_header: IpNumber::TCP,
                    hop_limit: HOP_LIMIT,
                    source: src.octets(),
                    destination: dst.octets(),
                    ..Ipv6Header::default()
                };
                append(&ip.to_bytes());
                Version::V6(None)
            }
            _ => return Err(EncodeError::MixedVersions),
        };
        Ok(Self {
            bytes,
            len,
            ip_start: link.map_or(0, |_| ETHERNET_LEN),
            version,
            pseudo_header: pseudo_header(src, dst, IpNumber::TCP.0, 0),
            leaves_checksums: false,
        })
    }

    /// Gives IPv6 packets a flow label per pair of ports (RFC 6437 3), so that routers with several paths spread connections. The same `key`
    /// gives the same labels.
    #[must_use]
    pub fn with_flow_labels(mut self, key: u64) -> Self {
        if let Version::V6(labels) = &mut self.version {
            *labels = Some(key);
        }
        self
    }

    /// Leaves the checksum of each segment with much data to a device, which adds it to the sum of the pseudo-header in the checksum field (as
    /// VIRTIO_NET_HDR_F_NEEDS_CSUM of the virtio specification says, 5.1.6.2).
    #[must_use]
    pub fn leaving_checksums(mut self, leaves: bool) -> Self {
        self.leaves_checksums = leaves;
        self
    }

    /// Returns whether a device computes the checksum of a segment with this much data.
    pub(crate) fn leaves_checksum(&self, data_len: usize) -> bool {
        self.leaves_checksums && data_len >= LEAST_LEFT
    }

    /// Returns the length of the headers in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the headers, followed by `tcp_header_len` zeros for a TCP header.
    pub(crate) fn with_room(&self, tcp_header_len: usize) -> &[u8] {
        &self.bytes[..self.len + tcp_header_len]
    }

    /// Returns `tcp_len` if a segment of this length fits into a packet.
    #[inline]
    pub(crate) fn check_len(&self, tcp_len: usize) -> Result<u16, EncodeError> {
        let most = match self.version {
            Version::V4(_) => usize::from(u16::MAX) - IPV4_LEN,
            Version::V6(_) => usize::from(u16::MAX),
        };
        match tcp_len <= most {
            true => Ok(tcp_len as u16),
            false => Err(EncodeError::TooLong(tcp_len)),
        }
    }

    /// Fills in the fields that differ in a frame that begins with these headers; returns the sum of the segment's pseudo-header.
    #[inline]
    pub(crate) fn complete(&self, tcp_len: u16, head: Head<'_>, frame: &mut [u8]) -> Checksum {
        let ip = &mut frame[self.ip_start..self.len];
        let ecn = head.ecn.to_traffic_class();
        let mut put = |at: usize, field: [u8; 2]| ip[at..at + 2].copy_from_slice(&field);
        match self.version {
            Version::V4(sum) => {
                let total_len = tcp_len + IPV4_LEN as u16;
                put(IPV4_LENGTH_AT, total_len.to_be_bytes());
                let sum = sum.add_u16(total_len).add_u16(ecn.into());
                put(IPV4_CHECKSUM_AT, sum.to_bytes());
                ip[IPV4_TYPE_OF_SERVICE_AT] = ecn;
            }
            Version::V6(labels) => {
                put(IPV6_LENGTH_AT, tcp_len.to_be_bytes());
                let [_, high, middle, low] =
                    labels.map_or(0, |key| flow_label(key, head)).to_be_bytes();
                put(IPV6_FLOW_LABEL_AT, [middle, low]);
                ip[IPV6_TRAFFIC_CLASS_AT] = ecn << 4 | high;
            }
        }
        self.pseudo_header.add_u16(tcp_len)
    }
}

/// Returns the flow label of a connection, which routers hash together with the addresses (RFC 6437 2). It is never 0: that means none.
#[inline]
fn flow_label(key: u64, head: Head<'_>) -> u32 {
    let ports = u64::from(head.src.port) << 16 | u64::from(head.dst.port);
    // A multiplicative hash, whose upper bits depend on all bits of the ports.
    let hash = (ports ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((hash >> 44) as u32).max(1)
}

/// Returns the header of an Ethernet frame that carries a packet from `src`.
pub(crate) fn ethernet_header(link: Link, src: IpAddr) -> [u8; ETHERNET_LEN] {
    let ethernet = Ethernet2Header {
        source: link.src,
        destination: link.dst,
        ether_type: match src {
            IpAddr::V4(_) => EtherType::IPV4,
            IpAddr::V6(_) => EtherType::IPV6,
        },
    };
    ethernet.to_bytes()
}

/// Returns the sum of a pseudo-header (RFC 9293 3.1, RFC 8200 8.1): addresses, protocol number and length of the payload.
#[inline]
pub fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8, len: u16) -> Checksum {
    let sum = Checksum::new().add_u16(protocol.into()).add_u16(len);
    [src, dst].iter().fold(sum, |sum, addr| match addr {
        IpAddr::V4(addr) => sum.add_words(&addr.octets()),
        IpAddr::V6(addr) => sum.add_words(&addr.octets()),
    })
}
