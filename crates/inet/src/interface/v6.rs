//! Arriving IPv6 packets: header rules of RFC 8200, ICMP of RFC 4443.

use super::extensions::{self, Carried};
use super::{Arrival, Interface, Pair, Taken};
use crate::addresses::Destination;
use crate::icmp;
use crate::ndp;
use crate::stats::Refusal;
use baton_tcp::Segment;
use baton_wire::{Ecn, HOP_LIMIT, Time, pseudo_header};
use bytes::Bytes;
use etherparse::icmpv6::{DestUnreachableCode, ParameterProblemCode, ParameterProblemHeader};
use etherparse::{Icmpv6Slice, Icmpv6Type, IpNumber, Ipv6Header, Ipv6HeaderSlice};
use std::net::{IpAddr, Ipv6Addr};

/// "No next header" (RFC 8200 4.7).
const NO_NEXT_HEADER: IpNumber = IpNumber(59);

/// The parts of an arriving packet's header that its content needs.
#[derive(Clone, Copy)]
struct Outer<'a> {
    src: Ipv6Addr,
    dst: Ipv6Addr,
    hop_limit: u8,
    to_group: bool,
    /// The whole packet, for quoting.
    packet: &'a [u8],
}

impl Interface {
    /// Processes the IPv6 packet that starts at `start`.
    pub(super) fn take_v6(
        &mut self,
        now: Time,
        frame: &[u8],
        start: usize,
        arrival: Arrival,
        segment: &mut Segment<Bytes>,
    ) -> Result<Taken, Refusal> {
        let ip = Ipv6HeaderSlice::from_slice(&frame[start..]).map_err(|_| Refusal::BadIpHeader)?;
        let total_len = Ipv6Header::LEN + usize::from(ip.payload_length());
        // The frame may be padded.
        let packet = frame[start..]
            .get(..total_len)
            .ok_or(Refusal::BadIpHeader)?;
        let (src, dst) = (ip.source_addr(), ip.destination_addr());
        let (pair, destination) = match self.known_pair {
            Some(pair) if pair.src == src && pair.dst == dst => (pair, Destination::Own),
            _ => {
                let destination = self.check_pair_v6(src, dst)?;
                let pair = Pair::new(src.into(), dst.into());
                if destination == Destination::Own {
                    self.known_pair = Some(pair);
                }
                (pair, destination)
            }
        };
        let to_group = destination == Destination::Group;
        if arrival.to_many && !to_group {
            return Err(Refusal::UnicastInBroadcast);
        }
        let outer = Outer {
            src,
            dst,
            hop_limit: ip.hop_limit(),
            to_group,
            packet,
        };
        let carried = extensions::walk(packet, ip.next_header(), to_group).map_err(|problem| {
            if let Some(answer) = problem.answer {
                self.send_problem(now, outer, answer);
            }
            problem.refusal
        })?;
        // The unspecified address is only for duplicate address detection (RFC 4291 2.5.2).
        if src.is_unspecified() && carried.protocol != IpNumber::IPV6_ICMP {
            return Err(Refusal::BadSource);
        }
        if carried.protocol == IpNumber::TCP && !to_group {
            let ecn = Ecn::of_traffic_class(ip.traffic_class());
            let range = start + carried.start..start + total_len;
            return self.take_tcp(&pair, ecn, frame, range, segment);
        }
        self.take_carried(now, outer, carried)
    }

    /// Checks the rules for addresses (RFC 4291 2.5, 2.7). Returns the kind of destination.
    fn check_pair_v6(&self, src: Ipv6Addr, dst: Ipv6Addr) -> Result<Destination, Refusal> {
        let destination = self.addresses.destination(dst.into());
        match destination {
            Destination::Other => return Err(Refusal::OtherDestination),
            Destination::NotInUse => return Err(Refusal::TentativeAddress),
            _ => {}
        }
        let is_own = self.addresses.owns(src.into());
        if is_own && self.config.is_loopback {
            return Ok(destination);
        }
        if src.is_multicast() || src.is_loopback() || src.to_ipv4_mapped().is_some() {
            return Err(Refusal::BadSource);
        }
        // The sender of a packet from an address that is not in use here may be the address's owner (RFC 4862 5.4).
        match is_own {
            true => Err(Refusal::OwnSource),
            false => Ok(destination),
        }
    }

