//! Neighbour discovery messages (RFC 4861 4), without their IPv6 headers.

use crate::addresses::is_group_mac;
use crate::neighbours::Advertisement;
use crate::stats::Refusal;
use baton_wire::Span;
use etherparse::icmpv6::{
    Icmpv6PayloadSlice, NdpOptionHeader, NdpOptionSlice, NdpOptionType, NdpOptionsIterator,
    NeighborAdvertisementHeader, NeighborAdvertisementPayload, NeighborSolicitationPayload,
};
use etherparse::{Icmpv6Slice, Icmpv6Type};
use std::net::Ipv6Addr;

/// Hop limit of every message. A router would have lowered it, so the message comes from the link (RFC 4861 11.2).
pub(crate) const HOP_LIMIT: u8 = 255;

/// A neighbour discovery message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Asks for the owner of `target`.
    Solicitation {
        target: Ipv6Addr,
        source_mac: Option<[u8; 6]>,
    },
    /// Announces the owner of an address.
    Advertisement(Advertisement),
    /// Announces a router.
    Router(RouterWord),
    /// A router solicitation, which a host ignores (RFC 4861 6.2.6).
    RouterSolicitation,
}

/// The parts of a router advertisement that a host uses (RFC 4861 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouterWord {
    /// How long the router may be a default router; `None` if it is not one.
    pub(crate) lifetime: Option<Span>,
    /// How long a neighbour's confirmation is valid, if advertised.
    pub(crate) reachable_time: Option<Span>,
    /// Largest packet for the link, bytes, if advertised.
    pub(crate) mtu: Option<u32>,
    pub(crate) source_mac: Option<[u8; 6]>,
}

/// Ethernet address and MTU among a message's options.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    source_mac: Option<[u8; 6]>,
    target_mac: Option<[u8; 6]>,
    mtu: Option<u32>,
}

/// Reads a message from `src` to `dst` with this hop limit, whose checksum was verified. Returns `None` if it is not neighbour
/// discovery.
pub(crate) fn read(
    icmp: &Icmpv6Slice<'_>,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    hop_limit: u8,
) -> Result<Option<Message>, Refusal> {
    let payload = match icmp.icmp_type() {
        Icmpv6Type::NeighborSolicitation
        | Icmpv6Type::NeighborAdvertisement(_)
        | Icmpv6Type::RouterAdvertisement(_)
        | Icmpv6Type::RouterSolicitation => {
            icmp.payload_slice().map_err(|_| Refusal::BadDiscovery)?
        }
        _ => return Ok(None),
    };
    let bad = Err(Refusal::BadDiscovery);
    if hop_limit != HOP_LIMIT {
        return bad;
    }
    let message = match (icmp.icmp_type(), payload) {
        (_, Icmpv6PayloadSlice::NeighborSolicitation(said)) => {
            let target = said.target_address();
            let source_mac = read_options(said.options_iterator())?.source_mac;
            // RFC 4861 7.1.1.
            let from_nobody = src.is_unspecified();
            let to_group = dst.is_multicast();
            if target.is_multicast() || (from_nobody && (!to_group || source_mac.is_some())) {
                return bad;
            }
            Message::Solicitation { target, source_mac }
        }
        (
            Icmpv6Type::NeighborAdvertisement(flags),
            Icmpv6PayloadSlice::NeighborAdvertisement(said),
        ) => {
            let target = said.target_address();
            // RFC 4861 7.1.2.
            if target.is_multicast() || (dst.is_multicast() && flags.solicited) {
                return bad;
            }
            Message::Advertisement(Advertisement {
                addr: target.into(),
                mac: read_options(said.options_iterator())?.target_mac,
                solicited: flags.solicited,
                overrides: flags.r#override,
                router: Some(flags.router),
            })
        }
        (
            Icmpv6Type::RouterAdvertisement(header),
            Icmpv6PayloadSlice::RouterAdvertisement(said),
        ) => {
            // RFC 4861 6.1.2.
            if !src.is_unicast_link_local() {
                return bad;
            }
            let options = read_options(said.options_iterator())?;
            let told = |number: u32| (number > 0).then(|| Span::from_ms(number.into()));
            let lifetime = u64::from(header.router_lifetime);
            Message::Router(RouterWord {
                lifetime: (lifetime > 0).then(|| Span::from_secs(lifetime)),
                reachable_time: told(said.reachable_time()),
                mtu: options.mtu,
                source_mac: options.source_mac,
            })
        }
        _ => Message::RouterSolicitation,
    };
    Ok(Some(message))
}

/// Reads the options and skips unknown ones. An option of length zero makes the message invalid (RFC 4861 4.6, 7.1).
fn read_options(options: NdpOptionsIterator<'_>) -> Result<Known, Refusal> {
    let mut known = Known::default();
    for option in options {
        match option.map_err(|_| Refusal::BadDiscovery)? {
            NdpOptionSlice::SourceLinkLayerAddress(said) => {
                known.source_mac = unicast_mac(said.link_layer_address())
            }
            NdpOptionSlice::TargetLinkLayerAddress(said) => {
                known.target_mac = unicast_mac(said.link_layer_address())
            }
            NdpOptionSlice::Mtu(said) => known.mtu = Some(said.mtu()),
            _ => {}
        }
    }
    Ok(known)
}

fn unicast_mac(bytes: &[u8]) -> Option<[u8; 6]> {
    bytes.try_into().ok().filter(|&mac| !is_group_mac(mac))
}

/// The content of a solicitation after the ICMP header. Without `source_mac` the message probes whether an address is free.
pub(crate) fn solicitation(target: Ipv6Addr, source_mac: Option<[u8; 6]>) -> Vec<u8> {
    let mut content = NeighborSolicitationPayload {
        target_address: target,
    }
    .to_bytes()
    .to_vec();
    if let Some(mac) = source_mac {
        push_mac(NdpOptionType::SOURCE_LINK_LAYER_ADDRESS, mac, &mut content);
    }
    content
}

/// An advertisement of `target`: its type and its content after the ICMP header.
pub(crate) fn advertisement(
    target: Ipv6Addr,
    mac: [u8; 6],
    solicited: bool,
) -> (Icmpv6Type, Vec<u8>) {
    let flags = NeighborAdvertisementHeader {
        router: false,
        solicited,
        r#override: true,
    };
    let mut content = NeighborAdvertisementPayload {
        target_address: target,
    }
    .to_bytes()
    .to_vec();
    push_mac(NdpOptionType::TARGET_LINK_LAYER_ADDRESS, mac, &mut content);
    (Icmpv6Type::NeighborAdvertisement(flags), content)
}

/// The content of a router solicitation after the ICMP header; with `source_mac` only if it has a source address (RFC 4861 4.1).
pub(crate) fn router_solicitation(source_mac: Option<[u8; 6]>) -> Vec<u8> {
    let mut content = Vec::new();
    if let Some(mac) = source_mac {
        push_mac(NdpOptionType::SOURCE_LINK_LAYER_ADDRESS, mac, &mut content);
    }
    content
}

fn push_mac(option_type: NdpOptionType, mac: [u8; 6], content: &mut Vec<u8>) {
    let header = NdpOptionHeader {
        option_type,
        length_units: 1,
    };
    content.extend_from_slice(&header.to_bytes());
    content.extend_from_slice(&mac);
}
