//! Calls that start threads. With several threads, two may use one epoll set.

use crate::{session, sys, threads};
use libc::{c_int, c_void, pthread_attr_t, pthread_t};
use std::mem;
use std::ptr;
use std::sync::atomic::AtomicUsize;

/// Maximum stack that moving a connection needs, bytes.
const OWN_STACK_BYTES: usize = 256 << 10;
/// Stacks of at least this size are not enlarged, bytes.
const LARGE_STACK_BYTES: usize = 1 << 20;

/// Returns attributes with a larger stack, or `None` if the stack is large enough or the program has allocated it.
///
/// # Safety
/// `attributes` is null or good.
unsafe fn with_room(attributes: *const pthread_attr_t) -> Option<pthread_attr_t> {
    if attributes.is_null() || !session::has_adapter() {
        return None;
    }
    let (mut address, mut size) = (ptr::null_mut(), 0);
    // SAFETY: by this function's contract. The original is not destroyed meanwhile, so the bitwise copy may share its parts.
    unsafe {
        let known = libc::pthread_attr_getstack(attributes, &raw mut address, &raw mut size) == 0;
        // The address is the lower end. If the C library is to allocate the stack, it ends at 0, and its size is 0 unless one was set.
        let is_programs = address.addr().wrapping_add(size) != 0;
        if !known || is_programs || size == 0 || size >= LARGE_STACK_BYTES {
            return None;
        }
        let mut copy = ptr::read(attributes);
        let done = libc::pthread_attr_setstacksize(&raw mut copy, size + OWN_STACK_BYTES);
        (done == 0).then_some(copy)
    }
}

/// pthread_create(3). Enlarges a small stack.
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
        let larger = with_room(attributes);
        let attributes = larger.as_ref().map_or(attributes, ptr::from_ref);
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
