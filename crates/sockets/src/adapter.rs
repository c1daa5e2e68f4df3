//! The application's hold on an adapter, for any number of threads.
//!
//! Threads share one link. Whoever has to wait first becomes the *leader*: it waits for the adapter, takes in what comes and wakes
//! those that it is for. The others, the *followers*, sleep until they are woken, or until the leader has got what it wanted and one
//! of them takes its place. So a thread that is alone hears of its data without another thread in between, and there is never more
//! than one that the adapter has to wake. Where nobody waits although somebody should (tasks, timers, data that found no room)
//! a thread that does nothing else leads, the *keeper*.

use crate::beside::Beside;
use crate::config::DriverConfig;
use crate::core::Core;
use crate::driver::{Driver, readable};
use crate::error::OpenError;
use crate::host::Host;
use crate::kernel::{Handoff, KernelLayer};
use crate::waiter::{Parker, Waiter};
use baton_iolib::{AdapterAddress, AnyHostLink};
use baton_wire::Span;
use rustix::event::{EventfdFlags, epoll, eventfd};
use smallvec::SmallVec;
use std::cell::Cell;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

/// Pauses of the processor in which other threads can have the lock.
const PAUSES_PER_LOOK: u32 = 4;
/// How long the last one that lets go of an adapter waits for it to fetch what was written.
const LINGER: Duration = Duration::from_secs(1);
/// Between two looks at whether that has happened.
const FLUSH_PAUSE: Duration = Duration::from_micros(100);
/// The number of the kick among the events of the epoll instance; the link has 0.
const KICK: epoll::EventData = epoll::EventData::new_u64(1);

/// An adapter. Clones are the same adapter; the link ends with the last of them and of the sockets made through it.
///
/// The last one to go waits, for a second at most, until the adapter has fetched what was written. After that it sends it by itself,
/// and closes connections that were closed, even if this process is gone.
///
/// ```no_run
/// use baton_sockets::{Adapter, TcpStream};
/// use std::io::{Read, Write};
///
/// let adapter = Adapter::connect("/run/baton/adapter.sock")?;
/// let mut stream = TcpStream::connect(&adapter, "10.9.0.1:7".parse().unwrap())?;
/// stream.write_all(b"hello")?;
/// let mut echo = [0; 5];
/// stream.read_exact(&mut echo)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Adapter {
    handle: Arc<Handle>,
}

impl Adapter {
    /// Attaches to the adapter that listens at this path.
    ///
    /// # Errors
    /// There is none (`NotFound`), or it refuses (`ConnectionRefused`); the text says what to do.
    pub fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        Self::open(AdapterAddress::Unix(path), DriverConfig::default())
    }

    /// Attaches to an adapter beside the kernel. Listeners and connections begin in the kernel; connections move to the adapter and back as
    /// `handoff` says, of which those who use them see nothing.
    ///
    /// # Errors
    /// As those of [`Adapter::open`].
    pub fn open_beside_kernel(
        address: AdapterAddress,
        config: DriverConfig,
        handoff: Handoff,
    ) -> io::Result<Self> {
        Self::start(address, config, Some(handoff))
    }

    /// Attaches to an adapter, with other than the usual parameters.
    ///
    /// # Errors
    /// There is none, it refuses, or a parameter cannot work.
    pub fn open(address: AdapterAddress, config: DriverConfig) -> io::Result<Self> {
        Self::start(address, config, None)
    }

    fn start(
        address: AdapterAddress,
        config: DriverConfig,
        handoff: Option<Handoff>,
    ) -> io::Result<Self> {
        let host = Host::open(address, config, handoff)?;
        let shared = Shared::new(host).map_err(OpenError::NoRoom)?;
        let keeper = Arc::clone(&shared);
        thread::Builder::new()
            .name("baton-sockets".to_owned())
            .spawn(move || keeper.keep())?;
        let handle = Arc::new(Handle(shared));
        Ok(Self { handle })
    }

    /// Whether there is an adapter. When it is gone another is looked for; meanwhile connections cannot be opened.
    pub fn is_attached(&self) -> bool {
        self.handle.lock().host.driver.is_attached()
    }

    /// Waits, for a second at most, until the adapter has fetched what was written and knows what was closed: it does the rest by itself.
    /// The last hold on an adapter does so when it goes; this is for processes that end without that. It uses nothing of its thread, whose
    /// local values may be gone.
    pub fn flush(&self) {
        let end = Instant::now() + LINGER;
        while !self.handle.call(Core::is_flushed) && Instant::now() < end {
            thread::sleep(FLUSH_PAUSE);
        }
    }

    /// Lets `look` see the layer below, for its counters.
    pub fn with_driver<T>(&self, look: impl FnOnce(&Driver) -> T) -> T {
        look(&self.handle.lock().host.driver)
    }

    /// Lets `look` see the sockets of the kernel's, if connections begin there.
    pub fn with_kernel<T>(&self, look: impl FnOnce(&KernelLayer) -> T) -> Option<T> {
        self.handle.lock().host.kernel().map(look)
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }
}

