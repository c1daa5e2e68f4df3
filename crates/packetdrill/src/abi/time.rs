//! The network device and the clock.

use super::Data;
use super::memory::{bytes, instance, report};
use crate::errno::Errno;
use baton_wire::Span;
use libc::{c_int, c_longlong, c_void, size_t, timeval, useconds_t};

/// Injects an arriving raw IP packet.
///
/// # Safety
/// `packet` is valid for `len` bytes.
pub(super) unsafe extern "C" fn netdev_send(
    data: Data,
    packet: *const c_void,
    len: size_t,
) -> c_int {
    // SAFETY: by this function's contract.
    let (instance, packet) = unsafe { (instance(data), bytes(packet, len)) };
    report(
        packet
            .and_then(|packet| instance.inject(packet))
            .map(|()| 0),
    )
}

/// Returns the next packet that leaves, its length, and when it left (microseconds since 1970).
///
/// # Safety
/// `buffer` is valid for `*len` bytes; `time_us` may be written.
pub(super) unsafe extern "C" fn netdev_receive(
    data: Data,
    buffer: *mut c_void,
    len: *mut size_t,
    time_us: *mut c_longlong,
) -> c_int {
    if buffer.is_null() || len.is_null() || time_us.is_null() {
        return report(Err(Errno(libc::EFAULT)));
    }
    // SAFETY: by this function's contract; not null.
    let (instance, room) = unsafe { (instance(data), *len) };
    let fetched = instance.fetch(room).map(|(packet, left_us)| {
        // SAFETY: a fetched packet is no longer than the buffer, which is not null.
        unsafe {
            std::ptr::copy_nonoverlapping(packet.as_ptr(), buffer.cast(), packet.len());
            *len = packet.len();
            *time_us = left_us as c_longlong;
        }
        0
    });
    report(fetched)
}

/// Lets time pass.
///
/// # Safety
/// `data` is an instance's.
pub(super) unsafe extern "C" fn usleep(data: Data, us: useconds_t) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { instance(data) }.sleep_for(Span::from_us(us.into()));
    0
}

/// Reads the clock. The second pointer is ignored, as there are no time zones.
///
/// # Safety
/// `time` is null or may be written.
pub(super) unsafe extern "C" fn gettimeofday(
    data: Data,
    time: *mut timeval,
    _zone: *mut c_void,
) -> c_int {
    // SAFETY: by this function's contract.
    let clock_us = unsafe { instance(data) }.read_clock();
    if !time.is_null() {
        let value = timeval {
            tv_sec: (clock_us / 1_000_000) as libc::time_t,
            tv_usec: (clock_us % 1_000_000) as libc::suseconds_t,
        };
        // SAFETY: not null, and so writable by this function's contract.
        unsafe { time.write(value) };
    }
    0
}