    /// Processes a packet that is not a segment to this host.
    fn take_carried(
        &mut self,
        now: Time,
        outer: Outer<'_>,
        carried: Carried,
    ) -> Result<Taken, Refusal> {
        match carried.protocol {
            IpNumber::TCP => Err(Refusal::ToMany),
            IpNumber::IPV6_ICMP => self.take_icmp_v6(now, outer, &outer.packet[carried.start..]),
            IpNumber::UDP => {
                let why = Icmpv6Type::DestinationUnreachable(DestUnreachableCode::Port);
                self.send_error_v6(now, outer, why);
                Err(Refusal::NoUdpPort)
            }
            NO_NEXT_HEADER => Ok(Taken::Consumed),
            _ => {
                let code = ParameterProblemCode::UnrecognizedNextHeader;
                let pointer = carried.named_at as u32;
                self.send_problem(now, outer, ParameterProblemHeader { code, pointer });
                Err(Refusal::UnknownProtocol)
            }
        }
    }

    /// RFC 4443.
    fn take_icmp_v6(
        &mut self,
        now: Time,
        outer: Outer<'_>,
        bytes: &[u8],
    ) -> Result<Taken, Refusal> {
        let Outer {
            src,
            dst,
            hop_limit,
            ..
        } = outer;
        let message = Icmpv6Slice::from_slice(bytes).map_err(|_| Refusal::BadIcmp)?;
        if self.config.verify_checksums {
            let sum = pseudo_header(
                src.into(),
                dst.into(),
                IpNumber::IPV6_ICMP.0,
                bytes.len() as u16,
            );
            if !sum.add_bytes(bytes).is_right() {
                return Err(Refusal::IcmpChecksum);
            }
        }
        if let Some(said) = ndp::read(&message, src, dst, hop_limit)? {
            return self.take_discovery(now, src, said);
        }
        if src.is_unspecified() {
            return Err(Refusal::BadSource);
        }
        let kind = message.icmp_type();
        if let Icmpv6Type::EchoRequest(echo) = kind {
            // RFC 4443 4.2: from the address that was asked, or from an own address if a group was asked.
            let own = match outer.to_group {
                true => self.source_for(src.into()),
                false => Some(dst.into()),
            };
            if let Some(IpAddr::V6(own)) = own {
                let reply = icmp::packet_v6(
                    own,
                    src,
                    HOP_LIMIT,
                    Icmpv6Type::EchoReply(echo),
                    message.payload(),
                );
                self.stats.echoes_answered += u64::from(self.config.answers);
                self.answer(now, src.into(), reply);
            }
            return Ok(Taken::Consumed);
        }
        let error = icmp::path_error_v6(&kind).ok_or(Refusal::IcmpIgnored)?;
        self.take_quote(message.payload(), dst.into())
            .map(|quote| Taken::PathError(quote, error))
    }

    fn send_problem(&mut self, now: Time, outer: Outer<'_>, problem: ParameterProblemHeader) {
        self.send_error_v6(now, outer, Icmpv6Type::ParameterProblem(problem));
    }

    /// Sends an error about a packet, unless RFC 4443 2.4(e) forbids it. A packet with a header that is not understood may itself be an
    /// error; its protocol is not visible then, and the rate limit stops an endless exchange.
    fn send_error_v6(&mut self, now: Time, outer: Outer<'_>, message: Icmpv6Type) {
        let option = ParameterProblemCode::UnrecognizedIpv6Option;
        let for_many =
            matches!(message, Icmpv6Type::ParameterProblem(problem) if problem.code == option);
        if outer.src.is_unspecified() || (outer.to_group && !for_many) {
            return;
        }
        let own = match outer.to_group {
            true => self.source_for(outer.src.into()),
            false => Some(outer.dst.into()),
        };
        let Some(IpAddr::V6(own)) = own else {
            return;
        };
        if !self.config.answers {
            return;
        }
        if !self.icmp_limit.allow(now) {
            self.stats.icmp_errors_limited += 1;
            return;
        }
        let error = icmp::packet_v6(
            own,
            outer.src,
            HOP_LIMIT,
            message,
            icmp::quoted_v6(outer.packet),
        );
        self.stats.icmp_errors_sent += 1;
        self.answer(now, outer.src.into(), error);
    }
}
