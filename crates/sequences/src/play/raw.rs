//! Names of errors and events, options, and the pattern of the data.

use std::fmt::{self, Display, Formatter};
use std::mem::size_of;

/// Returns the byte at an offset of the data that an end sends.
pub fn pattern(offset: usize) -> u8 {
    (offset.wrapping_mul(0x9e37_79b1) >> 11) as u8
}

/// The number of bytes, and their hash (FNV-1a).
#[derive(Clone, Copy, Debug)]
pub struct Digest {
    len: usize,
    hash: u32,
}

impl Default for Digest {
    fn default() -> Self {
        Self {
            len: 0,
            hash: 0x811c_9dc5,
        }
    }
}

impl Digest {
    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds bytes.
    pub fn add(&mut self, data: &[u8]) {
        self.len += data.len();
        for &byte in data {
            self.hash = (self.hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }

    /// Creates the digest of these bytes.
    pub fn of(data: &[u8]) -> Self {
        let mut digest = Self::default();
        digest.add(data);
        digest
    }
}

impl Display for Digest {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.len {
            0 => out.write_str("0"),
            len => write!(out, "{len}:{:04x}", self.hash & 0xffff),
        }
    }
}

const ERRORS: &[(i32, &str)] = &[
    (libc::EINTR, "EINTR"),
    (libc::EBADF, "EBADF"),
    (libc::EAGAIN, "EAGAIN"),
    (libc::EFAULT, "EFAULT"),
    (libc::EEXIST, "EEXIST"),
    (libc::EINVAL, "EINVAL"),
    (libc::ENOENT, "ENOENT"),
    (libc::ENOTTY, "ENOTTY"),
    (libc::ESPIPE, "ESPIPE"),
    (libc::EPIPE, "EPIPE"),
    (libc::ELOOP, "ELOOP"),
    (libc::ENOTSOCK, "ENOTSOCK"),
    (libc::EMSGSIZE, "EMSGSIZE"),
    (libc::EDESTADDRREQ, "EDESTADDRREQ"),
    (libc::ENOPROTOOPT, "ENOPROTOOPT"),
    (libc::EOPNOTSUPP, "EOPNOTSUPP"),
    (libc::ECONNABORTED, "ECONNABORTED"),
    (libc::ECONNRESET, "ECONNRESET"),
    (libc::EISCONN, "EISCONN"),
    (libc::ENOTCONN, "ENOTCONN"),
];

/// Returns the name of an error.
pub fn error(number: i32) -> String {
    let name = ERRORS.iter().find(|(known, _)| *known == number);
    name.map_or_else(|| format!("E{number}"), |(_, name)| String::from(*name))
}

/// Formats the result of a call: a number, or the name of its error.
pub fn result(value: impl Into<i64>) -> String {
    match value.into() {
        -1 => error(errno()),
        value => value.to_string(),
    }
}

/// Returns the error of the last call.
pub fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

const EVENTS: &[(u32, &str)] = &[
    (libc::POLLIN as u32, "IN"),
    (libc::POLLPRI as u32, "PRI"),
    (libc::POLLOUT as u32, "OUT"),
    (libc::POLLERR as u32, "ERR"),
    (libc::POLLHUP as u32, "HUP"),
    (libc::POLLNVAL as u32, "NVAL"),
    (libc::POLLRDHUP as u32, "RDHUP"),
];

/// Returns the names of events of poll(2) and epoll(7).
pub fn events(bits: u32) -> String {
    let names = EVENTS.iter().filter(|(bit, _)| bits & bit != 0);
    names.map(|(_, name)| *name).collect::<Vec<_>>().join("+")
}

/// The options that are set and read, and whether their values are the same in each run on the same machine.
pub const OPTIONS: [(i32, i32, bool); 77] = [
    (libc::SOL_SOCKET, libc::SO_ERROR, true),
    (libc::SOL_SOCKET, libc::SO_TYPE, true),
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE, true),
    (libc::SOL_SOCKET, libc::SO_REUSEADDR, true),
    (libc::SOL_SOCKET, libc::SO_OOBINLINE, true),
    (libc::SOL_SOCKET, libc::SO_PRIORITY, true),
    (libc::SOL_SOCKET, libc::SO_RCVBUF, false),
    (libc::SOL_SOCKET, libc::SO_SNDBUF, false),
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT, true),
    (libc::SOL_SOCKET, libc::SO_ACCEPTCONN, true),
    (libc::SOL_SOCKET, libc::SO_DOMAIN, true),
    (libc::SOL_SOCKET, libc::SO_PROTOCOL, true),
    (libc::SOL_SOCKET, 9999, true),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY, true),
    (libc::IPPROTO_TCP, libc::TCP_CORK, true),
    (libc::IPPROTO_TCP, libc::TCP_MAXSEG, false),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, true),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, true),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, true),
    (libc::IPPROTO_TCP, libc::TCP_SYNCNT, true),
    (libc::IPPROTO_TCP, libc::TCP_LINGER2, true),
    (libc::IPPROTO_TCP, libc::TCP_QUICKACK, false),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, true),
    (libc::IPPROTO_TCP, libc::TCP_INFO, false),
    (libc::IPPROTO_TCP, 9999, true),
    (libc::IPPROTO_IP, libc::IP_TOS, true),
    (libc::IPPROTO_IP, libc::IP_TTL, true),
    (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, true),
    (libc::SOL_SOCKET, libc::SO_DEBUG, true),
    (libc::SOL_SOCKET, libc::SO_DONTROUTE, true),
    (libc::SOL_SOCKET, libc::SO_BROADCAST, true),
    (libc::SOL_SOCKET, libc::SO_NO_CHECK, true),
    (libc::SOL_SOCKET, libc::SO_REUSEPORT, true),
    (libc::SOL_SOCKET, libc::SO_PASSCRED, true),
    (libc::SOL_SOCKET, libc::SO_PEERCRED, true),
    (libc::SOL_SOCKET, libc::SO_SNDLOWAT, true),
    (libc::SOL_SOCKET, libc::SO_BINDTODEVICE, true),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMP, true),
    (libc::SOL_SOCKET, libc::SO_PEERNAME, false),
    (libc::SOL_SOCKET, libc::SO_MARK, true),
    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL, true),
    (libc::SOL_SOCKET, libc::SO_PEEK_OFF, true),
    (libc::SOL_SOCKET, libc::SO_LOCK_FILTER, true),
    (libc::SOL_SOCKET, libc::SO_SELECT_ERR_QUEUE, true),
    (libc::SOL_SOCKET, libc::SO_BUSY_POLL, true),
    (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, true),
    (libc::SOL_SOCKET, libc::SO_INCOMING_CPU, false),
    (libc::SOL_SOCKET, libc::SO_ZEROCOPY, true),
    (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, true),
    (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, false),
    (libc::IPPROTO_TCP, libc::TCP_CONGESTION, true),
    (libc::IPPROTO_TCP, libc::TCP_THIN_LINEAR_TIMEOUTS, true),
    (libc::IPPROTO_TCP, libc::TCP_FASTOPEN, true),
    (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, true),
    (libc::IPPROTO_TCP, libc::TCP_SAVE_SYN, true),
    (libc::IPPROTO_TCP, libc::TCP_ULP, true),
    (libc::IPPROTO_TCP, libc::TCP_INQ, true),
    (libc::IPPROTO_IP, libc::IP_OPTIONS, true),
    (libc::IPPROTO_IP, libc::IP_RECVTOS, true),
    (libc::IPPROTO_IP, libc::IP_RECVTTL, true),
    (libc::IPPROTO_IP, libc::IP_PKTINFO, true),
    (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, true),
    (libc::IPPROTO_IP, libc::IP_MTU, false),
    (libc::IPPROTO_IP, libc::IP_FREEBIND, true),
    (libc::IPPROTO_IP, libc::IP_RECVERR, true),
    (libc::IPPROTO_IP, libc::IP_MINTTL, true),
    (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, true),
    (libc::IPPROTO_IP, libc::IP_MULTICAST_TTL, true),
    (libc::IPPROTO_IP, libc::IP_TRANSPARENT, true),
    (libc::IPPROTO_IP, 9999, true),
    (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, true),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, true),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, true),
    (libc::IPPROTO_IPV6, libc::IPV6_MTU, false),
    (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, true),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVERR, true),
    (libc::IPPROTO_UDP, 1, true),
];

/// Sets the socket to reset its connection when it is closed.
pub fn reset_on_close(fd: i32) {
    linger(fd, 1, 0);
}

/// Sets SO_LINGER.
pub fn linger(fd: i32, on: i32, seconds: i32) -> i32 {
    let linger = libc::linger {
        l_onoff: on,
        l_linger: seconds,
    };
    let len = size_of::<libc::linger>() as u32;
    // SAFETY: the value is valid for its length.
    unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            len,
        )
    }
}

/// Returns whether sent data or the FIN has not been acknowledged yet.
pub fn unacknowledged(fd: i32) -> bool {
    let mut count = 0;
    // SAFETY: the argument points to an integer. An unacknowledged FIN counts.
    unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut count) == 0 && count > 0 }
}
