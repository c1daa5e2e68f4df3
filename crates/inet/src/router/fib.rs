//! The forwarding information base: what a faster forwarder beside the router has to know, such as a program in the kernel. It forwards
//! what has a next hop, and leaves all else to the router.

use super::{Hop, Router};
use crate::Cidr;
use baton_wire::Time;
use std::net::IpAddr;

/// A neighbour to whom packets are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The interface by which they leave, by its number.
    pub interface: usize,
    /// The neighbour's Internet address.
    pub addr: IpAddr,
    /// Its Ethernet address.
    pub mac: [u8; 6],
}

/// Where packets to a network go; of several networks that hold an address the one with the longest prefix counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibEntry {
    /// The network.
    pub destination: Cidr,
    /// None when the router has to see to them: they are for itself, or their neighbour is not known.
    pub next_hop: Option<NextHop>,
}

impl Router {
    /// What is forwarded without a question, each destination once: the table, and the neighbours on links. It holds until
    /// [`Router::neighbour_changes`] says otherwise.
    pub fn fib(&self) -> Vec<FibEntry> {
        let mut entries: Vec<FibEntry> = self
            .table
            .iter()
            .map(|(destination, hop)| {
                let addr = match *hop {
                    Hop::Neighbour(_, None) if !is_host(&destination) => None,
                    Hop::Neighbour(out, gateway) => {
                        Some((out, gateway.unwrap_or(destination.addr())))
                    }
                    Hop::Own(_) => None,
                };
                FibEntry {
                    destination,
                    next_hop: addr.and_then(|(out, addr)| self.next_hop(out, addr)),
                }
            })
            .collect();
        for (number, interface) in self.interfaces.iter().enumerate() {
            for neighbour in interface.neighbours() {
                let destination = Cidr::from(neighbour.addr);
                let found = self.table.get_lpm(&destination);
                if let Some((network, Hop::Neighbour(out, None))) = found
                    && *out == number
                    && !is_host(&network)
                    && let Some(next_hop) = self.next_hop(number, neighbour.addr)
                {
                    entries.push(FibEntry {
                        destination,
                        next_hop: Some(next_hop),
                    });
                }
            }
        }
        entries
    }

    /// Grows whenever a neighbour gets another Ethernet address, or one that it did not have, or is given up.
    pub fn neighbour_changes(&self) -> u64 {
        let changes = self.interfaces.iter().map(|one| one.neighbours.changes());
        changes.sum()
    }

    /// Packets went to this neighbour past the router: in time it is asked whether it is still there (RFC 4861 7.3.3).
    pub fn handle_use(&mut self, now: Time, next_hop: &NextHop) {
        let interface = &mut self.interfaces[next_hop.interface];
        if interface.neighbours.mac_of(next_hop.addr).is_some() {
            interface.resolve(now, next_hop.addr);
        }
    }

    fn next_hop(&self, interface: usize, addr: IpAddr) -> Option<NextHop> {
        let mac = self.interfaces[interface].neighbours.mac_of(addr)?;
        Some(NextHop {
            interface,
            addr,
            mac,
        })
    }
}

/// A network of one address.
fn is_host(network: &Cidr) -> bool {
    network.prefix_len() == network.max_prefix_len()
}
