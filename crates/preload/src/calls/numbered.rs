//! Calls by number: syscall(2). Calls on descriptors are carried out as if they had been made by name, and all others by the kernel.

use super::connecting::connect;
use super::descriptors::{close, close_range, dup, dup3, fcntl, ioctl};
use super::give;
use super::input::{read, readv, recvfrom, recvmmsg, recvmsg};
use super::output::{sendfile, sendmmsg, sendmsg, sendto, splice, write, writev};
use super::sockets::{accept, accept4, bind, getpeername, getsockname, getsockopt};
use super::sockets::{listen, setsockopt, shutdown};
use super::waiting::{epoll_ctl, epoll_pwait, ppoll};
#[cfg(target_arch = "x86_64")]
use super::{
    descriptors::dup2,
    waiting::{epoll_wait, poll, select},
};
use crate::reason::Reason;
use crate::{session, sys};
use libc::c_long;

/// Calls a function of this library with the registers of a system call.
macro_rules! by_name {
    ($function:ident($($argument:expr),*)) => {
        $function($($argument as _),*) as c_long
    };
}

/// syscall(2). libuv, and so Node.js, uses io_uring to change its epoll instance if io_uring is available. This library would not see such
/// changes, so it reports io_uring as unavailable; programs work without it. Like the C library, it always passes on the maximum of six
/// arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: by the caller's contract.
    unsafe {
        match number {
            libc::SYS_close => by_name!(close(a)),
            libc::SYS_close_range => by_name!(close_range(a, b, c)),
            libc::SYS_dup => by_name!(dup(a)),
            libc::SYS_dup3 => by_name!(dup3(a, b, c)),
            libc::SYS_fcntl => by_name!(fcntl(a, b, c)),
            libc::SYS_ioctl => by_name!(ioctl(a, b, c)),
            libc::SYS_connect => by_name!(connect(a, b, c)),
            libc::SYS_bind => by_name!(bind(a, b, c)),
            libc::SYS_listen => by_name!(listen(a, b)),
            libc::SYS_accept => by_name!(accept(a, b, c)),
            libc::SYS_accept4 => by_name!(accept4(a, b, c, d)),
            libc::SYS_shutdown => by_name!(shutdown(a, b)),
            libc::SYS_getsockname => by_name!(getsockname(a, b, c)),
            libc::SYS_getpeername => by_name!(getpeername(a, b, c)),
            libc::SYS_getsockopt => by_name!(getsockopt(a, b, c, d, e)),
            libc::SYS_setsockopt => by_name!(setsockopt(a, b, c, d, e)),
            libc::SYS_read => by_name!(read(a, b, c)),
            libc::SYS_readv => by_name!(readv(a, b, c)),
            libc::SYS_recvfrom => by_name!(recvfrom(a, b, c, d, e, f)),
            libc::SYS_recvmsg => by_name!(recvmsg(a, b, c)),
            libc::SYS_recvmmsg => by_name!(recvmmsg(a, b, c, d, e)),
            libc::SYS_write => by_name!(write(a, b, c)),
            libc::SYS_writev => by_name!(writev(a, b, c)),
            libc::SYS_sendto => by_name!(sendto(a, b, c, d, e, f)),
            libc::SYS_sendmsg => by_name!(sendmsg(a, b, c)),
            libc::SYS_sendmmsg => by_name!(sendmmsg(a, b, c, d)),
            libc::SYS_sendfile => by_name!(sendfile(a, b, c, d)),
            libc::SYS_splice => by_name!(splice(a, b, c, d, e, f)),
            libc::SYS_ppoll => by_name!(ppoll(a, b, c, d)),
            libc::SYS_epoll_ctl => by_name!(epoll_ctl(a, b, c, d)),
            libc::SYS_epoll_pwait => by_name!(epoll_pwait(a, b, c, d, e)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_dup2 => by_name!(dup2(a, b)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => by_name!(poll(a, b, c)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => by_name!(select(a, b, c, d, e)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => by_name!(epoll_wait(a, b, c, d)),
            // This creates a process, not a thread.
            libc::SYS_clone if a & c_long::from(libc::CLONE_VM) == 0 => {
                session::forking(|| sys::syscall()(number, a, b, c, d, e, f))
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_fork => session::forking(|| sys::syscall()(number, a, b, c, d, e, f)),
            libc::SYS_io_uring_setup if session::has_adapter() => {
                Reason::Rings.count("io_uring_setup");
                give!(Err(libc::ENOSYS))
            }
            _ => sys::syscall()(number, a, b, c, d, e, f),
        }
    }
}
