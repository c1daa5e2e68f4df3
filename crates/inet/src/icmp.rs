//! ICMP errors: their meaning for a connection, the segments that they quote, and their encoding.

use baton_tcp::PathError;
use baton_wire::{Endpoint, Flow, HOP_LIMIT, SeqNr};
use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::icmpv6::{DestUnreachableCode, ParameterProblemCode};
use etherparse::{
    Icmpv4Header, Icmpv4Type, Icmpv6Type, IpNumber, Ipv4Header, Ipv4HeaderSlice, Ipv6Header,
    Ipv6HeaderSlice,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest ICMP error over IPv4, IP header included, bytes (RFC 1812 4.3.2.3).
const LONGEST_ERROR_V4: usize = 576;

/// Longest ICMP error over IPv6, IP header included, bytes (RFC 4443 2.4(c)).
const LONGEST_ERROR_V6: usize = 1280;

/// Bytes of an ICMP header (RFC 792, RFC 4443).
const ICMP_HEADER_LEN: usize = 8;

/// The segment that an error quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quote {
    /// The connection as the sender of the segment, this host, names it.
    pub(crate) flow: Flow,
    pub(crate) seq: SeqNr,
}

impl Quote {
    /// Reads the beginning of an IP packet. Returns `None` if it is not a segment, or too short.
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                let ip = Ipv4HeaderSlice::from_slice(packet).ok()?;
                let first = ip.fragments_offset().value() == 0;
                let tcp = &packet[ip.slice().len()..];
                (ip.protocol() == IpNumber::TCP && first)
                    .then(|| Self::of(ip.source_addr().into(), ip.destination_addr().into(), tcp))?
            }
            6 => {
                let ip = Ipv6HeaderSlice::from_slice(packet).ok()?;
                let tcp = &packet[ip.slice().len()..];
                (ip.next_header() == IpNumber::TCP)
                    .then(|| Self::of(ip.source_addr().into(), ip.destination_addr().into(), tcp))?
            }
            _ => None,
        }
    }

    /// Reads the first eight bytes of the TCP header, ports and sequence number: errors need not quote more (RFC 792).
    fn of(src: IpAddr, dst: IpAddr, tcp: &[u8]) -> Option<Self> {
        let [a, b, c, d, seq @ ..] = tcp.first_chunk::<8>()?;
        let port = |high: u8, low: u8| u16::from_be_bytes([high, low]);
        Some(Self {
            flow: Flow {
                local: Endpoint::new(src, port(*a, *b)),
                remote: Endpoint::new(dst, port(*c, *d)),
            },
            seq: SeqNr(u32::from_be_bytes(*seq)),
        })
    }
}

/// Converts an ICMPv4 message to an error for a connection; `None` if the message is no error (RFC 1122 3.2.2, 4.2.3.9).
pub(crate) fn path_error_v4(message: &Icmpv4Type) -> Option<PathError> {
    use DestUnreachableHeader as Unreachable;
    match message {
        Icmpv4Type::DestinationUnreachable(why) => Some(match why {
            Unreachable::Network
            | Unreachable::SourceRouteFailed
            | Unreachable::NetworkUnknown
            | Unreachable::TosNetwork => PathError::NetUnreachable,
            Unreachable::Host
            | Unreachable::HostUnknown
            | Unreachable::Isolated
            | Unreachable::TosHost => PathError::HostUnreachable,
            Unreachable::Protocol => PathError::ProtocolUnreachable,
            Unreachable::Port => PathError::PortUnreachable,
            Unreachable::FragmentationNeeded { next_hop_mtu } => {
                PathError::FragmentationNeeded { mtu: *next_hop_mtu }
            }
            Unreachable::NetworkProhibited
            | Unreachable::HostProhibited
            | Unreachable::FilterProhibited
            | Unreachable::HostPrecedenceViolation
            | Unreachable::PrecedenceCutoff => PathError::AdminProhibited,
        }),
        Icmpv4Type::TimeExceeded(_) => Some(PathError::TimeExceeded),
        Icmpv4Type::ParameterProblem(_) => Some(PathError::ParameterProblem),
        _ => None,
    }
}

