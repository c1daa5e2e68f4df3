//! Socket options. The kernel's socket keeps those that the adapter does not know.

use crate::description::{Description, Side};
use crate::pointers;
use crate::reason::Reason;
use crate::session;
use crate::sys::{self, Errno, call, errno_of};
use crate::timestamping;
use baton_abi::address::Family;
use baton_abi::control::is_timestamping;
use baton_sockets::{SocketOption, TcpStream, Told};
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
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE | libc::SO_SNDBUF | libc::SO_RCVBUF)
            | (
                libc::IPPROTO_TCP,
                libc::TCP_KEEPIDLE
                | libc::TCP_KEEPINTVL
                | libc::TCP_KEEPCNT
                | libc::TCP_USER_TIMEOUT,
            ) => {
                if let Some(stream) = socket.stream().filter(|stream| !stream.is_direct()) {
                    set_on_adapter(fd, stream, name, number(value, len).unwrap_or(0));
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

/// Sends an option's value to the adapter. For any keepalive option, sends all of them as the kernel's socket has them.
fn set_on_adapter(fd: c_int, stream: &TcpStream, name: c_int, value: c_int) {
    let value = value.unsigned_abs();
    let known = |level, name| sys::option(fd, level, name).map_or(0, c_int::unsigned_abs);
    let of_tcp = |name| known(libc::IPPROTO_TCP, name);
    match name {
        libc::SO_SNDBUF => stream.set_on_adapter(&[(SocketOption::SendBuffer, value)]),
        libc::SO_RCVBUF => stream.set_on_adapter(&[(SocketOption::ReceiveBuffer, value)]),
        libc::TCP_USER_TIMEOUT => {
            stream.set_on_adapter(&[(SocketOption::UserTimeout, value)]);
        }
        _ => stream.set_on_adapter(&[
            (
                SocketOption::KeepAlive,
                known(libc::SOL_SOCKET, libc::SO_KEEPALIVE),
            ),
            (SocketOption::KeepIdle, of_tcp(libc::TCP_KEEPIDLE)),
            (SocketOption::KeepInterval, of_tcp(libc::TCP_KEEPINTVL)),
            (SocketOption::KeepProbes, of_tcp(libc::TCP_KEEPCNT)),
        ]),
    }
}

/// Applies setsockopt(2) for timestamps on a connection that does not begin in the kernel; its kernel socket is not connected. Returns
/// `None` for other options and sockets.
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

/// Returns whether the adapter honours the option, or the option has no effect on an open connection. Any other option changes what only
/// the kernel does.
fn is_honoured(level: c_int, name: c_int) -> bool {
    match level {
        libc::SOL_SOCKET => matches!(
            name,
            libc::SO_DEBUG
                | libc::SO_REUSEADDR
                | libc::SO_REUSEPORT
                | libc::SO_BROADCAST
                | libc::SO_SNDBUF
                | libc::SO_RCVBUF
                | libc::SO_SNDBUFFORCE
                | libc::SO_RCVBUFFORCE
                | libc::SO_KEEPALIVE
                | libc::SO_OOBINLINE
                | libc::SO_LINGER
                | libc::SO_RCVTIMEO
                | libc::SO_SNDTIMEO
                | libc::SO_TIMESTAMP
                | libc::SO_TIMESTAMPNS
                | libc::SO_BUSY_POLL
                | libc::SO_INCOMING_CPU
        ),
        libc::IPPROTO_TCP => matches!(
            name,
            libc::TCP_NODELAY
                | libc::TCP_CORK
                | libc::TCP_KEEPIDLE
                | libc::TCP_KEEPINTVL
                | libc::TCP_KEEPCNT
                | libc::TCP_SYNCNT
                | libc::TCP_DEFER_ACCEPT
                | libc::TCP_QUICKACK
                | libc::TCP_USER_TIMEOUT
                | libc::TCP_FASTOPEN
                | libc::TCP_FASTOPEN_CONNECT
        ),
        libc::IPPROTO_IPV6 => name == libc::IPV6_V6ONLY,
        _ => false,
    }
}

/// Returns whether the kernel refuses to set the option on a connection. An unconnected socket, as the kernel has meanwhile, accepts it.
///
/// # Safety
/// `value` is null or good for `len` bytes.
pub unsafe fn is_refused(
    socket: &Description,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> bool {
    let is_it = match name {
        libc::TCP_FASTOPEN | libc::TCP_FASTOPEN_CONNECT => true,
        // SAFETY: by this function's contract.
        libc::TCP_WINDOW_CLAMP => (unsafe { number(value, len) }) == Some(0),
        _ => false,
    };
    // The kernel refuses them until the connection is closed.
    let is_open = |stream: &TcpStream| stream.is_away() && !stream.readiness().failed;
    level == libc::IPPROTO_TCP && is_it && socket.stream().is_some_and(is_open)
}

/// Length of options' values up to which two are compared, bytes.
const MOST_COMPARED: usize = 128;

/// Reports whether setsockopt(2) changes something that only the kernel does.
///
/// # Safety
/// `value` is null or good for `len` bytes.
pub unsafe fn needs_kernel(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> bool {
    let compared = (len as usize).min(MOST_COMPARED);
    if len == 0 || pointers::is_bad(value, compared) {
        return false;
    }
    // SAFETY: by this function's contract.
    let wanted = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), compared) };
    let waits_at_close = || wanted.get(..4) != Some(&[0; 4]) && wanted.get(4..8) != Some(&[0; 4]);
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_LINGER) => waits_at_close(),
        _ if is_honoured(level, name) => false,
        _ => {
            let (mut found, mut len) = ([0_u8; MOST_COMPARED], MOST_COMPARED as socklen_t);
            let at = found.as_mut_ptr();
            // SAFETY: the buffer has `len` bytes.
            let told = unsafe { call!(SYS_getsockopt, fd, level, name, at, &raw mut len) };
            let len = wanted.len().min(len as usize);
            told != 0 || wanted[..len] != found[..len]
        }
    }
}

