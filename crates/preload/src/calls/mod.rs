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
mod starting;
mod threading;
mod waiting;

pub use sockets::{family, timeout};
pub use waiting::set_of;

use crate::description::Description;
use crate::leaving;
use crate::pointers;
use crate::reason::Reason;
use crate::sys::Errno;
use crate::table::{self, Found};
use libc::{c_int, iovec, timespec};
use std::sync::Arc;
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
        Some(_) if flags & libc::MSG_OOB != 0 => {
            match leaving::leave(fd, Reason::Urgent, format_args!("descriptor {fd}")) {
                true => Ok(None),
                // A send on a lost connection fails with or without urgent data.
                false if refusal == libc::EOPNOTSUPP && is_lost(socket.as_deref()) => Ok(socket),
                false => Err(refusal),
            }
        }
        socket => Ok(socket),
    }
}

fn is_lost(socket: Option<&Arc<Description>>) -> bool {
    let stream = socket.and_then(|socket| socket.stream());
    stream.is_some_and(|stream| stream.readiness().failed)
}

/// Returns the parts of a scattered buffer; `too_many` is the error for more than the maximum.
///
/// # Safety
/// `parts` is valid for `count` parts, or [bad](pointers::is_bad).
unsafe fn parts<'a>(
    parts: *const iovec,
    count: usize,
    too_many: Errno,
) -> Result<&'a [iovec], Errno> {
    match count {
        0 => return Ok(&[]),
        _ if count > MOST_PARTS => return Err(too_many),
        _ if pointers::is_bad(parts, count * size_of::<iovec>()) => return Err(libc::EFAULT),
        _ => {}
    }
    // SAFETY: by this function's contract.
    let parts = unsafe { std::slice::from_raw_parts(parts, count) };
    match parts.iter().any(|part| part.iov_len.cast_signed() < 0) {
        true => Err(libc::EINVAL),
        false => Ok(parts),
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
    let Some(timeout) = unsafe { pointers::read(timeout) }? else {
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
