//! Calls that wait for descriptors.

use super::{duration, give, milliseconds};
use crate::epoll::{EpollSet, new_set};
use crate::pointers;
use crate::polling;
use crate::signals::SET_BYTES;
use crate::sys::{Errno, call, outcome};
use crate::table::{self, Found};
use crate::{session, threads, unconnected};
use libc::{c_int, epoll_event, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};
use std::time::Duration;

/// epoll_ctl(2). A listener is also registered in the kernel's instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(
    instance: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: the kernel checks everything itself.
    let kernel = || unsafe { call!(SYS_epoll_ctl, instance, operation, fd, event) as c_int };
    let Some(socket) = table::socket(fd).filter(|socket| !socket.is_kernels()) else {
        let result = kernel();
        if result == 0 {
            // SAFETY: the pointer is null or points to an event, by the manual page.
            let event = unsafe { pointers::read(event) }.unwrap_or(None);
            unconnected::note(instance, operation, fd, event);
            nest(instance, operation, fd);
        }
        return result;
    };
    let Some(set) = set_of(instance) else {
        return kernel();
    };
    if socket.as_listener().is_some() {
        let result = kernel();
        if result != 0 {
            return result;
        }
    }
    // SAFETY: the pointer is null or points to an event, by the manual page.
    let event = unsafe { pointers::read(event) }.unwrap_or(None);
    if event.is_none() && operation != libc::EPOLL_CTL_DEL {
        return give!(Err(libc::EFAULT));
    }
    give!(set.control(operation, fd, &socket, event))
}

/// Records that the kernel has carried out this epoll_ctl(2), whose descriptor may be an epoll instance.
fn nest(outer: c_int, operation: c_int, fd: c_int) {
    match operation {
        libc::EPOLL_CTL_ADD if session::has_adapter() => {
            let is_set = table::epoll(fd).is_some() || is_instance(fd, outer);
            if let Some((outer, inner)) = is_set.then(|| set_of(outer).zip(set_of(fd))).flatten() {
                outer.add_inner(fd, &inner);
            }
        }
        libc::EPOLL_CTL_DEL => {
            if let Some(outer) = table::epoll(outer) {
                outer.remove_inner(fd);
            }
        }
        _ => {}
    }
}

/// Returns whether the descriptor is an epoll instance: deleting `other`, which is not one of its members, then fails with ENOENT.
fn is_instance(fd: c_int, other: c_int) -> bool {
    let nothing = std::ptr::null_mut::<epoll_event>();
    // SAFETY: the kernel ignores the event of a deletion.
    let deleted = unsafe { call!(SYS_epoll_ctl, fd, libc::EPOLL_CTL_DEL, other, nothing) };
    outcome(deleted) == Err(libc::ENOENT)
}

/// Returns the set behind an epoll instance, and creates it if there is none. Returns `None` without an adapter.
pub fn set_of(instance: c_int) -> Option<Found<EpollSet>> {
    if let Some(set) = table::epoll(instance) {
        return Some(set);
    }
    table::epoll_or(instance, new_set(instance)?)
}

/// epoll_wait(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    instance: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: valid by the manual page.
    unsafe { epoll_pwait(instance, events, most, timeout, std::ptr::null()) }
}

/// epoll_pwait(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    instance: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        match wait(instance, events, most, milliseconds(timeout), mask) {
            Some(found) => give!(found),
            None => call!(
                SYS_epoll_pwait,
                instance,
                events,
                most,
                timeout,
                mask,
                SET_BYTES
            ) as c_int,
        }
    }
}

/// epoll_pwait2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait2(
    instance: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        let waited = match duration(timeout) {
            Ok(timeout) => wait(instance, events, most, timeout, mask),
            Err(errno) => Some(Err(errno)),
        };
        match waited {
            Some(found) => give!(found),
            None => call!(
                SYS_epoll_pwait2,
                instance,
                events,
                most,
                timeout,
                mask,
                SET_BYTES
            ) as c_int,
        }
    }
}

/// Waits at an instance that has sockets of this library, or to which other threads may add some; `None` leaves the call to the kernel.
unsafe fn wait(
    instance: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: Option<Duration>,
    mask: *const sigset_t,
) -> Option<Result<usize, Errno>> {
    let set = match session::has_adapter() && threads::are_several() {
        true => set_of(instance),
        false => table::epoll(instance),
    }?;
    let Ok(most @ 1..) = usize::try_from(most) else {
        return Some(Err(libc::EINVAL));
    };
    let is_beyond = pointers::is_beyond(events, most.saturating_mul(size_of::<epoll_event>()));
    if is_beyond || pointers::check_mut(events).is_err() || pointers::is_bad_mask(mask) {
        return Some(Err(libc::EFAULT));
    }
    // SAFETY: valid by the manual page.
    let events = unsafe { std::slice::from_raw_parts_mut(events, most) };
    // SAFETY: the pointer is null or points to a mask, by the manual page.
    Some(set.wait(instance, events, timeout, unsafe { mask.as_ref() }))
}

