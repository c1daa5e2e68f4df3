//! Single calls on a descriptor, and their results as text.

use super::player::TO_LEAVE;
use super::raw::{Digest, errno, events, result};
use crate::Call;
use libc::{c_int, c_void};
use std::mem::zeroed;
use std::ptr::null_mut;
use std::thread;

/// Maximum time of a wait for readiness, ms.
const WAIT_MS: c_int = 40;
const RECEIVE_FLAGS: [c_int; 12] = [
    0,
    libc::MSG_PEEK,
    libc::MSG_TRUNC,
    libc::MSG_WAITALL,
    libc::MSG_DONTWAIT,
    libc::MSG_PEEK | libc::MSG_TRUNC,
    libc::MSG_PEEK | libc::MSG_WAITALL,
    libc::MSG_PEEK | libc::MSG_DONTWAIT,
    libc::MSG_WAITALL | libc::MSG_DONTWAIT,
    libc::MSG_OOB,
    libc::MSG_CMSG_CLOEXEC | libc::MSG_NOSIGNAL,
    libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
];
/// Constants of Linux that the libc crate does not have for each of its C libraries.
const F_SETSIG: c_int = 10;
const F_GETSIG: c_int = 11;
const SIOCGPGRP: libc::Ioctl = 0x8904;
const SIOCOUTQNSD: libc::Ioctl = 0x894b;

/// Makes the process receive SIGALRM every `us` microseconds; 0 stops the timer.
pub(super) fn alarm(us: i64) {
    let time = libc::timeval {
        tv_sec: 0,
        tv_usec: us,
    };
    let timer = libc::itimerval {
        it_interval: time,
        it_value: time,
    };
    // SAFETY: the timer is valid.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut()) };
}

/// Splits a buffer into this many parts, and adds an empty part in the middle.
pub(super) fn parts(data: *mut c_void, len: usize, count: usize) -> Vec<libc::iovec> {
    let part = |from: usize, to: usize| libc::iovec {
        iov_base: data.wrapping_byte_add(from),
        iov_len: to - from,
    };
    let mut parts: Vec<_> = (0..count)
        .map(|at| part(len * at / count, len * (at + 1) / count))
        .collect();
    parts.insert(count / 2, part(0, 0));
    parts
}

pub(super) fn message(parts: &mut [libc::iovec]) -> Box<libc::msghdr> {
    // SAFETY: all zeros are a valid, empty message.
    let mut message: Box<libc::msghdr> = Box::new(unsafe { zeroed() });
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len();
    message
}

/// Reads all data that is there or arrives shortly, and reports its digest and the last result.
pub(super) fn drain(fd: c_int) -> String {
    let (mut all, mut room, mut attempts) = (Digest::default(), vec![0; 1 << 16], 0);
    loop {
        // SAFETY: the buffer is valid for its length.
        let gave =
            unsafe { libc::recv(fd, room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT) };
        match usize::try_from(gave) {
            Ok(len) if len > 0 => all.add(&room[..len]),
            Err(_) if errno() == libc::EAGAIN && attempts < 4 => {
                attempts += 1;
                thread::sleep(4 * TO_LEAVE);
            }
            _ => return format!("{all} {}", result(gave as i64)),
        }
    }
}

pub(super) fn recv(fd: c_int, size: usize, flags: c_int) -> String {
    let mut room = vec![0xee; size];
    // SAFETY: the buffer is valid for its length.
    let gave = unsafe { libc::recv(fd, room.as_mut_ptr().cast(), size, flags) } as i64;
    received(gave, &room)
}

/// Formats the result of a reading call and the bytes that it has written, including those beyond the returned length.
pub(super) fn received(gave: i64, room: &[u8]) -> String {
    let text = result(gave);
    let used = room
        .iter()
        .rposition(|&byte| byte != 0xee)
        .map_or(0, |at| at + 1);
    let len = usize::try_from(gave).unwrap_or(0);
    match used > len {
        true => format!("{text} WRITES {used}"),
        false => format!("{text}/{}", Digest::of(&room[..used])),
    }
}

