//! Conversion of socket addresses from and to C.

use crate::pointers;
use crate::sys::{self, Errno, call};
use libc::{c_int, c_void, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Length of the longest address of any family, bytes.
pub const MOST: usize = size_of::<sockaddr_storage>();

/// Reads an IP address and port, or returns `None` if there is none.
///
/// # Safety
/// `at` is valid for `len` bytes, or [bad](crate::pointers::is_bad).
pub unsafe fn read(at: *const c_void, len: socklen_t) -> Option<SocketAddr> {
    let len = len as usize;
    if pointers::is_bad(at, len.clamp(1, MOST)) || len < size_of::<libc::sa_family_t>() {
        return None;
    }
    // SAFETY: the buffer is good for the family, as checked above, and for the family's structure, whose size each arm checks first.
    unsafe {
        match c_int::from(at.cast::<libc::sa_family_t>().read_unaligned()) {
            libc::AF_INET if len >= size_of::<sockaddr_in>() => {
                let address = at.cast::<sockaddr_in>().read_unaligned();
                let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
                Some(SocketAddr::new(ip.into(), u16::from_be(address.sin_port)))
            }
            libc::AF_INET6 if len >= size_of::<sockaddr_in6>() => {
                let address = at.cast::<sockaddr_in6>().read_unaligned();
                let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
                Some(SocketAddr::new(ip.into(), u16::from_be(address.sin6_port)))
            }
            _ => None,
        }
    }
}

/// Returns the local address of a kernel socket.
pub fn local(fd: c_int) -> Option<SocketAddr> {
    // SAFETY: all zeros are a valid address of no family.
    let mut storage: sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut len = size_of::<sockaddr_storage>() as socklen_t;
    // SAFETY: `len` is the size of the storage.
    let got = sys::outcome(unsafe { call!(SYS_getsockname, fd, &raw mut storage, &raw mut len) });
    // SAFETY: `len` is the length that the kernel has written.
    got.ok()
        .and_then(|_| unsafe { read((&raw const storage).cast(), len) })
}

/// Writes an address for a caller that expects this family: an IPv4 address becomes an IPv4-mapped one if the family is IPv6.
///
/// # Safety
/// `to` is valid for `*len` bytes, or one of the pointers is [bad](crate::pointers::is_bad).
pub unsafe fn give(
    address: SocketAddr,
    family: c_int,
    to: *mut c_void,
    len: *mut socklen_t,
) -> Result<(), Errno> {
    pointers::check_mut(len)?;
    // SAFETY: by this function's contract.
    let room = usize::try_from(unsafe { *len }.cast_signed()).map_err(|_| libc::EINVAL)?;
    let ip = match address.ip() {
        IpAddr::V4(ip) if family == libc::AF_INET6 => IpAddr::V6(ip.to_ipv6_mapped()),
        ip => ip,
    };
    // SAFETY: all zeros are a valid address of no family.
    let mut storage: sockaddr_storage = unsafe { std::mem::zeroed() };
    let place = &raw mut storage;
    // SAFETY: a `sockaddr_storage` is large enough and aligned for an address of any family.
    let written = unsafe {
        match ip {
            IpAddr::V4(ip) => {
                let place = &mut *place.cast::<sockaddr_in>();
                place.sin_family = libc::AF_INET as libc::sa_family_t;
                place.sin_port = address.port().to_be();
                place.sin_addr.s_addr = u32::from(ip).to_be();
                size_of::<sockaddr_in>()
            }
            IpAddr::V6(ip) => {
                let place = &mut *place.cast::<sockaddr_in6>();
                place.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                place.sin6_port = address.port().to_be();
                place.sin6_addr.s6_addr = ip.octets();
                size_of::<sockaddr_in6>()
            }
        }
    };
    if pointers::is_bad_mut(to, room.min(written)) {
        return Err(libc::EFAULT);
    }
    // SAFETY: by this function's contract; this copies no more than the caller's buffer or the address holds.
    unsafe {
        std::ptr::copy_nonoverlapping(place.cast::<u8>(), to.cast(), room.min(written));
        *len = written as socklen_t;
    }
    Ok(())
}
