//! Calls that read.

use super::{give, parts, without_urgent};
use crate::controls;
use crate::description::Side;
use crate::pointers;
use crate::sys::{Errno, call};
use crate::table;
use crate::timestamping;
use crate::transfer::Call;
use libc::{
    c_int, c_uint, c_void, iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec,
};
use std::time::Instant;

/// Reads from a connection that this library handles; `None` leaves the call to the kernel.
unsafe fn receive(fd: c_int, parts: &[iovec], flags: c_int) -> Option<Result<usize, Errno>> {
    let socket = match without_urgent(fd, flags, libc::EINVAL) {
        Ok(socket) => socket?,
        Err(errno) => return Some(Err(errno)),
    };
    // SAFETY: valid by the manual pages of the callers.
    Some(Call::new(fd, &socket, Side::Read, flags).and_then(|call| unsafe { call.receive(parts) }))
}

fn one(buffer: *mut c_void, len: size_t) -> [iovec; 1] {
    [iovec {
        iov_base: buffer,
        iov_len: len,
    }]
}

/// read(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    if len == 0 && table::socket(fd).is_some() {
        // Unlike recv(2), read(2) of no bytes never waits.
        return 0;
    }
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        match receive(fd, &one(buffer, len), 0) {
            Some(received) => give!(received),
            None => call!(SYS_read, fd, buffer, len) as ssize_t,
        }
    }
}

/// readv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readv(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        if table::socket(fd).is_none() {
            return call!(SYS_readv, fd, buffers, count) as ssize_t;
        }
        let parts = parts(buffers, count as usize, libc::EINVAL);
        give!(parts.and_then(|parts| match pointers::len_of(parts) {
            0 => Ok(0),
            _ => receive(fd, parts, 0).unwrap_or(Err(libc::EBADF)),
        }))
    }
}

/// recv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    let nobody = std::ptr::null_mut();
    // SAFETY: valid by the manual page.
    unsafe { recvfrom(fd, buffer, len, flags, nobody, std::ptr::null_mut()) }
}

/// recvfrom(2). A connection's sender is known, so its address is not returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        match receive(fd, &one(buffer, len), flags) {
            Some(received) => {
                let told = match received.is_ok() && !from.is_null() {
                    true => tell_nobody(from_len),
                    false => Ok(()),
                };
                give!(received.and_then(|len| told.map(|()| len)))
            }
            None => call!(SYS_recvfrom, fd, buffer, len, flags, from, from_len) as ssize_t,
        }
    }
}

/// Sets the length of the sender's address to zero, as the kernel does for a connection.
unsafe fn tell_nobody(len: *mut socklen_t) -> Result<(), Errno> {
    pointers::check_mut(len)?;
    // SAFETY: valid by the manual page of recvfrom(2).
    let room = unsafe { len.replace(0) };
    match room.cast_signed() < 0 {
        true => Err(libc::EINVAL),
        false => Ok(()),
    }
}

/// Receives one message from a connection that this library handles.
unsafe fn receive_message(fd: c_int, message: *mut msghdr, flags: c_int) -> Result<usize, Errno> {
    let socket = table::socket(fd).ok_or(libc::EBADF)?;
    pointers::check(message)?;
    if flags & libc::MSG_ERRQUEUE != 0 {
        pointers::check_mut(message)?;
        // SAFETY: valid by the manual pages of the callers.
        return unsafe { timestamping::receive_report(&socket, &mut *message) };
    }
    // SAFETY: as above.
    let received = unsafe {
        let parts = parts((*message).msg_iov, (*message).msg_iovlen, libc::EMSGSIZE)?;
        receive(fd, parts, flags).unwrap_or(Err(libc::EBADF))?
    };
    // The kernel, too, finds out only now that it cannot write to the message.
    pointers::check_mut(message)?;
    // SAFETY: as above.
    let message = unsafe { &mut *message };
    message.msg_namelen = 0;
    message.msg_flags = flags & libc::MSG_CMSG_CLOEXEC;
    // SAFETY: as above.
    let mut controls = unsafe { controls::of(message) };
    if received > 0 {
        timestamping::tell_arrival(&socket, &mut controls);
    }
    Ok(received)
}

/// recvmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        match without_urgent(fd, flags, libc::EINVAL) {
            Ok(Some(_)) => {}
            Ok(None) => return call!(SYS_recvmsg, fd, message, flags) as ssize_t,
            Err(errno) => return give!(Err(errno)),
        }
        give!(receive_message(fd, message, flags))
    }
}

/// recvmmsg(2). The first message takes all data of the stream that it has space for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        if table::socket(fd).is_none() {
            return call!(SYS_recvmmsg, fd, messages, count, flags, timeout) as c_int;
        }
        let limit = super::duration(timeout);
        let start = Instant::now();
        let mut received = 0;
        while received < count as usize {
            let message = messages.wrapping_add(received);
            let is_late = matches!(limit, Ok(Some(limit)) if start.elapsed() >= limit);
            let for_one = flags & libc::MSG_WAITFORONE != 0;
            let dont_wait = received > 0 && (for_one || is_late);
            let flags = if dont_wait {
                flags | libc::MSG_DONTWAIT
            } else {
                flags
            };
            let header = message.cast::<msghdr>();
            match receive_message(fd, header, flags & !libc::MSG_WAITFORONE) {
                Ok(len) => (*message).msg_len = len as c_uint,
                Err(errno) if received == 0 => return give!(Err(errno)),
                Err(_) => break,
            }
            received += 1;
            if (*message).msg_len == 0 {
                break;
            }
        }
        give!(Ok(received))
    }
}

/// Aborts if the buffer is too short: programs that are compiled with `_FORTIFY_SOURCE` pass its length.
fn fortify(len: size_t, room: size_t) {
    if len > room {
        std::process::abort();
    }
}

/// read(2), fortified.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    room: size_t,
) -> ssize_t {
    fortify(len, room);
    // SAFETY: valid by the manual page.
    unsafe { read(fd, buffer, len) }
}

/// recv(2), fortified.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    fortify(len, room);
    // SAFETY: valid by the manual page.
    unsafe { recv(fd, buffer, len, flags) }
}

/// recvfrom(2), fortified.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    fortify(len, room);
    // SAFETY: valid by the manual page.
    unsafe { recvfrom(fd, buffer, len, flags, from, from_len) }
}
