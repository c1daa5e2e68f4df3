//! Calls that write.

use super::{give, parts, without_urgent};
use crate::description::Side;
use crate::leaving;
use crate::pointers;
use crate::reason::Reason;
use crate::sys::{Errno, call};
use crate::table;
use crate::transfer::Call;
use baton_abi::control::requested_timestamps;
use libc::{
    c_int, c_uint, c_void, iovec, mmsghdr, msghdr, off64_t, size_t, sockaddr, socklen_t, ssize_t,
};

/// Writes to a connection that this library handles; `None` leaves the call to the kernel.
unsafe fn transmit(
    fd: c_int,
    parts: &[iovec],
    flags: c_int,
    asks: Option<u32>,
) -> Option<Result<usize, Errno>> {
    let socket = match without_urgent(fd, flags, libc::EOPNOTSUPP) {
        Ok(socket) => socket?,
        Err(errno) => return Some(Err(errno)),
    };
    // SAFETY: valid by the manual pages of the callers.
    Some(
        Call::new(fd, &socket, Side::Write, flags)
            .and_then(|call| unsafe { call.asking(asks).send(parts) }),
    )
}

fn one(data: *const c_void, len: size_t) -> [iovec; 1] {
    [iovec {
        iov_base: data.cast_mut(),
        iov_len: len,
    }]
}

/// write(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, data: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        match transmit(fd, &one(data, len), 0, None) {
            Some(sent) => give!(sent),
            None => call!(SYS_write, fd, data, len) as ssize_t,
        }
    }
}

/// writev(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, data: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        if table::socket(fd).is_none() {
            return call!(SYS_writev, fd, data, count) as ssize_t;
        }
        let parts = parts(data, count as usize, libc::EINVAL);
        give!(parts.and_then(|parts| match pointers::len_of(parts) {
            0 => Ok(0),
            _ => transmit(fd, parts, 0, None).unwrap_or(Err(libc::EBADF)),
        }))
    }
}

/// send(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    fd: c_int,
    data: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: valid by the manual page.
    unsafe { sendto(fd, data, len, flags, std::ptr::null(), 0) }
}

/// sendto(2). Ignores the destination: a connection's peer is fixed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    data: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        match transmit(fd, &one(data, len), flags, None) {
            Some(sent) => give!(sent),
            None => call!(SYS_sendto, fd, data, len, flags, to, to_len) as ssize_t,
        }
    }
}

/// Gives the connections that a message passes to another process back to the kernel. Returns `true` if this fails for one of them.
unsafe fn passes_ours(message: &msghdr) -> bool {
    // SAFETY: the headers are those of a message that the caller made for the kernel.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            let is_rights =
                control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_RIGHTS;
            if is_rights {
                let data = libc::CMSG_DATA(header).cast::<c_int>();
                let len = control
                    .cmsg_len
                    .saturating_sub(data.byte_offset_from_unsigned(header));
                let mut fds = (0..len / size_of::<c_int>()).map(|at| data.add(at).read_unaligned());
                let about = |fd| format!("descriptor {fd}");
                if fds.any(|fd| !leaving::leave(fd, Reason::Passed, about(fd))) {
                    return true;
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
        false
    }
}

/// Returns whether the message has readable control data.
fn has_controls(message: &msghdr) -> bool {
    message.msg_controllen > 0 && !pointers::is_bad(message.msg_control, message.msg_controllen)
}

/// sendmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        let is_kernels = match without_urgent(fd, flags, libc::EOPNOTSUPP) {
            Ok(socket) => socket.is_none(),
            Err(errno) => return give!(Err(errno)),
        };
        if is_kernels {
            if pointers::check(message).is_ok() && has_controls(&*message) && passes_ours(&*message)
            {
                return give!(Err(libc::EOPNOTSUPP));
            }
            return call!(SYS_sendmsg, fd, message, flags) as ssize_t;
        }
        if let Err(errno) = pointers::check(message) {
            return give!(Err(errno));
        }
        let message = &*message;
        let asks = match has_controls(message) {
            true => requested_timestamps(message),
            false if message.msg_control.is_null() || message.msg_controllen == 0 => Ok(None),
            false => Err(libc::EFAULT),
        };
        let asks = match asks {
            Ok(asks) => asks,
            Err(errno) => return give!(Err(errno)),
        };
        let parts = parts(message.msg_iov, message.msg_iovlen, libc::EMSGSIZE);
        give!(parts.and_then(|parts| {
            let sent = transmit(fd, parts, flags, asks);
            sent.unwrap_or(Err(libc::EBADF))
        }))
    }
}

/// sendmmsg(2): sends each message by sendmsg(2), as the kernel does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        if table::socket(fd).is_none() {
            return call!(SYS_sendmmsg, fd, messages, count, flags) as c_int;
        }
        for sent in 0..count as usize {
            let message = messages.wrapping_add(sent);
            let len = sendmsg(fd, message.cast(), flags);
            if len < 0 {
                return if sent == 0 { -1 } else { sent as c_int };
            }
            if pointers::check_mut(message).is_err() {
                let found: Result<usize, Errno> = match sent {
                    0 => Err(libc::EFAULT),
                    _ => Ok(sent),
                };
                return give!(found);
            }
            (*message).msg_len = len as c_uint;
        }
        count as c_int
    }
}

/// sendfile(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(
    to: c_int,
    from: c_int,
    offset: *mut off64_t,
    count: size_t,
) -> ssize_t {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        let Some(socket) = table::socket(to) else {
            return call!(SYS_sendfile, to, from, offset, count) as ssize_t;
        };
        if !offset.is_null()
            && let Err(errno) = pointers::check_mut(offset)
        {
            return give!(Err(errno));
        }
        let call = Call::new(to, &socket, Side::Write, 0);
        give!(call.and_then(|call| call.send_file(from, offset.as_mut(), count)))
    }
}

/// Another name of [`sendfile64`]: offsets have 64 bits in both.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(
    to: c_int,
    from: c_int,
    offset: *mut off64_t,
    count: size_t,
) -> ssize_t {
    // SAFETY: valid by the manual page.
    unsafe { sendfile64(to, from, offset, count) }
}

/// splice(2), which the kernel carries out. If it cannot, the call fails, and programs copy instead.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splice(
    from: c_int,
    from_offset: *mut off64_t,
    to: c_int,
    to_offset: *mut off64_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    let about = format_args!("from descriptor {from} to {to}");
    let leave = |fd| leaving::leave(fd, Reason::Spliced, about);
    if !leave(from) || !leave(to) {
        return give!(Err(libc::EINVAL));
    }
    // SAFETY: the kernel checks everything itself.
    unsafe { call!(SYS_splice, from, from_offset, to, to_offset, len, flags) as ssize_t }
}
