//! One world and the threads that call into it.
//!
//! Time passes by what the thread that drives the script does: it injects packets and waits for them, and it never
//! blocks for real. It passes for any thread that sleeps, too. A call that blocks on another thread sleeps in the kernel until the driver's doings let
//! it go on. The script says at which moment such a call returns, so the driver stops the clock at every change and
//! lets the woken threads come back, until each sleeps again or has returned and made its next call (usually a look
//! at the clock), before it goes on.

use crate::errno::{Errno, Outcome, Stop};
use crate::network::Outgoing;
use crate::world::World;
use baton_wire::{Span, Time};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Longest real time for which a woken thread is waited for.
const SETTLE_LIMIT: Duration = Duration::from_millis(100);

/// Real time that a thread gets after it was heard of again: it still has to store what its call came to.
const STORING_TIME: Duration = Duration::from_millis(2);

/// Longest virtual time for which a packet is waited for: longer than any timer of a usual host, keepalive included.
const LONGEST_WAIT: Span = Span::from_secs(4 * 3600);

/// What one blocked call is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleep {
    /// Its thread sleeps; the world had changed so often when it looked last.
    Asleep { seen: u64 },
    /// It is to look again.
    Woken,
    /// It returned, and its thread was not heard of since.
    Returned,
}

/// A call that blocks, or just did.
#[derive(Debug)]
struct Sleeper {
    thread: ThreadId,
    sleep: Sleep,
    /// It looks again at this moment whatever happens.
    until: Time,
}

#[derive(Debug)]
struct Inner {
    world: World,
    sleepers: Vec<Sleeper>,
    /// The thread on whose account time passes.
    driver: ThreadId,
    /// When a thread that had been in a call that blocked was heard of again.
    heard: Option<Instant>,
    /// A call that blocked returned since time last passed by sleeping.
    returned: bool,
}

/// A world behind a lock.
#[derive(Debug)]
pub struct Instance {
    inner: Mutex<Inner>,
    /// Sleepers may look again.
    wake: Condvar,
    /// A woken thread sleeps again or was heard of.
    settled: Condvar,
}

/// The lock on a world.
type Guard<'a> = MutexGuard<'a, Inner>;

impl Instance {
    /// An instance whose script is driven by the calling thread.
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

    /// Locks the world. That a thread calls again is what others may wait for after it returned from a blocked call.
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

    /// The same for the calls of the network device, which only the thread that drives the script makes.
    fn drive(&self) -> Guard<'_> {
        let mut inner = self.enter();
        inner.driver = thread::current().id();
        inner
    }

    /// A call that does not block.
    pub fn call<T>(&self, call: impl FnOnce(&mut World) -> T) -> T {
        let mut inner = self.enter();
        let value = call(&mut inner.world);
        drop(self.settle_if_driver(inner));
        value
    }

    /// A call that may block: it is attempted until it comes to something.
    ///
    /// # Errors
    /// What the attempt fails with; EDEADLK when the driver waits for what can never happen.
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

    /// Puts the calling thread to sleep until it is to look again.
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

    /// A call came to its end: one that slept is waited for by the driver, and what it did may wake others.
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

    /// Wakes those for whom something changed or whose time has come.
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

    /// Asserts the world's invariants, in builds that assert.
    fn check(inner: &Inner) {
        debug_assert_eq!(inner.world.check(), Ok(()), "the world is in order");
    }

    /// Stops time until every woken thread sleeps again or was heard of.
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
                // Its caller does something else: it is not waited for again.
                let returned = |sleeper: &Sleeper| sleeper.sleep == Sleep::Returned;
                inner.sleepers.retain(|sleeper| !returned(sleeper));
                return inner;
            };
            let waited = self.settled.wait_timeout(inner, rest);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The next moment at which something happens by itself.
    fn next_moment(inner: &Inner) -> Time {
        // Those that are awake already have had their moment.
        let asleep = |sleeper: &&Sleeper| matches!(sleeper.sleep, Sleep::Asleep { .. });
        let sleepers = inner.sleepers.iter().filter(asleep);
        let deadlines = sleepers.map(|sleeper| sleeper.until);
        deadlines.fold(inner.world.next_timer(), Time::min)
    }

    /// Goes to the next moment at which something happens, `limit` at the latest. False when nothing ever will.
    fn step<'a>(&self, mut inner: Guard<'a>, limit: Time) -> (Guard<'a>, bool) {
        let next = Self::next_moment(&inner).min(limit);
        if next == Time::NEVER {
            return (inner, false);
        }
        inner.world.step_to(next);
        (self.settle(inner), true)
    }

    /// A raw IP packet arrives.
    ///
    /// # Errors
    /// EINVAL when it is none.
    pub fn inject(&self, packet: &[u8]) -> Result<(), Errno> {
        let mut inner = self.drive();
        let outcome = inner.world.inject(packet);
        drop(self.settle(inner));
        outcome
    }

    /// The next packet that leaves, at most `most` bytes long, and when it left, microseconds since 1970. Lets time
    /// pass until there is one. When none would ever leave, or none within hours, an empty one, now: tools call again
    /// for ever when this fails.
    ///
    /// # Errors
    /// EMSGSIZE when there is no room for a packet of one segment.
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

    /// Lets time pass, whichever thread wants it: a tool's second thread sleeps up to its call while the first one waits
    /// for that outside of the object. A tool that sleeps lets go of its own lock, which a thread that returned from a call may
    /// want: it gets the real time for it.
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

    /// What the clock shows, microseconds since 1970. Looking takes time.
    pub fn read_clock(&self) -> u64 {
        let mut inner = self.enter();
        let clock_us = inner.world.read_clock();
        drop(self.settle_if_driver(inner));
        clock_us
    }
}

/// A packet as bytes. What is too long for its reader is cut as segmentation would cut it.
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
