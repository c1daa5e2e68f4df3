//! An epoll instance of the application's beside a [`Poll`](crate::Poll).

use crate::poll::Poll;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a set is waited for by: the application's instance for connections that it uses directly, the poll for all others.
#[derive(Debug)]
pub(crate) struct Instance {
    pub epoll: Arc<OwnedFd>,
    /// Registrations that the instance does not wait for.
    elsewhere: AtomicUsize,
    /// Threads that wait for the instance alone.
    waiting: AtomicUsize,
    /// Always readable; whether it is in the instance.
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
        // Either a thread that is about to wait sees this, or this sees the thread.
        if self.elsewhere.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        if !*rings && self.waiting.load(Ordering::SeqCst) > 0 {
            let data = epoll::EventData::new_u64(Poll::bell());
            *rings = epoll::add(&self.epoll, &self.bell, data, epoll::EventFlags::IN).is_ok();
        }
    }

    /// There is one less.
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
    /// The data of an event by which the application's instance tells that there is more to wait for than the instance. It is no event of the
    /// application's, and no address or number of anything of its own.
    pub fn bell() -> u64 {
        static BELL: u8 = 0;
        (&raw const BELL).addr() as u64
    }

    /// Waits for the application's instance by `wait`, as long as it has all that is registered. None where it has not, or there is none.
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
