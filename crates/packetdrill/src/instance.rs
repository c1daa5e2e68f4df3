//! A world and the threads that call into it.
//!
//! The thread that drives the script makes virtual time pass: it injects packets and waits for packets, and never really
//! blocks. A sleep of any thread makes time pass, too. A call that blocks on another thread sleeps in the kernel until the driver's
//! actions wake it. The script states at which moment such a call returns, so the driver stops the clock at every change and
//! waits until each woken thread sleeps again, or has returned and made its next call (usually a reading of the clock).

use crate::errno::{Errno, Outcome, Stop};
use crate::network::Outgoing;
use crate::world::World;
use baton_wire::{Span, Time};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Longest real time to wait for a woken thread.
const SETTLE_LIMIT: Duration = Duration::from_millis(100);

/// Real time that a thread gets after its next call, to store the result of its blocked call.
const STORING_TIME: Duration = Duration::from_millis(2);

/// Longest virtual time to wait for a packet: longer than any timer of a typical host, keepalive included.
const LONGEST_WAIT: Span = Span::from_secs(4 * 3600);

/// State of a blocked call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleep {
    /// The thread sleeps; `seen` is the world's number of changes at its last attempt.
    Asleep { seen: u64 },
    /// The thread is to attempt its call again.
    Woken,
    /// The call returned, and its thread has made no other call since.
    Returned,
}

/// A call that blocks, or just did.
#[derive(Debug)]
struct Sleeper {
    thread: ThreadId,
    sleep: Sleep,
    /// Time at which the thread tries again, even if nothing has changed.
    until: Time,
}

#[derive(Debug)]
struct Inner {
    world: World,
    sleepers: Vec<Sleeper>,
    /// The thread that makes time pass.
    driver: ThreadId,
    /// When a thread that had been in a blocked call made its next call.
    heard: Option<Instant>,
    /// A call that had blocked has returned since a sleep last let time pass.
    returned: bool,
}

/// A world behind a lock.
#[derive(Debug)]
pub struct Instance {
    inner: Mutex<Inner>,
    /// Signals that sleepers may try again.
    wake: Condvar,
    /// Signals that a woken thread sleeps again or has made its next call.
    settled: Condvar,
}

/// The lock on a world.
type Guard<'a> = MutexGuard<'a, Inner>;

impl Instance {
    /// Creates an instance whose script is driven by the calling thread.
    pub fn new(world: World) -> Self {
        Self {
            inner: Mutex::new(Inner {
                world,
                sleepers: Vec::new(),
                driver: thread::current().id(),
                heard: None,
                returned: false,
            }),
            wake: Condvar::new(),
            settled: Condvar::new(),
        }
    }

