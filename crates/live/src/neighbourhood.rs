//! The kernel's addresses, routes and neighbours of an interface. An engine that shares the interface with the kernel receives no answers
//! to requests of its own.

use crate::netlink::{self, Attributes, HEADER_BYTES};
use crate::port::interface_index;
use rustc_hash::FxHashMap;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

// From linux/rtnetlink.h, linux/if_addr.h and linux/neighbour.h.
const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const NEW_NEIGHBOUR: u16 = 28;
const GET_NEIGHBOUR: u16 = 30;
const ACKNOWLEDGE: u16 = 4;
const CREATE: u16 = 0x400;
const ADDRESS_BYTES: usize = 8;
const ROUTE_BYTES: usize = 12;
const NEIGHBOUR_BYTES: usize = 12;
const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;
const ROUTE_DESTINATION: u16 = 1;
const ROUTE_SOURCE: u16 = 2;
const ROUTE_INTERFACE: u16 = 4;
const ROUTE_GATEWAY: u16 = 5;
const NEIGHBOUR_ADDRESS: u16 = 1;
const NEIGHBOUR_MAC: u16 = 2;
/// Asks the kernel to resolve the entry as if a packet were sent to it (NTF_USE).
const USE: u8 = 1;
const FAMILY_IPV4: u8 = libc::AF_INET as u8;
const FAMILY_IPV6: u8 = libc::AF_INET6 as u8;

/// How long a route between two addresses is remembered. Many connections with one peer may move in that time.
const LONGEST_KNOWN: Duration = Duration::from_millis(100);
/// Maximum number of remembered routes.
const MOST_KNOWN: usize = 1024;

/// Buffer size, bytes: an answer fits, and so does each part of a long one.
const ANSWER_BYTES: usize = 32 * 1024;

/// Queries the kernel about one interface.
#[derive(Debug)]
pub struct Neighbourhood {
    socket: OwnedFd,
    interface: u32,
    answer: Vec<u8>,
    /// Whether the route from one address to another uses the interface, and when the kernel said so.
    known: FxHashMap<(IpAddr, IpAddr), (Instant, bool)>,
}

