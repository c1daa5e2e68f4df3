//! Parameters of an interface.

use crate::Cidr;
use std::net::{IpAddr, Ipv6Addr};

/// Least MTU of a link that carries IPv6, bytes (RFC 8200 5).
const LEAST_MTU_V6: u16 = 1280;

/// Least MTU of a link that carries IPv4, bytes (RFC 791 3.2).
const LEAST_MTU_V4: u16 = 68;

/// Format of the frames of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Medium {
    /// Ethernet frames without check sequence.
    Ethernet,
    /// Bare IP packets. There are no neighbours to resolve.
    Ip,
}

/// A route to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The network; `0.0.0.0/0` and `::/0` make a default route.
    pub destination: Cidr,
    /// The neighbour that forwards packets; `None` if the network is on the link.
    pub gateway: Option<IpAddr>,
}

impl Route {
    /// Returns the default route of the gateway's IP version.
    pub fn default_by(gateway: IpAddr) -> Self {
        let destination = match gateway {
            IpAddr::V4(_) => Cidr::V4(ipnet::Ipv4Net::default()),
            IpAddr::V6(_) => Cidr::V6(ipnet::Ipv6Net::default()),
        };
        Self {
            destination,
            gateway: Some(gateway),
        }
    }
}

/// Parameters of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Ethernet address; ignored for [`Medium::Ip`].
    pub mac: [u8; 6],
    /// Addresses of the interface, with the networks that are on the link.
    pub addresses: Vec<Cidr>,
    /// Routes beyond the link.
    pub routes: Vec<Route>,
    /// Largest IP packet that the link carries, bytes.
    pub mtu: u16,
    /// Verify IP, TCP and ICMP checksums of arriving packets. Off if the other end of a virtual link leaves checksums to hardware,
    /// although there is none.
    pub verify_checksums: bool,
    /// Format of frames.
    pub medium: Medium,
    /// Check that no other host has an IPv6 address before it is used (RFC 4862 5.4); takes a second.
    pub duplicate_address_detection: bool,
    /// Solicit routers, and take default routes and the MTU from their advertisements (RFC 4861 6.3).
    pub router_discovery: bool,
    /// Announce IPv4 addresses by gratuitous ARP at the start (RFC 5227 2.3).
    pub announce: bool,
    /// Answer requests for the interface's addresses, echo requests, and packets that no protocol accepts. Off for all but one of several
    /// interfaces that have the same addresses and all receive such packets.
    pub answers: bool,
    /// Find neighbours by ARP and neighbour discovery. If off, the owner finds them, for example by asking the kernel on the same
    /// interface: see [`Interface::poll_sought`](crate::Interface::poll_sought).
    pub finds_neighbours: bool,
    /// The interface is the host's loopback interface: all of 127.0.0.0/8 and ::1 are its own addresses, packets come from its own
    /// addresses, and all destinations have the Ethernet address zero.
    pub is_loopback: bool,
    /// Maximum number of ICMP errors sent per second (RFC 1812 4.3.2.8, RFC 4443 2.4(f)).
    pub icmp_errors_per_second: u32,
}

/// Why parameters are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The Ethernet address is a group's.
    #[error("the Ethernet address is a multicast address")]
    GroupMac,
    /// The interface has no address.
    #[error("the interface has no address")]
    NoAddress,
    /// The address cannot be that of a host.
    #[error("{0} is not a unicast address")]
    NotUnicast(IpAddr),
    /// The interface has the same address twice.
    #[error("the address {0} is given twice")]
    Repeated(IpAddr),
    /// The MTU is too small for IP.
    #[error("an MTU of {mtu} bytes is less than the {least} that this version of IP needs")]
    SmallMtu {
        /// Configured MTU, bytes.
        mtu: u16,
        /// Least MTU, bytes.
        least: u16,
    },
    /// The gateway's IP version differs from that of its route.
    #[error("the route to {0} has a gateway of the other IP version")]
    MixedRoute(Cidr),
    /// The medium of a router's interface is not Ethernet.
    #[error("a router forwards only between Ethernet interfaces")]
    NoLinkToForward,
    /// The gateway is not a neighbour.
    #[error("the gateway {0} is not on the link")]
    FarGateway(IpAddr),
}

impl InterfaceConfig {
    /// An Ethernet interface with the usual parameters.
    pub fn new(mac: [u8; 6], addresses: Vec<Cidr>) -> Self {
        Self {
            mac,
            addresses,
            routes: Vec::new(),
            mtu: 1500,
            verify_checksums: true,
            medium: Medium::Ethernet,
            duplicate_address_detection: false,
            router_discovery: false,
            announce: true,
            answers: true,
            finds_neighbours: true,
            is_loopback: false,
            icmp_errors_per_second: 100,
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// Returns the first reason why an interface cannot work with these parameters.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.medium == Medium::Ethernet && self.mac[0] & 1 == 1 {
            return Err(ConfigError::GroupMac);
        }
        if self.addresses.is_empty() {
            return Err(ConfigError::NoAddress);
        }
        for (index, cidr) in self.addresses.iter().enumerate() {
            let addr = cidr.addr();
            if addr.is_multicast() || addr.is_unspecified() || is_broadcast_of(cidr, addr) {
                return Err(ConfigError::NotUnicast(addr));
            }
            if self.addresses[..index]
                .iter()
                .any(|other| other.addr() == addr)
            {
                return Err(ConfigError::Repeated(addr));
            }
            let least = match addr {
                IpAddr::V4(_) => LEAST_MTU_V4,
                IpAddr::V6(_) => LEAST_MTU_V6,
            };
            if self.mtu < least {
                let mtu = self.mtu;
                return Err(ConfigError::SmallMtu { mtu, least });
            }
        }
        self.routes
            .iter()
            .try_for_each(|route| self.check_route(route))
    }

    fn check_route(&self, route: &Route) -> Result<(), ConfigError> {
        let Some(gateway) = route.gateway else {
            return Ok(());
        };
        if gateway.is_ipv4() != route.destination.addr().is_ipv4() {
            return Err(ConfigError::MixedRoute(route.destination));
        }
        let on_link = self.addresses.iter().any(|cidr| cidr.contains(&gateway));
        match on_link || is_link_local(gateway) {
            true => Ok(()),
            false => Err(ConfigError::FarGateway(gateway)),
        }
    }
}

/// Reports whether `addr` is an IPv6 link-local address (RFC 4291 2.5.6).
pub(crate) fn is_link_local(addr: IpAddr) -> bool {
    matches!(addr, IpAddr::V6(addr) if Ipv6Addr::is_unicast_link_local(&addr))
}

/// Reports whether `addr` stands for all hosts of the network (RFC 1122 3.2.1.3). Networks of one or two hosts have no such
/// address (RFC 3021).
pub(crate) fn is_broadcast_of(cidr: &Cidr, addr: IpAddr) -> bool {
    match (cidr, addr) {
        (_, IpAddr::V4(addr)) if addr.is_broadcast() => true,
        (Cidr::V4(net), IpAddr::V4(addr)) if net.prefix_len() < 31 => {
            addr == net.broadcast() || addr == net.network()
        }
        _ => false,
    }
}
