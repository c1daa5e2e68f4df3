//! System calls that carry no data.

use super::Data;
use super::memory::{address, bytes, give_back, instance, report};
use crate::epoll::{EpollEvent, EpollWait};
use crate::errno::Errno;
use crate::poll::Poll;
use crate::sockets::{Accept, Close, Connect};
use libc::{c_int, c_ulong, c_void, epoll_event, nfds_t, pollfd, sockaddr, socklen_t};

/// Maximum number of descriptors of one poll (RLIMIT_NOFILE).
const MOST_POLLED: nfds_t = 65_536;

const FAULT: Errno = Errno(libc::EFAULT);

/// socket(2).
///
/// # Safety
/// `data` is an instance's.
pub(super) unsafe extern "C" fn socket(
    data: Data,
    domain: c_int,
    kind: c_int,
    protocol: c_int,
) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    report(instance.call(|world| world.socket(domain, kind, protocol)))
}

/// bind(2).
///
/// # Safety
/// `addr` is valid for `len` bytes.
pub(super) unsafe extern "C" fn bind(
    data: Data,
    fd: c_int,
    addr: *const sockaddr,
    len: socklen_t,
) -> c_int {
    // SAFETY: by this function's contract.
    let (instance, addr) = unsafe { (instance(data), address(addr, len)) };
    report(addr.and_then(|addr| instance.call(|world| world.bind(fd, addr)).map(|()| 0)))
}

/// listen(2).
///
/// # Safety
/// `data` is an instance's.
pub(super) unsafe extern "C" fn listen(data: Data, fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    report(instance.call(|world| world.listen(fd, backlog)).map(|()| 0))
}

/// accept(2).
///
/// # Safety
/// `addr` is null, or `len` points to a length for which `addr` is good.
pub(super) unsafe extern "C" fn accept(
    data: Data,
    fd: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    let mut call = Accept::new(fd);
    let accepted = instance.blocking_call(|world| call.attempt(world));
    report(accepted.and_then(|(fd, remote)| {
        if !addr.is_null() {
            // SAFETY: by this function's contract.
            unsafe { give_back(&remote, addr.cast(), len, true) }?;
        }
        Ok(fd)
    }))
}

/// connect(2).
///
/// # Safety
/// `addr` is valid for `len` bytes.
pub(super) unsafe extern "C" fn connect(
    data: Data,
    fd: c_int,
    addr: *const sockaddr,
    len: socklen_t,
) -> c_int {
    // SAFETY: by this function's contract.
    let (instance, addr) = unsafe { (instance(data), address(addr, len)) };
    report(addr.and_then(|addr| {
        let mut call = Connect::new(fd, addr);
        instance
            .blocking_call(|world| call.attempt(world))
            .map(|()| 0)
    }))
}

/// fcntl(2).
///
/// # Safety
/// `data` is an instance's.
pub(super) unsafe extern "C" fn fcntl(data: Data, fd: c_int, command: c_int, arg: usize) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    report(instance.call(|world| world.fcntl(fd, command, arg as c_int)))
}

/// ioctl(2).
///
/// # Safety
/// `arg` is a pointer to an int for every request that is known.
pub(super) unsafe extern "C" fn ioctl(
    data: Data,
    fd: c_int,
    request: c_ulong,
    arg: usize,
) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    let at = arg as *mut c_int;
    // SAFETY: not null, and so an int by this function's contract.
    let value = if at.is_null() { 0 } else { unsafe { *at } };
    // The kernel takes an unsigned int.
    let request = libc::Ioctl::from(request as u32);
    let outcome = instance.call(|world| world.ioctl(fd, request, value));
    report(outcome.and_then(|answer| match answer {
        Some(_) if at.is_null() => Err(FAULT),
        Some(answer) => {
            // SAFETY: not null, and so an int by this function's contract.
            unsafe { *at = answer };
            Ok(0)
        }
        None => Ok(0),
    }))
}

/// close(2).
///
/// # Safety
/// `data` is an instance's.
pub(super) unsafe extern "C" fn close(data: Data, fd: c_int) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    let mut call = Close::new(fd);
    report(
        instance
            .blocking_call(|world| call.attempt(world))
            .map(|()| 0),
    )
}

/// shutdown(2).
///
/// # Safety
/// `data` is an instance's.
pub(super) unsafe extern "C" fn shutdown(data: Data, fd: c_int, how: c_int) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    report(instance.call(|world| world.shutdown(fd, how)).map(|()| 0))
}

