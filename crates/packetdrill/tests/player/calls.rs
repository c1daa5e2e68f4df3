//! Makes the calls of scenarios through the table of the C interface.

use super::packets::{Wire, pattern};
use super::{Table, object};
use libc::{c_int, c_void, socklen_t};
use std::net::IpAddr;

/// Returns the virtual time in microseconds since 1970.
pub fn clock_us(table: &Table) -> i64 {
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    // SAFETY: the instance is alive, and the time is writable.
    unsafe { (table.0.gettimeofday)(table.0.userdata, &mut time, std::ptr::null_mut()) };
    time.tv_sec * 1_000_000 + time.tv_usec
}

/// Lets virtual time pass until this time, unless it is past already.
pub fn sleep_until(table: &Table, until_us: i64) {
    let mut rest = u64::try_from(until_us - clock_us(table)).unwrap_or(0);
    while rest > 0 {
        let part = rest.min(1_000_000_000);
        // SAFETY: the instance is alive.
        unsafe { (table.0.usleep)(table.0.userdata, part as u32) };
        rest -= part;
    }
}

pub fn inject(table: &Table, bytes: &[u8]) -> Result<(), String> {
    // SAFETY: the instance is alive, and the bytes are readable.
    let outcome =
        unsafe { (table.0.netdev_send)(table.0.userdata, bytes.as_ptr().cast(), bytes.len()) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(format!("netdev_send: {}", errno()))
    }
}

/// Returns the next packet that the application sends, and when it was sent.
pub fn fetch(table: &Table) -> Result<(Vec<u8>, i64), String> {
    let mut buffer = vec![0_u8; 1 << 17];
    let (mut len, mut at_us) = (buffer.len(), 0);
    // SAFETY: the instance is alive, and the buffer has the given length.
    let outcome = unsafe {
        let data = buffer.as_mut_ptr().cast();
        (table.0.netdev_receive)(table.0.userdata, data, &mut len, &mut at_us)
    };
    if outcome != 0 {
        return Err(format!("no packet is sent: {}", errno()));
    }
    if len == 0 {
        return Err("no packet is sent".to_owned());
    }
    buffer.truncate(len);
    Ok((buffer, at_us))
}

/// Returns the name of this thread's error number.
fn errno() -> String {
    // SAFETY: a thread can always read its own error number.
    let number = unsafe { *libc::__errno_location() };
    let known = ERRORS.iter().find(|(known, _)| *known == number);
    known.map_or(number.to_string(), |(_, name)| (*name).to_owned())
}

macro_rules! names {
    ($($name:ident)*) => { &[$((libc::$name as c_int, stringify!($name))),*] };
}

const ERRORS: &[(c_int, &str)] = names! {
    EAGAIN EBADF EFAULT EINVAL EPIPE ENOTCONN EISCONN EALREADY EINPROGRESS ECONNREFUSED ECONNRESET
    ECONNABORTED ETIMEDOUT EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EPROTONOSUPPORT ESOCKTNOSUPPORT
    ENOTSOCK ENOPROTOOPT EOPNOTSUPP ENETUNREACH EHOSTUNREACH ENOENT EEXIST ESPIPE EDEADLK EPERM
    ENOTTY EDOM EMSGSIZE ENOTSUP
};

const CONDITIONS: &[(c_int, &str)] = names! {
    EPOLLIN EPOLLOUT EPOLLERR EPOLLHUP EPOLLRDHUP EPOLLET EPOLLONESHOT EPOLLEXCLUSIVE EPOLLPRI
};

const MESSAGE_FLAGS: &[(c_int, &str)] = names! {
    MSG_DONTWAIT MSG_PEEK MSG_WAITALL MSG_TRUNC MSG_MORE MSG_EOR MSG_OOB MSG_NOSIGNAL MSG_ERRQUEUE
    MSG_FASTOPEN MSG_ZEROCOPY
};

const SOCKET_OPTIONS: &[(c_int, &str)] = names! {
    SO_ERROR SO_TYPE SO_ACCEPTCONN SO_REUSEADDR SO_KEEPALIVE SO_SNDBUF SO_RCVBUF SO_RCVLOWAT
    SO_LINGER SO_RCVTIMEO SO_SNDTIMEO SO_TIMESTAMPING SO_ZEROCOPY SO_REUSEPORT SO_PROTOCOL
    SO_DOMAIN SO_MAX_PACING_RATE SO_MEMINFO SO_OOBINLINE
};

