//! An epoll instance of the application that works together with a [`Poll`](crate::Poll).

use crate::poll::Poll;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The application's epoll instance, which watches the connections that the application uses directly. The poll watches all others.
#[derive(Debug)]
pub(crate) struct Instance {
    pub epoll: Arc<OwnedFd>,
    /// Number of registrations that the instance does not watch.
    elsewhere: AtomicUsize,
    /// Number of threads that wait for the instance alone.
    waiting: AtomicUsize,
    /// Always readable. `rings` says whether it is in the instance.
    bell: OwnedFd,
    rings: Mutex<bool>,
}

impl Instance {
    pub(crate) fn new(epoll: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            epoll: Arc::new(epoll),
            elsewhere: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            bell: eventfd(1, EventfdFlags::CLOEXEC)?,
            rings: Mutex::new(false),
        })
    }

    /// There is one more registration that the instance does not wait for: who waits for it alone is woken.
    pub(crate) fn enter(&self) {
        // Either a thread that is about to wait sees this increment, or this thread sees the waiting one.
        if self.elsewhere.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        if !*rings && self.waiting.load(Ordering::SeqCst) > 0 {
            let data = epoll::EventData::new_u64(Poll::bell());
            *rings = epoll::add(&self.epoll, &self.bell, data, epoll::EventFlags::IN).is_ok();
        }
    }

    /// Counts one registration less that the instance does not watch.
    pub(crate) fn leave(&self) {
        self.elsewhere.fetch_sub(1, Ordering::SeqCst);
    }

    fn silence(&self) {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        if *rings && self.waiting.load(Ordering::SeqCst) == 0 {
            *rings = epoll::delete(&self.epoll, &self.bell).is_err();
        }
    }
}

impl Poll {
    /// Returns the data of the event by which the application's instance reports that waiting for the instance alone is not enough. The
    /// application's own events never have this value, whether they use addresses or numbers.
    pub fn bell() -> u64 {
        static BELL: u8 = 0;
        (&raw const BELL).addr() as u64
    }

    /// Waits for the application's instance with `wait`, provided that the instance watches all registrations. Returns `None` if not, or if
    /// there is no instance.
    pub fn wait_in_kernel<T>(&self, wait: impl FnOnce() -> T) -> Option<T> {
        let instance = self.instance()?;
        instance.waiting.fetch_add(1, Ordering::SeqCst);
        let has_all = instance.elsewhere.load(Ordering::SeqCst) == 0;
        let outcome = has_all.then(wait);
        instance.waiting.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    /// To be called when a wait has given an event of the [bell](Poll::bell).
    pub fn silence_bell(&self) {
        if let Some(instance) = self.instance() {
            instance.silence();
        }
    }
}
