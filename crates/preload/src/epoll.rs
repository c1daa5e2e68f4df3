//! Epoll sets that contain sockets of the adapter.
//!
//! Members that are kernel descriptors are registered in the kernel's instance, sockets of the adapter in this library's set, and listeners
//! in both. As in the kernel, a member with a new event waits in a queue until the program fetches the event, and returns to the queue if
//! it is level-triggered and still ready. If connections begin in the kernel, those that are there stay registered in the kernel's
//! instance, as the program registered them, while the program uses them directly. While all connections are used directly, the kernel
//! carries out the whole wait.

use crate::description::{ACCEPTABLE, Description, events_of};
use crate::limit::Limit;
use crate::session;
use crate::signals::{self, SET_BYTES};
use crate::sys::{self, Errno, call, errno_of};
use baton_abi::epoll::{ALWAYS, EDGE_TRIGGERED, EXCLUSIVE, ONE_SHOT, check_control};
use baton_sockets::{Adapter, Events, Interest, Look, Poll, Token, Watch, Watched};
use libc::{c_int, epoll_event, sigset_t};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsRawFd, BorrowedFd};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Maximum number of events taken from the adapter at once.
const BATCH: usize = 256;
/// Flags whose members are not used directly: the kernel does not say whether it has reported such a member.
const NOT_DIRECT: u32 = ONE_SHOT | EXCLUSIVE;

/// An epoll instance.
#[derive(Debug)]
pub struct EpollSet {
    poll: Poll,
    adapter: &'static Adapter,
    members: Mutex<Members>,
    /// Other sets whose instances are members of this set's instance.
    inner: Mutex<Vec<(c_int, Weak<EpollSet>)>>,
    has_inner: AtomicBool,
}

#[derive(Debug)]
struct Members {
    by_fd: BTreeMap<c_int, Member>,
    /// The members that are listeners.
    listeners: Vec<c_int>,
    /// The members with new events.
    queue: VecDeque<c_int>,
    news: Events,
    /// Whether the next look takes the kernel's events first.
    kernel_first: bool,
    /// The sockets of the current look.
    seen: Vec<Arc<Description>>,
}

#[derive(Debug)]
struct Member {
    description: Weak<Description>,
    wanted: u32,
    data: u64,
    queued: bool,
    /// Number of the adapter's listeners that are registered.
    listeners: usize,
}

impl EpollSet {
    /// Creates the set behind the epoll instance `fd`.
    fn new(fd: c_int, adapter: &'static Adapter) -> std::io::Result<Self> {
        // SAFETY: the program keeps its descriptor while it uses it.
        let instance = unsafe { BorrowedFd::borrow_raw(fd) };
        let poll = match session::begins_in_kernel() {
            true => Poll::beside(adapter, rustix::io::fcntl_dupfd_cloexec(instance, 0)?)?,
            false => Poll::new(adapter),
        };
        Ok(Self {
            poll,
            adapter,
            members: Mutex::new(Members {
                by_fd: BTreeMap::new(),
                listeners: Vec::new(),
                queue: VecDeque::new(),
                news: Events::with_capacity(BATCH),
                kernel_first: false,
                seen: Vec::new(),
            }),
            inner: Mutex::default(),
            has_inner: AtomicBool::new(false),
        })
    }

    /// Makes another set a member of this one, under a descriptor. The kernel waits for the other set's instance, which then also becomes
    /// readable for events from outside the kernel.
    pub fn add_inner(&self, fd: c_int, set: &Arc<Self>) {
        if set.poll.tell_outside().is_ok() {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.retain(|(_, other)| other.strong_count() > 0);
            inner.push((fd, Arc::downgrade(set)));
            self.has_inner.store(true, Ordering::Relaxed);
        }
    }

