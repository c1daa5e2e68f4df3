//! Socket addresses in the C library's layout, and IPv4 addresses in IPv6 sockets.

use crate::Errno;
use libc::{c_int, sockaddr_in, sockaddr_in6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Deref;

const LEN_V4: usize = size_of::<sockaddr_in>();
const LEN_V6: usize = size_of::<sockaddr_in6>();
/// Bytes of `sockaddr_in6` up to the scope, which older programs leave out (SIN6_LEN_RFC2133 of Linux).
const LEAST_LEN_V6: usize = 24;

/// Address family of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// AF_INET.
    #[default]
    V4,
    /// AF_INET6, which accepts IPv4 connections as well unless IPV6_V6ONLY is set (RFC 3493 3.7).
    V6,
}

impl Family {
    /// Returns the family of an address on the wire.
    pub const fn of(addr: IpAddr) -> Self {
        match addr {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Returns the family of an AF_ constant.
    pub const fn from_number(number: c_int) -> Option<Self> {
        match number {
            libc::AF_INET => Some(Self::V4),
            libc::AF_INET6 => Some(Self::V6),
            _ => None,
        }
    }

    /// Returns the AF_ constant.
    pub const fn number(self) -> c_int {
        match self {
            Self::V4 => libc::AF_INET,
            Self::V6 => libc::AF_INET6,
        }
    }

    /// Returns the unspecified address of this family.
    pub const fn any(self) -> IpAddr {
        match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Self::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }

    /// Returns the length of an address, bytes.
    pub const fn address_len(self) -> usize {
        match self {
            Self::V4 => LEN_V4,
            Self::V6 => LEN_V6,
        }
    }
}

/// Returns the AF_ constant of a `sockaddr`, or `None` if it is too short to have one.
pub fn family_of(sockaddr: &[u8]) -> Option<c_int> {
    let bytes = sockaddr.first_chunk::<2>()?;
    Some(u16::from_ne_bytes(*bytes).into())
}

/// Reads a `sockaddr` that was passed to a socket of `family`.
///
/// # Errors
/// EINVAL if the address is too short, EAFNOSUPPORT if it has another family.
pub fn read(sockaddr: &[u8], family: Family) -> Result<SocketAddr, Errno> {
    let least = match family {
        Family::V4 => LEN_V4,
        Family::V6 => LEAST_LEN_V6,
    };
    if sockaddr.len() < least {
        return Err(libc::EINVAL);
    }
    if family_of(sockaddr) != Some(family.number()) {
        return Err(libc::EAFNOSUPPORT);
    }
    let port = u16::from_be_bytes([sockaddr[2], sockaddr[3]]);
    let addr = match family {
        Family::V4 => IpAddr::from(<[u8; 4]>::try_from(&sockaddr[4..8]).expect("four bytes")),
        Family::V6 => IpAddr::from(<[u8; 16]>::try_from(&sockaddr[8..24]).expect("16 bytes")),
    };
    Ok(SocketAddr::new(addr, port))
}

/// A `sockaddr_in` or `sockaddr_in6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sockaddr {
    bytes: [u8; LEN_V6],
    len: usize,
}

impl Deref for Sockaddr {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Writes an address for a socket of `family`. An IPv4 address of an IPv6 socket becomes an IPv4-mapped one (RFC 4291 2.5.5.2).
pub fn write(address: SocketAddr, family: Family) -> Sockaddr {
    let addr = match (family, address.ip()) {
        (Family::V6, IpAddr::V4(addr)) => addr.to_ipv6_mapped().into(),
        (_, addr) => addr,
    };
    let family = Family::of(addr);
    let mut bytes = [0; LEN_V6];
    bytes[..2].copy_from_slice(&(family.number() as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    match addr {
        IpAddr::V4(addr) => bytes[4..8].copy_from_slice(&addr.octets()),
        IpAddr::V6(addr) => bytes[8..24].copy_from_slice(&addr.octets()),
    }
    let len = family.address_len();
    Sockaddr { bytes, len }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        let v4: SocketAddr = "192.0.2.1:8080".parse().expect("an address");
        let v6: SocketAddr = "[2001:db8::1]:80".parse().expect("an address");
        assert_eq!(read(&write(v4, Family::V4), Family::V4), Ok(v4));
        assert_eq!(read(&write(v6, Family::V6), Family::V6), Ok(v6));
        let mapped = read(&write(v4, Family::V6), Family::V6).expect("an address");
        assert_eq!((mapped.ip().to_canonical(), mapped.port()), (v4.ip(), 8080));
    }

    #[test]
    fn short_and_foreign_addresses_are_refused() {
        let v4 = write(SocketAddr::new(Family::V4.any(), 1), Family::V4);
        assert_eq!(read(&v4[..8], Family::V4), Err(libc::EINVAL));
        assert_eq!(read(&v4, Family::V6), Err(libc::EINVAL));
        let mut long = v4.to_vec();
        long.resize(LEN_V6, 0);
        assert_eq!(read(&long, Family::V6), Err(libc::EAFNOSUPPORT));
        assert_eq!(family_of(&[2]), None);
    }
}