pub(super) fn receive(call: &Call, fd: c_int, size: usize) -> String {
    let third = call.operands.get(2).copied().unwrap_or(0) as usize;
    let count = call.operands.get(3).copied().unwrap_or(0) as usize;
    let flags = RECEIVE_FLAGS.get(third).copied().unwrap_or(0);
    let mut room = vec![0xee_u8; size];
    let data: *mut c_void = room.as_mut_ptr().cast();
    // SAFETY: the buffer is valid for its length, and the parts lie within it.
    let (gave, more) = unsafe {
        match call.name {
            "recv" => (libc::recv(fd, data, size, flags), String::new()),
            "read" => (libc::read(fd, data, size), String::new()),
            "readv" => {
                let parts = parts(data, size, third);
                (
                    libc::readv(fd, parts.as_ptr(), parts.len() as c_int),
                    String::new(),
                )
            }
            _ => {
                let mut parts = parts(data, size, count);
                let mut message = message(&mut parts);
                let mut name = [0_u8; 28];
                let mut control = [0_u64; 16];
                message.msg_name = name.as_mut_ptr().cast();
                message.msg_namelen = 28;
                message.msg_control = control.as_mut_ptr().cast();
                message.msg_controllen = 128;
                let gave = libc::recvmsg(fd, &raw mut *message, flags);
                let error = errno();
                let more = format!(
                    " {} {} {:x}",
                    message.msg_namelen, message.msg_controllen, message.msg_flags
                );
                *libc::__errno_location() = error;
                (gave, if gave < 0 { String::new() } else { more })
            }
        }
    };
    received(gave as i64, &room) + &more
}

pub(super) fn splice(fd: c_int, way: u32) -> String {
    let mut ends = [0; 2];
    // SAFETY: this function owns the descriptors.
    unsafe {
        libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK);
        let gave = match way {
            0 => libc::splice(
                fd,
                null_mut(),
                ends[1],
                null_mut(),
                5,
                libc::SPLICE_F_NONBLOCK,
            ),
            _ => libc::splice(
                ends[0],
                null_mut(),
                fd,
                null_mut(),
                5,
                libc::SPLICE_F_NONBLOCK,
            ),
        };
        let text = result(gave as i64);
        for end in ends {
            libc::close(end);
        }
        text
    }
}

pub(super) fn flags(fd: c_int, which: u32) -> String {
    // SAFETY: this takes no pointers.
    unsafe {
        let get = libc::fcntl(fd, libc::F_GETFL);
        result(match which {
            0 => get,
            1 if get < 0 => get,
            1 => libc::fcntl(fd, libc::F_SETFL, get ^ libc::O_NONBLOCK),
            2 => libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC),
            3 => libc::fcntl(fd, libc::F_GETFD),
            _ => libc::fcntl(fd, 999),
        })
    }
}

/// Sets or gets the process that is notified of input by a signal, or the signal.
pub(super) fn owner(fd: c_int, which: u32) -> String {
    // SAFETY: this takes no pointers.
    unsafe {
        let own = libc::getpid();
        let gave = match which {
            0 => libc::fcntl(fd, libc::F_SETOWN, own),
            1 => libc::fcntl(fd, libc::F_SETOWN, 0),
            2 => match libc::fcntl(fd, libc::F_GETOWN) {
                // The number differs between runs.
                pid if pid == own => return String::from("own"),
                other => other,
            },
            3 => libc::fcntl(fd, F_SETSIG, libc::SIGIO),
            4 => libc::fcntl(fd, F_GETSIG),
            5 => {
                let get = libc::fcntl(fd, libc::F_GETFL);
                if get < 0 {
                    get
                } else {
                    libc::fcntl(fd, libc::F_SETFL, get ^ libc::O_ASYNC)
                }
            }
            6 => libc::fcntl(fd, libc::F_SETOWN, -libc::getpgrp()),
            _ => libc::fcntl(fd, F_SETSIG, 999),
        };
        result(gave)
    }
}