/// What adapters and sockets hold. When the last one goes the link ends.
#[derive(Debug)]
pub struct Handle(Arc<Shared>);

impl Deref for Handle {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.linger();
        let mut core = self.0.lock();
        core.closed = true;
        core.wake_keeper();
        core.kick();
    }
}

/// How long a call may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timeout {
    /// Not at all.
    None,
    /// Until then.
    Until(Instant),
    /// For ever.
    Endless,
}

impl From<Option<Duration>> for Timeout {
    fn from(timeout: Option<Duration>) -> Self {
        match timeout {
            Some(Duration::ZERO) => Self::None,
            // A time that is beyond the clock's end never comes.
            Some(timeout) => Instant::now()
                .checked_add(timeout)
                .map_or(Self::Endless, Self::Until),
            None => Self::Endless,
        }
    }
}

impl Timeout {
    fn deadline(self) -> Option<Instant> {
        match self {
            Self::Until(deadline) => Some(deadline),
            Self::None | Self::Endless => None,
        }
    }
}

/// What all threads share.
#[derive(Debug)]
pub struct Shared {
    core: Mutex<Core>,
}

thread_local! {
    /// This thread has the lock.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside a call of an adapter's: a descriptor that it closes is no application's then.
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// The lock on it. Tasks are woken when it is free again: an executor may run them at once.
pub(crate) struct Guard<'a> {
    core: Option<MutexGuard<'a, Core>>,
}

impl Deref for Guard<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        self.core.as_ref().expect("it is there until the drop")
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        self.core.as_mut().expect("it is there until the drop")
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let to_wake = match &mut self.core {
            Some(core) => core.take_to_wake(),
            None => SmallVec::new(),
        };
        self.core = None;
        INSIDE.set(false);
        for waker in to_wake {
            waker.wake();
        }
    }
}

impl Shared {
    fn new(host: Host) -> io::Result<Arc<Self>> {
        let kick = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        epoll::add(host.driver.epoll(), &kick, KICK, epoll::EventFlags::IN)?;
        let core = Mutex::new(Core::new(host, kick));
        Ok(Arc::new(Self { core }))
    }

