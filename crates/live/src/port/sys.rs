//! System calls on interfaces that no safe library offers.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Creates an interface request for `name`.
///
/// # Errors
/// The name is invalid.
pub fn request_for(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an interface request is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains(['\0', '/', ' ']) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (target, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *target = byte as libc::c_char;
    }
    Ok(request)
}

/// Configures or queries an interface. The argument is an `ifreq` that contains no pointer.
///
/// # Errors
/// Errors of the system call.
pub fn interface_ioctl(
    fd: BorrowedFd<'_>,
    operation: libc::Ioctl,
    request: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: the kernel accesses only the structure, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), operation, request as *mut libc::ifreq) })
}

/// Executes a command of ethtool. Its argument is `words`, the first of which is the command; it must have space for everything that the
/// driver writes.
///
/// # Errors
/// Errors of the system call.
pub fn ethtool_words(fd: BorrowedFd<'_>, name: &str, words: &mut [u32]) -> io::Result<()> {
    let mut request = request_for(name)?;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the request points to words that outlive the call and cover the command's structure with everything that follows it;
    // ethtool's structures are aligned to four bytes in user space.
    check(unsafe {
        libc::ioctl(
            fd.as_raw_fd(),
            libc::SIOCETHTOOL as libc::Ioctl,
            &mut request,
        )
    })
}

/// Sets an option whose value is plain data of the type that the kernel expects, a single value or several in a row.
///
/// # Errors
/// Errors of the system call.
pub fn set_option<T: Copy>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    values: &[T],
) -> io::Result<()> {
    let len = mem::size_of_val(values) as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes, the size of the values.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, values.as_ptr().cast(), len) })
}

/// Returns the counters of a packet socket since the last call: frames, and those among them that were dropped for lack of space.
///
/// # Errors
/// Errors of the system call.
pub fn packet_statistics(fd: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let mut stats = libc::tpacket_stats_v3 {
        tp_packets: 0,
        tp_drops: 0,
        tp_freeze_q_cnt: 0,
    };
    let mut len = mem::size_of_val(&stats) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of the structure.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &mut len,
        )
    })?;
    Ok((stats.tp_packets, stats.tp_drops))
}

/// Binds a packet socket to an interface, for frames of one protocol; ETH_P_ALL means all protocols, 0 none.
///
/// # Errors
/// Errors of the system call.
pub fn bind_packet(fd: BorrowedFd<'_>, interface_index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: an address is plain data, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface_index as i32;
    let len = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes, the size of the address.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) })
}

/// The error of a call that gives a negative number where it fails.
///
/// # Errors
/// The call failed.
pub fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
