//! connect(2).

use super::give;
use crate::handoff::{self, Origin};
use crate::session;
use crate::sys::{Errno, call, outcome};
use crate::{address, table};
use baton_sockets::Readiness;
use libc::{c_int, sockaddr, socklen_t};

/// connect(2): the kernel opens every connection. If connections begin in the kernel, this library then lets it move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    let socket = table::socket(fd);
    if let Some(stream) = socket.as_ref().and_then(|socket| socket.stream()) {
        // While its connection is on the adapter the kernel's socket has none, and would open another.
        return give!(Err(refusal(&stream.readiness())));
    }
    drop(socket);
    // SAFETY: the kernel checks everything itself.
    let connected = outcome(unsafe { call!(SYS_connect, fd, to, len) });
    let is_opening = matches!(connected, Err(libc::EINPROGRESS | libc::EINTR));
    if session::begins_in_kernel() && (is_opening || connected.is_ok()) {
        // SAFETY: valid by the manual page.
        let to = unsafe { address::read(to.cast(), len) };
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

/// Returns the error of connect(2) on a socket that has a connection.
fn refusal(now: &Readiness) -> Errno {
    match now {
        Readiness { failed: true, .. } => libc::ECONNABORTED,
        Readiness { opening: true, .. } => libc::EALREADY,
        _ => libc::EISCONN,
    }
}
