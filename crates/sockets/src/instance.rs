//! An epoll instance of the application that works together with a [`Poll`](crate::Poll).

use crate::poll::Poll;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
    /// In the instance and readable while the poll has events: for waiters that watch the instance from outside, such as another epoll
    /// instance.
    flag: OnceLock<OwnedFd>,
    is_raised: AtomicBool,
}

impl Instance {
    pub(crate) fn new(epoll: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            epoll: Arc::new(epoll),
            elsewhere: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            bell: eventfd(1, EventfdFlags::CLOEXEC)?,
            rings: Mutex::new(false),
            flag: OnceLock::new(),
            is_raised: AtomicBool::new(false),
        })
    }

    /// Signals that the poll has a new event.
    pub(crate) fn raise(&self) {
        if let Some(flag) = self.flag.get() {
            self.is_raised.store(true, Ordering::SeqCst);
            // The write also wakes edge-triggered waiters, even if the counter is full.
            let _ = rustix::io::write(flag, &1_u64.to_ne_bytes());
        }
    }

    fn lower(&self) {
        if let Some(flag) = self.flag.get() {
            self.is_raised.store(false, Ordering::SeqCst);
            let _ = rustix::io::read(flag, &mut [0; 8]);
        }
    }

    fn has_flag(&self) -> bool {
        self.flag.get().is_some()
    }

    /// Counts one more registration that the instance does not watch, and wakes threads that wait for the instance alone.
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

    /// Declares that the application's instance is watched from outside, as a member of another one: from now on it also becomes readable
    /// when this poll has an event.
    ///
    /// # Errors
    /// The poll has no instance, or the system has no resources for another file.
    pub fn tell_outside(&self) -> io::Result<()> {
        let instance = self.instance().ok_or(io::ErrorKind::Unsupported)?;
        if instance.has_flag() {
            return Ok(());
        }
        let flag = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let data = epoll::EventData::new_u64(Self::bell());
        epoll::add(&instance.epoll, &flag, data, epoll::EventFlags::IN)?;
        let _ = instance.flag.set(flag);
        self.keep_looking();
        Ok(())
    }

    /// Keeps the instance readable, for whoever watches it [from outside](Poll::tell_outside), while the poll's application finds something
    /// ready.
    pub fn show_outside(&self, is_ready: impl Fn() -> bool) {
        let Some(instance) = self.instance().filter(|instance| instance.has_flag()) else {
            return;
        };
        match (is_ready(), instance.is_raised.load(Ordering::SeqCst)) {
            (true, false) => instance.raise(),
            (false, true) => {
                instance.lower();
                // Something may have become ready since.
                if is_ready() {
                    instance.raise();
                }
            }
            _ => {}
        }
    }

    /// Silences the [bell](Poll::bell) after a wait has reported its event.
    pub fn silence_bell(&self) {
        if let Some(instance) = self.instance() {
            instance.silence();
        }
    }
}
