//! Arriving ARP and neighbour discovery messages, and the interface's timed actions.

use super::{Interface, MOST_PATH_ERRORS, Taken};
use crate::Cidr;
use crate::addresses::{
    ALL_NODES, ALL_ROUTERS, Standing, group_mac, is_bad_source_v4, solicited_node,
};
use crate::arp;
use crate::config::{InterfaceConfig, Medium};
use crate::icmp::{self, Quote};
use crate::ndp::{self, Message, RouterWord};
use crate::neighbours::{Advertisement, Solicitation};
use crate::stats::Refusal;
use baton_tcp::PathError;
use baton_wire::{Span, Time, encode_link};
use etherparse::{ArpOperation, Icmpv6Type};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Announcements of an IPv4 address, and the time between them: ANNOUNCE_NUM and ANNOUNCE_INTERVAL (RFC 5227 1.1).
const ANNOUNCEMENTS: u8 = 2;
const ANNOUNCE_INTERVAL: Span = Span::from_secs(2);

/// Router solicitations, and the time between them: MAX_RTR_SOLICITATIONS and RTR_SOLICITATION_INTERVAL (RFC 4861 10).
const ROUTER_SOLICITATIONS: u8 = 3;
const ROUTER_INTERVAL: Span = Span::from_secs(4);

/// Time for the owner of an address to answer a single request: RETRANS_TIMER (RFC 4862 5.1).
const DUPLICATE_WAIT: Span = Span::from_secs(1);

/// Least MTU that a router may advertise, bytes (RFC 8200 5).
const LEAST_MTU_V6: u32 = 1280;

/// Longest reachable time that a router may advertise (RFC 4861 6.2.1).
const MOST_REACHABLE_TIME: Span = Span::from_secs(3600);

/// Messages that an interface sends a few times at the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Duties {
    announcements: Repeated,
    router_solicitations: Repeated,
}

/// An action that is repeated a number of times, at intervals.
#[derive(Clone, Copy, Debug)]
struct Repeated {
    left: u8,
    next: Time,
}

impl Repeated {
    fn new(times: u8) -> Self {
        Self {
            left: times,
            next: if times > 0 { Time::ZERO } else { Time::NEVER },
        }
    }

    /// Reports whether the action is due now, and if so counts it as done.
    fn due(&mut self, now: Time, interval: Span) -> bool {
        if self.next > now {
            return false;
        }
        self.left -= 1;
        self.next = if self.left > 0 {
            now + interval
        } else {
            Time::NEVER
        };
        true
    }
}

impl Duties {
    pub(super) fn new(config: &InterfaceConfig) -> Self {
        let ethernet = config.medium == Medium::Ethernet;
        let times = |wanted: bool, times| if wanted && ethernet { times } else { 0 };
        Self {
            announcements: Repeated::new(times(config.announce, ANNOUNCEMENTS)),
            router_solicitations: Repeated::new(times(
                config.router_discovery,
                ROUTER_SOLICITATIONS,
            )),
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.announcements.next.min(self.router_solicitations.next)
    }
}

impl Interface {
    // --- ARP ---

    /// RFC 826, "Packet Reception".
    pub(super) fn take_arp(
        &mut self,
        now: Time,
        bytes: &[u8],
        broadcast: bool,
    ) -> Result<Taken, Refusal> {
        self.known_way = None;
        let message = arp::read(bytes)?;
        let (sender, target) = (message.sender_ipv4_addr(), message.target_ipv4_addr());
        let mac = message.sender_mac;
        if self.addresses.knows(sender.into()) {
            self.defend(now, sender);
            return Err(Refusal::AddressConflict);
        }
        // The source address is unspecified in a probe for an address that may be free (RFC 5227 2.1.1).
        let probe = sender.is_unspecified();
        if is_bad_source_v4(sender) && !probe {
            return Err(Refusal::BadArp);
        }
        let for_us = self.addresses.owns(target.into());
        if message.operation == ArpOperation::REPLY {
            let released = self.neighbours.advertised(
                now,
                Advertisement {
                    addr: sender.into(),
                    mac: Some(mac),
                    solicited: for_us && !broadcast,
                    overrides: true,
                    router: None,
                },
            );
            self.send_released(released);
            return Ok(Taken::Consumed);
        }
        if !probe {
            let add = for_us && self.addresses.on_link(sender.into());
            let released = self
                .neighbours
                .heard(now, sender.into(), mac, add, &mut self.stats);
            self.send_released(released);
        }
        if for_us && self.config.answers {
            let mut frame = Vec::new();
            arp::write_reply(self.config.mac, target, &message, &mut frame);
            self.stats.advertisements_sent += 1;
            self.push_frame(frame);
        } else if !for_us && sender != target {
            return Err(Refusal::OtherArpTarget);
        }
        Ok(Taken::Consumed)
    }

