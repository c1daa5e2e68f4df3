//! System calls as they are, and errno.

use libc::{c_int, c_long};
use std::ffi::CStr;
use std::io::{Error, ErrorKind};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An error number of errno(3).
pub type Errno = c_int;

/// A system call, with -1 and errno where it fails.
macro_rules! call {
    ($number:ident $(, $argument:expr)* $(,)?) => {
        ($crate::sys::syscall())(libc::$number $(, $argument)*)
    };
}
pub(crate) use call;

/// syscall(2).
pub type Syscall = unsafe extern "C" fn(c_long, ...) -> c_long;

/// That of the C library, before which this library stands.
#[inline]
pub fn syscall() -> Syscall {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    let real = next(&REAL, c"syscall");
    // SAFETY: the C library's function of this name has this type.
    unsafe { mem::transmute::<usize, Syscall>(real) }
}

/// Where the C library's function of this name is, looked up once.
#[inline]
pub fn next(place: &AtomicUsize, name: &CStr) -> usize {
    let mut real = place.load(Ordering::Relaxed);
    if real == 0 {
        // SAFETY: the name is a C string.
        real = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
        assert!(real != 0, "the C library has {name:?}");
        place.store(real, Ordering::Relaxed);
    }
    real
}

/// What a system call gave, or why it failed.
pub fn outcome(value: c_long) -> Result<usize, Errno> {
    usize::try_from(value).map_err(|_| last())
}

/// The error of the last call of the C library.
pub fn last() -> Errno {
    Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Sets errno.
pub fn set_errno(errno: Errno) {
    // SAFETY: that of the calling thread can always be written.
    unsafe { *libc::__errno_location() = errno };
}

/// The C library's way of saying what happened: -1 and errno.
pub fn report<T: TryFrom<usize> + From<i8>>(outcome: Result<usize, Errno>) -> T {
    match outcome {
        Ok(value) => T::try_from(value).unwrap_or_else(|_| T::from(-1)),
        Err(errno) => {
            set_errno(errno);
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

/// Which file is behind a descriptor.
pub fn inode(fd: c_int) -> Option<u64> {
    // SAFETY: zeros are a description of a file.
    let mut about: libc::stat = unsafe { mem::zeroed() };
    // SAFETY: it is filled in.
    let told = unsafe { call!(SYS_fstat, fd, &raw mut about) };
    (told == 0).then_some(about.st_ino)
}

/// What is behind `by` is behind `fd` from now on, too, which is closed on exec or not as before.
pub fn replace(fd: c_int, by: c_int) {
    // SAFETY: whose descriptor it is the caller knows.
    unsafe {
        let flags = call!(SYS_fcntl, fd, libc::F_GETFD) as c_int;
        let on_exec = flags & libc::FD_CLOEXEC != 0;
        call!(SYS_dup3, by, fd, if on_exec { libc::O_CLOEXEC } else { 0 });
    }
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