const TCP_OPTIONS: &[(c_int, &str)] = names! {
    TCP_NODELAY TCP_CORK TCP_MAXSEG TCP_KEEPIDLE TCP_KEEPINTVL TCP_KEEPCNT TCP_SYNCNT TCP_LINGER2
    TCP_DEFER_ACCEPT TCP_USER_TIMEOUT TCP_NOTSENT_LOWAT TCP_QUICKACK TCP_WINDOW_CLAMP
    TCP_CONGESTION TCP_INFO TCP_MD5SIG TCP_FASTOPEN TCP_FASTOPEN_CONNECT TCP_FASTOPEN_KEY
    TCP_FASTOPEN_NO_COOKIE
};

/// TCP_INQ, which the libc crate does not define.
const TCP_INQ: c_int = 36;

const IP_OPTIONS: &[(c_int, &str)] = names! {
    IP_TOS IP_MTU_DISCOVER IP_RECVERR IP_MTU IP_TTL
};

const IPV6_OPTIONS: &[(c_int, &str)] = names! {
    IPV6_TCLASS IPV6_V6ONLY
};

fn named(table: &[(c_int, &str)], name: &str) -> Option<c_int> {
    table
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(value, _)| *value)
}

/// Converts names of the form `A|B|C` to a number.
fn union(table: &[(c_int, &str)], text: &str) -> Result<c_int, String> {
    let names = text.split('|').filter(|name| *name != "0");
    let mut values = names.map(|name| named(table, name).ok_or(format!("{name} is unknown")));
    values.try_fold(0, |all, value| value.map(|value| all | value))
}

fn option_of(name: &str) -> Result<(c_int, c_int), String> {
    let tables = [
        (libc::SOL_SOCKET, SOCKET_OPTIONS),
        (libc::IPPROTO_TCP, TCP_OPTIONS),
        (libc::IPPROTO_IP, IP_OPTIONS),
        (libc::IPPROTO_IPV6, IPV6_OPTIONS),
    ];
    if name == "TCP_INQ" {
        return Ok((libc::IPPROTO_TCP, TCP_INQ));
    }
    if let Some((level, number)) = name.split_once('/') {
        let int = |text: &str| {
            text.parse::<c_int>()
                .map_err(|_| format!("{text} is not a number"))
        };
        return Ok((int(level)?, int(number)?));
    }
    let found = tables
        .iter()
        .find_map(|(level, table)| Some((*level, named(table, name)?)));
    found.ok_or(format!("{name} is not an option"))
}

fn int<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

/// Formats the result of a call: the number, followed by the name of the error if the number is -1.
fn result(value: i64) -> String {
    match value {
        -1 => format!("-1 {}", errno()),
        value => value.to_string(),
    }
}

