//! System calls that carry data.

use super::Data;
use super::memory::{bytes, gather, instance, len_of, parts, report, scatter};
use crate::errno::Errno;
use crate::io::{Read, Write};
use crate::sockets::{Receive, Received, Send};
use crate::splice::Splice;
use crate::world::World;
use baton_abi::control::{Controls, ExtendedError, requested_timestamps};
use bytes::Bytes;
use libc::{c_int, c_uint, c_void, iovec, msghdr, off64_t, size_t, sockaddr, socklen_t, ssize_t};
use std::time::Duration;

/// Type of the control message with the number of unread bytes (linux/tcp.h: TCP_CM_INQ).
const TCP_CM_INQ: c_int = 36;

fn whole(buffer: *mut c_void, len: usize) -> iovec {
    iovec {
        iov_base: buffer,
        iov_len: len,
    }
}

/// Reports whether the first byte would be at a null pointer.
fn lead_nowhere(parts: &[iovec]) -> bool {
    let first = parts.iter().find(|part| part.iov_len > 0);
    first.is_some_and(|part| part.iov_base.is_null())
}

/// Runs read(2) and fills the parts.
///
/// # Safety
/// `data` is an instance's; every part is valid for its length.
unsafe fn read_into(data: Data, fd: c_int, parts: &[iovec]) -> Result<ssize_t, Errno> {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    let mut call = Read::new(fd, len_of(parts)).nowhere(lead_nowhere(parts));
    let received = instance.blocking_call(|world| call.attempt(world))?;
    // SAFETY: by this function's contract.
    unsafe { scatter(&received.data, parts) }?;
    Ok(received.len as ssize_t)
}

/// Runs recv(2) and fills the parts.
///
/// # Safety
/// As for [`read_into`].
unsafe fn receive_into(
    data: Data,
    fd: c_int,
    parts: &[iovec],
    flags: c_int,
) -> Result<Received, Errno> {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    let mut call = Receive::new(fd, len_of(parts), flags).nowhere(lead_nowhere(parts));
    let received = instance.blocking_call(|world| call.attempt(world))?;
    // SAFETY: by this function's contract.
    unsafe { scatter(&received.data, parts) }?;
    Ok(received)
}

/// read(2).
///
/// # Safety
/// `buffer` is valid for `len` bytes.
pub(super) unsafe extern "C" fn read(
    data: Data,
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
) -> ssize_t {
    // SAFETY: by this function's contract.
    report(unsafe { read_into(data, fd, &[whole(buffer, len)]) })
}

/// readv(2).
///
/// # Safety
/// `vector` is valid for `count` parts, each valid for its length.
pub(super) unsafe extern "C" fn readv(
    data: Data,
    fd: c_int,
    vector: *const iovec,
    count: c_int,
) -> ssize_t {
    let count = usize::try_from(count).map_err(|_| Errno(libc::EINVAL));
    report(count.and_then(|count| {
        // SAFETY: by this function's contract.
        unsafe { read_into(data, fd, parts(vector, count)?) }
    }))
}

/// recv(2).
///
/// # Safety
/// `buffer` is valid for `len` bytes.
pub(super) unsafe extern "C" fn recv(
    data: Data,
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: by this function's contract.
    let received = unsafe { receive_into(data, fd, &[whole(buffer, len)], flags) };
    report(received.map(|received| received.len as ssize_t))
}

/// recvfrom(2). A stream socket returns no address.
///
/// # Safety
/// `buffer` is valid for `len` bytes; `addr_len` is null or may be written.
pub(super) unsafe extern "C" fn recvfrom(
    data: Data,
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
    addr: *mut sockaddr,
    addr_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: by this function's contract.
    let received = unsafe { receive_into(data, fd, &[whole(buffer, len)], flags) };
    report(received.map(|received| {
        if !addr.is_null() && !addr_len.is_null() {
            // SAFETY: not null, and so writable by this function's contract.
            unsafe { *addr_len = 0 };
        }
        received.len as ssize_t
    }))
}

/// recvmsg(2).
///
/// # Safety
/// `message` is a message whose parts and control buffer are valid for their lengths.
pub(super) unsafe extern "C" fn recvmsg(
    data: Data,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    if message.is_null() {
        return report(Err(Errno(libc::EFAULT)));
    }
    // SAFETY: not null, and so a message by this function's contract.
    let message = unsafe { &mut *message };
    // SAFETY: by this function's contract.
    let outcome = unsafe { parts(message.msg_iov, message.msg_iovlen) }.and_then(|parts| {
        // SAFETY: by this function's contract.
        unsafe { receive_into(data, fd, parts, flags) }
    });
    report(outcome.map(|received| {
        message.msg_namelen = 0;
        message.msg_flags = if received.cut { libc::MSG_TRUNC } else { 0 };
        message.msg_flags |= if received.urgent { libc::MSG_OOB } else { 0 };
        // SAFETY: by this function's contract.
        unsafe { put_control(message, &received) };
        received.len as ssize_t
    }))
}

/// Fills the control buffer with control messages.
///
/// # Safety
/// The control buffer is null or valid for its length.
unsafe fn put_control(message: &mut msghdr, received: &Received) {
    let room = match message.msg_control.is_null() {
        true => 0,
        false => message.msg_controllen,
    };
    let (stamp, completion) = (received.stamp.as_ref(), received.completion);
    if completion.is_some() || stamp.is_some() {
        message.msg_flags |= libc::MSG_ERRQUEUE;
    }
    // SAFETY: by this function's contract.
    let mut controls = unsafe { Controls::new(message, room) };
    let reported = stamp.filter(|stamp| stamp.tells_time);
    if let Some(at) = reported.map(|stamp| stamp.at).or(received.arrived) {
        let since_1970 = Duration::from_micros(World::unix_us(at));
        controls.put_timestamp(libc::SCM_TIMESTAMPING, since_1970);
    }
    let error = stamp.map(|stamp| ExtendedError::of_timestamp(stamp.stage, stamp.id));
    let error = error
        .or_else(|| completion.map(|it| ExtendedError::of_zero_copy(it.first, it.last, it.copied)));
    if let Some(error) = error {
        controls.put_error(received.family, &error);
    }
    if let Some(len) = received.unread {
        controls.put(libc::IPPROTO_TCP, TCP_CM_INQ, &len.to_ne_bytes());
    }
}

