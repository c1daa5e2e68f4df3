//! Classification of Internet addresses, and the interface's own addresses.

use crate::Cidr;
use crate::config::is_broadcast_of;
use baton_wire::Time;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The Ethernet broadcast address.
pub(crate) const BROADCAST_MAC: [u8; 6] = [0xff; 6];

/// All nodes of a link (RFC 4291 2.7.1).
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// All routers of a link (RFC 4291 2.7.1).
pub(crate) const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// The solicited-node group, to which requests for the owner of `addr` are sent (RFC 4291 2.7.1).
pub(crate) fn solicited_node(addr: Ipv6Addr) -> Ipv6Addr {
    const PREFIX: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;
    Ipv6Addr::from_bits(PREFIX | addr.to_bits() & 0x00ff_ffff)
}

/// The Ethernet address of an IPv6 group (RFC 2464 7).
pub(crate) fn group_mac(group: Ipv6Addr) -> [u8; 6] {
    let [.., a, b, c, d] = group.octets();
    [0x33, 0x33, a, b, c, d]
}

/// Reports whether an Ethernet address is a group's (IEEE 802: the group bit).
pub(crate) fn is_group_mac(mac: [u8; 6]) -> bool {
    mac[0] & 1 == 1
}

/// Reports whether `addr` cannot be the source of a packet on a link (RFC 1122 3.2.1.3). The limited broadcast address lies in class E.
pub(crate) fn is_bad_source_v4(addr: Ipv4Addr) -> bool {
    let [first, ..] = addr.octets();
    first == 0 || addr.is_loopback() || first >= 224
}

/// State of one of the interface's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Not known to be unique yet (RFC 4862 5.4): another host with the address would answer the request before `until`.
    Tentative { asked: bool, until: Time },
    /// In use.
    Preferred,
    /// Another host has the address.
    Duplicate,
}

/// One of the interface's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Assigned {
    pub(crate) cidr: Cidr,
    pub(crate) standing: Standing,
}

/// Destination of a packet, as seen by the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// To the interface alone.
    Own,
    /// To an address of the interface that is not in use.
    NotInUse,
    /// To a group the interface belongs to.
    Group,
    /// To all hosts on the link.
    Broadcast,
    /// To another host.
    Other,
}

/// The interface's own addresses. There are few, so lookup is linear.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    assigned: Vec<Assigned>,
    /// All of 127.0.0.0/8 and ::1 belong to the interface, too.
    is_loopback: bool,
}