/// Returns an address as the bytes of a `sockaddr`.
fn sockaddr(addr: IpAddr, port: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    match addr {
        IpAddr::V4(addr) => {
            bytes.extend((libc::AF_INET as u16).to_ne_bytes());
            bytes.extend(port.to_be_bytes());
            bytes.extend(addr.octets());
            bytes.resize(16, 0);
        }
        IpAddr::V6(addr) => {
            bytes.extend((libc::AF_INET6 as u16).to_ne_bytes());
            bytes.extend(port.to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend(addr.octets());
            bytes.resize(28, 0);
        }
    }
    bytes
}

/// Makes one call and returns its result in the notation of scenarios.
pub fn run(table: &Table, call: &str, wire: &mut Wire) -> Result<String, String> {
    let words: Vec<&str> = call.split_whitespace().collect();
    let (name, args) = words.split_first().ok_or("no call")?;
    match *name {
        "socket" | "bind" | "listen" | "accept" | "connect" | "shutdown" | "close" | "fcntl"
        | "ioctl" => open_or_close(table, name, args, wire),
        "read" | "read-nowhere" | "recv" | "readv" | "recvmsg" | "write" | "send" | "writev"
        | "sendmsg" | "sendmsgbytes" | "sendto" | "sendmsgto" => transfer(table, name, args, wire),
        "set" | "get" | "info" => option(table, name, args),
        "poll" | "epoll_create" | "epoll_ctl" | "epoll_wait" => poll(table, name, args),
        "pipe" | "splice" => pipe(table, name, args, wire),
        _ => Err(format!("{name} is not a call")),
    }
}

fn open_or_close(
    table: &Table,
    name: &str,
    args: &[&str],
    wire: &mut Wire,
) -> Result<String, String> {
    if name == "socket" {
        // The data of a new connection is counted from its start.
        wire.written = 1;
    }
    let (t, data) = (&table.0, table.0.userdata);
    let number = |at: usize| int::<c_int>(args.get(at).copied().ok_or("an argument is missing")?);
    // SAFETY: the instance is alive, and addresses have the given lengths.
    let value = unsafe {
        match name {
            "socket" => {
                let domain = match args.first() {
                    Some(&"v6") => libc::AF_INET6,
                    Some(&"v4") => libc::AF_INET,
                    _ => number(0)?,
                };
                let kind = match args.get(1) {
                    None => libc::SOCK_STREAM,
                    Some(&"nonblock") => libc::SOCK_STREAM | libc::SOCK_NONBLOCK,
                    Some(kind) => int(kind)?,
                };
                (t.socket)(
                    data,
                    domain,
                    kind,
                    args.get(2).map_or(Ok(0), |text| int(text))?,
                )
            }
            "bind" => {
                let addr = sockaddr(wire.local().addr, int(args.get(1).ok_or("no port")?)?);
                let len = args
                    .get(2)
                    .map_or(Ok(addr.len() as socklen_t), |text| int(text))?;
                (t.bind)(data, number(0)?, addr.as_ptr().cast(), len)
            }
            "connect" => {
                let addr = match args.get(1) {
                    Some(&"unspec") => vec![0; 16],
                    _ => sockaddr(wire.remote().addr, wire.remote().port),
                };
                (t.connect)(
                    data,
                    number(0)?,
                    addr.as_ptr().cast(),
                    addr.len() as socklen_t,
                )
            }
            "listen" => (t.listen)(data, number(0)?, number(1)?),
            "accept" => {
                let mut addr = [0_u8; 28];
                let mut len = addr.len() as socklen_t;
                let fd = (t.accept)(data, number(0)?, addr.as_mut_ptr().cast(), &mut len);
                let expected = sockaddr(wire.remote().addr, wire.remote().port);
                if fd >= 0 && addr[..len as usize] != expected[..] {
                    return Err("accept returns another address".to_owned());
                }
                fd
            }
            "shutdown" => (t.shutdown)(
                data,
                number(0)?,
                match args.get(1) {
                    Some(&"rd") => libc::SHUT_RD,
                    Some(&"wr") => libc::SHUT_WR,
                    Some(&"rdwr") => libc::SHUT_RDWR,
                    _ => number(1)?,
                },
            ),
            "close" => (t.close)(data, number(0)?),
            "fcntl" => {
                let (command, arg) = match args.get(1) {
                    Some(&"nonblock") => (libc::F_SETFL, libc::O_NONBLOCK),
                    Some(&"block") => (libc::F_SETFL, 0),
                    Some(&"get") => (libc::F_GETFL, 0),
                    _ => (number(1)?, 0),
                };
                (t.fcntl)(data, number(0)?, command, arg as usize)
            }
            _ => return ioctl(table, number(0)?, args),
        }
    };
    Ok(result(value.into()))
}

/// Makes the call `ioctl FD NAME` and returns its number.
fn ioctl(table: &Table, fd: c_int, args: &[&str]) -> Result<String, String> {
    let request = match args.get(1) {
        Some(&"SIOCINQ") => libc::FIONREAD,
        Some(&"SIOCOUTQ") => libc::TIOCOUTQ,
        Some(&"SIOCATMARK") => 0x8905,
        Some(&"SIOCOUTQNSD") => 0x894b,
        Some(&"FIONBIO") => libc::FIONBIO,
        _ => return Err("no request".to_owned()),
    };
    let mut value: c_int = args.get(2).map_or(Ok(-7), |text| int(text))?;
    let at = &raw mut value;
    // SAFETY: the instance is alive, and the request takes a pointer to an int.
    let outcome = unsafe { (table.0.ioctl)(table.0.userdata, fd, request, at as usize) };
    Ok(match outcome {
        0 => value.to_string(),
        outcome => result(outcome.into()),
    })
}

/// Makes a call such as `read FD LEN`, `recv FD LEN FLAGS` or `write FD LEN`. Sent data is a pattern that depends on the number of each byte, and
/// received data must have this pattern.
fn transfer(table: &Table, name: &str, args: &[&str], wire: &mut Wire) -> Result<String, String> {
    let fd: c_int = int(args.first().ok_or("no descriptor")?)?;
    let len: usize = int(args.get(1).ok_or("no length")?)?;
    let flags = union(MESSAGE_FLAGS, args.get(2).unwrap_or(&"0"))?;
    match name.starts_with("re") {
        true => receive(table, name, fd, len, flags, wire),
        false => {
            let asks = args.get(3).map(|text| int(text)).transpose()?;
            Ok(send(table, name, fd, len, flags, asks, wire))
        }
    }
}

fn receive(
    table: &Table,
    name: &str,
    fd: c_int,
    len: usize,
    flags: c_int,
    wire: &mut Wire,
) -> Result<String, String> {
    let (t, data) = (&table.0, table.0.userdata);
    let mut buffer = vec![0_u8; len];
    let at: *mut c_void = buffer.as_mut_ptr().cast();
    let mut parts = halves(at, len);
    let mut control = [0_u64; 32];
    let mut unread = None;
    let mut stamped = None;
    // SAFETY: the instance is alive, and buffers have the given lengths.
    let got = unsafe {
        match name {
            "read" => (t.read)(data, fd, at, len),
            "read-nowhere" => (t.read)(data, fd, std::ptr::null_mut(), len),
            "readv" => (t.readv)(data, fd, parts.as_ptr(), 2),
            "recv" => (t.recv)(data, fd, at, len, flags),
            _ => {
                let mut message: libc::msghdr = std::mem::zeroed();
                message.msg_iov = parts.as_mut_ptr();
                message.msg_iovlen = 2;
                message.msg_control = control.as_mut_ptr().cast();
                message.msg_controllen = size_of_val(&control);
                let got = (t.recvmsg)(data, fd, &mut message, flags);
                let header = libc::CMSG_FIRSTHDR(&message);
                stamped = stamp_told(&message);
                if let (Some(told), true) = (&stamped, flags & libc::MSG_ERRQUEUE != 0) {
                    return Ok(format!("{}{told}", result(got as i64)));
                }
                if !header.is_null() && (*header).cmsg_type == libc::IP_RECVERR {
                    let error: libc::sock_extended_err = libc::CMSG_DATA(header)
                        .cast::<libc::sock_extended_err>()
                        .read_unaligned();
                    let how = ["", " copied"][usize::from(error.ee_code)];
                    return Ok(format!(
                        "{got} done={}-{}{how}",
                        error.ee_info, error.ee_data
                    ));
                }
                if !header.is_null() && (*header).cmsg_type == TCP_INQ {
                    unread = Some(*libc::CMSG_DATA(header).cast::<c_int>());
                }
                got
            }
        }
    };
    if flags & libc::MSG_OOB != 0 {
        let byte = buffer.first().filter(|_| got > 0);
        return Ok(match byte {
            Some(byte) => format!("{got} byte={byte}"),
            None => result(got as i64),
        });
    }
    let taken = got.max(0) as usize;
    if flags & libc::MSG_TRUNC == 0 {
        let good = buffer[..taken]
            .iter()
            .zip(wire.read..)
            .all(|(&byte, at)| byte == pattern(at));
        if !good {
            return Err(format!(
                "the data from byte {} on differs from what was sent",
                wire.read
            ));
        }
    }
    if flags & libc::MSG_PEEK == 0 {
        wire.read += taken as u32;
    }
    let told = stamped.unwrap_or_default();
    Ok(match unread {
        Some(unread) => format!("{}{told} inq={unread}", result(got as i64)),
        None => result(got as i64) + &told,
    })
}

/// Formats the timestamps in control messages: stage, number of the byte, and the time since the start of the clock.
///
/// # Safety
/// The message's control buffer must be readable for its length.
unsafe fn stamp_told(message: &libc::msghdr) -> Option<String> {
    let mut told = String::new();
    let truncated = message.msg_flags & libc::MSG_TRUNC != 0;
    // SAFETY: by this function's contract. The macros stay within the buffer's length.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            let data = libc::CMSG_DATA(header);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    let at = data.cast::<libc::timespec>().read_unaligned();
                    let ms = (at.tv_sec - 1_600_000_000) * 1000 + at.tv_nsec / 1_000_000;
                    told += &format!(" at={ms}ms");
                }
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                    let error = data.cast::<libc::sock_extended_err>().read_unaligned();
                    if error.ee_origin != 4 || error.ee_errno != libc::ENOMSG as u32 {
                        return None;
                    }
                    let stage = ["sent", "scheduled", "acknowledged"][error.ee_info as usize];
                    told += &format!(" {stage}={}", error.ee_data);
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    if truncated {
        told += " cut";
    }
    (!told.is_empty()).then_some(told)
}