/// Runs write(2) with these parts.
///
/// # Safety
/// `data` is an instance's; every part is valid for its length.
unsafe fn write_from(data: Data, fd: c_int, parts: &[iovec]) -> Result<ssize_t, Errno> {
    // SAFETY: by this function's contract.
    let (instance, bytes) = unsafe { (instance(data), Bytes::from(gather(parts)?)) };
    let mut call = Write::new(fd, bytes);
    let written = instance.blocking_call(|world| call.attempt(world))?;
    Ok(written as ssize_t)
}

/// Runs send(2) with these parts, to this address if there is one.
///
/// # Safety
/// As for [`write_from`].
unsafe fn send_from(
    data: Data,
    fd: c_int,
    parts: &[iovec],
    flags: c_int,
    addr: &[u8],
    asks: Option<u32>,
) -> Result<ssize_t, Errno> {
    // SAFETY: by this function's contract.
    let (instance, bytes) = unsafe { (instance(data), Bytes::from(gather(parts)?)) };
    let mut call = Send::new(fd, bytes, flags)
        .to(addr)
        .asking(asks)
        .in_pieces(parts.iter().map(|part| part.iov_len));
    let sent = instance.blocking_call(|world| call.attempt(world))?;
    Ok(sent as ssize_t)
}

/// write(2).
///
/// # Safety
/// `buffer` is valid for `len` bytes.
pub(super) unsafe extern "C" fn write(
    data: Data,
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
) -> ssize_t {
    // SAFETY: by this function's contract.
    report(unsafe { write_from(data, fd, &[whole(buffer.cast_mut(), len)]) })
}

/// writev(2).
///
/// # Safety
/// `vector` is valid for `count` parts, each valid for its length.
pub(super) unsafe extern "C" fn writev(
    data: Data,
    fd: c_int,
    vector: *const iovec,
    count: c_int,
) -> ssize_t {
    let count = usize::try_from(count).map_err(|_| Errno(libc::EINVAL));
    report(count.and_then(|count| {
        // SAFETY: by this function's contract.
        unsafe { write_from(data, fd, parts(vector, count)?) }
    }))
}

/// send(2).
///
/// # Safety
/// `buffer` is valid for `len` bytes.
pub(super) unsafe extern "C" fn send(
    data: Data,
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: by this function's contract.
    report(unsafe { send_from(data, fd, &[whole(buffer.cast_mut(), len)], flags, &[], None) })
}

/// sendto(2). The address counts only if the call opens the connection (MSG_FASTOPEN).
///
/// # Safety
/// `buffer` is valid for `len` bytes, `addr` for `addr_len`.
pub(super) unsafe extern "C" fn sendto(
    data: Data,
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
    addr: *const sockaddr,
    addr_len: socklen_t,
) -> ssize_t {
    // SAFETY: by this function's contract.
    let addr = match addr.is_null() {
        true => Ok(&[][..]),
        // SAFETY: by this function's contract.
        false => unsafe { bytes(addr.cast(), addr_len as usize) },
    };
    // SAFETY: by this function's contract.
    report(addr.and_then(|addr| unsafe {
        send_from(
            data,
            fd,
            &[whole(buffer.cast_mut(), len)],
            flags,
            addr,
            None,
        )
    }))
}

/// sendmsg(2).
///
/// # Safety
/// `message` is a message whose parts, address and control buffer are valid for their lengths.
pub(super) unsafe extern "C" fn sendmsg(
    data: Data,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    if message.is_null() {
        return report(Err(Errno(libc::EFAULT)));
    }
    // SAFETY: not null, and so a message by this function's contract.
    let message = unsafe { &*message };
    // SAFETY: by this function's contract.
    let asks = match unsafe { requested_timestamps(message) } {
        Ok(asks) => asks,
        Err(errno) => return report(Err(Errno(errno))),
    };
    // SAFETY: by this function's contract.
    let addr = unsafe { bytes(message.msg_name, message.msg_namelen as usize) };
    report(addr.and_then(|addr| {
        // SAFETY: by this function's contract.
        unsafe {
            let parts = parts(message.msg_iov, message.msg_iovlen)?;
            send_from(data, fd, parts, flags, addr, asks)
        }
    }))
}

/// splice(2).
///
/// # Safety
/// `data` is an instance's. The offsets are null or point to an offset, of which 0 counts as none.
pub(super) unsafe extern "C" fn splice(
    data: Data,
    from: c_int,
    from_offset: *mut off64_t,
    to: c_int,
    to_offset: *mut off64_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    // Tools always pass pointers to positions, even if there is no position.
    // SAFETY: null, or a position by this function's contract.
    let is_given = |at: *mut off64_t| !at.is_null() && unsafe { at.read_unaligned() } != 0;
    let has_offsets = is_given(from_offset) || is_given(to_offset);
    let mut call = Splice::new(from, to, has_offsets, len, flags);
    let moved = instance.blocking_call(|world| call.attempt(world));
    report(moved.map(|moved| moved as ssize_t))
}
