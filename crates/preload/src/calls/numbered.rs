//! Calls by number: syscall(2). Most programs use it for calls that this library does not handle, which it passes on.

use super::descriptors::close;
use super::give;
use crate::reason::Reason;
use crate::{session, sys};
use libc::{c_int, c_long};

/// syscall(2). libuv, and so Node.js, closes descriptors with it, and uses io_uring to change its epoll instance if io_uring is available.
/// This library would not see such changes, so it reports io_uring as unavailable; programs work without. Like the C library, it always
/// passes on the maximum of six arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: by the caller's contract.
    unsafe {
        match number {
            libc::SYS_close => close(a as c_int).into(),
            // This creates a process, not a thread.
            libc::SYS_clone if a & c_long::from(libc::CLONE_VM) == 0 => {
                session::forking(|| sys::syscall()(number, a, b, c, d, e, f))
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_fork => session::forking(|| sys::syscall()(number, a, b, c, d, e, f)),
            libc::SYS_io_uring_setup if session::has_adapter() => {
                Reason::Rings.count("io_uring_setup");
                give!(Err(libc::ENOSYS))
            }
            _ => sys::syscall()(number, a, b, c, d, e, f),
        }
    }
}
