//! connect(2).

use super::give;
use crate::handoff::{self, Origin};
use crate::leaving;
use crate::reason::Reason;
use crate::session;
use crate::sys::{Errno, call, errno_of, outcome};
use crate::{address, pointers, table};
use baton_sockets::Readiness;
use libc::{c_int, sockaddr, socklen_t};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// connect(2): the kernel opens every connection. If connections begin in the kernel, this library then lets it move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    let family_len = size_of::<libc::sa_family_t>();
    // SAFETY: valid by the manual page.
    if (family_len..=address::MOST).contains(&(len as usize))
        && let Ok(Some(family)) = unsafe { pointers::read(to.cast::<libc::sa_family_t>()) }
        && c_int::from(family) == libc::AF_UNSPEC
    {
        // This disconnects the socket, which can then be connected again.
        leaving::leave(
            fd,
            Reason::Option,
            format_args!("descriptor {fd} is disconnected"),
        );
    }
    let socket = table::socket(fd);
    if let Some(stream) = socket.as_ref().and_then(|socket| socket.stream()) {
        let now = stream.readiness();
        let error = match now.failed {
            true => stream.take_error().ok().flatten(),
            false => None,
        };
        // If the connection has failed in the kernel, the kernel decides whether another attempt is possible.
        let why = Reason::Option;
        let about = format_args!("descriptor {fd} is connected again");
        let is_kernels = now.failed && !stream.is_away() && leaving::leave(fd, why, about);
        if let Some(error) = error {
            if is_kernels {
                // The kernel reports the failure once more before it accepts another attempt.
                // SAFETY: the kernel checks everything itself.
                unsafe { call!(SYS_connect, fd, to, len) };
            }
            return give!(Err(errno_of(&error)));
        }
        if !is_kernels {
            // While the connection is on the adapter, the kernel's socket is unconnected and would open another connection.
            return give!(Err(match (len as usize) < family_len {
                true => libc::EINVAL,
                false => refusal(&now),
            }));
        }
    }
    drop(socket);
    // SAFETY: the kernel checks everything itself.
    let connected = outcome(unsafe { call!(SYS_connect, fd, to, len) });
    let is_opening = matches!(connected, Err(libc::EINPROGRESS | libc::EINTR));
    if session::begins_in_kernel() && (is_opening || connected.is_ok()) {
        // SAFETY: valid by the manual page.
        let to = unsafe { address::read(to.cast(), len) }.map(|to| reached(fd, to));
        // SAFETY: this only asks for flags.
        let flags = unsafe { call!(SYS_fcntl, fd, libc::F_GETFL) as c_int };
        let origin = match to.filter(|_| is_opening) {
            Some(peer) => Origin::Opening(peer),
            None => Origin::Opened,
        };
        handoff::begin(fd, flags & libc::O_NONBLOCK != 0, origin);
    }
    give!(connected)
}

/// Returns the address that a connection to `to` reaches: if the address is unspecified, the kernel connects the socket to this host.
fn reached(fd: c_int, mut to: SocketAddr) -> SocketAddr {
    match to.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => {
            to.set_ip(address::local(fd).map_or(to.ip(), |local| local.ip()));
        }
        IpAddr::V6(ip) if ip.is_unspecified() => to.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    to
}

/// Returns the error of connect(2) on a socket that has a connection.
fn refusal(now: &Readiness) -> Errno {
    match now {
        Readiness { failed: true, .. } => libc::ECONNABORTED,
        Readiness { opening: true, .. } => libc::EALREADY,
        _ => libc::EISCONN,
    }
}
