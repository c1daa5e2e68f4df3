//! Calls that start threads. With several threads, two may use one epoll set.

use crate::{sys, threads};
use libc::{c_int, c_void, pthread_attr_t, pthread_t};
use std::mem;
use std::sync::atomic::AtomicUsize;

/// pthread_create(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(
        *mut pthread_t,
        *const pthread_attr_t,
        extern "C" fn(*mut c_void) -> *mut c_void,
        *mut c_void,
    ) -> c_int;
    static REAL: AtomicUsize = AtomicUsize::new(0);
    threads::note();
    // SAFETY: the C library's function of this name has this type.
    unsafe {
        let create = mem::transmute::<usize, Create>(sys::next(&REAL, c"pthread_create"));
        create(thread, attributes, start, argument)
    }
}

/// thrd_create(3) of C11 threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_create(
    thread: *mut pthread_t,
    start: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(
        *mut pthread_t,
        extern "C" fn(*mut c_void) -> c_int,
        *mut c_void,
    ) -> c_int;
    static REAL: AtomicUsize = AtomicUsize::new(0);
    threads::note();
    // SAFETY: the C library's function of this name has this type.
    unsafe {
        let create = mem::transmute::<usize, Create>(sys::next(&REAL, c"thrd_create"));
        create(thread, start, argument)
    }
}
