//! The few system calls on interfaces that no safe library offers.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

/// An interface request for `name`.
///
/// # Errors
/// The name does not fit.
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

/// A request to configure or ask an interface, whose argument is an `ifreq` that holds no pointer.
///
/// # Errors
/// Those of the call.
pub fn interface_ioctl(
    fd: BorrowedFd<'_>,
    operation: libc::Ioctl,
    request: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: the kernel reads and writes no more than the structure, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), operation, request as *mut libc::ifreq) })
}

/// One of ethtool's commands. Its argument is so many words, the first of which is the command; there must be room for all that the
/// driver gives.
///
/// # Errors
/// Those of the call.
pub fn ethtool_words(fd: BorrowedFd<'_>, name: &str, words: &mut [u32]) -> io::Result<()> {
    let mut request = request_for(name)?;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the request points to words that outlive the call and are as many as the structure of the command has, with all
    // that follows it; ethtool's structures are aligned to four bytes for user space.
    check(unsafe {
        libc::ioctl(
            fd.as_raw_fd(),
            libc::SIOCETHTOOL as libc::Ioctl,
            &mut request,
        )
    })
}

/// Sets an option whose value is plain data of the type that the kernel expects of it, one or several in a row.
///
/// # Errors
/// Those of the call.
pub fn set_option<T: Copy>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    values: &[T],
) -> io::Result<()> {
    let len = mem::size_of_val(values) as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes, the size of the row.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, values.as_ptr().cast(), len) })
}

/// Counts of a packet socket since the last call: frames, and those of them that found no room.
///
/// # Errors
/// Those of the call.
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

/// Binds a packet socket to an interface, for frames of one protocol; ETH_P_ALL is all of them, 0 none.
///
/// # Errors
/// Those of the call.
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
/// It failed.
pub fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