    pub(crate) fn lock(&self) -> Guard<'_> {
        // A thread that has panicked in the middle of a call leaves nothing behind that others could not go on with.
        let core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        INSIDE.set(true);
        Guard { core: Some(core) }
    }

    /// Makes a piece of work of it, which waits for nothing.
    pub(crate) fn call<T>(&self, call: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.lock();
        let outcome = call(&mut core);
        core.settle();
        outcome
    }

    /// Attempts until it succeeds, or `timeout` has an end. The attempt registers the waiter, if it is given one and has to
    /// wait.
    pub(crate) fn block<T>(
        &self,
        timeout: Timeout,
        attempt: impl FnMut(&mut Core, Option<&Waiter>) -> Option<T>,
    ) -> Option<T> {
        self.block_beside(timeout, &mut Beside::nothing(), attempt)
    }

    /// The same, and also until something beside the adapter has happened.
    pub(crate) fn block_beside<T>(
        &self,
        timeout: Timeout,
        beside: &mut Beside<'_>,
        mut attempt: impl FnMut(&mut Core, Option<&Waiter>) -> Option<T>,
    ) -> Option<T> {
        let mut core = self.lock();
        let mut outcome = attempt(&mut core, None);
        if outcome.is_none() && core.turn() {
            outcome = attempt(&mut core, None);
        }
        if outcome.is_some() || matches!(timeout, Timeout::None) {
            core.settle();
            return outcome;
        }
        let parker = Parker::current();
        let waiter = Waiter::Thread(Arc::clone(&parker));
        let deadline = timeout.deadline();
        let outcome = loop {
            parker.reset();
            let outcome = attempt(&mut core, Some(&waiter));
            let is_over = beside.has_happened() || deadline.is_some_and(|at| at <= Instant::now());
            if outcome.is_some() || is_over {
                break outcome;
            }
            core = if core.is_without_leader() || core.is_led_by(&parker) {
                core.set_leader(&parker, false);
                self.lead(core, &parker, deadline, beside)
            } else {
                self.follow(core, &parker, deadline, beside)
            };
        };
        core.leave(&parker);
        core.settle();
        outcome
    }

    /// Attempts for a task.
    pub(crate) fn poll_for<T>(
        &self,
        context: &Context<'_>,
        mut attempt: impl FnMut(&mut Core, Option<&Waiter>) -> Option<T>,
    ) -> Poll<T> {
        let mut core = self.lock();
        let mut outcome = attempt(&mut core, None);
        if outcome.is_none() {
            core.turn();
            let waiter = Waiter::Task(context.waker().clone());
            outcome = attempt(&mut core, Some(&waiter));
        }
        core.settle();
        outcome.map_or(Poll::Pending, Poll::Ready)
    }

    /// Waits for the adapter, for all: one round, after which there may be something for this thread or not.
    fn lead<'a>(
        &'a self,
        mut core: Guard<'a>,
        parker: &Arc<Parker>,
        deadline: Option<Instant>,
        beside: &mut Beside<'_>,
    ) -> Guard<'a> {
        if core.host.driver.retry_is_due() {
            return self.look_for_adapter(core);
        }
        if core.turn() || parker.is_notified() {
            return core;
        }
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = core.host.longest_wait(left);
        if timeout == Some(Duration::ZERO) {
            return core;
        }
        let (mut core, came) = self.spin(core, parker, timeout);
        // While it spun others could have the lock, and take in what this thread waits for.
        let goes_on = came || parker.is_notified();
        if goes_on || !core.host.driver.prepare_to_sleep() || core.host.driver.watch().is_err() {
            core.turn();
            return core;
        }
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = core.host.longest_wait(left);
        let now = core.host.driver.now();
        let until = timeout.map(|timeout| now + Span::from(timeout));
        core.set_sleeps(parker, Some(until));
        let epoll = Arc::clone(core.host.driver.epoll());
        drop(core);
        beside.sleep(Some(readable(&epoll)), timeout);
        let mut core = self.lock();
        core.set_sleeps(parker, None);
        if core.is_led_by(parker) {
            // If another has taken over meanwhile, the kick is for that one.
            core.handle_kick();
        }
        core.turn();
        core
    }

    /// Attaching may take its time; others can go on meanwhile, if only to fail.
    fn look_for_adapter<'a>(&'a self, core: Guard<'a>) -> Guard<'a> {
        let address = core.host.driver.address().clone();
        let wishes = core.host.driver.config().geometry;
        drop(core);
        let found = AnyHostLink::connect(&address, &wishes);
        let mut core = self.lock();
        core.host.driver.handle_attempt(found);
        core.turn();
        core
    }

    /// Looks for news again and again for as long as that has paid off. True when there are some, or the thread was woken.
    fn spin<'a>(
        &'a self,
        mut core: Guard<'a>,
        parker: &Arc<Parker>,
        timeout: Option<Duration>,
    ) -> (Guard<'a>, bool) {
        let due = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        while core.host.spins_on(due) {
            if core.host.driver.has_news() || parker.is_notified() {
                core.host.driver.end_spin();
                return (core, true);
            }
            drop(core);
            for _ in 0..PAUSES_PER_LOOK {
                std::hint::spin_loop();
            }
            core = self.lock();
        }
        (core, false)
    }

    /// Waits for the leader.
    fn follow<'a>(
        &'a self,
        mut core: Guard<'a>,
        parker: &Arc<Parker>,
        deadline: Option<Instant>,
        beside: &mut Beside<'_>,
    ) -> Guard<'a> {
        core.follow(parker);
        core.settle();
        drop(core);
        beside.park(parker, deadline);
        let mut core = self.lock();
        core.unfollow(parker);
        core
    }

    /// What the keeper does.
    fn keep(&self) {
        let parker = Parker::current();
        let mut core = self.lock();
        core.set_keeper(Arc::clone(&parker));
        while !core.closed {
            parker.reset();
            let may_lead = core.is_without_leader();
            if may_lead && core.needs_keeper() {
                core.set_leader(&parker, true);
                core.set_keeper_at_link(true);
                core = self.lead(core, &parker, None, &mut Beside::nothing());
                core.set_keeper_at_link(false);
                if !core.is_led_by(&parker) {
                    // A thread that has to wait itself has taken over, and may sleep already.
                    core.settle();
                }
                continue;
            }
            core.leave(&parker);
            let until = core.keeper_goes_to_sleep();
            let now = core.host.driver.now();
            let pause = until.map(|until| Duration::from(until.saturating_since(now)));
            drop(core);
            parker.park(pause.map(|pause| Instant::now() + pause));
            core = self.lock();
            core.keeper_is_awake();
            if until.is_some() && core.is_without_leader() {
                core.turn();
                core.settle();
            }
        }
    }

    /// Waits until the adapter has all that was written, but not for long.
    fn linger(&self) {
        self.block(Timeout::from(Some(LINGER)), |core, _| {
            core.is_flushed().then_some(())
        });
    }
}