/// Number of descriptors up to which the limit of the process is not looked up: lower limits are rare, and the kernel checks them, too.
const CERTAIN: nfds_t = 1024;

/// Returns the limit of the process for descriptors (RLIMIT_NOFILE).
fn most_descriptors() -> nfds_t {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.unwrap_or(nfds_t::MAX)
}

/// Returns the descriptors that a poll(2) waits for.
unsafe fn polled<'a>(fds: *mut pollfd, count: nfds_t) -> &'a mut [pollfd] {
    match count {
        0 => &mut [],
        // The kernel fails with EINVAL.
        _ if count > CERTAIN && count > most_descriptors() => &mut [],
        // The kernel fails with EFAULT.
        _ if pointers::is_bad_mut(fds, (count as usize).saturating_mul(size_of::<pollfd>())) => {
            &mut []
        }
        // SAFETY: valid by the manual pages of the callers.
        _ => unsafe { std::slice::from_raw_parts_mut(fds, count as usize) },
    }
}

/// poll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let limit = milliseconds(timeout).map(|limit| timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), |limit| limit);
    // SAFETY: valid by the manual page.
    unsafe { ppoll(fds, count, limit, std::ptr::null()) }
}

/// ppoll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        let waited = match duration(timeout) {
            Ok(_) if pointers::is_bad_mask(mask) => Some(Err(libc::EFAULT)),
            Ok(limit) => polling::poll(polled(fds, count), limit, mask.as_ref()),
            Err(errno) => Some(Err(errno)),
        };
        if let Some(found) = waited {
            return give!(found);
        }
        // The kernel writes the remaining time.
        let mut left = timeout.as_ref().copied();
        let left = left.as_mut().map_or(std::ptr::null_mut(), |left| left);
        call!(SYS_ppoll, fds, count, left, mask, SET_BYTES) as c_int
    }
}

/// poll(2), fortified.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    room: size_t,
) -> c_int {
    if room / size_of::<pollfd>() < count as usize {
        std::process::abort();
    }
    // SAFETY: valid by the manual page.
    unsafe { poll(fds, count, timeout) }
}

/// ppoll(2), fortified.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: size_t,
) -> c_int {
    if room / size_of::<pollfd>() < count as usize {
        std::process::abort();
    }
    // SAFETY: valid by the manual page.
    unsafe { ppoll(fds, count, timeout, mask) }
}

/// Returns the words of a set that select(2) reads; a program's sets may be longer than an `fd_set`.
unsafe fn words<'a>(set: *mut fd_set, count: c_int) -> polling::Words<'a> {
    let len = (count.max(0) as usize).div_ceil(64);
    // SAFETY: valid by the manual page.
    (!set.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(set.cast(), len) })
}

/// select(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: valid by the manual page.
    let limit = match unsafe { pointers::read(timeout) } {
        Ok(time) => time.map(|time| timespec {
            tv_sec: time.tv_sec,
            tv_nsec: time.tv_usec.saturating_mul(1000),
        }),
        Err(errno) => return give!(Err(errno)),
    };
    let start = std::time::Instant::now();
    let place = limit.as_ref().map_or(std::ptr::null(), |limit| limit);
    // SAFETY: valid by the manual page.
    let found = unsafe { pselect(count, read, write, except, place, std::ptr::null()) };
    // Linux writes the remaining time.
    // SAFETY: as above.
    if let Some(time) = unsafe { timeout.as_mut() }
        && pointers::check_mut(timeout).is_ok()
    {
        let whole = Duration::new(time.tv_sec.max(0) as u64, 0)
            + Duration::from_micros(time.tv_usec.max(0) as u64);
        let left = whole.saturating_sub(start.elapsed());
        time.tv_sec = left.as_secs() as i64;
        time.tv_usec = i64::from(left.subsec_micros());
    }
    found
}

/// pselect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: valid by the manual page, and the kernel checks everything itself.
    unsafe {
        let bytes = (count.max(0) as usize).div_ceil(64) * 8;
        let is_bad = |set: *mut fd_set| !set.is_null() && pointers::is_bad_mut(set, bytes);
        if [read, write, except].into_iter().any(is_bad) || pointers::is_bad_mask(mask) {
            return give!(Err(libc::EFAULT));
        }
        let mut sets = [
            words(read, count),
            words(write, count),
            words(except, count),
        ];
        let waited = match duration(timeout) {
            Ok(limit) => polling::select(count, &mut sets, limit, mask.as_ref()),
            Err(errno) => Some(Err(errno)),
        };
        if let Some(found) = waited {
            return give!(found);
        }
        let mut left = timeout.as_ref().copied();
        let left = left.as_mut().map_or(std::ptr::null_mut(), |left| left);
        let mask = [mask as usize, SET_BYTES];
        let mask = mask.as_ptr();
        call!(SYS_pselect6, count, read, write, except, left, mask) as c_int
    }
}
