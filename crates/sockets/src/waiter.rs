//! Threads and tasks that wait for sockets.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::thread::{self, Thread};
use std::time::Instant;

/// A thread that can be woken.
#[derive(Debug)]
pub(crate) struct Parker {
    thread: Thread,
    notified: AtomicBool,
    /// Wakes the thread while it also waits for other descriptors.
    bell: OnceLock<OwnedFd>,
}

thread_local! {
    static PARKER: RefCell<Arc<Parker>> = RefCell::new(Parker::new());
}

impl Parker {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            thread: thread::current(),
            notified: AtomicBool::new(false),
            bell: OnceLock::new(),
        })
    }

    /// Returns the parker of this thread.
    pub(crate) fn current() -> Arc<Self> {
        PARKER.with_borrow(Arc::clone)
    }

    /// Replaces this thread's parker in the child of fork(2), which must not share a bell with its parent.
    pub(crate) fn renew() {
        PARKER.set(Self::new());
    }

    /// Returns the descriptor that becomes readable when the thread is woken; `None` if the system has no descriptor left for it.
    pub(crate) fn bell(&self) -> Option<&OwnedFd> {
        if self.bell.get().is_none() {
            let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).ok()?;
            // Only this thread sets the bell.
            let _ = self.bell.set(bell);
        }
        self.bell.get()
    }

    /// Clears the notification.
    pub(crate) fn reset(&self) {
        self.notified.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_notified(&self) -> bool {
        self.notified.load(Ordering::Acquire)
    }

    /// Sets the notification; returns false if it was set already.
    pub(crate) fn notify(&self) -> bool {
        !self.notified.swap(true, Ordering::AcqRel)
    }

    /// Wakes the thread if it sleeps in [`Parker::park`] or waits for its bell.
    pub(crate) fn unpark(&self) {
        self.thread.unpark();
        if let Some(bell) = self.bell.get() {
            // If the counter is full, the bell is readable anyway.
            let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
        }
    }

    /// Sleeps until the thread is notified, or until `deadline`.
    pub(crate) fn park(&self, deadline: Option<Instant>) {
        while !self.is_notified() {
            match deadline {
                None => thread::park(),
                Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => thread::park_timeout(left),
                    _ => return,
                },
            }
        }
    }
}

/// A waiting thread or task.
#[derive(Clone, Debug)]
pub(crate) enum Waiter {
    Thread(Arc<Parker>),
    Task(Waker),
}

impl Waiter {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Thread(one), Self::Thread(two)) => Arc::ptr_eq(one, two),
            (Self::Task(one), Self::Task(two)) => one.will_wake(two),
            _ => false,
        }
    }
}

/// Somebody to wake once the lock is released. A thread that is woken earlier only waits for the lock, which costs two more context
/// switches; an executor may run a task immediately.
#[derive(Debug)]
pub(crate) enum Wake {
    Task(Waker),
    Thread(Arc<Parker>),
    /// The leader, by the descriptor that it waits for.
    Leader(Arc<OwnedFd>),
}

impl Wake {
    pub(crate) fn wake(self) {
        match self {
            Self::Task(waker) => waker.wake(),
            Self::Thread(parker) => parker.unpark(),
            // If the counter is full, the leader is woken anyway.
            Self::Leader(kick) => drop(rustix::io::write(&*kick, &1_u64.to_ne_bytes())),
        }
    }
}

/// All waiters for the same event.
#[derive(Debug, Default)]
pub(crate) struct Waiters(SmallVec<[Waiter; 1]>);

impl Waiters {
    /// Adds a waiter, unless it is registered already. Returns true if it is a new task.
    pub(crate) fn add(&mut self, waiter: &Waiter) -> bool {
        if self.0.iter().any(|other| other.is(waiter)) {
            return false;
        }
        self.0.push(waiter.clone());
        matches!(waiter, Waiter::Task(_))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all waiters.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Waiter> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }
}
