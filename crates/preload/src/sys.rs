//! System calls as they are, and errno.

use libc::{c_int, c_long};
use std::io::{Error, ErrorKind};

/// An error number of errno(3).
pub type Errno = c_int;

/// A system call, with -1 and errno where it fails.
macro_rules! call {
    ($number:ident $(, $argument:expr)* $(,)?) => {
        libc::syscall(libc::$number $(, $argument)*)
    };
}
pub(crate) use call;

/// What a system call gave, or why it failed.
pub fn outcome(value: c_long) -> Result<usize, Errno> {
    usize::try_from(value).map_err(|_| last())
}

/// The error of the last call of the C library.
pub fn last() -> Errno {
    Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// The C library's way of saying what happened: -1 and errno.
pub fn report<T: TryFrom<usize> + From<i8>>(outcome: Result<usize, Errno>) -> T {
    match outcome {
        Ok(value) => T::try_from(value).unwrap_or_else(|_| T::from(-1)),
        Err(errno) => {
            // SAFETY: the errno of the calling thread can always be written.
            unsafe { *libc::__errno_location() = errno };
            T::from(-1)
        }
    }
}

/// What the kernel's sockets would report.
pub fn errno_of(error: &Error) -> Errno {
    if let Some(errno) = error.raw_os_error() {
        return errno;
    }
    match error.kind() {
        ErrorKind::WouldBlock => libc::EAGAIN,
        ErrorKind::Interrupted => libc::EINTR,
        ErrorKind::AddrInUse => libc::EADDRINUSE,
        ErrorKind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        ErrorKind::ConnectionRefused => libc::ECONNREFUSED,
        ErrorKind::ConnectionReset => libc::ECONNRESET,
        ErrorKind::ConnectionAborted => libc::ECONNABORTED,
        ErrorKind::TimedOut => libc::ETIMEDOUT,
        ErrorKind::HostUnreachable => libc::EHOSTUNREACH,
        ErrorKind::NetworkDown => libc::ENETDOWN,
        ErrorKind::NotConnected => libc::ENOTCONN,
        ErrorKind::InvalidInput => libc::EINVAL,
        ErrorKind::BrokenPipe => libc::EPIPE,
        ErrorKind::QuotaExceeded => libc::ENOBUFS,
        _ => libc::EIO,
    }
}

/// This process.
pub fn process() -> c_int {
    // SAFETY: it cannot fail.
    unsafe { call!(SYS_getpid) as c_int }
}

/// Closes a descriptor of the kernel's.
pub fn close(fd: c_int) -> Result<usize, Errno> {
    // SAFETY: whose descriptor it is the caller knows.
    outcome(unsafe { call!(SYS_close, fd) })
}

/// An option of a socket of the kernel's that is a number.
pub fn option(fd: c_int, level: c_int, name: c_int) -> Result<c_int, Errno> {
    let (mut value, mut len) = (0 as c_int, size_of::<c_int>() as libc::socklen_t);
    // SAFETY: the value has the length that is said.
    outcome(unsafe {
        call!(
            SYS_getsockopt,
            fd,
            level,
            name,
            &raw mut value,
            &raw mut len
        )
    })?;
    Ok(value)
}
