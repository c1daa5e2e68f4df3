//! Which network namespace a socket is in.

use crate::repair::option;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};

/// The kernel's number of the namespace of a socket (Linux 5.14 and later).
pub(super) fn namespace_of(socket: BorrowedFd<'_>) -> io::Result<u64> {
    const NAMESPACE: libc::c_int = 71;
    option(socket, libc::SOL_SOCKET, NAMESPACE)
}

/// That of this thread.
pub(super) fn own_namespace() -> io::Result<u64> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    namespace_of(socket.as_fd())
}
