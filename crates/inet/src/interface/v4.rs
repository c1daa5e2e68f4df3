//! Arriving IPv4 packets: header rules of RFC 1122 3.2.1, ICMP of 3.2.2.

use super::similar::Head;
use super::{Arrival, Interface, Pair, Taken};
use crate::addresses::{Destination, is_bad_source_v4};
use crate::icmp::{self, Quote};
use crate::stats::Refusal;
use baton_tcp::Segment;
use baton_wire::{Checksum, DecodeError, Ecn, Endpoint, Time, decode_tcp};
use bytes::Bytes;
use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::{Icmpv4Slice, Icmpv4Type, IpNumber, Ipv4HeaderSlice};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

/// Source route options: loose and strict (RFC 791 3.1).
const SOURCE_ROUTES: [u8; 2] = [131, 137];

/// Options of one byte (RFC 791 3.1).
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;

impl Interface {
    /// Processes the IPv4 packet that starts at `start`.
    pub(super) fn take_v4(
        &mut self,
        now: Time,
        frame: &[u8],
        start: usize,
        arrival: Arrival,
        segment: &mut Segment<Bytes>,
    ) -> Result<Taken, Refusal> {
        let ip = Ipv4HeaderSlice::from_slice(&frame[start..]).map_err(|_| Refusal::BadIpHeader)?;
        let header_len = ip.slice().len();
        let total_len = usize::from(ip.total_len());
        // The frame may be padded.
        let packet = frame[start..]
            .get(..total_len)
            .filter(|packet| packet.len() >= header_len);
        let packet = packet.ok_or(Refusal::BadIpHeader)?;
        if self.config.verify_checksums && !Checksum::of_ipv4_header(&ip).is_right() {
            return Err(Refusal::IpChecksum);
        }
        let (src, dst) = (ip.source_addr(), ip.destination_addr());
        let pair = match self.known_pair {
            Some(pair) if pair.src == src && pair.dst == dst => pair,
            _ => {
                self.check_pair_v4(src, dst)?;
                *self.known_pair.insert(Pair::new(src.into(), dst.into()))
            }
        };
        if arrival.to_many {
            return Err(Refusal::UnicastInBroadcast);
        }
        if is_source_routed(ip.options()) {
            return Err(Refusal::SourceRoute);
        }
        if ip.is_fragmenting_payload() {
            return Err(Refusal::Fragment);
        }
        match ip.protocol() {
            IpNumber::TCP => {
                let ecn = Ecn::of_traffic_class(ip.ecn().value());
                self.known_head = Head::of(frame, start, pair);
                let range = start + header_len..start + total_len;
                self.take_tcp(&pair, ecn, frame, range, segment)
            }
            IpNumber::ICMP => self.take_icmp_v4(now, src, dst, &packet[header_len..]),
            IpNumber::UDP => {
                self.send_error_v4(now, dst, src, DestUnreachableHeader::Port, packet);
                Err(Refusal::NoUdpPort)
            }
            _ => {
                self.send_error_v4(now, dst, src, DestUnreachableHeader::Protocol, packet);
                Err(Refusal::UnknownProtocol)
            }
        }
    }

    /// Checks the rules for addresses (RFC 1122 3.2.1.3).
    fn check_pair_v4(&self, src: Ipv4Addr, dst: Ipv4Addr) -> Result<(), Refusal> {
        let destination = self.addresses.destination(dst.into());
        if destination == Destination::Other {
            return Err(Refusal::OtherDestination);
        }
        let is_own = self.addresses.knows(src.into());
        if is_own && self.config.is_loopback {
            // Both ends are on this host.
        } else if is_bad_source_v4(src)
            || self.addresses.destination(src.into()) == Destination::Broadcast
        {
            return Err(Refusal::BadSource);
        } else if is_own {
            return Err(Refusal::OwnSource);
        }
        // No protocol of a host without UDP uses multicast or broadcast; echo requests may be ignored (RFC 1122 3.2.2.6).
        match destination {
            Destination::Own => Ok(()),
            Destination::NotInUse => Err(Refusal::TentativeAddress),
            _ => Err(Refusal::ToMany),
        }
    }