    /// Removes the set that is a member under this descriptor.
    pub fn remove_inner(&self, fd: c_int) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.retain(|(other, _)| *other != fd);
    }

    /// Updates whether the instances of this set, and of the sets in it, are readable: the program may have read what made them ready.
    pub fn show_outside(&self) {
        self.show_inner();
        self.poll.show_outside(|| self.is_ready());
    }

    fn show_inner(&self) {
        if self.has_inner.load(Ordering::Relaxed) {
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let sets: Vec<_> = inner.iter().filter_map(|(_, set)| set.upgrade()).collect();
            drop(inner);
            sets.iter().for_each(|set| set.show_outside());
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out epoll_ctl(2) for a socket that this library handles.
    pub fn control(
        &self,
        operation: c_int,
        fd: c_int,
        description: &Arc<Description>,
        event: Option<epoll_event>,
    ) -> Result<usize, Errno> {
        let wanted = event.map_or(0, |event| event.events);
        let mut members = self.members();
        let is_member = members.by_fd.get(&fd).is_some_and(|member| {
            std::ptr::eq(member.description.as_ptr(), Arc::as_ptr(description))
        });
        let registered = members.by_fd.get(&fd).filter(|_| is_member);
        check_control(operation, wanted, registered.map(|member| member.wanted))?;
        if is_member {
            members.remove(fd);
        }
        if operation == libc::EPOLL_CTL_DEL {
            self.deregister(description);
            return Ok(0);
        }
        let event = event.ok_or(libc::EFAULT)?;
        let mut member = Member {
            description: Arc::downgrade(description),
            wanted: event.events,
            data: event.u64,
            queued: false,
            listeners: 0,
        };
        self.register(fd, description, &mut member)?;
        if description.as_listener().is_some() {
            members.listeners.push(fd);
        }
        members.by_fd.insert(fd, member);
        Ok(0)
    }

    /// Moves a connection that goes back to the kernel for good from this set to the kernel's instance, with the same events.
    pub fn release(&self, description: &Arc<Description>) {
        let mut members = self.members();
        let is_it =
            |member: &Member| std::ptr::eq(member.description.as_ptr(), Arc::as_ptr(description));
        let all = members.by_fd.iter().filter(|(_, member)| is_it(member));
        let left: Vec<(c_int, epoll_event)> = all
            .map(|(&fd, member)| {
                let (events, u64) = (member.wanted, member.data);
                (fd, epoll_event { events, u64 })
            })
            .collect();
        for (fd, mut event) in left {
            members.remove(fd);
            self.deregister(description);
            if let Some(instance) = self.poll.beside_instance() {
                let (instance, event) = (instance.as_raw_fd(), &raw mut event);
                // SAFETY: the call reads an event. A descriptor that is closed was no longer in the set.
                unsafe { call!(SYS_epoll_ctl, instance, libc::EPOLL_CTL_ADD, fd, event) };
            }
        }
    }

    fn register(&self, fd: c_int, socket: &Description, member: &mut Member) -> Result<(), Errno> {
        let token = Token(fd as usize);
        let outcome = if let Some(stream) = socket.stream() {
            // An event for reading also reports the end of a connection, which every member wants to know about.
            let interest = match member.wanted & libc::EPOLLOUT as u32 {
                0 => Interest::READABLE,
                _ => Interest::READABLE | Interest::WRITABLE,
            };
            let watch = Watch {
                events: member.wanted,
                data: member.data,
            };
            match member.wanted & NOT_DIRECT {
                0 => self.poll.register_beside(stream, token, interest, watch),
                _ => {
                    stream.end_direct(false);
                    self.deregister(socket);
                    self.poll.register(stream, token, interest)
                }
            }
        } else if let Some(listener) = socket.as_listener() {
            // Pending connections of listeners that are registered already have to be reported again.
            self.deregister(socket);
            let listening = listener.listening();
            member.listeners = listening.len();
            let mut registered = listening
                .iter()
                .map(|one| self.poll.register(&**one, token, Interest::READABLE));
            registered.find(Result::is_err).unwrap_or(Ok(()))
        } else {
            Ok(())
        };
        outcome.map_err(|error| errno_of(&error))
    }

    fn deregister(&self, socket: &Description) {
        // Deregistering a socket that is not registered fails, which does no harm.
        if let Some(stream) = socket.stream() {
            let _ = self.poll.deregister(stream);
        } else if let Some(listener) = socket.as_listener() {
            for one in listener.listening() {
                let _ = self.poll.deregister(&*one);
            }
        }
    }

    /// Returns whether a wait would find an event without the kernel's instance.
    pub fn is_ready(&self) -> bool {
        let mut events = [epoll_event { events: 0, u64: 0 }];
        let mut members = self.members();
        self.take_news(&mut members);
        members.collect(&self.poll, &mut events, false) > 0
    }

    /// Returns what to wait for in addition to the kernel's instance.
    pub fn watched(&self) -> Watched<'_> {
        Watched::Poll(&self.poll)
    }

    /// Returns the longest time to wait: listeners may have to be retried.
    pub fn longest_wait(&self) -> Option<Duration> {
        let members = self.members();
        let listeners = members
            .listeners
            .iter()
            .filter_map(|fd| members.by_fd.get(fd));
        let sockets = listeners.filter_map(|member| member.description.upgrade());
        let listeners = sockets.filter_map(|socket| socket.as_listener());
        listeners
            .filter_map(|listener| listener.longest_wait())
            .min()
    }

    fn take_news(&self, members: &mut Members) {
        let Members {
            by_fd,
            listeners,
            queue,
            news,
            ..
        } = members;
        for &fd in &*listeners {
            let Some(member) = by_fd.get_mut(&fd) else {
                continue;
            };
            let socket = member.description.upgrade();
            let listener = socket.as_ref().and_then(|socket| socket.as_listener());
            if let (Some(socket), Some(listener)) = (socket, listener)
                && listener.listening().len() > member.listeners
            {
                // If this fails, the kernel's listener still works.
                let _ = self.register(fd, &socket, member);
            }
        }
        // This does not wait, and so cannot fail.
        let _ = self.poll.poll(news, Some(Duration::ZERO));
        for event in &*news {
            let fd = event.token().0 as c_int;
            if let Some(member) = by_fd.get_mut(&fd)
                && !std::mem::replace(&mut member.queued, true)
            {
                queue.push_back(fd);
            }
        }
    }

    /// Carries out epoll_pwait(2) on the instance `fd`.
    pub fn wait(
        &self,
        fd: c_int,
        events: &mut [epoll_event],
        timeout: Option<Duration>,
        mask: Option<&sigset_t>,
    ) -> Result<usize, Errno> {
        let mut limit = Limit::new(timeout);
        loop {
            self.show_inner();
            let wait = || signals::sleep_by(|| kernel_events(fd, events, limit.left(), mask));
            if let Some(found) = self.poll.wait_in_kernel(wait) {
                match self.without_bell(&mut events[..found?]) {
                    Some(found) => return Ok(found),
                    None => continue,
                }
            }
            let found = self.look(fd, events)?;
            if found > 0 {
                return Ok(found);
            }
            let left = limit.left();
            if left == Some(Duration::ZERO) {
                return signals::look(mask).map(|()| 0);
            }
            // SAFETY: the program keeps its descriptor while it waits for it.
            let instance = unsafe { BorrowedFd::borrow_raw(fd) };
            let others = [PollFd::from_borrowed_fd(instance, PollFlags::IN)];
            let most = [left, self.longest_wait()].into_iter().flatten().min();
            signals::wait_beside(self.adapter, &[self.watched()], &others, most, mask)?;
        }
    }

    /// Removes the event that only wakes this library up from the kernel's events. Returns how many events remain, or `None` if it was the
    /// only one.
    fn without_bell(&self, events: &mut [epoll_event]) -> Option<usize> {
        let bell = Poll::bell();
        let Some(at) = events.iter().position(|event| event.u64 == bell) else {
            return Some(events.len());
        };
        self.poll.silence_bell();
        events[at..].rotate_left(1);
        (events.len() > 1).then_some(events.len() - 1)
    }

    /// Fills in the events that are ready in the kernel and on the adapter. Every other call takes the kernel's events first.
    fn look(&self, fd: c_int, events: &mut [epoll_event]) -> Result<usize, Errno> {
        let mut members = self.members();
        let kernel_first = members.kernel_first;
        members.kernel_first = !kernel_first;
        let mut found = 0;
        if kernel_first {
            found = self.kernel_events_now(fd, events)?;
        }
        self.take_news(&mut members);
        let mut first = found;
        found += members.collect(&self.poll, &mut events[found..], true);
        drop(members);
        if !kernel_first && found < events.len() {
            first = found;
            let more = self.kernel_events_now(fd, &mut events[found..]);
            found += more.or_else(|errno| match found {
                0 => Err(errno),
                _ => Ok(0),
            })?;
        }
        Ok(join(&mut events[..found], first))
    }

    fn kernel_events_now(&self, fd: c_int, events: &mut [epoll_event]) -> Result<usize, Errno> {
        let found = kernel_events(fd, events, Some(Duration::ZERO), None)?;
        Ok(self.without_bell(&mut events[..found]).unwrap_or(0))
    }
}

