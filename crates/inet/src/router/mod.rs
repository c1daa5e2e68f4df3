//! A router: interfaces, and the rules for forwarding packets from one to another (RFC 1812 5.2, RFC 8200 3 and 4.5).

mod errors;
mod fragments;
mod rewrite;

pub use crate::stats::{ForwardRefusal, ForwardRefused};

use crate::addresses::is_bad_source_v4;
use crate::config::{ConfigError, InterfaceConfig, Medium, is_link_local};
use crate::interface::Interface;
use crate::neighbours::Resolution;
use crate::{Cidr, Route};
use baton_wire::{Buffer, Checksum, Span, Time};
use bytes::Bytes;
use errors::Problem;
use etherparse::{EtherType, Ethernet2Header, Ipv4HeaderSlice, Ipv6Header, Ipv6HeaderSlice};
use prefix_trie::joint::JointPrefixMap;
use std::net::IpAddr;

/// Position of the IP packet in a frame.
const PACKET: usize = Ethernet2Header::LEN;

/// Time for which a known next hop is used without a lookup; a neighbour's states last for seconds.
const WAY_HOLDS: Span = Span::from_ms(500);

/// What to do with a frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The frame was rewritten in place: send its first `len` bytes by this interface.
    Forward {
        /// Number of the interface.
        interface: usize,
        /// Bytes, without padding after the packet.
        len: usize,
    },
    /// The router handled the frame; there may be frames to send.
    Consumed,
    /// The packet is not forwarded, and was counted. There may be an ICMP error to send.
    Refused(ForwardRefusal),
}

/// Totals of a router since it was created. Each interface has totals of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouterStats {
    /// Packets that were forwarded in the frame in which they arrived.
    pub forwarded: u64,
    /// Packets that waited for their neighbour.
    pub waited: u64,
    /// Packets that were fragmented.
    pub fragmented: u64,
    /// Fragments of these packets.
    pub fragments: u64,
    /// Packets that were not forwarded, by [`ForwardRefusal`].
    pub refused: ForwardRefused,
}

/// Destination of a prefix.
#[derive(Clone, Copy, Debug)]
enum Hop {
    /// The router itself, at an address of this interface; also the broadcast addresses of that interface's link.
    Own(usize),
    /// A neighbour on this interface's link: the gateway, or the destination itself.
    Neighbour(usize, Option<IpAddr>),
}

/// Next hop of packets to `dst`, valid until neighbours change.
#[derive(Clone, Copy, Debug)]
struct Way {
    dst: IpAddr,
    interface: usize,
    mac: [u8; 6],
    until: Time,
}

/// A packet that is being forwarded: the fields that both versions of IP share.
struct Passing {
    src: IpAddr,
    dst: IpAddr,
    /// Bytes of the packet.
    len: usize,
    /// Time to live, or hop limit.
    hops: u8,
}

/// A router with two interfaces or more.
///
/// Calling order: after `handle_frame` or `handle_timeouts`, call [`Router::poll_frame`] for each interface until it returns
/// false; call [`Router::handle_timeouts`] at the time that [`Router::poll_timeout`] returns. Time never goes back.
///
/// The router forwards unicast packets only: no groups, no directed broadcasts (RFC 2644). It sends no redirects, and refuses
/// packets with a source route. It does not look at IPv6 extension headers.
#[derive(Debug)]
pub struct Router {
    interfaces: Vec<Interface>,
    table: JointPrefixMap<Cidr, Hop>,
    known_way: Option<Way>,
    stats: RouterStats,
}