    /// Decodes the TCP segment in this range of the frame, and writes its headers to `segment`.
    #[inline(always)]
    pub(super) fn take_tcp(
        &self,
        pair: &Pair,
        ecn: Ecn,
        frame: &[u8],
        range: Range<usize>,
        segment: &mut Segment<Bytes>,
    ) -> Result<Taken, Refusal> {
        let verified = self.config.verify_checksums.then_some(pair.pseudo_header);
        let carried = &frame[range.clone()];
        let tcp =
            decode_tcp(verified, carried, &mut segment.header).map_err(|error| match error {
                DecodeError::TcpChecksum => Refusal::TcpChecksum,
                _ => Refusal::BadTcpHeader,
            })?;
        segment.src = Endpoint::new(pair.src, tcp.src_port);
        segment.dst = Endpoint::new(pair.dst, tcp.dst_port);
        segment.ecn = ecn;
        Ok(Taken::Segment {
            payload: range.start + tcp.header_len..range.end,
        })
    }

    /// RFC 1122 3.2.2.
    fn take_icmp_v4(
        &mut self,
        now: Time,
        src: Ipv4Addr,
        dst: Ipv4Addr,
        bytes: &[u8],
    ) -> Result<Taken, Refusal> {
        let message = Icmpv4Slice::from_slice(bytes).map_err(|_| Refusal::BadIcmp)?;
        if self.config.verify_checksums && !Checksum::new().add_bytes(bytes).is_right() {
            return Err(Refusal::IcmpChecksum);
        }
        let kind = message.icmp_type();
        if let Icmpv4Type::EchoRequest(echo) = kind {
            // RFC 1122 3.2.2.6: return the data, from the address that was asked.
            let reply = icmp::packet_v4(dst, src, Icmpv4Type::EchoReply(echo), message.payload());
            self.stats.echoes_answered += u64::from(self.config.answers);
            self.answer(now, src.into(), reply);
            return Ok(Taken::Consumed);
        }
        let error = icmp::path_error_v4(&kind).ok_or(Refusal::IcmpIgnored)?;
        self.take_quote(message.payload(), dst.into())
            .map(|quote| Taken::PathError(quote, error))
    }

    /// Returns this host's segment that an error to `own` quotes (RFC 5927 4).
    pub(super) fn take_quote(&self, quoted: &[u8], own: IpAddr) -> Result<Quote, Refusal> {
        let quote = Quote::read(quoted).filter(|quote| quote.flow.local.addr == own);
        quote.ok_or(Refusal::ForeignQuote)
    }

    /// Sends "destination unreachable" about a packet to this host alone. ICMP errors and packets from or to groups were refused
    /// before (RFC 1122 3.2.2).
    fn send_error_v4(
        &mut self,
        now: Time,
        own: Ipv4Addr,
        to: Ipv4Addr,
        why: DestUnreachableHeader,
        packet: &[u8],
    ) {
        if !self.config.answers {
            return;
        }
        if !self.icmp_limit.allow(now) {
            self.stats.icmp_errors_limited += 1;
            return;
        }
        let message = Icmpv4Type::DestinationUnreachable(why);
        let error = icmp::packet_v4(own, to, message, icmp::quoted_v4(packet));
        self.stats.icmp_errors_sent += 1;
        self.answer(now, to.into(), error);
    }
}

/// Reports whether the options hold a source route, with which others could use this host to bypass filters. Skips other
/// options (RFC 1122 3.2.1.8).
pub(crate) fn is_source_routed(options: &[u8]) -> bool {
    let mut rest = options;
    while let [kind, after @ ..] = rest {
        match *kind {
            END_OF_OPTIONS => return false,
            NO_OPERATION => rest = after,
            kind if SOURCE_ROUTES.contains(&kind) => return true,
            _ => {
                let len = after.first().map_or(0, |&len| usize::from(len));
                // With an invalid length, the rest cannot be parsed.
                rest = rest.get(len..).filter(|_| len >= 2).unwrap_or(&[]);
            }
        }
    }
    false
}