pub(super) fn ioctl(fd: c_int, which: u32) -> String {
    let mut value: c_int = 0;
    // SAFETY: the argument points to an integer.
    let gave = unsafe {
        match which {
            0 => libc::ioctl(fd, libc::FIONREAD, &raw mut value),
            1 => libc::ioctl(fd, libc::FIONBIO, &raw mut value),
            2 => libc::ioctl(fd, libc::TIOCOUTQ, &raw mut value),
            // SIOCATMARK
            3 => libc::ioctl(fd, 0x8905, &raw mut value),
            4 => libc::ioctl(fd, libc::FIOASYNC, &raw mut value),
            5 => libc::ioctl(fd, SIOCGPGRP, &raw mut value),
            6 => libc::ioctl(fd, SIOCOUTQNSD, &raw mut value),
            _ => libc::ioctl(fd, 0x1234, &raw mut value),
        }
    };
    // SAFETY: this takes no pointers.
    if which == 5 && value == unsafe { libc::getpid() } {
        return format!("{} own", result(gave));
    }
    format!("{} {value}", result(gave))
}

pub(super) fn get_option(
    fd: c_int,
    (level, option, is_same): (i32, i32, bool),
    mut len: u32,
) -> String {
    let mut room = [0xee_u8; 16];
    // SAFETY: the buffer is valid for the length.
    let gave =
        unsafe { libc::getsockopt(fd, level, option, room.as_mut_ptr().cast(), &raw mut len) };
    let told = match option {
        libc::TCP_INFO if level == libc::IPPROTO_TCP => &room[..1],
        _ if is_same => &room[..8],
        _ => &[],
    };
    format!(
        "{} {len} {}",
        result(gave),
        told.iter()
            .map(|byte| format!("{byte:x}"))
            .collect::<String>()
    )
}

pub(super) fn set_option(
    fd: c_int,
    (level, option, _): (i32, i32, bool),
    value: u8,
    len: u32,
) -> String {
    let value = [value, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the value is valid for its length.
    result(unsafe { libc::setsockopt(fd, level, option, value.as_ptr().cast(), len) })
}

/// Reports the length and family of an address, but not the port, which differs between runs.
pub(super) fn name(fd: c_int, of_peer: bool, mut len: u32) -> String {
    let mut room = [0xee_u8; 32];
    // SAFETY: the buffer is valid for the length.
    let gave = unsafe {
        let address = room.as_mut_ptr().cast();
        match of_peer {
            true => libc::getpeername(fd, address, &raw mut len),
            false => libc::getsockname(fd, address, &raw mut len),
        }
    };
    let used = room
        .iter()
        .rposition(|&byte| byte != 0xee)
        .map_or(0, |at| at + 1);
    format!("{} {len} {used} {:x}", result(gave), room[0])
}

pub(super) fn poll(fd: c_int, by_select: bool, bits: i16) -> String {
    alarm(0);
    if by_select {
        if fd < 0 {
            return String::from("closed");
        }
        // SAFETY: the sets are valid, and the descriptor is below 1,024.
        unsafe {
            let mut sets: [libc::fd_set; 3] = zeroed();
            sets.iter_mut().for_each(|set| libc::FD_SET(fd, set));
            let mut time = libc::timeval {
                tv_sec: 0,
                tv_usec: i64::from(WAIT_MS) * 1000,
            };
            let [read, write, other] = &mut sets;
            let gave = libc::select(fd + 1, read, write, other, &raw mut time);
            let text = result(gave);
            let is_set = |set: &libc::fd_set| libc::FD_ISSET(fd, set);
            return format!(
                "{text} {} {} {}",
                is_set(&sets[0]),
                is_set(&sets[1]),
                is_set(&sets[2])
            );
        }
    }
    let mut one = libc::pollfd {
        fd,
        events: bits,
        revents: 0,
    };
    // SAFETY: there is one descriptor.
    let gave = unsafe { libc::poll(&raw mut one, 1, WAIT_MS) };
    format!("{} {}", result(gave), events(one.revents as u16 as u32))
}

pub(super) fn wait(set: c_int, most: c_int) -> String {
    alarm(0);
    // SAFETY: the array has space for eight events, and `most` is at most eight.
    unsafe {
        let mut told: [libc::epoll_event; 8] = zeroed();
        let gave = libc::epoll_wait(set, told.as_mut_ptr(), most, WAIT_MS);
        let text = result(gave);
        let told = told.iter().take(gave.max(0) as usize);
        let mut told: Vec<_> = told
            .map(|event| format!("{}:{}", { event.u64 }, events(event.events)))
            .collect();
        told.sort();
        // The order of several events is not defined.
        match most {
            1 => text,
            _ => format!("{text} {}", told.join(",")),
        }
    }
}