/// Joins an event among the `first` ones with a later one about the same member; returns how many remain. A moving connection may be
/// reported twice, but the kernel never reports a member twice in one wait, and programs free what an event points to.
fn join(events: &mut [epoll_event], first: usize) -> usize {
    let (told, others) = events.split_at_mut(first);
    let mut left = 0;
    for at in 0..others.len() {
        let other = others[at];
        let data = other.u64;
        match told.iter_mut().find(|event| event.u64 == data) {
            Some(event) => event.events |= other.events,
            None => {
                others[left] = other;
                left += 1;
            }
        }
    }
    first + left
}

fn kernel_events(
    fd: c_int,
    events: &mut [epoll_event],
    timeout: Option<Duration>,
    mask: Option<&sigset_t>,
) -> Result<usize, Errno> {
    let (at, len) = (events.as_mut_ptr(), events.len());
    // A timeout that the kernel cannot represent means no timeout.
    let timeout = timeout.and_then(|timeout| {
        Some(libc::timespec {
            tv_sec: timeout.as_secs().try_into().ok()?,
            tv_nsec: timeout.subsec_nanos().into(),
        })
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), |timeout| timeout);
    let mask = mask.map_or(std::ptr::null(), |mask| mask);
    // SAFETY: `len` is the number of events.
    sys::outcome(unsafe { call!(SYS_epoll_pwait2, fd, at, len, timeout, mask, SET_BYTES) })
}