impl Router {
    /// Creates a router with these interfaces, numbered in their order. Their networks and routes make up its table; of equal prefixes
    /// the last one counts.
    ///
    /// # Errors
    /// Fails if an interface cannot work with its parameters, or is not Ethernet.
    pub fn new(interfaces: Vec<InterfaceConfig>) -> Result<Self, ConfigError> {
        let mut table = JointPrefixMap::new();
        for (number, config) in interfaces.iter().enumerate() {
            if config.medium != Medium::Ethernet {
                return Err(ConfigError::NoLinkToForward);
            }
            for cidr in &config.addresses {
                table.insert(cidr.trunc(), Hop::Neighbour(number, None));
            }
            for Route {
                destination,
                gateway,
            } in &config.routes
            {
                table.insert(destination.trunc(), Hop::Neighbour(number, *gateway));
            }
        }
        for (number, config) in interfaces.iter().enumerate() {
            for cidr in &config.addresses {
                own_addresses(cidr).for_each(|own| {
                    table.insert(own, Hop::Own(number));
                });
            }
        }
        let interfaces = interfaces.into_iter().map(Interface::of_router);
        Ok(Self {
            interfaces: interfaces.collect::<Result<_, _>>()?,
            table,
            known_way: None,
            stats: RouterStats::default(),
        })
    }

    // --- getters ---

    /// The router's interfaces, by number.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Totals since the router was created.
    pub fn stats(&self) -> &RouterStats {
        &self.stats
    }

    /// When [`Router::handle_timeouts`] must be called next, if ever. May be early, never late.
    pub fn poll_timeout(&self) -> Option<Time> {
        let timeouts = self.interfaces.iter().filter_map(Interface::poll_timeout);
        timeouts.min()
    }

    // --- events in ---

    /// Processes a frame, without check sequence, that arrived through the interface `at`. Rewrites a frame that is to be forwarded
    /// in place: its Ethernet addresses and its hop limit.
    ///
    /// # Panics
    /// Panics if there is no such interface.
    pub fn handle_frame(&mut self, now: Time, at: usize, frame: &mut [u8]) -> Verdict {
        let interface = &mut self.interfaces[at];
        let for_router = frame.len() > PACKET && frame[..6] == interface.config().mac;
        let ether_type = frame
            .get(12..PACKET)
            .map(|bytes| EtherType(u16::from_be_bytes([bytes[0], bytes[1]])));
        let passing = match ether_type {
            Some(EtherType::IPV4) if for_router => self.read_v4(at, &frame[PACKET..]),
            Some(EtherType::IPV6) if for_router => read_v6(&frame[PACKET..]),
            _ => {
                self.hand_over(now, at, frame);
                return Verdict::Consumed;
            }
        };
        let verdict = passing.and_then(|passing| self.pass(now, at, &passing, frame));
        verdict.unwrap_or_else(|reason| self.refuse(reason))
    }

    /// Runs the timers that are due.
    pub fn handle_timeouts(&mut self, now: Time) {
        self.known_way = None;
        for number in 0..self.interfaces.len() {
            self.interfaces[number].handle_timeouts(now);
            while let Some(packet) = self.interfaces[number].take_undelivered() {
                self.send_error(now, number, &packet, Problem::HostUnreachable);
            }
            self.send_answers(now, number);
        }
    }

    // --- effects out ---

    /// Appends the next of the router's own frames that leave through the interface `at` to `frame`: requests for neighbours and
    /// answers, ICMP, fragments, packets whose neighbour became known. Returns false if there is none.
    pub fn poll_frame(&mut self, now: Time, at: usize, frame: &mut impl Buffer) -> bool {
        self.interfaces[at].poll_frame(now, frame)
    }

    // --- forwarding ---

    /// Checks the rules for an IPv4 header (RFC 1812 5.2.2, 5.3.7).
    fn read_v4(&self, at: usize, packet: &[u8]) -> Result<Passing, ForwardRefusal> {
        let ip = Ipv4HeaderSlice::from_slice(packet).map_err(|_| ForwardRefusal::BadIpHeader)?;
        let len = usize::from(ip.total_len());
        if len < ip.slice().len() || len > packet.len() {
            return Err(ForwardRefusal::BadIpHeader);
        }
        let verifies = self.interfaces[at].config().verify_checksums;
        if verifies && !Checksum::of_ipv4_header(&ip).is_right() {
            return Err(ForwardRefusal::IpChecksum);
        }
        if is_bad_source_v4(ip.source_addr()) {
            return Err(ForwardRefusal::BadSource);
        }
        if crate::interface::is_source_routed(ip.options()) {
            return Err(ForwardRefusal::SourceRoute);
        }
        Ok(Passing {
            src: ip.source_addr().into(),
            dst: ip.destination_addr().into(),
            len,
            hops: ip.ttl(),
        })
    }

