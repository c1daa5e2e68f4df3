//! Kernel connections that may move to an adapter, as the broker or the environment decides.

use crate::address;
use crate::calls::{family, timeout};
use crate::description::{Description, Descriptors, Side};
use crate::reason::Reason;
use crate::session;
use crate::signals;
use crate::sys::{self, call, outcome};
use crate::table::{self, Entry};
use baton_abi::address::Family;
use baton_sockets::TcpStream;
use baton_sockets::kernel::KernelSocket;
use libc::c_int;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// How a connection was created.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// Accepted, from this peer if it is known, and whether the listener is known to [take part](takes_part).
    Accepted(Option<SocketAddr>, bool),
    /// Opened by connect(2).
    Opened,
    /// Still being opened to this peer.
    Opening(SocketAddr),
}

/// Returns whether connections of a socket may move: it is a TCP socket without SO_TIMESTAMPING, which only the kernel supports then.
pub fn takes_part(fd: c_int) -> bool {
    let wants_times = || sys::option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING);
    family(fd).is_some() && wants_times().is_ok_and(|flags| flags == 0)
}

/// Takes in a connection that has begun in the kernel. It stays a plain kernel connection if it cannot move, for example because its
/// interface has no adapter.
pub fn begin(fd: c_int, nonblocking: bool, origin: Origin) {
    let _hold = signals::hold();
    let before = table::remove(fd);
    if let Some(Entry::KernelOnly(reason)) = before {
        return reason.count(format_args!("descriptor {fd}"));
    }
    let Some(local) = address::local(fd).filter(|at| session::may_move(*at)) else {
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
    // The library needs its own descriptor: the program may close its descriptor before all data has been sent.
    // SAFETY: this only creates a descriptor.
    let Ok(copy) = outcome(unsafe { call!(SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, 0) }) else {
        return Reason::TooManyDescriptors.count(format_args!("descriptor {fd}"));
    };
    // SAFETY: nobody else owns the new descriptor.
    let copy = unsafe { OwnedFd::from_raw_fd(copy as c_int) };
    // When the connection comes back from the adapter, the program's descriptors have to refer to its new socket.
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
    let family = Family::of(local.ip());
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
