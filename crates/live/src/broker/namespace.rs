//! Finds out which network namespace a socket is in.

use crate::repair::option;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};

/// Returns the kernel's number of the network namespace of a socket (Linux 5.14 and later).
pub(super) fn namespace_of(socket: BorrowedFd<'_>) -> io::Result<u64> {
    const NAMESPACE: libc::c_int = 71;
    option(socket, libc::SOL_SOCKET, NAMESPACE)
}

/// Returns the number of this thread's network namespace.
pub(super) fn own_namespace() -> io::Result<u64> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    namespace_of(socket.as_fd())
}
