//! What a TCP segment says, as far as its header was captured.

use etherparse::{Ipv6ExtensionSlice, LaxNetSlice, LaxSlicedPacket};
use std::net::{IpAddr, SocketAddr};

/// TCP's number.
const TCP: u8 = 6;
/// Bytes of a TCP header up to its flags.
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
    /// What it acknowledges.
    pub ack: Option<u32>,
    pub syn: bool,
    pub fin: bool,
    pub reset: bool,
    /// Bytes that it carries, whether they were captured or not.
    pub bytes: u32,
}

/// What an IP packet has.
pub(super) enum Content {
    Tcp(Segment),
    OtherIp,
    Fragment,
    HeaderCut,
    NotIp,
}

/// An IP packet without its header.
struct Ip<'a> {
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    /// A fragment that is not the first.
    is_rest: bool,
    /// What was captured of the content.
    content: &'a [u8],
    /// How much there was.
    content_bytes: usize,
}

impl Segment {
    /// The segment in a packet of which only the start may be there. The header is read here and not by the library, which wants all of
    /// it: options are often cut off.
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
        // Headers of extensions have been stepped over: they are in between.
        let before = content.payload.as_ptr() as usize - headers.as_ptr() as usize;
        Some(Self {
            from,
            to,
            protocol: content.ip_number.0,
            is_rest,
            content: content.payload,
            // No length at all is what a capture has of packets that the adapter is to cut.
            content_bytes: match all {
                0 => content.payload.len(),
                all => all.saturating_sub(before),
            },
        })
    }
}
