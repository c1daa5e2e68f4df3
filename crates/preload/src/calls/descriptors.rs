//! Calls on descriptors of any kind.

use super::{give, sockets};
use crate::description::Description;
use crate::leaving;
use crate::options;
use crate::pointers;
use crate::reason::Reason;
use crate::session;
use crate::signals;
use crate::sys::{call, outcome};
use crate::table;
use libc::{c_int, c_uint, c_ulong, c_void};
use std::sync::atomic::Ordering;

/// close(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    let closed = if baton_sockets::is_inside() {
        // A descriptor of the library's own. If the table has an entry for its number, the program closed that descriptor without calling
        // this library.
        table::retire(fd);
        None
    } else {
        table::drop_retired();
        table::remove(fd)
    };
    // SAFETY: the kernel checks everything itself.
    let result = unsafe { call!(SYS_close, fd) as c_int };
    let hold = closed.is_some().then(signals::hold);
    drop(closed);
    drop(hold);
    result
}

/// close_range(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: the kernel checks everything itself.
    let result = unsafe { call!(SYS_close_range, first, last, flags) as c_int };
    // Flag 4, CLOSE_RANGE_CLOEXEC, closes nothing now.
    if result == 0 && flags & 4 == 0 {
        let _hold = signals::hold();
        let last = c_int::try_from(last).unwrap_or(c_int::MAX);
        for fd in table::range(first as c_int, last) {
            table::remove(fd);
        }
    }
    result
}

/// closefrom(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: valid by the manual page; the C library does the same.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}

fn copied(old: c_int, new: c_int) -> c_int {
    if new >= 0 {
        table::copy(old, new);
    }
    if (0..=libc::STDERR_FILENO).contains(&new) {
        // The C library itself reads and writes these descriptors.
        leaving::leave(new, Reason::Stream, format_args!("descriptor {new}"));
    }
    new
}

/// dup(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(old: c_int) -> c_int {
    // SAFETY: the kernel checks everything itself.
    copied(old, unsafe { call!(SYS_dup, old) as c_int })
}

/// dup2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    // SAFETY: the kernel checks everything itself.
    unsafe {
        if old == new {
            // dup2(2) then only reports whether the descriptor is open.
            let flags = call!(SYS_fcntl, old, libc::F_GETFD);
            return if flags < 0 { -1 } else { new };
        }
        copied(old, call!(SYS_dup3, old, new, 0) as c_int)
    }
}

/// dup3(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: the kernel checks everything itself.
    copied(old, unsafe { call!(SYS_dup3, old, new, flags) as c_int })
}

/// Sets whether calls on the socket may wait. A listener's kernel socket never waits, since the adapter may have connections, too.
fn set_nonblocking(fd: c_int, socket: &Description, on: bool) {
    socket.nonblocking.store(on, Ordering::Relaxed);
    if !on && socket.as_listener().is_some() {
        // SAFETY: this only changes a flag.
        unsafe {
            let flags = call!(SYS_fcntl, fd, libc::F_GETFL);
            call!(
                SYS_fcntl,
                fd,
                libc::F_SETFL,
                flags as c_int | libc::O_NONBLOCK
            );
        }
    }
}

/// Commands of fcntl(2) that the libc crate does not have for each C library.
const F_SETSIG: c_int = 10;
const F_SETOWN_EX: c_int = 15;
const F_GETOWN_EX: c_int = 16;
/// The owner is a process group.
const F_OWNER_PGRP: c_int = 2;
/// Requests of ioctl(2) that set the receiver of signals.
const FIOSETOWN: c_ulong = 0x8901;
const SIOCSPGRP: c_ulong = 0x8902;

/// Carries out F_GETOWN as the C library does: its own result for a process group, the negative number, looks like an error.
fn owner(fd: c_int) -> c_int {
    let mut owner: [c_int; 2] = [0; 2];
    // SAFETY: the array has the layout of `f_owner_ex`: a kind and a number.
    let result = unsafe { call!(SYS_fcntl, fd, F_GETOWN_EX, owner.as_mut_ptr()) as c_int };
    match (result, owner) {
        (..0, _) => result,
        (_, [F_OWNER_PGRP, group]) => -group,
        (_, [_, process]) => process,
    }
}

