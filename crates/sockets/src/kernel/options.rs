//! Copies the options that a program has set on a socket to the socket that replaces it.
#![allow(unsafe_code)]

use libc::{c_int, socklen_t};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Maximum length of the option values below, in bytes.
const LONGEST: usize = 16;
const INTEGER: usize = mem::size_of::<c_int>();

/// Bits of SO_BUF_LOCK (Linux 5.14), which says which buffer sizes the program has set.
const SO_BUF_LOCK: c_int = 72;
const BUFFERS: [(c_int, c_int); 2] = [(libc::SO_SNDBUF, 1), (libc::SO_RCVBUF, 2)];

const SOCKET: c_int = libc::SOL_SOCKET;
const TCP: c_int = libc::IPPROTO_TCP;
const IP: c_int = libc::IPPROTO_IP;
const IPV6: c_int = libc::IPPROTO_IPV6;

/// Level, name and length of the value in bytes. The list omits options that describe the connection (TCP_MAXSEG, TCP_WINDOW_CLAMP), that
/// change on their own (TCP_QUICKACK, SO_INCOMING_CPU), that no longer matter (TCP_SYNCNT), that a bound socket rejects (IPV6_V6ONLY), and
/// TCP_CORK, which the socket layer sets.
const COPIED: &[(c_int, c_int, usize)] = &[
    (SOCKET, libc::SO_KEEPALIVE, INTEGER),
    (SOCKET, libc::SO_REUSEADDR, INTEGER),
    (SOCKET, libc::SO_REUSEPORT, INTEGER),
    (SOCKET, libc::SO_LINGER, mem::size_of::<libc::linger>()),
    (SOCKET, libc::SO_OOBINLINE, INTEGER),
    (SOCKET, libc::SO_DONTROUTE, INTEGER),
    (SOCKET, libc::SO_RCVLOWAT, INTEGER),
    (SOCKET, libc::SO_RCVTIMEO, mem::size_of::<libc::timeval>()),
    (SOCKET, libc::SO_SNDTIMEO, mem::size_of::<libc::timeval>()),
    (SOCKET, libc::SO_PRIORITY, INTEGER),
    (SOCKET, libc::SO_MARK, INTEGER),
    (SOCKET, libc::SO_BINDTOIFINDEX, INTEGER),
    (SOCKET, libc::SO_TIMESTAMP, INTEGER),
    (SOCKET, libc::SO_TIMESTAMPNS, INTEGER),
    (SOCKET, libc::SO_TIMESTAMPING, INTEGER),
    (SOCKET, libc::SO_BUSY_POLL, INTEGER),
    (SOCKET, libc::SO_MAX_PACING_RATE, mem::size_of::<u64>()),
    (SOCKET, libc::SO_ZEROCOPY, INTEGER),
    (TCP, libc::TCP_NODELAY, INTEGER),
    (TCP, libc::TCP_KEEPIDLE, INTEGER),
    (TCP, libc::TCP_KEEPINTVL, INTEGER),
    (TCP, libc::TCP_KEEPCNT, INTEGER),
    (TCP, libc::TCP_LINGER2, INTEGER),
    (TCP, libc::TCP_USER_TIMEOUT, INTEGER),
    (TCP, libc::TCP_CONGESTION, LONGEST),
    (TCP, libc::TCP_NOTSENT_LOWAT, INTEGER),
    (IP, libc::IP_TOS, INTEGER),
    (IP, libc::IP_TTL, INTEGER),
    (IP, libc::IP_RECVTOS, INTEGER),
    (IP, libc::IP_RECVTTL, INTEGER),
    (IP, libc::IP_RECVERR, INTEGER),
    (IP, libc::IP_PKTINFO, INTEGER),
    (IP, libc::IP_MTU_DISCOVER, INTEGER),
    (IP, libc::IP_MINTTL, INTEGER),
    (IPV6, libc::IPV6_UNICAST_HOPS, INTEGER),
    (IPV6, libc::IPV6_TCLASS, INTEGER),
    (IPV6, libc::IPV6_RECVTCLASS, INTEGER),
    (IPV6, libc::IPV6_RECVHOPLIMIT, INTEGER),
    (IPV6, libc::IPV6_RECVERR, INTEGER),
    (IPV6, libc::IPV6_RECVPKTINFO, INTEGER),
    (IPV6, libc::IPV6_MTU_DISCOVER, INTEGER),
];

/// Sets the options and status flags of `new` to those of `old` where they differ. Returns how many of them `new` rejects.
pub(super) fn copy(old: BorrowedFd<'_>, new: BorrowedFd<'_>) -> u64 {
    let mut refused = 0;
    for &(level, name, len) in COPIED {
        // An option that the kernel does not know on one of the sockets, such as an IPv6 option of an IPv4 socket, is skipped.
        let values = get(old, level, name, len).zip(get(new, level, name, len));
        if let Some((wanted, found)) = values
            && wanted != found
        {
            refused += u64::from(!set(new, level, name, wanted.bytes()));
        }
    }
    for (name, bit) in BUFFERS {
        let is_set = integer(old, SO_BUF_LOCK).is_some_and(|locks| locks & bit != 0);
        let sizes = integer(old, name).zip(integer(new, name));
        if let Some((wanted, _)) = sizes.filter(|(wanted, found)| is_set && wanted != found) {
            // The kernel reports twice the size that was set.
            let half = (wanted / 2).to_ne_bytes();
            refused += u64::from(!set(new, SOCKET, name, &half));
        }
    }
    refused + u64::from(copy_flags(old, new).is_err())
}

