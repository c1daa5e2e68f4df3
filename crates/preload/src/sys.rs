//! Direct system calls, and errno.

use libc::{c_int, c_long};
use std::ffi::CStr;
use std::io::{Error, ErrorKind};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An error number of errno(3).
pub type Errno = c_int;

/// Makes a system call; on failure the value is -1, and errno is set.
macro_rules! call {
    ($number:ident $(, $argument:expr)* $(,)?) => {
        ($crate::sys::syscall())(libc::$number $(, $argument)*)
    };
}
pub(crate) use call;

/// The type of syscall(2).
pub type Syscall = unsafe extern "C" fn(c_long, ...) -> c_long;

/// Returns the C library's syscall(2), which this library's function of that name hides.
#[inline]
pub fn syscall() -> Syscall {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    let real = next(&REAL, c"syscall");
    // SAFETY: the C library's function of this name has this type.
    unsafe { mem::transmute::<usize, Syscall>(real) }
}

/// Returns the address of the C library's function of this name, which it looks up once.
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

/// Converts the value of a system call into a result with errno as the error.
pub fn outcome(value: c_long) -> Result<usize, Errno> {
    usize::try_from(value).map_err(|_| last())
}

/// Returns errno.
pub fn last() -> Errno {
    Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Sets errno.
pub fn set_errno(errno: Errno) {
    // SAFETY: the calling thread can always write its own errno.
    unsafe { *libc::__errno_location() = errno };
}

/// Reports an outcome in the way of the C library: -1 and errno for an error.
pub fn report<T: TryFrom<usize> + From<i8>>(outcome: Result<usize, Errno>) -> T {
    match outcome {
        Ok(value) => T::try_from(value).unwrap_or_else(|_| T::from(-1)),
        Err(errno) => {
            set_errno(errno);
            T::from(-1)
        }
    }
}

/// Returns the errno that a kernel socket would report for this error.
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

/// Returns the process ID.
pub fn process() -> c_int {
    // SAFETY: this call takes no pointers, and cannot fail.
    unsafe { call!(SYS_getpid) as c_int }
}

/// Returns the inode behind a descriptor.
pub fn inode(fd: c_int) -> Option<u64> {
    // SAFETY: all zeros are a valid `stat`.
    let mut about: libc::stat = unsafe { mem::zeroed() };
    // SAFETY: the call fills in `about`.
    let told = unsafe { call!(SYS_fstat, fd, &raw mut about) };
    (told == 0).then_some(about.st_ino)
}

/// Makes `fd` a duplicate of `by`, and preserves its close-on-exec flag.
pub fn replace(fd: c_int, by: c_int) {
    // SAFETY: the caller knows who owns the descriptor.
    unsafe {
        let flags = call!(SYS_fcntl, fd, libc::F_GETFD) as c_int;
        let on_exec = flags & libc::FD_CLOEXEC != 0;
        call!(SYS_dup3, by, fd, if on_exec { libc::O_CLOEXEC } else { 0 });
    }
}

/// Closes a descriptor by the system call.
pub fn close(fd: c_int) -> Result<usize, Errno> {
    // SAFETY: the caller knows who owns the descriptor.
    outcome(unsafe { call!(SYS_close, fd) })
}

/// Returns an integer option of a kernel socket.
pub fn option(fd: c_int, level: c_int, name: c_int) -> Result<c_int, Errno> {
    integer(fd, level, name)
}

/// Returns an option of a kernel socket, an integer of 64 bits.
pub fn long_option(fd: c_int, level: c_int, name: c_int) -> Result<u64, Errno> {
    integer(fd, level, name)
}

fn integer<T: Default + Copy>(fd: c_int, level: c_int, name: c_int) -> Result<T, Errno> {
    let (mut value, mut len) = (T::default(), size_of::<T>() as libc::socklen_t);
    // SAFETY: `len` is the size of the value, and the callers' types are integers.
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
