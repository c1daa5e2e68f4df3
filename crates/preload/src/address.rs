//! Conversion of socket addresses from and to C.

use crate::pointers;
use crate::sys::{self, Errno, call};
use baton_abi::address::{self, Family};
use libc::{c_int, c_void, sockaddr_storage, socklen_t};
use std::net::SocketAddr;

/// Length of the longest address of any family, bytes.
pub const MOST: usize = size_of::<sockaddr_storage>();

/// Reads an IP address and port, or returns `None` if there is none.
///
/// # Safety
/// `at` is valid for `len` bytes, or [bad](crate::pointers::is_bad).
pub unsafe fn read(at: *const c_void, len: socklen_t) -> Option<SocketAddr> {
    let len = (len as usize).min(MOST);
    if len == 0 || pointers::is_bad(at, len) {
        return None;
    }
    // SAFETY: by this function's contract, and checked.
    let bytes = unsafe { std::slice::from_raw_parts(at.cast::<u8>(), len) };
    let family = Family::from_number(address::family_of(bytes)?)?;
    address::read(bytes, family).ok()
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
    family: Family,
    to: *mut c_void,
    len: *mut socklen_t,
) -> Result<(), Errno> {
    pointers::check_mut(len)?;
    // SAFETY: by this function's contract.
    let room = usize::try_from(unsafe { *len }.cast_signed()).map_err(|_| libc::EINVAL)?;
    let written = address::write(address, family);
    let given = room.min(written.len());
    if pointers::is_bad_mut(to, given) {
        return Err(libc::EFAULT);
    }
    // SAFETY: by this function's contract; this copies no more than the caller's buffer or the address holds.
    unsafe {
        std::ptr::copy_nonoverlapping(written.as_ptr(), to.cast(), given);
        *len = written.len() as socklen_t;
    }
    Ok(())
}
