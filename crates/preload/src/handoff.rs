//! Connections of the kernel that may move to an adapter beside it, as the broker or the environment says.

use crate::address;
use crate::calls::{family, timeout};
use crate::description::{Description, Descriptors, Side};
use crate::reason::Reason;
use crate::session;
use crate::signals;
use crate::sys::{self, call, outcome};
use crate::table::{self, Entry};
use baton_sockets::TcpStream;
use baton_sockets::kernel::KernelSocket;
use libc::c_int;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// How a connection has come to be.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// It was accepted, from there if that is known, on a listener that is known to [take part](takes_part) or not.
    Accepted(Option<SocketAddr>, bool),
    /// It was opened.
    Opened,
    /// It is being opened to there.
    Opening(SocketAddr),
}

/// Whether connections of a socket may move: it is of TCP, and wants no times of packets, which only the kernel tells.
pub fn takes_part(fd: c_int) -> bool {
    let wants_times = || sys::option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING);
    family(fd).is_some() && wants_times().is_ok_and(|flags| flags == 0)
}

/// A connection has begun. It is the kernel's as before where it cannot be another's: over the loopback interface, or without an adapter.
pub fn begin(fd: c_int, nonblocking: bool, origin: Origin) {
    let _hold = signals::hold();
    let before = table::remove(fd);
    let is_local = |at: &SocketAddr| at.ip().to_canonical().is_loopback();
    let Some(local) = address::local(fd).filter(|at| !is_local(at)) else {
        return;
    };
    if !matches!(origin, Origin::Accepted(_, true)) && !takes_part(fd) {
        if family(fd).is_some() {
            Reason::Timestamping.count(format_args!("descriptor {fd}"));
        }
        return;
    }
    session::prepare();
    let Some(adapter) = session::adapter() else {
        return;
    };
    // A descriptor of its own: the program may close its own before all that it sent has gone.
    // SAFETY: it makes a descriptor.
    let Ok(copy) = outcome(unsafe { call!(SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, 0) }) else {
        return Reason::TooManyDescriptors.count(format_args!("descriptor {fd}"));
    };
    // SAFETY: it is nobody else's.
    let copy = unsafe { OwnedFd::from_raw_fd(copy as c_int) };
    // When the connection has been away the program's descriptors are those of its new socket.
    let descriptors = Descriptors::new(fd);
    let known = Arc::clone(&descriptors);
    let copy = KernelSocket::followed_by(copy, move |old, new, copy| {
        table::follow(&known, old.as_raw_fd(), new.as_raw_fd(), copy);
    });
    let stream = match origin {
        Origin::Opening(peer) => TcpStream::from_kernel_opening(adapter, copy, peer),
        Origin::Accepted(Some(peer), _) if nonblocking => {
            TcpStream::from_kernel_direct(adapter, copy, local, peer)
        }
        Origin::Accepted(..) | Origin::Opened => TcpStream::from_kernel(adapter, copy),
    };
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => return Reason::NotTakenIn.count(format_args!("descriptor {fd}: {error}")),
    };
    let family = match local {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let description = Description::connection(stream, family, nonblocking);
    let description = description.with_descriptors(descriptors);
    if !nonblocking {
        description.set_timeout(Side::Read, timeout(fd, libc::SO_RCVTIMEO));
        description.set_timeout(Side::Write, timeout(fd, libc::SO_SNDTIMEO));
    }
    let description = Arc::new(description);
    if !table::set(fd, Entry::Socket(Arc::clone(&description))) {
        Reason::TooManyDescriptors.count(format_args!("descriptor {fd}"));
    } else if let Some(Entry::Unconnected(socket)) = before {
        socket.connected(fd, &description);
    }
}
