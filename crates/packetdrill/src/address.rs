//! Socket addresses in the C library's layout, and IPv4 addresses in IPv6 sockets.

use crate::errno::Errno;
use baton_wire::Endpoint;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of `sockaddr_in`.
const LEN_V4: usize = 16;
/// Bytes of `sockaddr_in6` up to the scope, which older programs leave out (SIN6_LEN_RFC2133 of Linux).
const LEAST_LEN_V6: usize = 24;
/// Bytes of `sockaddr_in6`.
const LEN_V6: usize = 28;

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
    /// The family of an address on the wire.
    pub(crate) const fn of(addr: IpAddr) -> Self {
        match addr {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// The unspecified address of this family.
    pub(crate) const fn any(self) -> IpAddr {
        match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Self::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }

    /// The AF_ constant.
    pub(crate) const fn number(self) -> i32 {
        match self {
            Self::V4 => libc::AF_INET,
            Self::V6 => libc::AF_INET6,
        }
    }
}

/// The family of a `sockaddr`, if it is long enough to hold one.
pub(crate) fn family_of(sockaddr: &[u8]) -> Option<i32> {
    let bytes = sockaddr.first_chunk::<2>()?;
    Some(u16::from_ne_bytes(*bytes).into())
}

/// Reads a `sockaddr` given to a socket of `family`. IPv4-mapped addresses come out as IPv4 (RFC 4291 2.5.5.2).
///
/// # Errors
/// EINVAL if the address is too short, EAFNOSUPPORT if it is of another family.
pub(crate) fn read(sockaddr: &[u8], family: Family) -> Result<Endpoint, Errno> {
    let least = match family {
        Family::V4 => LEN_V4,
        Family::V6 => LEAST_LEN_V6,
    };
    if sockaddr.len() < least {
        return Err(Errno(libc::EINVAL));
    }
    if family_of(sockaddr) != Some(family.number()) {
        return Err(Errno(libc::EAFNOSUPPORT));
    }
    let port = u16::from_be_bytes([sockaddr[2], sockaddr[3]]);
    let addr = match family {
        Family::V4 => {
            let octets: [u8; 4] = sockaddr[4..8].try_into().expect("four bytes");
            Ipv4Addr::from(octets).into()
        }
        Family::V6 => {
            let octets: [u8; 16] = sockaddr[8..24].try_into().expect("sixteen bytes");
            Ipv6Addr::from(octets).to_canonical()
        }
    };
    Ok(Endpoint::new(addr, port))
}

/// Writes the `sockaddr` of `end` for a socket of `family`.
pub(crate) fn write(end: Endpoint, family: Family) -> Vec<u8> {
    let mut sockaddr = (family.number() as u16).to_ne_bytes().to_vec();
    sockaddr.extend(end.port.to_be_bytes());
    match (family, end.addr) {
        (Family::V4, IpAddr::V4(addr)) => {
            sockaddr.extend(addr.octets());
            sockaddr.resize(LEN_V4, 0);
        }
        (_, addr) => {
            let addr = match addr {
                IpAddr::V4(addr) => addr.to_ipv6_mapped(),
                IpAddr::V6(addr) => addr,
            };
            sockaddr.extend([0; 4]);
            sockaddr.extend(addr.octets());
            sockaddr.resize(LEN_V6, 0);
        }
    }
    sockaddr
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        let v4 = Endpoint::new("192.0.2.1".parse().expect("an address"), 8080);
        let v6 = Endpoint::new("2001:db8::1".parse().expect("an address"), 80);
        assert_eq!(read(&write(v4, Family::V4), Family::V4), Ok(v4));
        assert_eq!(read(&write(v6, Family::V6), Family::V6), Ok(v6));
        // As a mapped address.
        assert_eq!(read(&write(v4, Family::V6), Family::V6), Ok(v4));
    }

    #[test]
    fn short_and_foreign_addresses_are_refused() {
        let v4 = write(Endpoint::new(Family::V4.any(), 1), Family::V4);
        assert_eq!(read(&v4[..8], Family::V4), Err(Errno(libc::EINVAL)));
        assert_eq!(read(&v4, Family::V6), Err(Errno(libc::EINVAL)));
        let mut long = v4.clone();
        long.resize(LEN_V6, 0);
        assert_eq!(read(&long, Family::V6), Err(Errno(libc::EAFNOSUPPORT)));
        assert_eq!(family_of(&[2]), None);
    }
}
