//! Parsing of TCP segments as far as their headers were captured.

use super::Captured;
use super::link::tunnelled;
use etherparse::{Ipv6ExtensionSlice, LaxNetSlice, LaxSlicedPacket};
use std::net::{IpAddr, SocketAddr};

/// IP protocol number of TCP.
const TCP: u8 = 6;
/// Size of a TCP header up to and including its flags.
const TO_FLAGS: usize = 14;
/// The longest packet that Linux makes of segments, bytes (`GSO_MAX_SIZE`).
const BIG_TCP: usize = 8 * 65_535;
/// Maximum number of IP packets inside one another that are read.
const MOST_TUNNELS: usize = 8;

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
    /// The advertised window, not scaled; 0 if it was not captured.
    pub window: u16,
    /// In a SYN, the power of two by which the end's windows are scaled, if the options were captured.
    pub scale: Option<u8>,
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
    /// A protocol that is not read, by its name.
    Unread(String),
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
    /// Parses the segment in a packet, or in tunnels in it. This does not use the library for TCP, which requires the complete header,
    /// because options are often cut off.
    pub(super) fn of(packet: &Captured<'_>) -> Content {
        let mut rest = match packet.link.ip(packet.data) {
            Ok(rest) => rest,
            Err(name) => return name.map_or(Content::NotIp, Content::Unread),
        };
        for _ in 0..MOST_TUNNELS {
            let Ok(sliced) = LaxSlicedPacket::from_ip(rest) else {
                return Content::NotIp;
            };
            let Some(ip) = sliced
                .net
                .as_ref()
                .and_then(|net| Ip::of(net, packet.missing))
            else {
                return Content::NotIp;
            };
            match ip.protocol {
                _ if ip.is_rest => return Content::Fragment,
                TCP => return Self::of_ip(&ip),
                _ => {}
            }
            let inner = match tunnelled(ip.protocol, ip.content) {
                Ok(inner) => inner.map(|(link, frame)| link.ip(frame)),
                Err(name) => return Content::Unread(name.to_owned()),
            };
            match inner {
                Some(Ok(inner)) => rest = inner,
                Some(Err(Some(name))) => return Content::Unread(name),
                Some(Err(None)) | None => return Content::OtherIp,
            }
        }
        Content::OtherIp
    }

    fn of_ip(ip: &Ip<'_>) -> Content {
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
            window: match ip.content.get(14..16) {
                Some(&[high, low]) => u16::from_be_bytes([high, low]),
                _ => 0,
            },
            scale: match flags & SYN {
                0 => None,
                _ => ip.content.get(20..header_bytes).map(scale),
            },
            bytes: ip.content_bytes.saturating_sub(header_bytes) as u32,
        })
    }
}

/// Returns the window scale in TCP's options, 0 if there is none (RFC 7323).
fn scale(options: &[u8]) -> u8 {
    let mut rest = options;
    loop {
        match *rest {
            [] | [0, ..] => return 0,
            [1, ref after @ ..] => rest = after,
            [3, 3, scale, ..] => return scale.min(14),
            [_, length, ..] if length > 1 => rest = rest.get(length.into()..).unwrap_or_default(),
            _ => return 0,
        }
    }
}

impl<'a> Ip<'a> {
    /// Parses a packet of which `missing` bytes at the end were not captured.
    fn of(net: &LaxNetSlice<'a>, missing: usize) -> Option<Self> {
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
                    match header.payload_length() {
                        0 => 0,
                        bytes => header.slice().len() + usize::from(bytes),
                    },
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
            // In captures of packets that the adapter will segment (TSO), and of those above 64 KiB (BIG TCP), the length is 0.
            content_bytes: match all {
                0 => (content.payload.len() + missing).min(BIG_TCP),
                all => all.saturating_sub(before),
            },
        })
    }
}