/// getsockopt(2).
///
/// # Safety
/// `len` points to a length for which `value` is good.
pub(super) unsafe extern "C" fn getsockopt(
    data: Data,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    let found = instance.call(|world| world.getsockopt(fd, level, name));
    report(found.and_then(|found| {
        // SAFETY: by this function's contract.
        unsafe { give_back(&found, value, len, false) }.map(|()| 0)
    }))
}

/// setsockopt(2).
///
/// # Safety
/// `value` is valid for `len` bytes.
pub(super) unsafe extern "C" fn setsockopt(
    data: Data,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    let len = usize::try_from(len as c_int).map_err(|_| Errno(libc::EINVAL));
    // SAFETY: by this function's contract.
    let value = len.and_then(|len| unsafe { bytes(value, len) });
    report(value.and_then(|value| {
        instance
            .call(|world| world.setsockopt(fd, level, name, value))
            .map(|()| 0)
    }))
}

/// poll(2).
///
/// # Safety
/// `fds` is valid for `count` entries.
pub(super) unsafe extern "C" fn poll(
    data: Data,
    fds: *mut pollfd,
    count: nfds_t,
    timeout_ms: c_int,
) -> c_int {
    if count > MOST_POLLED {
        return report(Err(Errno(libc::EINVAL)));
    }
    if fds.is_null() && count > 0 {
        return report(Err(FAULT));
    }
    let fds = match count {
        0 => &mut [],
        // SAFETY: not null, and so valid for `count` entries by this function's contract.
        count => unsafe { std::slice::from_raw_parts_mut(fds, count as usize) },
    };
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    let entries = fds
        .iter()
        .map(|entry| (entry.fd, entry.events as u16 as u32));
    let mut call = Poll::new(entries.collect(), timeout_ms);
    let polled = instance.blocking_call(|world| call.attempt(world));
    report(polled.map(|ready| {
        for (entry, ready) in fds.iter_mut().zip(&ready) {
            entry.revents = *ready as u16 as i16;
        }
        ready.iter().filter(|&&ready| ready != 0).count() as c_int
    }))
}

/// epoll_create(2).
///
/// # Safety
/// `data` is an instance's.
pub(super) unsafe extern "C" fn epoll_create(data: Data, size: c_int) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    report(instance.call(|world| world.epoll_create(size)))
}

/// epoll_ctl(2).
///
/// # Safety
/// `event` is null or an event.
pub(super) unsafe extern "C" fn epoll_ctl(
    data: Data,
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    if event.is_null() && operation != libc::EPOLL_CTL_DEL {
        return report(Err(FAULT));
    }
    let event = match event.is_null() {
        true => EpollEvent { events: 0, data: 0 },
        false => {
            // SAFETY: not null, and so an event by this function's contract; it is packed.
            let event = unsafe { event.read_unaligned() };
            EpollEvent {
                events: event.events,
                data: event.u64,
            }
        }
    };
    report(
        instance
            .call(|world| world.epoll_ctl(epoll, operation, fd, event))
            .map(|()| 0),
    )
}

/// epoll_wait(2).
///
/// # Safety
/// `events` is valid for `most` events.
pub(super) unsafe extern "C" fn epoll_wait(
    data: Data,
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> c_int {
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    if events.is_null() {
        return report(Err(FAULT));
    }
    let mut call = EpollWait::new(epoll, most, timeout_ms);
    let happened = instance.blocking_call(|world| call.attempt(world));
    report(happened.map(|happened| {
        for (index, event) in happened.iter().enumerate() {
            let event = epoll_event {
                events: event.events,
                u64: event.data,
            };
            // SAFETY: there are no more than `most`; they are packed.
            unsafe { events.add(index).write_unaligned(event) };
        }
        happened.len() as c_int
    }))
}

/// pipe(2).
///
/// # Safety
/// `fds` is valid for two descriptors.
pub(super) unsafe extern "C" fn pipe(data: Data, fds: *mut c_int) -> c_int {
    if fds.is_null() {
        return report(Err(FAULT));
    }
    // SAFETY: by this function's contract.
    let instance = unsafe { instance(data) };
    report(instance.call(|world| world.pipe()).map(|ends| {
        // SAFETY: not null, and so valid for two by this function's contract.
        unsafe { fds.cast::<[c_int; 2]>().write_unaligned(ends) };
        0
    }))
}
