//! Socket addresses from C and to C.

use crate::sys::{self, Errno, call};
use libc::{c_int, c_void, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An IP address and port.
///
/// # Safety
/// `at` is null or good for `len` bytes.
pub unsafe fn read(at: *const c_void, len: socklen_t) -> Option<SocketAddr> {
    let len = len as usize;
    if at.is_null() || len < size_of::<libc::sa_family_t>() {
        return None;
    }
    // SAFETY: it is good for a family, as was seen, and for what that has, which is looked at before.
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

/// Where a socket of the kernel's is bound to.
pub fn local(fd: c_int) -> Option<SocketAddr> {
    // SAFETY: zeros are an address of no family.
    let mut storage: sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut len = size_of::<sockaddr_storage>() as socklen_t;
    // SAFETY: the storage is as long as is said.
    let got = sys::outcome(unsafe { call!(SYS_getsockname, fd, &raw mut storage, &raw mut len) });
    // SAFETY: as long as the kernel has written.
    got.ok()
        .and_then(|_| unsafe { read((&raw const storage).cast(), len) })
}

/// Gives an address to a caller that expects one of this family: those of IPv4 as mapped ones where it is IPv6.
///
/// # Safety
/// `to` is good for as many bytes as `len` says.
pub unsafe fn give(
    address: SocketAddr,
    family: c_int,
    to: *mut c_void,
    len: *mut socklen_t,
) -> Result<(), Errno> {
    if len.is_null() || to.is_null() {
        return Err(libc::EFAULT);
    }
    let ip = match address.ip() {
        IpAddr::V4(ip) if family == libc::AF_INET6 => IpAddr::V6(ip.to_ipv6_mapped()),
        ip => ip,
    };
    // SAFETY: zeros are an address of no family.
    let mut storage: sockaddr_storage = unsafe { std::mem::zeroed() };
    let place = &raw mut storage;
    // SAFETY: a storage has room for, and is aligned for, an address of any family.
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
    // SAFETY: by this function's contract; no more is copied than there is.
    unsafe {
        let room = (*len as usize).min(written);
        std::ptr::copy_nonoverlapping(place.cast::<u8>(), to.cast(), room);
        *len = written as socklen_t;
    }
    Ok(())
}
