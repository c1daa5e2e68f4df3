//! The C interface: a table of functions, each of which converts pointers to slices, calls the instance, and sets errno.
//!
//! Only this module of the crate has unsafe code. Unlike system calls, the functions trust their caller: pointers must be
//! valid for the lengths given with them, as the C library demands. Null pointers with a length are refused with EFAULT, as
//! in the kernel.
#![allow(unsafe_code)]

mod calls;
mod memory;
mod preload;
mod time;
mod transfer;

use crate::errno::Errno;
use crate::flags::Settings;
use crate::instance::Instance;
use crate::world::World;
use libc::{
    c_char, c_int, c_longlong, c_uint, c_ulong, c_void, epoll_event, iovec, msghdr, nfds_t,
    off64_t, pollfd, size_t, sockaddr, socklen_t, ssize_t, timeval, useconds_t,
};
use std::ffi::CStr;
use std::mem::offset_of;
use std::sync::Arc;

type Data = *mut c_void;

/// Declares the table and fills it: with the functions of an instance, and with functions that fail.
macro_rules! interface {
    ($($name:ident($($argument:ty),*) -> $result:ty = $module:ident;)*) => {
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
            $(pub $name: unsafe extern "C" fn(Data $(, $argument)*) -> $result,)*
        }

        impl Interface {
            /// All entries of the table, each with its offset in bytes.
            pub const ENTRIES: &[(&str, usize)] = &[
                ("userdata", offset_of!(Interface, userdata)),
                ("free", offset_of!(Interface, free)),
                $((stringify!($name), offset_of!(Interface, $name)),)*
            ];

            /// The functions of an instance.
            fn of(userdata: Data) -> Self {
                Self {
                    userdata,
                    free,
                    $($name: $module::$name,)*
                }
            }

            /// Functions of an instance whose set-up failed: each returns an error, so that a tool may call them safely.
            fn refusing() -> Self {
                extern "C" fn free(_: Data) {}
                $(
                    extern "C" fn $name(_: Data $(, _: $argument)*) -> $result {
                        memory::report(Err(Errno(libc::ENODEV)))
                    }
                )*
                Self {
                    userdata: std::ptr::null_mut(),
                    free,
                    $($name,)*
                }
            }
        }
    };
}

interface! {
    socket(c_int, c_int, c_int) -> c_int = calls;
    bind(c_int, *const sockaddr, socklen_t) -> c_int = calls;
    listen(c_int, c_int) -> c_int = calls;
    accept(c_int, *mut sockaddr, *mut socklen_t) -> c_int = calls;
    connect(c_int, *const sockaddr, socklen_t) -> c_int = calls;
    read(c_int, *mut c_void, size_t) -> ssize_t = transfer;
    readv(c_int, *const iovec, c_int) -> ssize_t = transfer;
    recv(c_int, *mut c_void, size_t, c_int) -> ssize_t = transfer;
    recvfrom(c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t = transfer;
    recvmsg(c_int, *mut msghdr, c_int) -> ssize_t = transfer;
    write(c_int, *const c_void, size_t) -> ssize_t = transfer;
    writev(c_int, *const iovec, c_int) -> ssize_t = transfer;
    send(c_int, *const c_void, size_t, c_int) -> ssize_t = transfer;
    sendto(c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t = transfer;
    sendmsg(c_int, *const msghdr, c_int) -> ssize_t = transfer;
    fcntl(c_int, c_int, usize) -> c_int = calls;
    ioctl(c_int, c_ulong, usize) -> c_int = calls;
    close(c_int) -> c_int = calls;
    shutdown(c_int, c_int) -> c_int = calls;
    getsockopt(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int = calls;
    setsockopt(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int = calls;
    poll(*mut pollfd, nfds_t, c_int) -> c_int = calls;
    netdev_send(*const c_void, size_t) -> c_int = time;
    netdev_receive(*mut c_void, *mut size_t, *mut c_longlong) -> c_int = time;
    usleep(useconds_t) -> c_int = time;
    gettimeofday(*mut timeval, *mut c_void) -> c_int = time;
    epoll_create(c_int) -> c_int = calls;
    epoll_ctl(c_int, c_int, c_int, *mut epoll_event) -> c_int = calls;
    epoll_wait(c_int, *mut epoll_event, c_int, c_int) -> c_int = calls;
    pipe(*mut c_int) -> c_int = calls;
    splice(c_int, *mut off64_t, c_int, *mut off64_t, size_t, c_uint) -> ssize_t = transfer;
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
            unsafe { out.write(Interface::refusing()) };
            return -1;
        }
    };
    let instance = Arc::new(Instance::new(World::new(settings)));
    preload::register(&instance);
    // SAFETY: `out` may be written by this function's contract.
    unsafe { out.write(Interface::of(Arc::into_raw(instance).cast_mut().cast())) };
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
