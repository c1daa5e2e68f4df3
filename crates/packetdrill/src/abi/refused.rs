//! Functions of a table whose set-up failed: each returns an error, so that a tool may call them safely.

use super::memory::report;
use super::{Data, Interface};
use crate::errno::Errno;
use libc::{
    c_int, c_longlong, c_uint, c_ulong, c_void, epoll_event, iovec, msghdr, nfds_t, off64_t,
    pollfd, size_t, sockaddr, socklen_t, ssize_t, timeval, useconds_t,
};

/// Does nothing, since nothing was set up.
extern "C" fn free(_: Data) {}

/// Defines functions with these names and types.
macro_rules! refusing {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        $(
            extern "C" fn $name(_: Data $(, _: $argument)*) -> $result {
                report(Err(Errno(libc::ENODEV)))
            }
        )*

        /// The whole table.
        pub(super) fn table() -> Interface {
            Interface {
                userdata: std::ptr::null_mut(),
                free,
                $($name,)*
            }
        }
    };
}

refusing! {
    socket(c_int, c_int, c_int) -> c_int;
    bind(c_int, *const sockaddr, socklen_t) -> c_int;
    listen(c_int, c_int) -> c_int;
    accept(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
    connect(c_int, *const sockaddr, socklen_t) -> c_int;
    read(c_int, *mut c_void, size_t) -> ssize_t;
    readv(c_int, *const iovec, c_int) -> ssize_t;
    recv(c_int, *mut c_void, size_t, c_int) -> ssize_t;
    recvfrom(c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t;
    recvmsg(c_int, *mut msghdr, c_int) -> ssize_t;
    write(c_int, *const c_void, size_t) -> ssize_t;
    writev(c_int, *const iovec, c_int) -> ssize_t;
    send(c_int, *const c_void, size_t, c_int) -> ssize_t;
    sendto(c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t;
    sendmsg(c_int, *const msghdr, c_int) -> ssize_t;
    fcntl(c_int, c_int, usize) -> c_int;
    ioctl(c_int, c_ulong, usize) -> c_int;
    close(c_int) -> c_int;
    shutdown(c_int, c_int) -> c_int;
    getsockopt(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;
    setsockopt(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int;
    poll(*mut pollfd, nfds_t, c_int) -> c_int;
    netdev_send(*const c_void, size_t) -> c_int;
    netdev_receive(*mut c_void, *mut size_t, *mut c_longlong) -> c_int;
    usleep(useconds_t) -> c_int;
    gettimeofday(*mut timeval, *mut c_void) -> c_int;
    epoll_create(c_int) -> c_int;
    epoll_ctl(c_int, c_int, c_int, *mut epoll_event) -> c_int;
    epoll_wait(c_int, *mut epoll_event, c_int, c_int) -> c_int;
    pipe(*mut c_int) -> c_int;
    splice(c_int, *mut off64_t, c_int, *mut off64_t, size_t, c_uint) -> ssize_t;
}