/// Converts an ICMPv6 message to an error for a connection; `None` if the message is no error (RFC 4443 3).
pub(crate) fn path_error_v6(message: &Icmpv6Type) -> Option<PathError> {
    use DestUnreachableCode as Unreachable;
    match message {
        Icmpv6Type::DestinationUnreachable(why) => Some(match why {
            Unreachable::NoRoute | Unreachable::BeyondScope => PathError::NetUnreachable,
            Unreachable::Address => PathError::HostUnreachable,
            Unreachable::Port => PathError::PortUnreachable,
            Unreachable::Prohibited
            | Unreachable::SourceAddressFailedPolicy
            | Unreachable::RejectRoute => PathError::AdminProhibited,
        }),
        Icmpv6Type::PacketTooBig { mtu } => Some(PathError::FragmentationNeeded {
            mtu: u16::try_from(*mtu).unwrap_or(u16::MAX),
        }),
        Icmpv6Type::TimeExceeded(_) => Some(PathError::TimeExceeded),
        // "Unrecognized next header" is IPv6's "protocol unreachable".
        Icmpv6Type::ParameterProblem(problem)
            if problem.code == ParameterProblemCode::UnrecognizedNextHeader =>
        {
            Some(PathError::ProtocolUnreachable)
        }
        Icmpv6Type::ParameterProblem(_) => Some(PathError::ParameterProblem),
        _ => None,
    }
}

/// Creates an IPv4 packet that carries an ICMP message.
pub(crate) fn packet_v4(
    src: Ipv4Addr,
    dst: Ipv4Addr,
    message: Icmpv4Type,
    content: &[u8],
) -> Vec<u8> {
    let icmp = Icmpv4Header::with_checksum(message, content);
    let icmp_bytes = icmp.to_bytes();
    let len = u16::try_from(icmp_bytes.len() + content.len()).ok();
    let (src, dst) = (src.octets(), dst.octets());
    let ip = len.and_then(|len| Ipv4Header::new(len, HOP_LIMIT, IpNumber::ICMP, src, dst).ok());
    let mut ip = ip.expect("a message is no longer than what it answers");
    ip.header_checksum = ip.calc_header_checksum();
    [&ip.to_bytes()[..], &icmp_bytes, content].concat()
}

/// Creates an IPv6 packet that carries an ICMP message.
pub(crate) fn packet_v6(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    hop_limit: u8,
    message: Icmpv6Type,
    content: &[u8],
) -> Vec<u8> {
    let (src, dst) = (src.octets(), dst.octets());
    let icmp = message.to_header(src, dst, content);
    let icmp_bytes = icmp
        .expect("a message is no longer than what it answers")
        .to_bytes();
    let ip = Ipv6Header {
        payload_length: (icmp_bytes.len() + content.len()) as u16,
        next_header: IpNumber::IPV6_ICMP,
        hop_limit,
        source: src,
        destination: dst,
        ..Ipv6Header::default()
    };
    [&ip.to_bytes()[..], &icmp_bytes, content].concat()
}

/// The part of `packet` that an error over IPv4 quotes.
pub(crate) fn quoted_v4(packet: &[u8]) -> &[u8] {
    let room = LONGEST_ERROR_V4 - Ipv4Header::MIN_LEN - ICMP_HEADER_LEN;
    &packet[..packet.len().min(room)]
}

/// The part of `packet` that an error over IPv6 quotes.
pub(crate) fn quoted_v6(packet: &[u8]) -> &[u8] {
    let room = LONGEST_ERROR_V6 - Ipv6Header::LEN - ICMP_HEADER_LEN;
    &packet[..packet.len().min(room)]
}