/// Splits a buffer in two parts, to check that calls use both.
fn halves(at: *mut c_void, len: usize) -> [libc::iovec; 2] {
    let half = len / 2;
    [
        libc::iovec {
            iov_base: at,
            iov_len: half,
        },
        libc::iovec {
            iov_base: at.wrapping_byte_add(half),
            iov_len: len - half,
        },
    ]
}

/// Splits a buffer in parts of one byte.
fn bytes_apart(buffer: &mut [u8]) -> Vec<libc::iovec> {
    let part = |byte: &mut u8| libc::iovec {
        iov_base: (byte as *mut u8).cast(),
        iov_len: 1,
    };
    buffer.iter_mut().map(part).collect()
}

fn send(
    table: &Table,
    name: &str,
    fd: c_int,
    len: usize,
    flags: c_int,
    asks: Option<u32>,
    wire: &mut Wire,
) -> String {
    let mut control = [0_u64; 4];
    let (t, data) = (&table.0, table.0.userdata);
    let numbers = wire.written..wire.written + len as u32;
    let mut buffer: Vec<u8> = numbers.map(pattern).collect();
    let at: *mut c_void = buffer.as_mut_ptr().cast();
    let mut parts = match name {
        "sendmsgbytes" => bytes_apart(&mut buffer),
        _ => halves(at, len).to_vec(),
    };
    let mut addr = sockaddr(wire.remote().addr, wire.remote().port);
    // SAFETY: the instance is alive, and buffers have the given lengths.
    let sent = unsafe {
        match name {
            "write" => (t.write)(data, fd, at, len),
            "writev" => (t.writev)(data, fd, parts.as_ptr(), 2),
            "send" => (t.send)(data, fd, at, len, flags),
            "sendto" => {
                let addr_len = addr.len() as socklen_t;
                (t.sendto)(data, fd, at, len, flags, addr.as_ptr().cast(), addr_len)
            }
            _ => {
                let mut message: libc::msghdr = std::mem::zeroed();
                message.msg_iov = parts.as_mut_ptr();
                message.msg_iovlen = parts.len();
                if let Some(asks) = asks {
                    let len = libc::CMSG_LEN(4) as usize;
                    let header = control.as_mut_ptr().cast::<libc::cmsghdr>();
                    (*header).cmsg_level = libc::SOL_SOCKET;
                    (*header).cmsg_type = libc::SO_TIMESTAMPING;
                    (*header).cmsg_len = len;
                    libc::CMSG_DATA(header).cast::<u32>().write_unaligned(asks);
                    message.msg_control = header.cast();
                    message.msg_controllen = len;
                }
                if name == "sendmsgto" {
                    message.msg_name = addr.as_mut_ptr().cast();
                    message.msg_namelen = addr.len() as socklen_t;
                }
                (t.sendmsg)(data, fd, &message, flags)
            }
        }
    };
    wire.written += sent.max(0) as u32;
    result(sent as i64)
}

