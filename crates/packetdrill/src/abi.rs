//! The C interface: a table of functions, each of which converts pointers to slices, calls the instance, and sets errno.
//!
//! Only this module of the crate has unsafe code. Unlike system calls, the functions trust their caller: pointers must be
//! valid for the lengths given with them, as the C library demands. Null pointers with a length are refused with EFAULT, as
//! in the kernel.
#![allow(unsafe_code)]

mod calls;
mod memory;
mod preload;
mod refused;
mod time;
mod transfer;

use crate::flags::Settings;
use crate::instance::Instance;
use crate::world::World;
use libc::{
    c_char, c_int, c_longlong, c_uint, c_ulong, c_void, epoll_event, iovec, msghdr, nfds_t,
    off64_t, pollfd, size_t, sockaddr, socklen_t, ssize_t, timeval, useconds_t,
};
use std::ffi::CStr;
use std::sync::Arc;

type Data = *mut c_void;

/// The table of functions for a tool. Its layout is that of the tool's `struct packetdrill_interface`.
///
/// `fcntl` and `ioctl` are variadic in C. Here they take a single further argument, since no request has more; in the System V
/// and AAPCS64 calling conventions of Linux a variadic call passes it in the same place.
#[repr(C)]
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    pub userdata: Data,
    pub free: unsafe extern "C" fn(Data),
    pub socket: unsafe extern "C" fn(Data, c_int, c_int, c_int) -> c_int,
    pub bind: unsafe extern "C" fn(Data, c_int, *const sockaddr, socklen_t) -> c_int,
    pub listen: unsafe extern "C" fn(Data, c_int, c_int) -> c_int,
    pub accept: unsafe extern "C" fn(Data, c_int, *mut sockaddr, *mut socklen_t) -> c_int,
    pub connect: unsafe extern "C" fn(Data, c_int, *const sockaddr, socklen_t) -> c_int,
    pub read: unsafe extern "C" fn(Data, c_int, *mut c_void, size_t) -> ssize_t,
    pub readv: unsafe extern "C" fn(Data, c_int, *const iovec, c_int) -> ssize_t,
    pub recv: unsafe extern "C" fn(Data, c_int, *mut c_void, size_t, c_int) -> ssize_t,
    pub recvfrom: unsafe extern "C" fn(
        Data,
        c_int,
        *mut c_void,
        size_t,
        c_int,
        *mut sockaddr,
        *mut socklen_t,
    ) -> ssize_t,
    pub recvmsg: unsafe extern "C" fn(Data, c_int, *mut msghdr, c_int) -> ssize_t,
    pub write: unsafe extern "C" fn(Data, c_int, *const c_void, size_t) -> ssize_t,
    pub writev: unsafe extern "C" fn(Data, c_int, *const iovec, c_int) -> ssize_t,
    pub send: unsafe extern "C" fn(Data, c_int, *const c_void, size_t, c_int) -> ssize_t,
    pub sendto: unsafe extern "C" fn(
        Data,
        c_int,
        *const c_void,
        size_t,
        c_int,
        *const sockaddr,
        socklen_t,
    ) -> ssize_t,
    pub sendmsg: unsafe extern "C" fn(Data, c_int, *const msghdr, c_int) -> ssize_t,
    pub fcntl: unsafe extern "C" fn(Data, c_int, c_int, usize) -> c_int,
    pub ioctl: unsafe extern "C" fn(Data, c_int, c_ulong, usize) -> c_int,
    pub close: unsafe extern "C" fn(Data, c_int) -> c_int,
    pub shutdown: unsafe extern "C" fn(Data, c_int, c_int) -> c_int,
    pub getsockopt:
        unsafe extern "C" fn(Data, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    pub setsockopt:
        unsafe extern "C" fn(Data, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    pub poll: unsafe extern "C" fn(Data, *mut pollfd, nfds_t, c_int) -> c_int,
    pub netdev_send: unsafe extern "C" fn(Data, *const c_void, size_t) -> c_int,
    pub netdev_receive:
        unsafe extern "C" fn(Data, *mut c_void, *mut size_t, *mut c_longlong) -> c_int,
    pub usleep: unsafe extern "C" fn(Data, useconds_t) -> c_int,
    pub gettimeofday: unsafe extern "C" fn(Data, *mut timeval, *mut c_void) -> c_int,
    pub epoll_create: unsafe extern "C" fn(Data, c_int) -> c_int,
    pub epoll_ctl: unsafe extern "C" fn(Data, c_int, c_int, c_int, *mut epoll_event) -> c_int,
    pub epoll_wait: unsafe extern "C" fn(Data, c_int, *mut epoll_event, c_int, c_int) -> c_int,
    pub pipe: unsafe extern "C" fn(Data, *mut c_int) -> c_int,
    pub splice: unsafe extern "C" fn(
        Data,
        c_int,
        *mut off64_t,
        c_int,
        *mut off64_t,
        size_t,
        c_uint,
    ) -> ssize_t,
}

/// Creates an instance with these flags (`key=value,key=value`; null or empty for the defaults) and fills `out` with it and
/// its functions. If the flags are invalid, prints a message on standard error and returns -1, otherwise 0; the functions of the
/// table then fail with ENODEV. The calling thread is the one that drives the script. `free` releases the instance; no function
/// may be running then or be called afterwards.
///
/// # Safety
/// `flags` is null or a C string; `out` points to a writable table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(
    flags: *const c_char,
    out: *mut Interface,
) -> c_int {
    let flags = match flags.is_null() {
        true => "".into(),
        // SAFETY: not null, and so a C string by this function's contract.
        false => unsafe { CStr::from_ptr(flags) }.to_string_lossy(),
    };
    let settings = match Settings::parse(&flags) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("baton_packetdrill: flags: {error}");
            // SAFETY: `out` may be written by this function's contract.
            unsafe { out.write(refused::table()) };
            return -1;
        }
    };
    let instance = Arc::new(Instance::new(World::new(settings)));
    preload::register(&instance);
    // SAFETY: `out` may be written by this function's contract.
    unsafe { out.write(table(Arc::into_raw(instance).cast_mut().cast())) };
    0
}

/// Releases an instance.
///
/// # Safety
/// `data` came from `packetdrill_interface_init` and is not used any more.
unsafe extern "C" fn free(data: Data) {
    // SAFETY: it came from `Arc::into_raw` of this type, once.
    drop(unsafe { Arc::from_raw(data.cast_const().cast::<Instance>()) });
}

fn table(userdata: Data) -> Interface {
    Interface {
        userdata,
        free,
        socket: calls::socket,
        bind: calls::bind,
        listen: calls::listen,
        accept: calls::accept,
        connect: calls::connect,
        read: transfer::read,
        readv: transfer::readv,
        recv: transfer::recv,
        recvfrom: transfer::recvfrom,
        recvmsg: transfer::recvmsg,
        write: transfer::write,
        writev: transfer::writev,
        send: transfer::send,
        sendto: transfer::sendto,
        sendmsg: transfer::sendmsg,
        fcntl: calls::fcntl,
        ioctl: calls::ioctl,
        close: calls::close,
        shutdown: calls::shutdown,
        getsockopt: calls::getsockopt,
        setsockopt: calls::setsockopt,
        poll: calls::poll,
        netdev_send: time::netdev_send,
        netdev_receive: time::netdev_receive,
        usleep: time::usleep,
        gettimeofday: time::gettimeofday,
        epoll_create: calls::epoll_create,
        epoll_ctl: calls::epoll_ctl,
        epoll_wait: calls::epoll_wait,
        pipe: calls::pipe,
        splice: transfer::splice,
    }
}
