//! TCP_INFO of connections that the kernel does not have.

use crate::pointers;
use crate::sys::{Errno, call};
use baton_abi::tcp_info::{ADVERTISED_MSS_AT, LEN, PATH_MTU_AT, SocketInfo, of_connection};
use baton_sockets::{Span, Told};
use libc::{c_int, c_void, socklen_t};

/// Writes TCP_INFO from what the adapter's TCP knows; other fields are zero. The kernel's socket determines the structure's length, and knows path
/// MTU and advertised MSS from when it had the connection.
///
/// # Safety
/// `to` and `len` are good, as getsockopt(2) requires.
pub unsafe fn give(
    fd: c_int,
    told: &Told,
    to: *mut c_void,
    len: *mut socklen_t,
) -> Result<usize, Errno> {
    pointers::check_mut(len)?;
    let (mut room, mut known) = ([0_u8; LEN], LEN as socklen_t);
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    let at = room.as_mut_ptr();
    // SAFETY: the buffer has `known` bytes.
    let asked = unsafe { call!(SYS_getsockopt, fd, level, name, at, &raw mut known) };
    if asked != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    let socket = SocketInfo {
        state: told.info.state.into(),
        is_active: false,
        receive_space: told.info.receive_window,
        receive_rtt: Span::ZERO,
        pacing_rates: [None; 2],
        limited_us: [0; 3],
        unsent: told.unsent as u32,
    };
    let mut bytes = of_connection(&told.info, &socket);
    for at in [PATH_MTU_AT, ADVERTISED_MSS_AT].map(|at| at..at + 4) {
        bytes[at.clone()].copy_from_slice(&room[at]);
    }
    // SAFETY: by this function's contract.
    unsafe {
        let wanted = usize::try_from((*len).cast_signed()).map_err(|_| libc::EINVAL)?;
        let given = wanted.min(known as usize);
        if pointers::is_bad_mut(to, given) {
            return Err(libc::EFAULT);
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), given);
        *len = given as socklen_t;
    }
    Ok(0)
}