/// Makes a call `set FD NAME VALUE`, `get FD NAME` or `info FD FIELD`.
fn option(table: &Table, call: &str, args: &[&str]) -> Result<String, String> {
    let (t, data) = (&table.0, table.0.userdata);
    let fd: c_int = int(args.first().ok_or("no descriptor")?)?;
    let name = args.get(1).ok_or("no name")?;
    if call == "set" {
        let (level, option) = option_of(name)?;
        let value = option_value(option, level, args.get(2).ok_or("no value")?)?;
        let len = args
            .get(3)
            .map_or(Ok(value.len() as socklen_t), |text| int(text))?;
        // SAFETY: the instance is alive, and the value is at least as long as the given length.
        let outcome =
            unsafe { (t.setsockopt)(data, fd, level, option, value.as_ptr().cast(), len) };
        return Ok(result(outcome.into()));
    }
    let mut value = [0_u8; 512];
    let mut len = value.len() as socklen_t;
    let (level, option, outcome) = if call == "info" {
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        (
            level,
            option,
            object::getsockopt(fd, level, option, &mut value),
        )
    } else {
        let (level, option) = option_of(name)?;
        // SAFETY: the instance is alive, and the value has the given length.
        let outcome =
            unsafe { (t.getsockopt)(data, fd, level, option, value.as_mut_ptr().cast(), &mut len) };
        (level, option, outcome)
    };
    if outcome != 0 {
        return Ok(result(outcome.into()));
    }
    let int_at = |at: usize| i32::from_ne_bytes(value[at..at + 4].try_into().expect("four bytes"));
    Ok(match option {
        libc::TCP_INFO if level == libc::IPPROTO_TCP => info_field(&value, name)?,
        libc::TCP_CONGESTION if level == libc::IPPROTO_TCP => {
            let end = value.iter().position(|&byte| byte == 0).unwrap_or(0);
            String::from_utf8_lossy(&value[..end]).into_owned()
        }
        libc::SO_ERROR if level == libc::SOL_SOCKET && int_at(0) != 0 => {
            let known = ERRORS.iter().find(|(known, _)| *known == int_at(0));
            known.map_or(int_at(0).to_string(), |(_, name)| (*name).to_owned())
        }
        _ => int_at(0).to_string(),
    })
}

