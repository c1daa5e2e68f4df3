//! Internet addresses in words 2 and 3. The port is elsewhere.

use super::opcode::Flags;
use super::{Descriptor, Malformed};
use baton_wire::Endpoint;
use std::net::{IpAddr, Ipv6Addr};

/// Encodes an address as two words and the flag of its version.
pub(super) fn write(addr: IpAddr) -> ([u64; 2], Flags) {
    let (octets, flags) = match addr {
        IpAddr::V4(addr) => (addr.to_ipv6_mapped(), Flags::empty()),
        IpAddr::V6(addr) => (addr, Flags::V6),
    };
    let number = u128::from_le_bytes(octets.octets());
    ([number as u64, (number >> 64) as u64], flags)
}

/// Decodes the endpoint of a descriptor, whose length field holds the port.
pub(super) fn read(descriptor: &Descriptor) -> Result<Endpoint, Malformed> {
    let [_, _, low, high] = descriptor.0;
    let number = u128::from(low) | u128::from(high) << 64;
    let addr = Ipv6Addr::from(number.to_le_bytes());
    let addr = if descriptor.flags().contains(Flags::V6) {
        IpAddr::V6(addr)
    } else {
        // Only a malicious peer sends an address that is not mapped; it reads as "any".
        IpAddr::V4(
            addr.to_ipv4_mapped()
                .unwrap_or(std::net::Ipv4Addr::UNSPECIFIED),
        )
    };
    let port = u16::try_from(descriptor.len()).map_err(|_| Malformed::Port(descriptor.len()))?;
    Ok(Endpoint::new(addr, port))
}