impl Neighbourhood {
    /// Opens a query socket for the interface `name` in this thread's network namespace.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn of(name: &str) -> io::Result<Self> {
        Ok(Self {
            socket: netlink::socket()?,
            interface: interface_index(name).map_err(io::Error::other)?,
            answer: vec![0; ANSWER_BYTES],
            known: FxHashMap::default(),
        })
    }

    /// Returns the interface's addresses.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn addresses(&mut self) -> io::Result<Vec<IpAddr>> {
        let mut found = Vec::new();
        self.send(GET_ADDRESS, netlink::DUMP, &[0; ADDRESS_BYTES])?;
        loop {
            let interface = self.interface.to_ne_bytes();
            let (mut rest, mut is_last) = (self.receive()?, false);
            while let Some((message, behind)) = netlink::split(rest) {
                rest = behind;
                is_last |= netlink::kind(message) == Some(netlink::DONE);
                let Some(body) = body_of(message, NEW_ADDRESS) else {
                    continue;
                };
                if body.get(4..8) != Some(&interface) {
                    continue;
                }
                let attributes = body.get(ADDRESS_BYTES..).unwrap_or_default();
                // On a point-to-point interface, ADDRESS is that of the peer.
                let own = netlink::attribute(attributes, LOCAL)
                    .or_else(|| netlink::attribute(attributes, ADDRESS));
                found.extend(own.and_then(address));
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    /// Returns the Ethernet address to which this interface sends packets for `remote`, or `None` if the kernel does not know it yet: the
    /// kernel then resolves it, and the caller should ask again.
    ///
    /// # Errors
    /// There is no route through this interface.
    pub fn way_to(&mut self, remote: IpAddr) -> io::Result<Option<[u8; 6]>> {
        let hop = self.next_hop(remote)?;
        let found = self.mac_of(hop);
        if let Ok(Some(mac)) = found {
            return Ok(Some(mac));
        }
        self.send(
            NEW_NEIGHBOUR,
            CREATE | ACKNOWLEDGE,
            &self.neighbour(hop, USE),
        )?;
        self.receive()?;
        Ok(None)
    }

    /// Returns whether the kernel sends packets from `local` to `remote` through this interface, as of a tenth of a second ago at most.
    /// Link-local addresses, which exist on every link, count as reachable through it.
    ///
    /// # Errors
    /// There is no route.
    pub fn is_way_to(&mut self, local: IpAddr, remote: IpAddr) -> io::Result<bool> {
        if matches!(remote, IpAddr::V6(remote) if remote.is_unicast_link_local()) {
            return Ok(true);
        }
        let now = Instant::now();
        if let Some((since, is_way)) = self.known.get(&(local, remote))
            && now - *since < LONGEST_KNOWN
        {
            return Ok(*is_way);
        }
        let (_, source) = parts(local);
        let ask = Attributes::default().with(ROUTE_SOURCE, &source);
        let interface = self.interface.to_ne_bytes();
        let route = self.route(remote, source.len() as u8 * 8, ask)?;
        let is_way = netlink::attribute(route, ROUTE_INTERFACE) == Some(&interface);
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert((local, remote), (now, is_way));
        Ok(is_way)
    }

    fn next_hop(&mut self, remote: IpAddr) -> io::Result<IpAddr> {
        let interface = self.interface.to_ne_bytes();
        let ask = Attributes::default().with(ROUTE_INTERFACE, &interface);
        let gateway = netlink::attribute(self.route(remote, 0, ask)?, ROUTE_GATEWAY);
        Ok(gateway.and_then(address).unwrap_or(remote))
    }

    /// Returns the attributes of the route to `remote`. `ask` narrows the query; it has a source address of `source_bits` bits.
    fn route(&mut self, remote: IpAddr, source_bits: u8, ask: Attributes) -> io::Result<&[u8]> {
        let (family, bytes) = parts(remote);
        let mut body = vec![0; ROUTE_BYTES];
        body[..3].copy_from_slice(&[family, bytes.len() as u8 * 8, source_bits]);
        body.extend(&ask.with(ROUTE_DESTINATION, &bytes).0);
        self.send(GET_ROUTE, 0, &body)?;
        let body = body_of(self.receive()?, NEW_ROUTE).ok_or(io::ErrorKind::InvalidData)?;
        Ok(body.get(ROUTE_BYTES..).unwrap_or_default())
    }

    fn mac_of(&mut self, hop: IpAddr) -> io::Result<Option<[u8; 6]>> {
        self.send(GET_NEIGHBOUR, 0, &self.neighbour(hop, 0))?;
        let answer = self.receive()?;
        let body = body_of(answer, NEW_NEIGHBOUR).ok_or(io::ErrorKind::InvalidData)?;
        let attributes = body.get(NEIGHBOUR_BYTES..).unwrap_or_default();
        let mac = netlink::attribute(attributes, NEIGHBOUR_MAC);
        Ok(mac.and_then(|mac| mac.try_into().ok()))
    }

    /// Builds a message about a neighbour.
    fn neighbour(&self, addr: IpAddr, flags: u8) -> Vec<u8> {
        let (family, bytes) = parts(addr);
        let mut body = vec![0; NEIGHBOUR_BYTES];
        body[0] = family;
        body[4..8].copy_from_slice(&self.interface.to_ne_bytes());
        body[10] = flags;
        body.extend(&Attributes::default().with(NEIGHBOUR_ADDRESS, &bytes).0);
        body
    }

    fn send(&self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        let request = netlink::request(kind, flags, body);
        send(&self.socket, &request, SendFlags::empty())?;
        Ok(())
    }

    /// Receives an answer, which the kernel sends immediately.
    fn receive(&mut self) -> io::Result<&[u8]> {
        let (len, _) = recv(&self.socket, self.answer.as_mut_slice(), RecvFlags::empty())?;
        let answer = &self.answer[..len];
        match netlink::outcome(answer) {
            Some(Err(error)) => Err(error),
            _ => Ok(answer),
        }
    }
}

/// Returns the body of a message if it has this kind.
fn body_of(message: &[u8], kind: u16) -> Option<&[u8]> {
    let is_it = netlink::kind(message) == Some(kind);
    message.get(HEADER_BYTES..).filter(|_| is_it)
}

fn parts(addr: IpAddr) -> (u8, Vec<u8>) {
    match addr {
        IpAddr::V4(addr) => (FAMILY_IPV4, addr.octets().into()),
        IpAddr::V6(addr) => (FAMILY_IPV6, addr.octets().into()),
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()),
        16 => Some(Ipv6Addr::from(*bytes.first_chunk::<16>()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_address() {
        let mut of = Neighbourhood::of("lo").expect("everybody has one");
        let found = of.addresses().expect("an answer");
        assert!(found.contains(&Ipv4Addr::LOCALHOST.into()), "{found:?}");
        assert!(Neighbourhood::of("no such interface").is_err());
    }

    #[test]
    fn truncated_messages_are_rejected() {
        for bytes in [&[][..], &[16, 0, 0], &[16, 0, 0, 0], &[0; 16], &[255; 40]] {
            assert!(netlink::split(bytes).is_none(), "{bytes:?}");
        }
        assert!(address(&[1, 2, 3]).is_none());
    }
}