/// Converts the value of an option to bytes: an int, `SECONDS` for timeouts, `ON,SECONDS` for SO_LINGER, a name for TCP_CONGESTION.
fn option_value(option: c_int, level: c_int, text: &str) -> Result<Vec<u8>, String> {
    Ok(match (level, option) {
        (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => text.as_bytes().to_vec(),
        // Repeats one byte to the length of two keys.
        (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_KEY) => vec![int(text)?; 32],
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) => {
            let us = super::micros(text)?;
            let parts = [us / 1_000_000, us % 1_000_000];
            parts.iter().flat_map(|part| part.to_ne_bytes()).collect()
        }
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            let (on, seconds) = text.split_once(',').ok_or("on,seconds")?;
            let parts = [int::<c_int>(on)?, int(seconds)?];
            parts.iter().flat_map(|part| part.to_ne_bytes()).collect()
        }
        _ => int::<c_int>(text)?.to_ne_bytes().to_vec(),
    })
}

/// Returns a field of `struct tcp_info` by its name.
fn info_field(info: &[u8], name: &str) -> Result<String, String> {
    macro_rules! at {
        ($($field:ident)*) => {
            match name {
                $(stringify!($field) => std::mem::offset_of!(libc::tcp_info, $field),)*
                _ => return Err(format!("{name} is not a field")),
            }
        };
    }
    let bytes = "tcpi_state tcpi_ca_state tcpi_retransmits tcpi_probes tcpi_backoff tcpi_options";
    if bytes.split(' ').any(|byte| byte == name) {
        let at = at! {
            tcpi_state tcpi_ca_state tcpi_retransmits tcpi_probes tcpi_backoff tcpi_options
        };
        return Ok(info[at].to_string());
    }
    let long = match name {
        "tcpi_bytes_acked" => Some(120),
        "tcpi_bytes_received" => Some(128),
        "tcpi_busy_time" => Some(168),
        "tcpi_rwnd_limited" => Some(176),
        "tcpi_sndbuf_limited" => Some(184),
        "tcpi_bytes_sent" => Some(200),
        "tcpi_bytes_retrans" => Some(208),
        _ => None,
    };
    if let Some(at) = long {
        return Ok(
            u64::from_ne_bytes(info[at..at + 8].try_into().expect("eight bytes")).to_string(),
        );
    }
    let at = match name {
        "tcpi_segs_out" => 136,
        "tcpi_segs_in" => 140,
        "tcpi_notsent_bytes" => 144,
        "tcpi_data_segs_in" => 152,
        "tcpi_data_segs_out" => 156,
        "tcpi_delivered" => 192,
        "tcpi_delivered_ce" => 196,
        "tcpi_dsack_dups" => 216,
        "tcpi_reord_seen" => 220,
        _ => at! {
            tcpi_rto tcpi_ato tcpi_snd_mss tcpi_rcv_mss tcpi_unacked tcpi_sacked tcpi_lost
            tcpi_retrans tcpi_last_data_recv tcpi_pmtu tcpi_rtt tcpi_rttvar tcpi_snd_ssthresh
            tcpi_snd_cwnd tcpi_advmss tcpi_reordering tcpi_rcv_rtt tcpi_total_retrans
        },
    };
    Ok(u32::from_ne_bytes(info[at..at + 4].try_into().expect("four bytes")).to_string())
}