    /// Announces an address of this host that another host uses, within a rate limit (RFC 5227 2.4(b)).
    fn defend(&mut self, now: Time, addr: Ipv4Addr) {
        if self.icmp_limit.allow(now) {
            self.announce(addr);
        }
    }

    // --- neighbour discovery ---

    pub(super) fn take_discovery(
        &mut self,
        now: Time,
        src: Ipv6Addr,
        said: Message,
    ) -> Result<Taken, Refusal> {
        (self.known_pair, self.known_head, self.known_way) = (None, None, None);
        match said {
            Message::Solicitation { target, source_mac } => {
                self.take_solicitation(now, src, target, source_mac)?
            }
            Message::Advertisement(said) => self.take_advertisement(now, said)?,
            Message::Router(said) if self.config.router_discovery => {
                self.take_router(now, src, said)
            }
            Message::Router(_) | Message::RouterSolicitation => return Err(Refusal::IcmpIgnored),
        }
        Ok(Taken::Consumed)
    }

    /// RFC 4861 7.2.3, RFC 4862 5.4.3.
    fn take_solicitation(
        &mut self,
        now: Time,
        src: Ipv6Addr,
        target: Ipv6Addr,
        source_mac: Option<[u8; 6]>,
    ) -> Result<(), Refusal> {
        if !self.addresses.owns(target.into()) {
            if src.is_unspecified() && self.addresses.knows(target.into()) {
                self.mark_duplicate(target);
                return Err(Refusal::AddressConflict);
            }
            return Err(Refusal::OtherDiscoveryTarget);
        }
        let (kind, content) = ndp::advertisement(target, self.config.mac, !src.is_unspecified());
        self.stats.advertisements_sent += u64::from(self.config.answers);
        if src.is_unspecified() {
            if self.config.answers {
                // The answer goes to all nodes (RFC 4861 7.2.4).
                let packet = icmp::packet_v6(target, ALL_NODES, ndp::HOP_LIMIT, kind, &content);
                self.send_own(now, ALL_NODES.into(), packet);
            }
            return Ok(());
        }
        if let Some(mac) = source_mac {
            let released = self
                .neighbours
                .heard(now, src.into(), mac, true, &mut self.stats);
            self.send_released(released);
        }
        if self.config.answers {
            let packet = icmp::packet_v6(target, src, ndp::HOP_LIMIT, kind, &content);
            self.send_own(now, src.into(), packet);
        }
        Ok(())
    }

    fn take_advertisement(&mut self, now: Time, said: Advertisement) -> Result<(), Refusal> {
        if self.addresses.knows(said.addr) {
            if let IpAddr::V6(target) = said.addr {
                self.mark_duplicate(target);
            }
            return Err(Refusal::AddressConflict);
        }
        let no_router = said.router == Some(false);
        let released = self.neighbours.advertised(now, said);
        self.send_released(released);
        if let IpAddr::V6(addr) = said.addr
            && no_router
        {
            // A router that became a host forwards nothing (RFC 4861 7.2.5).
            self.routes.advertise(addr, None);
        }
        Ok(())
    }

    /// RFC 4861 6.3.4.
    fn take_router(&mut self, now: Time, src: Ipv6Addr, said: RouterWord) {
        self.duties.router_solicitations = Repeated::new(0);
        self.routes
            .advertise(src, said.lifetime.map(|lifetime| now + lifetime));
        if let Some(time) = said
            .reachable_time
            .filter(|&time| time <= MOST_REACHABLE_TIME)
        {
            self.neighbours.set_reachable_time(time);
        }
        if let Some(mtu) = said.mtu
            && (LEAST_MTU_V6..=self.link_mtu.into()).contains(&mtu)
        {
            self.mtu = mtu as u16;
        }
        if let Some(mac) = said.source_mac {
            let released = self
                .neighbours
                .heard(now, src.into(), mac, true, &mut self.stats);
            self.send_released(released);
        }
    }

