//! poll(2) and select(2) on descriptors some of which this library handles.

use crate::description::{ACCEPTABLE, Description, events_of};
use crate::epoll::EpollSet;
use crate::limit::Limit;
use crate::listener::Listening;
use crate::session;
use crate::signals;
use crate::sys::{self, Errno, call};
use crate::table::{self, Entry};
use baton_sockets::{Interest, TcpStream, Watched};
use libc::{c_int, c_short, pollfd, sigset_t};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::BorrowedFd;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// A descriptor in the set that this library handles.
enum Ours {
    Stream(TcpStream),
    Listener(Arc<Description>, Listening),
    Epoll(Arc<EpollSet>),
}

impl Ours {
    fn new(fd: c_int) -> Option<Self> {
        match table::find(fd)? {
            Entry::Epoll(set) => {
                set.show_outside();
                Some(Self::Epoll(set))
            }
            Entry::Unconnected(_) | Entry::Listening | Entry::KernelOnly(_) => None,
            Entry::Socket(socket) => match socket.stream() {
                Some(stream) => {
                    stream.end_direct(false);
                    Some(Self::Stream(stream.try_clone().ok()?))
                }
                None => {
                    let listening = socket.as_listener()?.listening();
                    Some(Self::Listener(socket, listening))
                }
            },
        }
    }

    /// Returns whether to wait for the kernel's socket, too.
    fn is_kernels_too(&self) -> bool {
        !matches!(self, Self::Stream(_))
    }

    fn ready(&self, wanted: c_short) -> c_short {
        let always = libc::POLLERR | libc::POLLHUP;
        let now = match self {
            Self::Stream(stream) => events_of(&stream.readiness()),
            Self::Listener(_, all) if all.iter().any(|one| one.is_acceptable()) => ACCEPTABLE,
            Self::Epoll(set) if set.is_ready() => ACCEPTABLE,
            Self::Listener(..) | Self::Epoll(_) => 0,
        };
        now as c_short & (wanted | always)
    }

    fn watch<'a>(&'a self, wanted: c_short, watched: &mut SmallVec<[Watched<'a>; 8]>) {
        match self {
            Self::Stream(stream) => {
                let interest = match wanted & (libc::POLLOUT | libc::POLLWRNORM) {
                    0 => Interest::READABLE,
                    _ if wanted & (libc::POLLIN | libc::POLLRDNORM) == 0 => Interest::WRITABLE,
                    _ => Interest::READABLE | Interest::WRITABLE,
                };
                let interest = interest | Interest::TIMES;
                watched.push(Watched::Stream(stream, interest));
            }
            Self::Listener(_, all) => watched.extend(all.iter().map(|one| Watched::Listener(one))),
            Self::Epoll(set) => watched.push(set.watched()),
        }
    }

    fn longest_wait(&self) -> Option<Duration> {
        match self {
            Self::Stream(_) => None,
            Self::Listener(socket, _) => socket.as_listener()?.longest_wait(),
            Self::Epoll(set) => set.longest_wait(),
        }
    }
}

/// poll(2) with the signal mask `mask` while it waits. Returns `None` if this library handles none of the descriptors.
pub fn poll(
    fds: &mut [pollfd],
    timeout: Option<Duration>,
    mask: Option<&sigset_t>,
) -> Option<Result<usize, Errno>> {
    if !fds.iter().any(|one| table::find(one.fd).is_some()) {
        return None;
    }
    let _hold = signals::hold();
    let mut limit = Limit::new(timeout);
    loop {
        let ours: Vec<Option<Ours>> = fds.iter().map(|one| Ours::new(one.fd)).collect();
        let found = match look(fds, &ours) {
            Ok(found) => found,
            Err(errno) => return Some(Err(errno)),
        };
        if found > 0 {
            return Some(Ok(found));
        }
        let left = limit.left();
        if left == Some(Duration::ZERO) {
            return Some(signals::look(mask).map(|()| 0));
        }
        if let Err(errno) = wait(fds, &ours, left, mask) {
            return Some(Err(errno));
        }
    }
}