impl Members {
    fn remove(&mut self, fd: c_int) {
        self.listeners.retain(|&other| other != fd);
        if self.by_fd.remove(&fd).is_some_and(|member| member.queued) {
            self.queue.retain(|&other| other != fd);
        }
    }

    /// Fills in the events of the members in the queue; without `take`, the members stay as they are.
    fn collect(&mut self, poll: &Poll, events: &mut [epoll_event], take: bool) -> usize {
        let (mut found, mut look) = (0, None);
        for _ in 0..self.queue.len() {
            if found == events.len() {
                break;
            }
            let Some(fd) = self.queue.pop_front() else {
                break;
            };
            let Some(member) = self.by_fd.get_mut(&fd) else {
                continue;
            };
            let Some(socket) = member.description.upgrade() else {
                // The program closed the socket, which removes it from the set.
                self.remove(fd);
                continue;
            };
            let ready = member.ready(&socket, poll, &mut look);
            // Dropping the last reference closes the socket, which a look does not allow.
            self.seen.push(socket);
            if ready != 0 {
                events[found] = epoll_event {
                    events: ready,
                    u64: member.data,
                };
                found += 1;
            }
            let (wanted, once) = (member.wanted, member.wanted & ONE_SHOT != 0);
            member.queued = ready != 0 && (!take || wanted & EDGE_TRIGGERED == 0 && !once);
            if ready != 0 && take && once {
                // The member reports nothing until it is modified.
                member.wanted = ONE_SHOT;
            }
            if member.queued {
                self.queue.push_back(fd);
            }
        }
        drop(look);
        self.seen.clear();
        found
    }
}

impl Member {
    /// Returns the member's events to report now.
    fn ready<'a>(&self, socket: &Description, poll: &'a Poll, look: &mut Option<Look<'a>>) -> u32 {
        if self.wanted == ONE_SHOT {
            return 0;
        }
        let now = if let Some(stream) = socket.stream() {
            if stream.is_direct() {
                // The kernel reports this connection's events.
                return 0;
            }
            let look = look.get_or_insert_with(|| poll.look());
            events_of(&look.readiness(stream))
        } else if let Some(listener) = socket.as_listener() {
            *look = None;
            let waits = listener.listening().iter().any(|one| one.is_acceptable());
            if waits { ACCEPTABLE } else { 0 }
        } else {
            0
        };
        now & (self.wanted | ALWAYS)
    }
}

/// Creates the set of an epoll instance that gets its first socket of this library; returns `None` without an adapter.
pub fn new_set(fd: c_int) -> Option<Arc<EpollSet>> {
    // The kernel reports that this is no descriptor.
    if fd < 0 {
        return None;
    }
    session::prepare();
    let set = EpollSet::new(fd, session::adapter()?);
    Some(Arc::new(set.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_reports_each_connection_once() {
        let event = |events, u64| epoll_event { events, u64 };
        let mut events = [
            event(1, 7),
            event(1, 8),
            event(4, 9),
            event(4, 7),
            event(1, 6),
        ];
        let left = join(&mut events, 2);
        let told = events[..left].iter().map(|event| (event.u64, event.events));
        assert_eq!(told.collect::<Vec<_>>(), [(7, 5), (8, 1), (9, 4), (6, 1)]);
        assert_eq!(join(&mut events[..left], 0), left, "of one side only");
    }
}