/// Copies whether calls block, and whether, to whom and by which signal events are reported (O_ASYNC).
fn copy_flags(old: BorrowedFd<'_>, new: BorrowedFd<'_>) -> Result<(), Errno> {
    // rustix has no name for O_ASYNC.
    let kept = OFlags::NONBLOCK | OFlags::from_bits_retain(libc::O_ASYNC as u32);
    let (wanted, found) = (fcntl_getfl(old)? & kept, fcntl_getfl(new)?);
    if wanted.bits() & libc::O_ASYNC as u32 != 0 {
        let (old, new) = (old.as_raw_fd(), new.as_raw_fd());
        // SAFETY: both commands take and return integers.
        unsafe {
            libc::fcntl(new, libc::F_SETOWN, libc::fcntl(old, libc::F_GETOWN));
            libc::fcntl(new, F_SETSIG, libc::fcntl(old, F_GETSIG));
        }
    }
    match found & kept == wanted {
        true => Ok(()),
        false => fcntl_setfl(new, found.difference(kept) | wanted),
    }
}

/// From the kernel's `fcntl.h`; libc has no names for them.
const F_SETSIG: c_int = 10;
const F_GETSIG: c_int = 11;

/// Returns the number of bytes that were sent and not acknowledged, including a FIN. Returns `None` if the kernel does not say.
pub(super) fn unacknowledged(fd: BorrowedFd<'_>) -> Option<u32> {
    let mut count: c_int = 0;
    // SAFETY: the kernel writes an integer to `count`.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    (result == 0).then(|| u32::try_from(count).ok()).flatten()
}

/// Returns whether TCP has closed the connection.
pub(super) fn is_closed(fd: BorrowedFd<'_>) -> bool {
    /// TCP_CLOSE of the kernel's `tcp_states.h`.
    const CLOSED: u8 = 7;
    // The state is the first byte.
    get(fd, TCP, libc::TCP_INFO, 1).is_some_and(|info| info.bytes() == [CLOSED])
}

#[derive(PartialEq, Eq)]
struct Value {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Value {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn get(fd: BorrowedFd<'_>, level: c_int, name: c_int, most: usize) -> Option<Value> {
    let mut bytes = [0; LONGEST];
    let mut len = most as socklen_t;
    let (number, at) = (fd.as_raw_fd(), bytes.as_mut_ptr());
    // SAFETY: the kernel writes at most `len` bytes, and `bytes` has space for them.
    let result = unsafe { libc::getsockopt(number, level, name, at.cast(), &mut len) };
    (result == 0).then_some(Value {
        bytes,
        len: len as usize,
    })
}

fn integer(fd: BorrowedFd<'_>, name: c_int) -> Option<c_int> {
    let value = get(fd, SOCKET, name, INTEGER)?;
    Some(c_int::from_ne_bytes(value.bytes().try_into().ok()?))
}

fn set(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &[u8]) -> bool {
    let (number, len) = (fd.as_raw_fd(), value.len() as socklen_t);
    // SAFETY: the kernel reads `len` bytes of the value.
    unsafe { libc::setsockopt(number, level, name, value.as_ptr().cast(), len) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    #[test]
    fn only_options_that_were_set_are_copied() {
        let pair = |at: &str| [(), ()].map(|()| TcpListener::bind(at).expect("a free port"));
        for [old, new] in [pair("127.0.0.1:0"), pair("[::1]:0")] {
            let (old, new) = (old.as_fd(), new.as_fd());
            assert_eq!(copy(old, new), 0);
            assert_eq!(integer(new, SO_BUF_LOCK), Some(0));
            let on = 1_i32.to_ne_bytes();
            let linger = [on, 7_i32.to_ne_bytes()].concat();
            let seconds = [5_i64.to_ne_bytes(), 0_i64.to_ne_bytes()].concat();
            let rate = 1_000_000_u64.to_ne_bytes();
            let wanted: &[(c_int, c_int, &[u8])] = &[
                (SOCKET, libc::SO_KEEPALIVE, &on),
                (SOCKET, libc::SO_LINGER, &linger),
                (SOCKET, libc::SO_RCVTIMEO, &seconds),
                (SOCKET, libc::SO_MAX_PACING_RATE, &rate),
                (TCP, libc::TCP_KEEPIDLE, &77_i32.to_ne_bytes()),
                (TCP, libc::TCP_CONGESTION, b"reno"),
                (TCP, libc::TCP_USER_TIMEOUT, &9_000_i32.to_ne_bytes()),
                (IP, libc::IP_TOS, &16_i32.to_ne_bytes()),
            ];
            for &(level, name, value) in wanted {
                assert!(set(old, level, name, value), "{level} {name}");
            }
            assert!(set(old, SOCKET, libc::SO_RCVBUF, &50_000_i32.to_ne_bytes()));
            fcntl_setfl(old, OFlags::NONBLOCK).expect("it is open");
            let send_buffer = integer(new, libc::SO_SNDBUF);
            assert_eq!(copy(old, new), 0);
            for &(level, name, len) in COPIED {
                let values = [old, new].map(|fd| get(fd, level, name, len).map(|it| it.bytes));
                assert_eq!(values[0], values[1], "{level} {name}");
            }
            assert_eq!(integer(new, libc::SO_RCVBUF), Some(100_000));
            assert_eq!(integer(new, libc::SO_SNDBUF), send_buffer);
            assert!(fcntl_getfl(new).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK)));
        }
    }
}