    fn pass(
        &mut self,
        now: Time,
        at: usize,
        passing: &Passing,
        frame: &mut [u8],
    ) -> Result<Verdict, ForwardRefusal> {
        let end = PACKET + passing.len;
        if let Some(way) = self.known_way
            && way.dst == passing.dst
            && now < way.until
            && passing.hops > 1
            && passing.len <= usize::from(self.interfaces[way.interface].mtu())
        {
            return Ok(self.forward(way.interface, way.mac, frame, end));
        }
        // A packet that must stay on the link is only for the router, or for no host that the router knows.
        let dst = passing.dst;
        if stays_on_link(dst) {
            self.hand_over(now, at, frame);
            return Ok(Verdict::Consumed);
        }
        let hop = self.table.get_lpm(&Cidr::from(dst)).map(|(_, hop)| *hop);
        let (out, gateway) = match hop {
            Some(Hop::Own(owner)) => {
                self.deliver(now, owner, &frame[PACKET..end]);
                return Ok(Verdict::Consumed);
            }
            Some(Hop::Neighbour(out, gateway)) => (out, gateway),
            None => {
                self.send_error(now, at, &frame[PACKET..end], Problem::NoRoute);
                return Err(ForwardRefusal::NoRoute);
            }
        };
        if is_link_local(passing.src) {
            self.send_error(now, at, &frame[PACKET..end], Problem::BeyondScope);
            return Err(ForwardRefusal::BeyondScope);
        }
        if passing.src.is_unspecified() {
            return Err(ForwardRefusal::BadSource);
        }
        if passing.hops <= 1 {
            self.send_error(now, at, &frame[PACKET..end], Problem::HopsExceeded);
            return Err(ForwardRefusal::HopsExceeded);
        }
        self.send_by(now, at, out, gateway.unwrap_or(dst), passing, frame)
    }

    /// Sends a packet whose next hop is known, after checking its length and resolving the neighbour's Ethernet address.
    fn send_by(
        &mut self,
        now: Time,
        at: usize,
        out: usize,
        next_hop: IpAddr,
        passing: &Passing,
        frame: &mut [u8],
    ) -> Result<Verdict, ForwardRefusal> {
        let end = PACKET + passing.len;
        let mtu = self.interfaces[out].mtu();
        if passing.len > usize::from(mtu) {
            let packet = &mut frame[PACKET..end];
            if !fragments::may_be_cut(packet) {
                self.send_error(now, at, packet, Problem::TooLong { mtu });
                return Err(ForwardRefusal::TooLong);
            }
            rewrite::take_hop(packet);
            let mut count = 0;
            for fragment in fragments::cut(packet, mtu.into()) {
                self.interfaces[out].forward_own(now, next_hop, fragment);
                count += 1;
            }
            self.stats.fragmented += 1;
            self.stats.fragments += count;
            return Ok(Verdict::Consumed);
        }
        match self.interfaces[out].resolve(now, next_hop) {
            Resolution::Known(mac) => {
                self.known_way = Some(Way {
                    dst: passing.dst,
                    interface: out,
                    mac,
                    until: now + WAY_HOLDS,
                });
                Ok(self.forward(out, mac, frame, end))
            }
            Resolution::Asked => {
                let packet = &mut frame[PACKET..end];
                rewrite::take_hop(packet);
                self.interfaces[out].forward_own(now, next_hop, packet.to_vec());
                self.stats.waited += 1;
                Ok(Verdict::Consumed)
            }
            Resolution::Failed => {
                self.send_error(now, at, &frame[PACKET..end], Problem::HostUnreachable);
                Err(ForwardRefusal::NeighbourFailed)
            }
        }
    }

