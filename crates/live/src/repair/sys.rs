//! The kernel's interface for moving connections: `TCP_REPAIR` and related options.
#![allow(unsafe_code)]

use super::RepairError;
use crate::port::check;
pub(super) use crate::port::set_option;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The queue of data and sequence numbers (`TCP_REPAIR_QUEUE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Queue {
    /// Data that was received and not read.
    Receive = 1,
    /// Data that was written and not acknowledged.
    Send = 2,
}

/// Windows of a connection (`struct tcp_repair_window`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// SND.WL1.
    pub send_seq: u32,
    /// SND.WND.
    pub send: u32,
    /// Maximum of SND.WND so far.
    pub largest_send: u32,
    /// RCV.WND as last advertised.
    pub receive: u32,
    /// RCV.NXT at that time.
    pub receive_told_at: u32,
}

/// A negotiated option (`struct tcp_repair_opt`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NegotiatedOption {
    /// TCP's number of the option.
    pub kind: u32,
    /// Value of the option.
    pub value: u32,
}

/// The start of `struct tcp_info`, up to the receive window (Linux 6.2).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Info {
    unused: [u8; 5],
    /// Options in use.
    pub options: u8,
    /// Shifts of window scaling: that for sending in the lower four bits, that for receiving in the upper four.
    pub scaling: u8,
    flags: u8,
    timers: [u32; 2],
    /// Maximum data of a segment, bytes.
    pub send_mss: u32,
    counts: [u32; 12],
    /// Smoothed round-trip time, microseconds.
    pub round_trip_us: u32,
    /// Variance of the round-trip time, microseconds.
    pub variance_us: u32,
    /// Slow start threshold, segments; larger than any window until the kernel has set it.
    pub slow_start_threshold: u32,
    /// Congestion window, segments.
    pub congestion_window: u32,
    more: [[u32; 12]; 3],
    /// SND.WND, bytes.
    pub send_window: u32,
    /// RCV.WND as last advertised, bytes.
    pub receive_window: u32,
}

impl Info {
    /// Reads the kernel's information on a connection. A kernel that does not report the receive window (before Linux 6.2) cannot have
    /// advertised more than the receive buffer holds.
    ///
    /// # Errors
    /// Errors of the calls.
    pub fn of(fd: BorrowedFd<'_>) -> Result<Self, RepairError> {
        let (info, len) = option_of::<Self>(fd, libc::IPPROTO_TCP, libc::TCP_INFO)
            .map_err(RepairError::at("TCP_INFO"))?;
        if len >= mem::size_of::<Self>() {
            return Ok(info);
        }
        let buffer: libc::c_int =
            option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF).map_err(RepairError::at("SO_RCVBUF"))?;
        Ok(Self {
            receive_window: buffer.unsigned_abs(),
            ..info
        })
    }
}

/// Reads an option whose value is plain data, of the type that the kernel writes.
///
/// # Errors
/// Errors of the call, or a value of another length.
pub fn option<T: Copy + Default>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<T> {
    match option_of(fd, level, name)? {
        (value, len) if len == mem::size_of::<T>() => Ok(value),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads an option, and returns the number of bytes that the kernel has written as well; the remaining bytes are zero.
fn option_of<T: Copy + Default>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<(T, usize)> {
    let mut value = T::default();
    let mut len = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of the value, for which all bit patterns are valid: all callers ask for
    // integers or structures of integers.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_mut(&mut value).cast(),
            &mut len,
        )
    })?;
    Ok((value, len as usize))
}

/// Returns the name of the interface that a socket is bound to; empty if the socket is not bound.
///
/// # Errors
/// Errors of the call.
pub fn bound_device(fd: BorrowedFd<'_>) -> Result<Vec<u8>, RepairError> {
    let (name, len) =
        option_of::<[u8; libc::IFNAMSIZ]>(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE)
            .map_err(RepairError::at("SO_BINDTODEVICE"))?;
    let name = name[..len].split(|byte| *byte == 0).next();
    Ok(name.unwrap_or_default().to_vec())
}

/// Binds a socket to the interface with this name, or to none if the name is empty.
///
/// # Errors
/// Errors of the call.
pub fn bind_to_device(fd: BorrowedFd<'_>, name: &[u8]) -> Result<(), RepairError> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name)
        .map_err(RepairError::at("SO_BINDTODEVICE"))
}

/// Reads a count that the kernel keeps for a socket: SIOCINQ, SIOCOUTQ or SIOCOUTQNSD.
///
/// # Errors
/// Errors of the call.
pub fn count(fd: BorrowedFd<'_>, which: libc::Ioctl) -> io::Result<u32> {
    let mut count: libc::c_int = 0;
    // SAFETY: each of these writes one integer.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), which, &mut count) })?;
    u32::try_from(count).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Undoes `connect`: the kernel forgets the connection and resets it.
///
/// # Errors
/// Errors of the call.
pub fn disconnect(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: an address is plain data, for which zeros are valid.
    let mut address: libc::sockaddr = unsafe { mem::zeroed() };
    address.sa_family = libc::AF_UNSPEC as libc::sa_family_t;
    let len = mem::size_of::<libc::sockaddr>() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes of the address.
    check(unsafe { libc::connect(fd.as_raw_fd(), &address, len) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_layout_of_the_kernel() {
        assert_eq!(mem::offset_of!(Info, options), 5);
        assert_eq!(mem::offset_of!(Info, scaling), 6);
        assert_eq!(mem::offset_of!(Info, send_mss), 16);
        assert_eq!(mem::offset_of!(Info, round_trip_us), 68);
        assert_eq!(mem::offset_of!(Info, slow_start_threshold), 76);
        assert_eq!(mem::offset_of!(Info, congestion_window), 80);
        assert_eq!(mem::offset_of!(Info, send_window), 228);
        assert_eq!(mem::offset_of!(Info, receive_window), 232);
        assert_eq!(mem::size_of::<Windows>(), 20);
    }
}
