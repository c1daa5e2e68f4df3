//! Parsing of TCP segments as far as their headers were captured.

use etherparse::{Ipv6ExtensionSlice, LaxNetSlice, LaxSlicedPacket};
use std::net::{IpAddr, SocketAddr};

/// IP protocol number of TCP.
const TCP: u8 = 6;
/// Size of a TCP header up to and including its flags.
const TO_FLAGS: usize = 14;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: Option<u32>,
    pub syn: bool,
    pub fin: bool,
    pub reset: bool,
    /// Number of data bytes, whether they were captured or not.
    pub bytes: u32,
}

/// Content of a packet.
pub(super) enum Content {
    Tcp(Segment),
    OtherIp,
    Fragment,
    HeaderCut,
    NotIp,
}

/// An IP packet, parsed.
struct Ip<'a> {
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    /// Whether this is a fragment other than the first.
    is_rest: bool,
    /// Captured part of the payload.
    content: &'a [u8],
    /// Length of the whole payload.
    content_bytes: usize,
}

impl Segment {
    /// Parses the segment in a packet, which may be truncated. This does not use the library, which requires the complete header, because
    /// options are often cut off.
    pub(super) fn of(packet: &LaxSlicedPacket<'_>) -> Content {
        let Some(ip) = packet.net.as_ref().and_then(Ip::of) else {
            return Content::NotIp;
        };
        if ip.protocol != TCP {
            return Content::OtherIp;
        }
        if ip.is_rest {
            return Content::Fragment;
        }
        let Some(header) = ip.content.first_chunk::<TO_FLAGS>() else {
            return Content::HeaderCut;
        };
        let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let number = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let header_bytes = usize::from(header[12] >> 4) * 4;
        let flags = header[13];
        Content::Tcp(Self {
            from: SocketAddr::new(ip.from, port(0)),
            to: SocketAddr::new(ip.to, port(2)),
            seq: number(4),
            ack: (flags & ACK != 0).then(|| number(8)),
            syn: flags & SYN != 0,
            fin: flags & FIN != 0,
            reset: flags & RST != 0,
            bytes: ip.content_bytes.saturating_sub(header_bytes) as u32,
        })
    }
}

impl<'a> Ip<'a> {
    fn of(net: &LaxNetSlice<'a>) -> Option<Self> {
        let content = net.ip_payload_ref()?;
        let (from, to, is_rest, headers, all): (IpAddr, IpAddr, bool, &[u8], usize) = match net {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                (
                    header.source_addr().into(),
                    header.destination_addr().into(),
                    header.fragments_offset().value() > 0,
                    header.slice(),
                    header.total_len().into(),
                )
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let fragment =
                    ip.extensions()
                        .clone()
                        .into_iter()
                        .find_map(|extension| match extension {
                            Ipv6ExtensionSlice::Fragment(fragment) => {
                                Some(fragment.fragment_offset())
                            }
                            _ => None,
                        });
                (
                    header.source_addr().into(),
                    header.destination_addr().into(),
                    fragment.is_some_and(|offset| offset.value() > 0),
                    header.slice(),
                    header.slice().len() + usize::from(header.payload_length()),
                )
            }
            LaxNetSlice::Arp(_) => return None,
        };
        // The payload starts after any extension headers.
        let before = content.payload.as_ptr() as usize - headers.as_ptr() as usize;
        Some(Self {
            from,
            to,
            protocol: content.ip_number.0,
            is_rest,
            content: content.payload,
            // In captures of packets that the adapter will segment (TSO), the length is 0.
            content_bytes: match all {
                0 => content.payload.len(),
                all => all.saturating_sub(before),
            },
        })
    }
}
