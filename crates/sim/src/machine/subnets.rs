//! Assignment of addresses: each NIC has a subnet that contains the server and the NIC's clients.

use crate::config::MOST_CLIENTS;
use baton_wire::Endpoint;
use std::net::{IpAddr, Ipv4Addr};

/// The server's port.
const PORT: u16 = 80;

/// Number of low bits of an address that the subnet of a NIC leaves to its hosts.
const SUBNET_SHIFT: u32 = 21;
/// The first subnet, 10.0.0.0/11. Those of further NICs follow.
const FIRST_SUBNET: u32 = 0x0a00_0000;

/// The server's address, and the first client's address within a subnet: 10.0.0.1 and 10.1.0.1 at the first NIC.
const SERVER: u32 = FIRST_SUBNET + 1;
const FIRST_CLIENT: u32 = FIRST_SUBNET + 0x0001_0001;

const _: () = assert!(
    FIRST_CLIENT - FIRST_SUBNET + MOST_CLIENTS < 1 << SUBNET_SHIFT,
    "all clients fit into one subnet"
);

/// Returns the endpoint at which the server listens on this NIC.
pub(super) fn server(nic: u8) -> Endpoint {
    Endpoint::new(address(SERVER, nic), PORT)
}

/// Returns the address of a client that reaches the server through this NIC.
pub(super) fn client(nic: u8, number: u32) -> IpAddr {
    address(FIRST_CLIENT + number, nic)
}

/// Returns the NIC whose subnet contains an address. Panics if the address is in no subnet.
#[inline]
pub(super) fn nic_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => ((address.to_bits() - FIRST_SUBNET) >> SUBNET_SHIFT) as u8,
        IpAddr::V6(address) => panic!("{address} is in no subnet"),
    }
}

fn address(in_first_subnet: u32, nic: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(
        in_first_subnet + (u32::from(nic) << SUBNET_SHIFT),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tick::MOST_NICS;
    use super::*;

    #[test]
    fn every_address_identifies_its_nic() {
        for nic in 0..MOST_NICS as u8 {
            assert_eq!(nic_of(server(nic).addr), nic);
            assert_eq!(nic_of(client(nic, 0)), nic);
            assert_eq!(nic_of(client(nic, MOST_CLIENTS - 1)), nic);
        }
    }

    #[test]
    fn the_first_subnet_begins_with_10_0() {
        assert_eq!(server(0).to_string(), "10.0.0.1:80");
        assert_eq!(client(0, 0).to_string(), "10.1.0.1");
        assert_eq!(client(1, 0).to_string(), "10.33.0.1");
    }
}