    /// Marks a tentative address as a duplicate (RFC 4862 5.4.5). An address in use stays in use.
    fn mark_duplicate(&mut self, addr: Ipv6Addr) {
        for assigned in self.addresses.iter_mut() {
            if assigned.cidr.addr() == addr
                && matches!(assigned.standing, Standing::Tentative { .. })
            {
                assigned.standing = Standing::Duplicate;
            }
        }
    }

    // --- time ---

    /// Runs the neighbours' timers, and reports packets whose neighbour did not answer (RFC 4861 7.2.2).
    pub(super) fn check_neighbours(&mut self, now: Time) {
        for lost in self.neighbours.handle_timeouts(now, &mut self.stats) {
            self.routes.router_failed(lost.addr);
            for packet in lost.packets {
                if let Some(routed) = &mut self.routed {
                    routed.undelivered.push_back(packet);
                } else if let Some(quote) = Quote::read(&packet)
                    && self.path_errors.len() < MOST_PATH_ERRORS
                {
                    self.path_errors
                        .push_back((quote, PathError::HostUnreachable));
                }
            }
        }
    }

    /// Sends requests for tentative addresses, and starts to use those that nobody claimed (RFC 4862 5.4.2).
    pub(super) fn check_addresses(&mut self, now: Time) {
        let mut asked = Vec::new();
        for assigned in self.addresses.iter_mut() {
            match assigned.standing {
                Standing::Tentative { asked: false, .. } => {
                    assigned.standing = Standing::Tentative {
                        asked: true,
                        until: now + DUPLICATE_WAIT,
                    };
                    asked.push(assigned.cidr);
                }
                Standing::Tentative { asked: true, until } if until <= now => {
                    assigned.standing = Standing::Preferred
                }
                _ => {}
            }
        }
        for cidr in asked {
            if let Cidr::V6(net) = cidr {
                let content = ndp::solicitation(net.addr(), None);
                let group = solicited_node(net.addr());
                let kind = Icmpv6Type::NeighborSolicitation;
                let packet =
                    icmp::packet_v6(Ipv6Addr::UNSPECIFIED, group, ndp::HOP_LIMIT, kind, &content);
                self.stats.solicitations_sent += 1;
                self.send_own(now, group.into(), packet);
            }
        }
    }

    /// Announces addresses and solicits routers, if due.
    pub(super) fn do_duties(&mut self, now: Time) {
        if self.duties.announcements.due(now, ANNOUNCE_INTERVAL) {
            let own: Vec<Cidr> = self.addresses.preferred().copied().collect();
            for cidr in own {
                if let Cidr::V4(net) = cidr {
                    self.announce(net.addr());
                }
            }
        }
        if self.duties.router_solicitations.due(now, ROUTER_INTERVAL) {
            let own = match self
                .addresses
                .source_for(ALL_ROUTERS.into(), ALL_ROUTERS.into())
            {
                Some(IpAddr::V6(own)) => own,
                _ => Ipv6Addr::UNSPECIFIED,
            };
            let mac = (!own.is_unspecified()).then_some(self.config.mac);
            let content = ndp::router_solicitation(mac);
            let kind = Icmpv6Type::RouterSolicitation;
            let packet = icmp::packet_v6(own, ALL_ROUTERS, ndp::HOP_LIMIT, kind, &content);
            self.send_own(now, ALL_ROUTERS.into(), packet);
        }
    }

    /// Creates a request for a neighbour; empty if the interface has no suitable source address.
    pub(super) fn solicitation_frame(
        &mut self,
        Solicitation { target, to }: Solicitation,
    ) -> Vec<u8> {
        let mut frame = Vec::new();
        match (self.addresses.source_for(target, target), target) {
            (Some(IpAddr::V4(own)), IpAddr::V4(target)) => {
                arp::write_request(self.config.mac, own, target, to, &mut frame)
            }
            (Some(IpAddr::V6(own)), IpAddr::V6(target)) => {
                let group = solicited_node(target);
                let (mac, dst) = match to {
                    Some(mac) => (mac, target),
                    None => (group_mac(group), group),
                };
                let content = ndp::solicitation(target, Some(self.config.mac));
                let kind = Icmpv6Type::NeighborSolicitation;
                let packet = icmp::packet_v6(own, dst, ndp::HOP_LIMIT, kind, &content);
                encode_link(self.link_to(mac), own.into(), &mut frame);
                frame.extend_from_slice(&packet);
            }
            _ => {}
        }
        frame
    }
}
