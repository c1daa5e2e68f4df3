//! Connections that go back to the kernel for good, because only the kernel can do what the program asks: use a stream of the C library,
//! share a socket with another process, set an option. If they are away, they come back first. From then on this library has no descriptor
//! of them.

use crate::description::Description;
use crate::reason::Reason;
use crate::signals;
use crate::sys::call;
use crate::table::{self, Entry};
use libc::c_int;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Gives the connection behind a descriptor back to the kernel, if this library handles it. Returns `false` if the kernel does not have the
/// connection in time, or if the connection has failed on the adapter: it stays there with the data that can still be read.
pub fn leave(fd: c_int, why: Reason, about: impl Display) -> bool {
    let socket = table::socket(fd).filter(|_| table::is_claimed());
    let Some((socket, stream)) = socket.as_ref().and_then(|it| Some((it, it.stream()?))) else {
        return true;
    };
    why.count(about);
    let has_failed = stream.is_away() && stream.readiness().failed;
    !has_failed && leave_all(&[Arc::clone(socket)])
}

/// Gives back all connections with a descriptor that `include` selects.
pub fn leave_those(why: Reason, include: impl Fn(c_int) -> bool) {
    // The child of vfork(2) shares its parent's memory.
    if !table::is_claimed() {
        return;
    }
    let _hold = signals::hold();
    let mut all: Vec<Arc<Description>> = Vec::new();
    for fd in table::range(0, c_int::MAX)
        .into_iter()
        .filter(|&fd| include(fd))
    {
        if let Some(Entry::Socket(socket)) = table::find(fd)
            && socket.stream().is_some()
            && !all.iter().any(|other| Arc::ptr_eq(other, &socket))
        {
            all.push(socket);
        }
    }
    if !all.is_empty() {
        why.count(format_args!(
            "{} connections return to the kernel",
            all.len()
        ));
        leave_all(&all);
    }
}

/// Returns whether a connection of this process is on the adapter or on its way.
pub fn some_are_away() -> bool {
    let _hold = signals::hold();
    table::is_claimed()
        && table::range(0, c_int::MAX).into_iter().any(|fd| {
            let socket = table::socket(fd);
            let stream = socket.as_ref().and_then(|socket| socket.stream());
            stream.is_some_and(|stream| !stream.is_direct() && stream.is_away())
        })
}

/// Gives back these connections. Returns `true` if all of them are in the kernel again.
fn leave_all(sockets: &[Arc<Description>]) -> bool {
    let _hold = signals::hold();
    for stream in sockets.iter().filter_map(|socket| socket.stream()) {
        // Corked data is sent first.
        let _ = stream.set_cork(false);
        stream.begin_return();
    }
    let left = sockets.iter().filter(|socket| has_left(socket));
    left.count() == sockets.len()
}

fn has_left(socket: &Arc<Description>) -> bool {
    if !socket.stream().is_some_and(|stream| stream.is_returned()) {
        return false;
    }
    let descriptors = socket.descriptors.list().to_vec();
    if let Some(&fd) = descriptors.first() {
        let corked: c_int = socket.corked.load(Ordering::Relaxed).into();
        let (level, name, len) = (libc::IPPROTO_TCP, libc::TCP_CORK, size_of::<c_int>());
        if corked != 0 {
            // SAFETY: `len` is the size of the value.
            unsafe { call!(SYS_setsockopt, fd, level, name, &raw const corked, len) };
        }
    }
    for set in table::epolls() {
        set.release(socket);
    }
    for fd in descriptors {
        table::remove(fd);
    }
    true
}
