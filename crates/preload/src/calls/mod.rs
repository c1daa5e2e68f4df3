//! The functions of the C library that this library replaces. Each checks whether this library handles the descriptor; if not, it makes the
//! system call of its name.
//!
//! Programs call them under the contracts of the C library: pointers are valid as the manual page requires.

mod connecting;
mod descriptors;
mod handling;
mod input;
mod numbered;
mod output;
mod sockets;
mod threading;
mod waiting;

pub use sockets::{family, timeout};
pub use waiting::set_of;

use crate::description::Description;
use crate::reason::Reason;
use crate::sys::Errno;
use crate::table::{self, Found};
use libc::{c_int, iovec, timespec};
use std::time::Duration;

/// Maximum number of parts of one readv or writev (UIO_MAXIOV).
const MOST_PARTS: usize = 1024;

/// Returns the socket behind a descriptor if this library handles it; `None` leaves the call to the kernel. Only the kernel supports urgent
/// data (MSG_OOB), so such a call gives the connection back to the kernel. Fails with `refusal` if that is impossible.
fn without_urgent(
    fd: c_int,
    flags: c_int,
    refusal: Errno,
) -> Result<Option<Found<Description>>, Errno> {
    let socket = table::socket(fd);
    match socket {
        Some(ours) if flags & libc::MSG_OOB != 0 => {
            Reason::Urgent.count(format_args!("descriptor {fd}"));
            match ours.give_back() {
                true => Ok(None),
                false => Err(refusal),
            }
        }
        socket => Ok(socket),
    }
}

/// The parts of a scattered buffer.
///
/// # Safety
/// `parts` is good for `count` parts.
unsafe fn parts<'a>(parts: *const iovec, count: usize) -> Result<&'a [iovec], c_int> {
    match count {
        0 => Ok(&[]),
        _ if count > MOST_PARTS => Err(libc::EINVAL),
        _ if parts.is_null() => Err(libc::EFAULT),
        // SAFETY: by this function's contract.
        _ => Ok(unsafe { std::slice::from_raw_parts(parts, count) }),
    }
}

/// Converts a timeout in milliseconds; a negative value means no timeout.
fn milliseconds(timeout: c_int) -> Option<Duration> {
    u64::try_from(timeout).ok().map(Duration::from_millis)
}

/// Converts a timeout; null means no timeout.
///
/// # Safety
/// `timeout` is null, valid, or [bad](pointers::is_bad).
unsafe fn duration(timeout: *const timespec) -> Result<Option<Duration>, c_int> {
    // SAFETY: by this function's contract.
    let Some(timeout) = (unsafe { timeout.as_ref() }) else {
        return Ok(None);
    };
    match (
        u64::try_from(timeout.tv_sec),
        u32::try_from(timeout.tv_nsec),
    ) {
        (Ok(seconds), Ok(ns)) if ns < 1_000_000_000 => Ok(Some(Duration::new(seconds, ns))),
        _ => Err(libc::EINVAL),
    }
}

/// Converts `outcome` to the value of a C function, and sets errno.
macro_rules! give {
    ($outcome:expr) => {
        crate::sys::report($outcome)
    };
}
use give;
