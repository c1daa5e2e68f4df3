//! Socket options. The kernel's socket keeps those that the adapter does not know.

use crate::description::{Description, Side};
use crate::session;
use crate::sys::{Errno, call, errno_of};
use crate::timestamping;
use libc::{c_int, c_void, socklen_t, timeval};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Applies setsockopt(2) on the adapter; the kernel's socket `fd` gets the option as well.
///
/// # Safety
/// `value` is null or good for `len` bytes.
pub unsafe fn set(
    fd: c_int,
    socket: &Description,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) {
    // SAFETY: by this function's contract.
    unsafe {
        match (level, name) {
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => {
                if let Some(on) = number(value, len) {
                    set_nodelay(socket, on != 0);
                }
            }
            (libc::IPPROTO_TCP, libc::TCP_CORK) => {
                if let (Some(on), Some(stream)) = (number(value, len), socket.stream()) {
                    socket.corked.store(on != 0, Ordering::Relaxed);
                    let directly = stream.directly(|| {
                        call!(SYS_setsockopt, fd, level, name, value, len);
                        stream.note_corked(on != 0);
                    });
                    if directly.is_none() {
                        // This cannot fail.
                        let _ = stream.set_cork(on != 0);
                    }
                }
            }
            (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => {
                if let Some(time) = time(value, len) {
                    socket.set_timeout(Side::Read, time);
                }
            }
            (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => {
                if let Some(time) = time(value, len) {
                    socket.set_timeout(Side::Write, time);
                }
            }
            (libc::SOL_SOCKET, libc::SO_LINGER) if len as usize >= size_of::<libc::linger>() => {
                let linger = value.cast::<libc::linger>().read_unaligned();
                if let Some(stream) = socket.stream() {
                    let _ = stream.set_abort(linger.l_onoff != 0 && linger.l_linger == 0);
                }
            }
            _ if timestamping::is_one(level, name) => {
                if let Some(value) = number(value, len) {
                    // The kernel has accepted the option, too.
                    let _ = timestamping::set(socket, name, value);
                }
            }
            _ => {}
        }
    }
}

/// What setsockopt(2) does of times of bytes on a connection that the adapter has: the kernel's socket is not connected. None: it is not
/// about that.
///
/// # Safety
/// `value` is null or good for `len` bytes.
pub unsafe fn set_times(
    socket: &Description,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> Option<Result<usize, Errno>> {
    let is_here = socket.stream().is_some() && !session::begins_in_kernel();
    if !is_here || !timestamping::is_one(level, name) {
        return None;
    }
    // SAFETY: by this function's contract.
    let value = unsafe { number(value, len) };
    let value = value.ok_or(libc::EINVAL);
    Some(value.and_then(|value| timestamping::set(socket, name, value)))
}

/// Whether times of packets are asked for (SO_TIMESTAMPING by either of its numbers).
///
/// # Safety
/// `value` is null or good for `len` bytes.
pub unsafe fn asks_for_times(
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> bool {
    let is_asked = level == libc::SOL_SOCKET && timestamping::is_timestamping(name);
    // SAFETY: by this function's contract.
    is_asked && unsafe { number(value, len) }.is_some_and(|flags| flags != 0)
}

/// TCP_NODELAY. Where the adapter has no room for the request now, Nagle's algorithm stays on.
pub fn set_nodelay(socket: &Description, on: bool) {
    socket.nodelay.store(on, Ordering::Relaxed);
    if let Some(stream) = socket.stream() {
        let _ = stream.set_nodelay(on);
    }
}

/// Returns whether this library handles the option instead of the kernel's socket. It corks connections itself, since data that the kernel
/// held back would not move with the connection. While the program uses the connection directly, the kernel corks it.
pub fn is_here(socket: &Description, level: c_int, name: c_int) -> bool {
    socket.stream().is_some() && (level, name) == (libc::IPPROTO_TCP, libc::TCP_CORK)
}

/// Returns the value of an option that the kernel's socket does not know: TCP_CORK, timestamps, or SO_ERROR, which is reported once. The
/// kernel socket's own SO_ERROR only says that the connection has moved to the adapter.
pub fn get(socket: &Description, level: c_int, name: c_int) -> Option<c_int> {
    let stream = socket.stream()?;
    if is_here(socket, level, name) {
        return Some(socket.corked.load(Ordering::Relaxed).into());
    }
    if timestamping::is_one(level, name) && !session::begins_in_kernel() {
        return Some(timestamping::get(socket, name));
    }
    if (level, name) != (libc::SOL_SOCKET, libc::SO_ERROR) || stream.is_direct() {
        return None;
    }
    let error = stream.take_error().ok()?;
    Some(error.map_or(0, |error| errno_of(&error)))
}

/// # Safety
/// `value` is null or good for `len` bytes.
unsafe fn number(value: *const c_void, len: socklen_t) -> Option<c_int> {
    let is_there = !value.is_null() && len as usize >= size_of::<c_int>();
    // SAFETY: by this function's contract.
    is_there.then(|| unsafe { value.cast::<c_int>().read_unaligned() })
}

/// # Safety
/// `value` is null or good for `len` bytes.
unsafe fn time(value: *const c_void, len: socklen_t) -> Option<Option<Duration>> {
    if value.is_null() || (len as usize) < size_of::<timeval>() {
        return None;
    }
    // SAFETY: by this function's contract.
    let time = unsafe { value.cast::<timeval>().read_unaligned() };
    let (seconds, us) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec));
    let time = Duration::from_secs(seconds.unwrap_or(0)) + Duration::from_micros(us.unwrap_or(0));
    Some((!time.is_zero()).then_some(time))
}