    fn forward(&mut self, out: usize, mac: [u8; 6], frame: &mut [u8], end: usize) -> Verdict {
        rewrite::take_hop(&mut frame[PACKET..end]);
        frame[..6].copy_from_slice(&mac);
        frame[6..12].copy_from_slice(&self.interfaces[out].config().mac);
        self.stats.forwarded += 1;
        Verdict::Forward {
            interface: out,
            len: end,
        }
    }

    #[cold]
    fn refuse(&mut self, reason: ForwardRefusal) -> Verdict {
        self.stats.refused.count(reason);
        Verdict::Refused(reason)
    }

    // --- the router itself ---

    /// Passes a frame to the interface through which it arrived. Forgets the known next hop, as the frame may change a neighbour.
    fn hand_over(&mut self, now: Time, at: usize, frame: &[u8]) {
        self.known_way = None;
        self.interfaces[at].handle_frame(now, Bytes::copy_from_slice(frame));
        self.send_answers(now, at);
    }

    /// Delivers a packet to an address of the interface `owner`, whichever interface it arrived through.
    fn deliver(&mut self, now: Time, owner: usize, packet: &[u8]) {
        self.interfaces[owner].handle_packet(now, Bytes::copy_from_slice(packet));
        self.send_answers(now, owner);
    }

    /// Sends an interface's answers by the routes of the router's table.
    fn send_answers(&mut self, now: Time, number: usize) {
        while let Some((dst, packet)) = self.interfaces[number].take_answer() {
            self.send_own(now, dst, packet);
        }
    }

    fn send_own(&mut self, now: Time, dst: IpAddr, packet: Vec<u8>) {
        if let Some((_, &Hop::Neighbour(out, gateway))) = self.table.get_lpm(&Cidr::from(dst)) {
            self.interfaces[out].forward_own(now, gateway.unwrap_or(dst), packet);
        }
    }

    /// Asserts the router's invariants.
    pub fn check(&self) {
        self.interfaces.iter().for_each(Interface::check);
    }
}

/// Checks the rules for an IPv6 header (RFC 8200 3, RFC 4291 2.5).
fn read_v6(packet: &[u8]) -> Result<Passing, ForwardRefusal> {
    let ip = Ipv6HeaderSlice::from_slice(packet).map_err(|_| ForwardRefusal::BadIpHeader)?;
    let len = Ipv6Header::LEN + usize::from(ip.payload_length());
    if len > packet.len() {
        return Err(ForwardRefusal::BadIpHeader);
    }
    let src = ip.source_addr();
    if src.is_multicast() || src.is_loopback() || src.to_ipv4_mapped().is_some() {
        return Err(ForwardRefusal::BadSource);
    }
    Ok(Passing {
        src: src.into(),
        dst: ip.destination_addr().into(),
        len,
        hops: ip.hop_limit(),
    })
}

/// Reports whether packets to `dst` are never forwarded: link-local, loopback, group and invalid addresses (RFC 1812 5.3.7).
fn stays_on_link(dst: IpAddr) -> bool {
    let v4 = |dst: IpAddr| matches!(dst, IpAddr::V4(dst) if is_bad_source_v4(dst));
    is_link_local(dst) || dst.is_multicast() || dst.is_loopback() || v4(dst)
}

/// The addresses of a link's network that the router does not forward to: its own, and the broadcast addresses.
fn own_addresses(cidr: &Cidr) -> impl Iterator<Item = Cidr> {
    let broadcast = match cidr {
        Cidr::V4(net) if net.prefix_len() < 31 => vec![net.network(), net.broadcast()],
        _ => Vec::new(),
    };
    let own = std::iter::once(Cidr::from(cidr.addr()));
    own.chain(broadcast.into_iter().map(|addr| IpAddr::V4(addr).into()))
}