impl Addresses {
    /// IPv6 addresses start as tentative if `detect_duplicates` is set.
    pub(crate) fn new(addresses: &[Cidr], detect_duplicates: bool, is_loopback: bool) -> Self {
        let standing = |cidr: &Cidr| match cidr {
            Cidr::V6(_) if detect_duplicates => Standing::Tentative {
                asked: false,
                until: Time::ZERO,
            },
            _ => Standing::Preferred,
        };
        let assigned = addresses.iter().map(|&cidr| Assigned {
            cidr,
            standing: standing(&cidr),
        });
        Self {
            assigned: assigned.collect(),
            is_loopback,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Assigned> {
        self.assigned.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Assigned> {
        self.assigned.iter_mut()
    }

    /// Addresses in use.
    pub(crate) fn preferred(&self) -> impl Iterator<Item = &Cidr> {
        let preferred = |assigned: &&Assigned| assigned.standing == Standing::Preferred;
        self.assigned
            .iter()
            .filter(preferred)
            .map(|assigned| &assigned.cidr)
    }

    /// Reports whether `addr` is the interface's and in use.
    pub(crate) fn owns(&self, addr: IpAddr) -> bool {
        self.preferred().any(|cidr| cidr.addr() == addr) || self.is_looped(addr)
    }

    /// Reports whether `addr` is the interface's, in use or not.
    pub(crate) fn knows(&self, addr: IpAddr) -> bool {
        let knows = |assigned: &Assigned| assigned.cidr.addr() == addr;
        self.assigned.iter().any(knows) || self.is_looped(addr)
    }

    fn is_looped(&self, addr: IpAddr) -> bool {
        self.is_loopback && addr.is_loopback()
    }

    /// Classifies `addr` as a destination.
    pub(crate) fn destination(&self, addr: IpAddr) -> Destination {
        if self.owns(addr) {
            return Destination::Own;
        }
        if self.knows(addr) {
            return Destination::NotInUse;
        }
        let broadcast = match addr {
            IpAddr::V4(addr) if addr.is_broadcast() || addr.is_unspecified() => true,
            addr => self
                .assigned
                .iter()
                .any(|assigned| is_broadcast_of(&assigned.cidr, addr)),
        };
        if broadcast {
            return Destination::Broadcast;
        }
        match addr {
            IpAddr::V6(group) if group.is_multicast() => {
                let solicited = |assigned: &Assigned| match assigned.cidr {
                    Cidr::V6(net) => solicited_node(net.addr()) == group,
                    Cidr::V4(_) => false,
                };
                match group == ALL_NODES || self.assigned.iter().any(solicited) {
                    true => Destination::Group,
                    false => Destination::Other,
                }
            }
            // All hosts (RFC 1112 4); there is no other group.
            IpAddr::V4(group) if group.is_multicast() => Destination::Group,
            _ => Destination::Other,
        }
    }

    /// Reports whether `addr` can be reached without a router.
    pub(crate) fn on_link(&self, addr: IpAddr) -> bool {
        self.assigned
            .iter()
            .any(|assigned| assigned.cidr.contains(&addr))
    }

    /// The source address for packets to `remote`, whose next hop is `next_hop` (RFC 1122 3.3.4.3; RFC 6724 5, rules 2 and 8: the
    /// same scope, then the longest common prefix).
    pub(crate) fn source_for(&self, remote: IpAddr, next_hop: IpAddr) -> Option<IpAddr> {
        let rank = |cidr: &&Cidr| match (cidr.addr(), remote) {
            (IpAddr::V4(_), IpAddr::V4(_)) => {
                let shares_link = cidr.contains(&next_hop);
                Some((shares_link, u32::from(cidr.prefix_len())))
            }
            (IpAddr::V6(own), IpAddr::V6(remote)) => {
                let of_the_link = remote.is_unicast_link_local() || remote.is_multicast();
                let same_scope = own.is_unicast_link_local() == of_the_link;
                let common = (own.to_bits() ^ remote.to_bits()).leading_zeros();
                Some((same_scope, common))
            }
            _ => None,
        };
        let candidates = self.preferred().filter(|cidr| rank(cidr).is_some());
        // Of equal candidates, take the first in the order of the configuration.
        let best = candidates.reduce(|best, cidr| {
            if rank(&cidr) > rank(&best) {
                cidr
            } else {
                best
            }
        });
        best.map(Cidr::addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[&str]) -> Addresses {
        let parsed: Vec<Cidr> = list
            .iter()
            .map(|text| text.parse().expect("a network"))
            .collect();
        Addresses::new(&parsed, false, false)
    }

    fn addr(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn groups_have_the_addresses_of_the_rfcs() {
        // RFC 4291 2.7.1's own example.
        let owner = "4037::01:800:200e:8c6c".parse().expect("an address");
        let group: Ipv6Addr = "ff02::1:ff0e:8c6c".parse().expect("an address");
        assert_eq!(solicited_node(owner), group);
        assert_eq!(group_mac(group), [0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]);
    }

    #[test]
    fn kinds_of_destinations_are_distinguished() {
        let own = addresses(&["10.0.0.1/24", "10.9.9.1/31", "fd00::1/64"]);
        for (text, expected) in [
            ("10.0.0.1", Destination::Own),
            ("fd00::1", Destination::Own),
            ("10.0.0.255", Destination::Broadcast),
            ("10.0.0.0", Destination::Broadcast),
            ("255.255.255.255", Destination::Broadcast),
            ("10.9.9.0", Destination::Other),
            ("10.0.0.2", Destination::Other),
            ("224.0.0.1", Destination::Group),
            ("ff02::1", Destination::Group),
            ("ff02::1:ff00:1", Destination::Group),
            ("ff02::1:ff00:2", Destination::Other),
            ("fd00::2", Destination::Other),
        ] {
            assert_eq!(own.destination(addr(text)), expected, "{text}");
        }
    }

    #[test]
    fn source_addresses_suit_their_destinations() {
        let own = addresses(&[
            "10.0.0.1/24",
            "192.168.1.1/24",
            "fe80::1/64",
            "fd00::1/64",
            "2001:db8::1/64",
        ]);
        for (remote, next_hop, expected) in [
            ("10.0.0.9", "10.0.0.9", "10.0.0.1"),
            ("8.8.8.8", "192.168.1.254", "192.168.1.1"),
            ("fe80::9", "fe80::9", "fe80::1"),
            ("2001:db8::9", "fe80::9", "2001:db8::1"),
            ("fd00::9", "fd00::9", "fd00::1"),
        ] {
            assert_eq!(
                own.source_for(addr(remote), addr(next_hop)),
                Some(addr(expected)),
                "{remote}"
            );
        }
        assert_eq!(
            addresses(&["10.0.0.1/8"]).source_for(addr("fd00::1"), addr("fd00::1")),
            None
        );
    }
}