/// Returns the reason why setting this option leaves a connection to the kernel.
pub fn reason(level: c_int, name: c_int) -> Reason {
    match level == libc::SOL_SOCKET && is_timestamping(name) {
        true => Reason::Timestamping,
        false => Reason::Option,
    }
}

/// Sets TCP_NODELAY. Nagle's algorithm stays on if the adapter's queue has no space for the request now.
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

/// Returns the value of an option that the kernel's socket does not know: TCP_CORK, timestamps, the path's MTU, or SO_ERROR, which is
/// reported once. The kernel socket's own SO_ERROR only says that the connection has moved to the adapter.
pub fn get(socket: &Description, level: c_int, name: c_int) -> Option<c_int> {
    let stream = socket.stream()?;
    let is_mtu = match level {
        libc::IPPROTO_IPV6 => name == libc::IPV6_MTU && socket.family == Family::V6,
        _ => (level, name) == (libc::IPPROTO_IP, libc::IP_MTU),
    };
    if is_mtu && stream.is_away() {
        return Some(told(socket)?.info.path_mtu.cast_signed());
    }
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

/// Returns what the adapter reports about a connection that it has.
pub fn told(socket: &Description) -> Option<Told> {
    let stream = socket.stream().filter(|stream| !stream.is_direct())?;
    stream.info().ok()
}

/// # Safety
/// `value` is null or good for `len` bytes.
unsafe fn number(value: *const c_void, len: socklen_t) -> Option<c_int> {
    let is_there =
        len as usize >= size_of::<c_int>() && pointers::check(value.cast::<c_int>()).is_ok();
    // SAFETY: by this function's contract.
    is_there.then(|| unsafe { value.cast::<c_int>().read_unaligned() })
}

/// # Safety
/// `value` is null or good for `len` bytes.
unsafe fn time(value: *const c_void, len: socklen_t) -> Option<Option<Duration>> {
    if (len as usize) < size_of::<timeval>() || pointers::check(value.cast::<timeval>()).is_err() {
        return None;
    }
    // SAFETY: by this function's contract.
    let time = unsafe { value.cast::<timeval>().read_unaligned() };
    let (seconds, us) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec));
    let time = Duration::from_secs(seconds.unwrap_or(0)) + Duration::from_micros(us.unwrap_or(0));
    Some((!time.is_zero()).then_some(time))
}