    /// Locks the world. The driver may wait for this call of a thread that has returned from a blocked call.
    fn enter(&self) -> Guard<'_> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let me = thread::current().id();
        let known = inner.sleepers.len();
        inner.sleepers.retain(|sleeper| sleeper.thread != me);
        if inner.sleepers.len() != known {
            inner.heard = Some(Instant::now());
            self.settled.notify_all();
        }
        inner.world.take_new_settings();
        inner
    }

    /// Locks the world for calls of the network device, which only the thread that drives the script makes.
    fn drive(&self) -> Guard<'_> {
        let mut inner = self.enter();
        inner.driver = thread::current().id();
        inner
    }

    /// Makes a call that does not block.
    pub fn call<T>(&self, call: impl FnOnce(&mut World) -> T) -> T {
        let mut inner = self.enter();
        let value = call(&mut inner.world);
        drop(self.settle_if_driver(inner));
        value
    }

    /// Makes a call that may block: attempts it until it has an outcome.
    ///
    /// # Errors
    /// The error of the attempt; EDEADLK if the driver waits for something that can never happen.
    pub fn blocking_call<T>(
        &self,
        mut attempt: impl FnMut(&mut World) -> Outcome<T>,
    ) -> Result<T, Errno> {
        let mut inner = self.enter();
        let mut slept = false;
        loop {
            let outcome = attempt(&mut inner.world);
            let stop = match outcome {
                Ok(value) => {
                    self.returned(inner, slept);
                    return Ok(value);
                }
                Err(stop) => stop,
            };
            match stop {
                Stop::Fail(errno) => {
                    self.returned(inner, slept);
                    return Err(errno);
                }
                Stop::Wait(until) if inner.driver == thread::current().id() => {
                    inner = self.settle(inner);
                    let moved;
                    (inner, moved) = self.step(inner, until);
                    if !moved {
                        return Err(Errno(libc::EDEADLK));
                    }
                }
                Stop::Wait(until) => {
                    inner = self.sleep(inner, until);
                    slept = true;
                }
            }
        }
    }

    /// Puts the calling thread to sleep until it is to attempt its call again.
    fn sleep<'a>(&self, mut inner: Guard<'a>, until: Time) -> Guard<'a> {
        let me = thread::current().id();
        let seen = inner.world.changes();
        inner.sleepers.retain(|sleeper| sleeper.thread != me);
        inner.sleepers.push(Sleeper {
            thread: me,
            sleep: Sleep::Asleep { seen },
            until,
        });
        self.settled.notify_all();
        let asleep = |inner: &mut Inner| {
            let mut mine = inner.sleepers.iter().filter(|sleeper| sleeper.thread == me);
            mine.any(|sleeper| sleeper.sleep != Sleep::Woken)
        };
        let waited = self.wake.wait_while(inner, asleep);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a call. If the call slept, the driver waits for its thread, and the call's effects may wake other threads.
    fn returned(&self, mut inner: Guard<'_>, slept: bool) {
        let me = thread::current().id();
        inner.sleepers.retain(|sleeper| sleeper.thread != me);
        if slept {
            inner.returned = true;
            inner.sleepers.push(Sleeper {
                thread: me,
                sleep: Sleep::Returned,
                until: Time::NEVER,
            });
            self.wake_sleepers(&mut inner);
            self.settled.notify_all();
        } else {
            drop(self.settle_if_driver(inner));
        }
    }

    /// Wakes threads for which something changed or whose time has come.
    fn wake_sleepers(&self, inner: &mut Inner) {
        let (now, changes) = (inner.world.now(), inner.world.changes());
        for sleeper in &mut inner.sleepers {
            if let Sleep::Asleep { seen } = sleeper.sleep
                && (seen != changes || sleeper.until <= now)
            {
                sleeper.sleep = Sleep::Woken;
                self.wake.notify_all();
            }
        }
    }

    fn settle_if_driver<'a>(&self, mut inner: Guard<'a>) -> Guard<'a> {
        if inner.driver == thread::current().id() {
            return self.settle(inner);
        }
        self.wake_sleepers(&mut inner);
        inner
    }

    /// Asserts the world's invariants, in builds with debug assertions.
    fn check(inner: &Inner) {
        debug_assert_eq!(inner.world.check(), Ok(()), "the world is in order");
    }

    /// Stops time until every woken thread sleeps again or has made its next call.
    fn settle<'a>(&self, mut inner: Guard<'a>) -> Guard<'a> {
        let begun = Instant::now();
        Self::check(&inner);
        loop {
            self.wake_sleepers(&mut inner);
            let is_asleep = |sleeper: &Sleeper| matches!(sleeper.sleep, Sleep::Asleep { .. });
            if inner.sleepers.iter().all(is_asleep) {
                let rest = inner.heard.map(|heard| heard.elapsed());
                let Some(rest) = rest.and_then(|since| STORING_TIME.checked_sub(since)) else {
                    inner.heard = None;
                    return inner;
                };
                let waited = self.settled.wait_timeout(inner, rest);
                inner = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let Some(rest) = SETTLE_LIMIT.checked_sub(begun.elapsed()) else {
                // The thread did not make its next call in time: do not wait for it again.
                let returned = |sleeper: &Sleeper| sleeper.sleep == Sleep::Returned;
                inner.sleepers.retain(|sleeper| !returned(sleeper));
                return inner;
            };
            let waited = self.settled.wait_timeout(inner, rest);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The next moment at which a timer or the deadline of a sleeping thread is due.
    fn next_moment(inner: &Inner) -> Time {
        // The deadlines of threads that are awake have passed.
        let asleep = |sleeper: &&Sleeper| matches!(sleeper.sleep, Sleep::Asleep { .. });
        let sleepers = inner.sleepers.iter().filter(asleep);
        let deadlines = sleepers.map(|sleeper| sleeper.until);
        deadlines.fold(inner.world.next_timer(), Time::min)
    }

    /// Advances to the next moment at which a timer or deadline is due, at most to `limit`. Returns false if there is no such moment.
    fn step<'a>(&self, mut inner: Guard<'a>, limit: Time) -> (Guard<'a>, bool) {
        let next = Self::next_moment(&inner).min(limit);
        if next == Time::NEVER {
            return (inner, false);
        }
        inner.world.step_to(next);
        (self.settle(inner), true)
    }

    /// Injects an arriving raw IP packet.
    ///
    /// # Errors
    /// EINVAL if it is not an IP packet.
    pub fn inject(&self, packet: &[u8]) -> Result<(), Errno> {
        let mut inner = self.drive();
        let outcome = inner.world.inject(packet);
        drop(self.settle(inner));
        outcome
    }

    /// Returns the next packet that leaves, at most `most` bytes long, and when it left, in microseconds since 1970. Lets time
    /// pass until there is one. If none would ever leave, or none within hours, returns an empty packet now, because tools
    /// repeat a failed call for ever.
    ///
    /// # Errors
    /// EMSGSIZE if a packet of one segment does not fit.
    pub fn fetch(&self, most: usize) -> Result<(Vec<u8>, u64), Errno> {
        let mut inner = self.drive();
        let limit = inner.world.now() + LONGEST_WAIT;
        loop {
            inner = self.settle(inner);
            if let Some(packet) = inner.world.outgoing.pop_front() {
                return fetched(&mut inner.world, packet, most);
            }
            if Self::next_moment(&inner) > limit {
                return Ok((Vec::new(), World::unix_us(inner.world.now())));
            }
            (inner, _) = self.step(inner, limit);
        }
    }

    /// Lets time pass, whichever thread calls: a tool's second thread sleeps until its call while the first one waits for it
    /// outside of this object. A tool releases its own lock while it sleeps, and a thread that has returned from a call gets
    /// real time to take that lock.
    pub fn sleep_for(&self, span: Span) {
        let mut inner = self.enter();
        if std::mem::take(&mut inner.returned) {
            drop(inner);
            thread::sleep(STORING_TIME);
            inner = self.enter();
        }
        inner = self.settle(inner);
        let until = inner.world.now() + span;
        while inner.world.now() < until {
            (inner, _) = self.step(inner, until);
        }
    }

    /// Reads the clock, microseconds since 1970. Reading takes virtual time.
    pub fn read_clock(&self) -> u64 {
        let mut inner = self.enter();
        let clock_us = inner.world.read_clock();
        drop(self.settle_if_driver(inner));
        clock_us
    }
}

/// Encodes a packet. Splits a packet that is too long for its reader as segmentation would.
fn fetched(world: &mut World, packet: Outgoing, most: usize) -> Result<(Vec<u8>, u64), Errno> {
    let (first, rest) = packet.cut(most);
    if let Some(rest) = rest {
        world.outgoing.push_front(rest);
    }
    let bytes = first.encode().ok_or(Errno(libc::EIO))?;
    if bytes.len() > most {
        return Err(Errno(libc::EMSGSIZE));
    }
    Ok((bytes, World::unix_us(first.at)))
}
