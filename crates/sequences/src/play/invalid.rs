//! Calls with invalid pointers or lengths, or in the wrong state.

use super::calls::message;
use super::raw::result;
use libc::{c_int, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

/// Memory that can be read and written up to [`Self::end`], where memory begins that cannot be accessed, and a page that can only be read.
struct Pages {
    end: *mut c_void,
    read_only: *mut c_void,
}

const PAGE: usize = 4096;

impl Pages {
    /// Maps new pages, which live until the process ends.
    fn new() -> Self {
        let map = |len, protection| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: the system chooses the place.
            unsafe { libc::mmap(null_mut(), len, protection, flags, -1, 0) }
        };
        let start = map(2 * PAGE, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: both pages belong to this mapping.
        let end = unsafe { start.byte_add(PAGE) };
        // SAFETY: nothing uses the page.
        unsafe { libc::mprotect(end, PAGE, libc::PROT_NONE) };
        let read_only = map(PAGE, libc::PROT_READ);
        Self { end, read_only }
    }
}

/// Makes a call with invalid pointers or lengths.
pub(super) fn bad(fd: c_int, which: u32) -> String {
    let bad = 16 as *mut c_void;
    let Pages { end, read_only } = Pages::new();
    let mut len = -1_i32 as u32;
    let mut parts = [libc::iovec {
        iov_base: bad,
        iov_len: 4,
    }; 2];
    // Its last four bytes can be accessed.
    let last = end.wrapping_byte_sub(4);
    let (from, to) = (libc::MSG_NOSIGNAL, libc::MSG_DONTWAIT);
    let mut good_len = 4;
    // SAFETY: the system must detect the invalid pointers; all other arguments are valid.
    unsafe {
        let wrong_parts = message(&mut parts);
        let mut halves = [last, end].map(|iov_base| libc::iovec {
            iov_base,
            iov_len: 4,
        });
        let halved = message(&mut halves);
        result(match which {
            0 => libc::recv(fd, bad, 4, to) as i64,
            1 => libc::recv(fd, null_mut(), 0, to) as i64,
            2 => libc::send(fd, bad, 4, from) as i64,
            3 => libc::send(fd, null(), 0, from) as i64,
            4 => libc::recvmsg(fd, &raw const *wrong_parts as *mut _, to) as i64,
            5 => libc::sendmsg(fd, &raw const *wrong_parts, from) as i64,
            6 => libc::writev(fd, parts.as_ptr(), -1) as i64,
            7 => libc::readv(fd, bad.cast(), 1025) as i64,
            8 => libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, bad, bad.cast()) as i64,
            9 => libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_TYPE, bad, &raw mut len) as i64,
            10 => libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, bad, 4) as i64,
            11 => libc::getsockname(fd, bad.cast(), &raw mut len) as i64,
            12 => libc::getpeername(fd, bad.cast(), bad.cast()) as i64,
            13 => libc::ioctl(fd, libc::FIONREAD, bad) as i64,
            14 => libc::ioctl(fd, libc::FIONBIO, bad) as i64,
            15 => libc::recvmsg(fd, bad.cast(), to) as i64,
            16 => libc::recv(fd, last, 8, to) as i64,
            17 => libc::recv(fd, end, 8, to) as i64,
            18 => libc::recv(fd, read_only, 8, to) as i64,
            19 => libc::recv(fd, last, 8, to | libc::MSG_PEEK) as i64,
            20 => libc::recvmsg(fd, &raw const *halved as *mut _, to) as i64,
            21 => libc::recvmsg(fd, read_only.cast(), to) as i64,
            22 => libc::send(fd, last, 8, from) as i64,
            23 => libc::send(fd, end, 8, from) as i64,
            24 => libc::sendmsg(fd, &raw const *halved, from) as i64,
            25 => libc::sendmsg(fd, end.cast(), from) as i64,
            26 => libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, end, 4) as i64,
            27 => libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, last, 8) as i64,
            28 => {
                let (level, option) = (libc::SOL_SOCKET, libc::SO_TYPE);
                libc::getsockopt(fd, level, option, read_only, &raw mut good_len) as i64
            }
            29 => libc::getpeername(fd, end.cast(), &raw mut good_len) as i64,
            30 => libc::getsockname(fd, last.cast(), end.cast()) as i64,
            31 => libc::ioctl(fd, libc::FIONREAD, read_only) as i64,
            32 => libc::poll(end.cast(), 1, 0) as i64,
            _ => {
                let set = end.cast::<libc::fd_set>();
                libc::select(fd + 1, set, null_mut(), null_mut(), null_mut()) as i64
            }
        })
    }
}

/// Makes a call that does not apply to this descriptor, or not in this state.
pub(super) fn wrong(fd: c_int, which: u32) -> String {
    // SAFETY: all zeros are a valid address of no family.
    unsafe {
        let address: libc::sockaddr_in6 = zeroed();
        let address = (&raw const address).cast::<libc::sockaddr>();
        result(match which {
            0 => libc::listen(fd, 1) as i64,
            1 => libc::accept(fd, null_mut(), null_mut()) as i64,
            2 => libc::bind(fd, address, 2) as i64,
            3 => libc::lseek(fd, 0, libc::SEEK_SET),
            4 => libc::fsync(fd) as i64,
            _ => libc::connect(fd, address, 1) as i64,
        })
    }
}
