//! Calls by number: syscall(2). Most programs that use it want what this library knows nothing of, and get it.

use super::descriptors::close;
use super::give;
use crate::reason::Reason;
use crate::{session, sys};
use libc::{c_int, c_long};

/// syscall(2). libuv, and so Node.js, closes descriptors by it, and has io_uring change its epoll instance where there is one: by
/// rings this library would see nothing, and programs do without. The six arguments that a call can have are passed on, whether it has
/// them or not, as the C library does it.
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
    // SAFETY: as the caller says.
    unsafe {
        match number {
            libc::SYS_close => close(a as c_int).into(),
            libc::SYS_io_uring_setup if session::has_adapter() => {
                Reason::Rings.count("io_uring_setup");
                give!(Err(libc::ENOSYS))
            }
            _ => sys::syscall()(number, a, b, c, d, e, f),
        }
    }
}
