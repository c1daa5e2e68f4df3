//! epoll (epoll(7)): level- and edge-triggered, one-shot.

use crate::descriptors::File;
use crate::errno::{Errno, Outcome, Stop, fail};
use crate::sockets::Ready;
use crate::world::World;
use baton_abi::epoll::{ALWAYS, EDGE_TRIGGERED, MODES, ONE_SHOT, check_control};
use baton_wire::{Span, Time};
use libc::c_int;
use std::collections::VecDeque;

/// Maximum number of events of one epoll_wait (EP_MAX_EVENTS).
const MOST_EVENTS: c_int = c_int::MAX / 12;

/// One watched descriptor.
#[derive(Clone, Copy, Debug)]
struct Watched {
    fd: c_int,
    events: u32,
    data: u64,
    /// The descriptor is in the ready list.
    listed: bool,
}

impl Watched {
    /// Requested conditions, always including errors and hang-ups. No conditions once a one-shot descriptor has reported an event.
    fn interest(&self) -> u32 {
        match self.events & !MODES {
            0 if self.events & ONE_SHOT != 0 => 0,
            conditions => conditions | ALWAYS,
        }
    }
}

/// One epoll instance.
#[derive(Debug, Default)]
pub(crate) struct Epoll {
    watched: Vec<Watched>,
    /// Ready list: descriptors that may be ready, the longest-waiting first.
    list: VecDeque<c_int>,
}

impl Epoll {
    fn find(&mut self, fd: c_int) -> Option<&mut Watched> {
        self.watched.iter_mut().find(|watched| watched.fd == fd)
    }

    fn list(&mut self, fd: c_int) {
        if let Some(watched) = self.find(fd)
            && !watched.listed
        {
            watched.listed = true;
            self.list.push_back(fd);
        }
    }

    fn forget(&mut self, fd: c_int) {
        self.watched.retain(|watched| watched.fd != fd);
        self.list.retain(|&listed| listed != fd);
    }
}

/// An event that epoll_wait returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpollEvent {
    /// Conditions.
    pub events: u32,
    /// The caller's data for the descriptor.
    pub data: u64,
}

/// epoll_wait(2).
#[derive(Debug)]
pub struct EpollWait {
    fd: c_int,
    most: c_int,
    timeout_ms: c_int,
    limit: Option<Time>,
}

impl EpollWait {
    /// Creates the call.
    pub fn new(fd: c_int, most: c_int, timeout_ms: c_int) -> Self {
        Self {
            fd,
            most,
            timeout_ms,
            limit: None,
        }
    }

    /// Returns events, or none after the timeout.
    ///
    /// # Errors
    /// EBADF; EINVAL if the descriptor is no epoll instance or there is no space for events.
    pub fn attempt(&mut self, world: &mut World) -> Outcome<Vec<EpollEvent>> {
        let File::Epoll(id) = world.descriptors.get(self.fd)? else {
            return fail(libc::EINVAL);
        };
        if self.most <= 0 || self.most > MOST_EVENTS {
            return fail(libc::EINVAL);
        }
        let now = world.now();
        let limit = *self
            .limit
            .get_or_insert_with(|| limit_of(now, self.timeout_ms));
        let events = world.epoll_events(id, self.most as usize);
        if events.is_empty() && limit > now {
            return Err(Stop::Wait(limit));
        }
        Ok(events)
    }
}

/// The end of a timeout in milliseconds; a negative timeout has none.
pub(crate) fn limit_of(now: Time, timeout_ms: c_int) -> Time {
    match u64::try_from(timeout_ms) {
        Ok(ms) => now + Span::from_ms(ms),
        Err(_) => Time::NEVER,
    }
}

impl World {
    /// epoll_create(2).
    ///
    /// # Errors
    /// EINVAL for a size that is not positive; EMFILE.
    pub fn epoll_create(&mut self, size: c_int) -> Result<c_int, Errno> {
        if size <= 0 {
            return Err(Errno(libc::EINVAL));
        }
        let id = self.epolls.insert(Epoll::default());
        self.descriptors.add(File::Epoll(id)).inspect_err(|_| {
            self.epolls.remove(id);
        })
    }

    /// epoll_ctl(2); `event` is ignored when a descriptor is removed.
    ///
    /// # Errors
    /// As in the manual page.
    pub fn epoll_ctl(
        &mut self,
        epoll: c_int,
        operation: c_int,
        fd: c_int,
        event: EpollEvent,
    ) -> Result<(), Errno> {
        let instance = self.descriptors.get(epoll)?;
        self.descriptors.get(fd)?;
        let File::Epoll(id) = instance else {
            return Err(Errno(libc::EINVAL));
        };
        if epoll == fd {
            return Err(Errno(libc::EINVAL));
        }
        let known = self.epolls[id].find(fd);
        let registered = known.as_ref().map(|watched| watched.events);
        check_control(operation, event.events, registered)?;
        if operation == libc::EPOLL_CTL_DEL {
            self.epolls[id].forget(fd);
            return Ok(());
        }
        match known {
            Some(watched) => (watched.events, watched.data) = (event.events, event.data),
            None => self.epolls[id].watched.push(Watched {
                fd,
                events: event.events,
                data: event.data,
                listed: false,
            }),
        }
        self.list_if_ready(id, fd);
        self.changed();
        Ok(())
    }

    fn list_if_ready(&mut self, id: usize, fd: c_int) {
        let ready = self.readiness(fd);
        let epoll = &mut self.epolls[id];
        let interest = epoll.find(fd).map_or(0, |watched| watched.interest());
        if ready & interest != 0 {
            epoll.list(fd);
        }
    }

    /// Adds `fd` to the ready lists of the instances that are interested in the change.
    pub(crate) fn wake_watchers(&mut self, fd: c_int, change: u32) {
        for (_, epoll) in &mut self.epolls {
            if epoll
                .find(fd)
                .is_some_and(|watched| watched.interest() & change != 0)
            {
                epoll.list(fd);
            }
        }
    }

    /// Removes `fd`, which is being closed, from all instances.
    pub(crate) fn forget_watched(&mut self, fd: c_int) {
        for (_, epoll) in &mut self.epolls {
            epoll.forget(fd);
        }
    }

    /// Takes events of listed descriptors whose conditions still hold. Level-triggered descriptors stay listed.
    fn epoll_events(&mut self, id: usize, most: usize) -> Vec<EpollEvent> {
        let mut events = Vec::new();
        for _ in 0..self.epolls[id].list.len() {
            if events.len() == most {
                break;
            }
            let Some(fd) = self.epolls[id].list.pop_front() else {
                break;
            };
            let ready = self.readiness(fd);
            let epoll = &mut self.epolls[id];
            let Some(watched) = epoll.find(fd) else {
                continue;
            };
            watched.listed = false;
            let ready = ready & watched.interest();
            if ready == 0 {
                continue;
            }
            events.push(EpollEvent {
                events: ready,
                data: watched.data,
            });
            if watched.events & ONE_SHOT != 0 {
                watched.events &= MODES;
            } else if watched.events & EDGE_TRIGGERED == 0 {
                epoll.list(fd);
            }
        }
        events
    }

    /// Readiness of an epoll instance, which is readable if it has events.
    pub(crate) fn epoll_readiness(&mut self, id: usize) -> u32 {
        let listed: Vec<_> = self.epolls[id].list.iter().copied().collect();
        let any = listed.into_iter().any(|fd| {
            let interest = self.epolls[id]
                .find(fd)
                .map_or(0, |watched| watched.interest());
            self.readiness(fd) & interest != 0
        });
        if any { Ready::READABLE } else { 0 }
    }
}
