//! A router's ICMP errors about packets that it does not forward (RFC 1812 4.3, RFC 4443 3).

use super::Router;
use crate::icmp;
use baton_wire::{HOP_LIMIT, Time};
use etherparse::icmpv4::{DestUnreachableHeader, TimeExceededCode as TimeExceededV4};
use etherparse::icmpv6::{DestUnreachableCode, TimeExceededCode as TimeExceededV6};
use etherparse::{Icmpv4Type, Icmpv6Type, IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// ICMPv4 messages that are no errors, so that they may be answered with one: echo, timestamp, and replies (RFC 1122 3.2.2).
const QUERIES_V4: [u8; 4] = [0, 8, 13, 14];

/// The first ICMPv6 message type that is no error (RFC 4443 2.1).
const FIRST_QUERY_V6: u8 = 128;

/// Why a packet is not forwarded, for the ICMP error to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    NoRoute,
    HostUnreachable,
    HopsExceeded,
    /// The packet may not be fragmented, and the next link carries only `mtu` bytes.
    TooLong {
        mtu: u16,
    },
    /// The source address is not valid beyond its link. Only IPv6 has this error.
    BeyondScope,
}

impl Problem {
    fn v4(self) -> Icmpv4Type {
        use DestUnreachableHeader as Unreachable;
        Icmpv4Type::DestinationUnreachable(match self {
            Self::NoRoute | Self::BeyondScope => Unreachable::Network,
            Self::HostUnreachable => Unreachable::Host,
            Self::TooLong { mtu } => Unreachable::FragmentationNeeded { next_hop_mtu: mtu },
            Self::HopsExceeded => {
                return Icmpv4Type::TimeExceeded(TimeExceededV4::TtlExceededInTransit);
            }
        })
    }

    fn v6(self) -> Icmpv6Type {
        use DestUnreachableCode as Unreachable;
        Icmpv6Type::DestinationUnreachable(match self {
            Self::NoRoute => Unreachable::NoRoute,
            Self::BeyondScope => Unreachable::BeyondScope,
            Self::HostUnreachable => Unreachable::Address,
            Self::TooLong { mtu } => return Icmpv6Type::PacketTooBig { mtu: mtu.into() },
            Self::HopsExceeded => {
                return Icmpv6Type::TimeExceeded(TimeExceededV6::HopLimitExceeded);
            }
        })
    }
}

impl Router {
    /// Sends an error to the sender of `packet`, which arrived through the interface `at`, or was to leave through it. Sends none about ICMP errors,
    /// later fragments and packets without a single sender (RFC 1812 4.3.2.7, RFC 4443 2.4(e)), nor above the rate limit.
    pub(super) fn send_error(&mut self, now: Time, at: usize, packet: &[u8], problem: Problem) {
        let Some(to) = who_may_be_told(packet) else {
            return;
        };
        let Some(own) = self.own_address(at, to) else {
            return;
        };
        if !self.interfaces[at].allows_error(now) {
            return;
        }
        let error = match (own, to) {
            (IpAddr::V4(own), IpAddr::V4(to)) => {
                icmp::packet_v4(own, to, problem.v4(), icmp::quoted_v4(packet))
            }
            (IpAddr::V6(own), IpAddr::V6(to)) => {
                let quoted = icmp::quoted_v6(packet);
                icmp::packet_v6(own, to, HOP_LIMIT, problem.v6(), quoted)
            }
            _ => return,
        };
        self.send_own(now, to, error);
    }

    /// The interface's source address for `remote`, or else another of the router's (RFC 1812 4.3.2.4).
    fn own_address(&self, at: usize, remote: IpAddr) -> Option<IpAddr> {
        let others = self.interfaces.iter();
        let mut all = std::iter::once(&self.interfaces[at]).chain(others);
        all.find_map(|interface| interface.address_towards(remote))
    }
}

/// The sender of a packet, if errors about the packet may be sent.
fn who_may_be_told(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => sender_v4(packet).map(IpAddr::V4),
        _ => sender_v6(packet).map(IpAddr::V6),
    }
}

fn sender_v4(packet: &[u8]) -> Option<Ipv4Addr> {
    let ip = Ipv4HeaderSlice::from_slice(packet).ok()?;
    let kind = packet.get(ip.slice().len()).copied();
    let error =
        ip.protocol() == IpNumber::ICMP && kind.is_none_or(|kind| !QUERIES_V4.contains(&kind));
    (!error && ip.fragments_offset().value() == 0).then(|| ip.source_addr())
}

fn sender_v6(packet: &[u8]) -> Option<Ipv6Addr> {
    let ip = Ipv6HeaderSlice::from_slice(packet).ok()?;
    let kind = packet.get(ip.slice().len()).copied();
    let error =
        ip.next_header() == IpNumber::IPV6_ICMP && kind.is_none_or(|kind| kind < FIRST_QUERY_V6);
    let src = ip.source_addr();
    (!error && !src.is_unspecified()).then_some(src)
}