/// Formats conditions as names.
fn conditions(bits: u32) -> String {
    let names: Vec<_> = CONDITIONS
        .iter()
        .filter(|(bit, _)| bits & *bit as u32 != 0)
        .map(|(_, name)| *name)
        .collect();
    names.join("|")
}

/// Makes a call `poll FD CONDITIONS MS`, `epoll_ctl EPOLL add|mod|del FD CONDITIONS` or `epoll_wait EPOLL MS [MOST]`.
fn poll(table: &Table, name: &str, args: &[&str]) -> Result<String, String> {
    let (t, data) = (&table.0, table.0.userdata);
    let number = |at: usize| int::<c_int>(args.get(at).copied().ok_or("an argument is missing")?);
    let mask = |at: usize| union(CONDITIONS, args.get(at).unwrap_or(&"0"));
    match name {
        "poll" => {
            let mut entry = libc::pollfd {
                fd: number(0)?,
                events: mask(1)? as i16,
                revents: 0,
            };
            // SAFETY: the instance is alive, and there is one entry.
            let count = unsafe { (t.poll)(data, &mut entry, 1, number(2)?) };
            Ok(match count {
                1 => conditions(entry.revents as u16 as u32),
                count => result(count.into()),
            })
        }
        "epoll_create" => {
            // SAFETY: the instance is alive.
            Ok(result(unsafe { (t.epoll_create)(data, number(0)?) }.into()))
        }
        "epoll_ctl" => {
            let operation = match args.get(1) {
                Some(&"add") => libc::EPOLL_CTL_ADD,
                Some(&"mod") => libc::EPOLL_CTL_MOD,
                Some(&"del") => libc::EPOLL_CTL_DEL,
                _ => number(1)?,
            };
            let fd = number(2)?;
            let mut event = libc::epoll_event {
                events: mask(3)? as u32,
                u64: fd as u64,
            };
            // SAFETY: the instance is alive, and the pointer is to one event.
            Ok(result(
                unsafe { (t.epoll_ctl)(data, number(0)?, operation, fd, &mut event) }.into(),
            ))
        }
        _ => {
            let most = args.get(2).map_or(Ok(4), |text| int::<c_int>(text))?;
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
            // SAFETY: the instance is alive, and the array has space for this number of events.
            let count = unsafe {
                (t.epoll_wait)(
                    data,
                    number(0)?,
                    events.as_mut_ptr(),
                    most.min(4),
                    number(1)?,
                )
            };
            if count <= 0 {
                return Ok(result(count.into()));
            }
            let told: Vec<_> = events[..count as usize]
                .iter()
                .map(|event| format!("{}:{}", { event.u64 }, conditions(event.events)))
                .collect();
            Ok(told.join(" "))
        }
    }
}

/// Makes a call `pipe` or `splice FROM TO LEN [nonblock|more]`.
fn pipe(table: &Table, name: &str, args: &[&str], wire: &mut Wire) -> Result<String, String> {
    let (t, data) = (&table.0, table.0.userdata);
    if name == "pipe" {
        let mut ends = [0; 2];
        // SAFETY: the instance is alive, and the array has space for two descriptors.
        let outcome = unsafe { (t.pipe)(data, ends.as_mut_ptr()) };
        return Ok(match outcome {
            0 => format!("{} {}", ends[0], ends[1]),
            outcome => result(outcome.into()),
        });
    }
    let number = |at: usize| int::<c_int>(args.get(at).copied().ok_or("an argument is missing")?);
    let flags = match args.get(3) {
        Some(&"nonblock") => libc::SPLICE_F_NONBLOCK,
        Some(&"more") => libc::SPLICE_F_MORE,
        _ => 0,
    };
    let (none, len) = (std::ptr::null_mut(), number(2)? as usize);
    // SAFETY: the instance is alive.
    let moved = unsafe { (t.splice)(data, number(0)?, none, number(1)?, none, len, flags) };
    // Data that a pipe sends to the peer is counted separately.
    let _ = wire;
    Ok(result(moved as i64))
}
