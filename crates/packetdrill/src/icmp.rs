//! ICMP errors (RFC 792, RFC 4443): the connections that they quote, their meaning, and Linux's error number for each.

use crate::errno::Errno;
use baton_tcp::PathError;
use baton_wire::{Endpoint, Flow, SeqNr};
use etherparse::icmpv4::{DestUnreachableHeader as Unreachable4, TimeExceededCode};
use etherparse::icmpv6::DestUnreachableCode as Unreachable6;
use etherparse::{Icmpv4Slice, Icmpv4Type, Icmpv6Slice, Icmpv6Type, IpNumber, IpSlice};
use std::net::IpAddr;

/// An error about a segment that we sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The connection, as this end names it.
    pub(crate) flow: Flow,
    /// Sequence number of the quoted segment.
    pub(crate) seq: SeqNr,
    pub(crate) error: PathError,
    pub(crate) errno: Errno,
}

/// Minimum number of bytes of a TCP header that an error quotes: ports and sequence number (RFC 792).
const QUOTED_LEN: usize = 8;

/// Reads a packet as an ICMP error. Returns `None` if it is no ICMP error.
pub(crate) fn read(packet: &[u8]) -> Option<Report> {
    let ip = IpSlice::from_slice(packet).ok()?;
    let payload = ip.payload();
    let (error, errno, quoted) = match payload.ip_number {
        IpNumber::ICMP => {
            let icmp = Icmpv4Slice::from_slice(payload.payload).ok()?;
            let (error, errno) = meaning_v4(icmp.icmp_type())?;
            (error, errno, icmp.payload())
        }
        IpNumber::IPV6_ICMP => {
            let icmp = Icmpv6Slice::from_slice(payload.payload).ok()?;
            let (error, errno) = meaning_v6(icmp.icmp_type())?;
            (error, errno, icmp.payload())
        }
        _ => return None,
    };
    let (flow, seq) = read_quoted(quoted)?;
    Some(Report {
        flow,
        seq,
        error,
        errno: Errno(errno),
    })
}

/// Linux's table of errors (icmp(7), ip(7)).
fn meaning_v4(icmp: Icmpv4Type) -> Option<(PathError, i32)> {
    Some(match icmp {
        Icmpv4Type::DestinationUnreachable(code) => match code {
            Unreachable4::Network | Unreachable4::NetworkUnknown | Unreachable4::TosNetwork => {
                (PathError::NetUnreachable, libc::ENETUNREACH)
            }
            Unreachable4::Host | Unreachable4::TosHost => {
                (PathError::HostUnreachable, libc::EHOSTUNREACH)
            }
            Unreachable4::Protocol => (PathError::ProtocolUnreachable, libc::ENOPROTOOPT),
            Unreachable4::Port => (PathError::PortUnreachable, libc::ECONNREFUSED),
            Unreachable4::FragmentationNeeded { next_hop_mtu } => (
                PathError::FragmentationNeeded { mtu: next_hop_mtu },
                libc::EMSGSIZE,
            ),
            Unreachable4::SourceRouteFailed => (PathError::HostUnreachable, libc::EOPNOTSUPP),
            Unreachable4::HostUnknown => (PathError::HostUnreachable, libc::EHOSTDOWN),
            Unreachable4::Isolated => (PathError::HostUnreachable, libc::ENONET),
            Unreachable4::NetworkProhibited => (PathError::AdminProhibited, libc::ENETUNREACH),
            Unreachable4::HostProhibited
            | Unreachable4::FilterProhibited
            | Unreachable4::HostPrecedenceViolation
            | Unreachable4::PrecedenceCutoff => (PathError::AdminProhibited, libc::EHOSTUNREACH),
        },
        Icmpv4Type::TimeExceeded(TimeExceededCode::TtlExceededInTransit) => {
            (PathError::TimeExceeded, libc::EHOSTUNREACH)
        }
        Icmpv4Type::ParameterProblem(_) => (PathError::ParameterProblem, libc::EPROTO),
        _ => return None,
    })
}

fn meaning_v6(icmp: Icmpv6Type) -> Option<(PathError, i32)> {
    Some(match icmp {
        Icmpv6Type::DestinationUnreachable(code) => match code {
            Unreachable6::NoRoute => (PathError::NetUnreachable, libc::ENETUNREACH),
            Unreachable6::Port => (PathError::PortUnreachable, libc::ECONNREFUSED),
            Unreachable6::Prohibited
            | Unreachable6::SourceAddressFailedPolicy
            | Unreachable6::RejectRoute => (PathError::AdminProhibited, libc::EACCES),
            Unreachable6::BeyondScope | Unreachable6::Address => {
                (PathError::HostUnreachable, libc::EHOSTUNREACH)
            }
        },
        Icmpv6Type::PacketTooBig { mtu } => (
            PathError::FragmentationNeeded {
                mtu: u16::try_from(mtu).unwrap_or(u16::MAX),
            },
            libc::EMSGSIZE,
        ),
        Icmpv6Type::TimeExceeded(_) => (PathError::TimeExceeded, libc::EHOSTUNREACH),
        Icmpv6Type::ParameterProblem(_) => (PathError::ParameterProblem, libc::EPROTO),
        _ => return None,
    })
}

/// Reads the start of our packet that an error quotes. It is truncated, so its length fields cannot be used.
fn read_quoted(quoted: &[u8]) -> Option<(Flow, SeqNr)> {
    let (src, dst, tcp): (IpAddr, IpAddr, &[u8]) = match quoted.first()? >> 4 {
        4 => {
            let header_len = usize::from(quoted[0] & 15) * 4;
            let (src, dst) = (quoted.get(12..16)?, quoted.get(16..20)?);
            (*quoted.get(9)? == 6).then_some(())?;
            let addr = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
            (addr(src)?, addr(dst)?, quoted.get(header_len..)?)
        }
        6 => {
            let (src, dst) = (quoted.get(8..24)?, quoted.get(24..40)?);
            (*quoted.get(6)? == 6).then_some(())?;
            let addr = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from);
            (addr(src)?, addr(dst)?, quoted.get(40..)?)
        }
        _ => return None,
    };
    let tcp = tcp.get(..QUOTED_LEN)?;
    let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    let flow = Flow {
        local: Endpoint::new(src, port(0)),
        remote: Endpoint::new(dst, port(2)),
    };
    Some((
        flow,
        SeqNr(u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])),
    ))
}