/// Fills in the events that are ready now, and returns the number of ready descriptors.
fn look(fds: &mut [pollfd], ours: &[Option<Ours>]) -> Result<usize, Errno> {
    let mut kernels: SmallVec<[pollfd; 16]> = fds.iter().copied().collect();
    for (one, ours) in kernels.iter_mut().zip(ours) {
        one.revents = 0;
        if ours.as_ref().is_some_and(|ours| !ours.is_kernels_too()) {
            one.fd = -1;
        }
    }
    let (at, len) = (kernels.as_mut_ptr(), kernels.len());
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let no_mask = std::ptr::null::<libc::sigset_t>();
    // SAFETY: `len` is the number of descriptors.
    sys::outcome(unsafe { call!(SYS_ppoll, at, len, &raw const now, no_mask, 8) })?;
    let mut found = 0;
    for ((one, kernels), ours) in fds.iter_mut().zip(&kernels).zip(ours) {
        one.revents = kernels.revents;
        if let Some(ours) = ours {
            one.revents |= ours.ready(one.events);
        }
        found += usize::from(one.revents != 0);
    }
    Ok(found)
}

/// Waits until any descriptor may be ready.
fn wait(
    fds: &[pollfd],
    ours: &[Option<Ours>],
    left: Option<Duration>,
    mask: Option<&sigset_t>,
) -> Result<(), Errno> {
    let mut watched = SmallVec::new();
    let mut others: SmallVec<[PollFd<'_>; 16]> = SmallVec::new();
    for (one, ours) in fds.iter().zip(ours) {
        if let Some(ours) = ours {
            ours.watch(one.events, &mut watched);
        }
        if one.fd >= 0 && ours.as_ref().is_none_or(Ours::is_kernels_too) {
            // SAFETY: the program keeps its descriptors while it waits for them.
            let fd = unsafe { BorrowedFd::borrow_raw(one.fd) };
            let flags = PollFlags::from_bits_retain(one.events as u16);
            others.push(PollFd::from_borrowed_fd(fd, flags));
        }
    }
    let again = ours.iter().flatten().filter_map(Ours::longest_wait).min();
    let most = [left, again].into_iter().flatten().min();
    match session::adapter() {
        Some(adapter) => signals::wait_beside(adapter, &watched, &others, most, mask),
        None => {
            let most = most.and_then(|most| Timespec::try_from(most).ok());
            let polled = signals::sleep(&mut others, most.as_ref(), mask);
            polled.map(drop).map_err(|errno| errno.raw_os_error())
        }
    }
}

/// The poll(2) events of each set of select(2): those to ask for, and those that make a descriptor ready.
const SETS: [(c_short, c_short); 3] = [
    (
        libc::POLLIN | libc::POLLRDNORM,
        libc::POLLIN | libc::POLLRDNORM | libc::POLLHUP | libc::POLLERR,
    ),
    (
        libc::POLLOUT | libc::POLLWRNORM,
        libc::POLLOUT | libc::POLLWRNORM | libc::POLLERR,
    ),
    (libc::POLLPRI, libc::POLLPRI),
];

/// A set of select(2) as words of 64 bits.
pub type Words<'a> = Option<&'a mut [u64]>;

/// select(2) on descriptors below `count`. Returns `None` in the same case as [`poll`].
pub fn select(
    count: c_int,
    sets: &mut [Words<'_>; 3],
    timeout: Option<Duration>,
    mask: Option<&sigset_t>,
) -> Option<Result<usize, Errno>> {
    let has = |words: &Words<'_>, fd: usize| {
        words
            .as_ref()
            .is_some_and(|words| words[fd / 64] >> (fd % 64) & 1 != 0)
    };
    let mut fds: Vec<pollfd> = Vec::new();
    for fd in 0..count.max(0) {
        let asked = sets
            .iter()
            .zip(SETS)
            .filter(|(words, _)| has(words, fd as usize));
        let events = asked.fold(0, |events, (_, (asked, _))| events | asked);
        if events != 0 {
            fds.push(pollfd {
                fd,
                events,
                revents: 0,
            });
        }
    }
    if let Err(errno) = poll(&mut fds, timeout, mask)? {
        return Some(Err(errno));
    }
    if fds.iter().any(|one| one.revents & libc::POLLNVAL != 0) {
        return Some(Err(libc::EBADF));
    }
    let mut found = 0;
    for (words, (asked, answered)) in sets.iter_mut().zip(SETS) {
        let Some(words) = words else { continue };
        words.fill(0);
        for one in fds.iter().filter(|one| one.events & asked == asked) {
            if one.revents & answered != 0 {
                words[one.fd as usize / 64] |= 1 << (one.fd % 64);
                found += 1;
            }
        }
    }
    Some(Ok(found))
}