/// fcntl(2). Every kind of argument is passed in one register.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    let asks_for_signals = match command {
        libc::F_SETFL => argument as c_int & libc::O_ASYNC != 0,
        libc::F_SETOWN | F_SETOWN_EX | F_SETSIG => argument != 0,
        _ => false,
    };
    if asks_for_signals && !sockets::leave_for_signals(fd) {
        return give!(Err(libc::EOPNOTSUPP));
    }
    if command == libc::F_GETOWN {
        return owner(fd);
    }
    // SAFETY: the kernel checks everything itself.
    let result = unsafe { call!(SYS_fcntl, fd, command, argument) as c_int };
    if result < 0 {
        return result;
    }
    if asks_for_signals {
        sockets::keep_for_signals(fd);
    }
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => copied(fd, result),
        libc::F_SETFL => {
            if let Some(socket) = table::socket(fd) {
                set_nonblocking(fd, &socket, argument as c_int & libc::O_NONBLOCK != 0);
            }
            result
        }
        libc::F_GETFL => match table::socket(fd) {
            Some(socket) if !socket.is_nonblocking() => result & !libc::O_NONBLOCK,
            _ => result,
        },
        _ => result,
    }
}

/// Another name of fcntl(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { fcntl(fd, command, argument) }
}

/// From the kernel's `sockios.h`: asks for the number of bytes that are not sent yet.
const SIOCOUTQNSD: c_ulong = 0x894b;

/// ioctl(2): handles FIONBIO, and requests for the number of unread, unacknowledged or unsent bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let asks_for_signals = matches!(request, libc::FIOASYNC | FIOSETOWN | SIOCSPGRP)
        && pointers::check(argument.cast::<c_int>()).is_ok()
        // SAFETY: the argument points to an integer, by the manual page.
        && unsafe { argument.cast::<c_int>().read_unaligned() } != 0;
    if asks_for_signals && !sockets::leave_for_signals(fd) {
        return give!(Err(libc::EOPNOTSUPP));
    }
    let socket = table::socket(fd);
    if let libc::TIOCOUTQ | SIOCOUTQNSD = request
        && let Some(told) = socket.as_ref().and_then(|it| options::told(it))
    {
        if let Err(errno) = pointers::check_mut(argument.cast::<c_int>()) {
            return give!(Err(errno));
        }
        let not_sent = told.unsent + told.info.not_sent as usize;
        let count = match request {
            SIOCOUTQNSD => not_sent,
            _ => told.unsent + told.unacknowledged,
        };
        let count = c_int::try_from(count).unwrap_or(c_int::MAX);
        // SAFETY: the argument points to an integer, by the manual page.
        unsafe { argument.cast::<c_int>().write_unaligned(count) };
        return 0;
    }
    // SAFETY: the kernel checks everything itself.
    let result = unsafe { call!(SYS_ioctl, fd, request, argument) as c_int };
    if asks_for_signals && result == 0 {
        sockets::keep_for_signals(fd);
    }
    let Some(socket) = socket else {
        return result;
    };
    match request {
        libc::FIONBIO if result == 0 => {
            // SAFETY: the kernel has read the integer, too.
            let on = unsafe { argument.cast::<c_int>().read_unaligned() } != 0;
            set_nonblocking(fd, &socket, on);
            result
        }
        libc::TIOCOUTQ | SIOCOUTQNSD if result == 0 => {
            let kept = socket
                .stream()
                .map_or(0, |stream| stream.kept_from_kernel());
            // SAFETY: the kernel has written the integer.
            unsafe { *argument.cast::<c_int>() += kept as c_int };
            result
        }
        libc::FIONREAD => match socket.stream().filter(|stream| !stream.is_direct()) {
            Some(_) if pointers::check_mut(argument.cast::<c_int>()).is_err() => {
                give!(Err(libc::EFAULT))
            }
            Some(stream) => {
                let unread = c_int::try_from(stream.readiness().unread);
                // SAFETY: the argument points to an integer, by the manual page.
                unsafe { argument.cast::<c_int>().write(unread.unwrap_or(c_int::MAX)) };
                0
            }
            None => result,
        },
        _ => result,
    }
}

/// _exit(2), after the data that the program wrote has been sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    session::at_exit();
    // SAFETY: the system call does not return.
    unsafe {
        outcome(call!(SYS_exit_group, status)).ok();
        std::process::abort()
    }
}
