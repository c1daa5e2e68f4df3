//! The application's handle to an adapter, which any number of threads can use.
//!
//! All threads share one link. The first thread that has to wait becomes the *leader*: it waits for the adapter, processes what arrives and
//! wakes the threads concerned. The others, the *followers*, sleep until they are woken, or until the leader has what it was waiting for
//! and one of them takes its place. So a single thread gets its data without a detour through another thread, and the adapter never has to
//! wake more than one thread. If no thread waits although one is needed (for tasks, timers, or data that found no buffer space), a
//! dedicated thread, the *keeper*, leads.

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

/// Number of spin-loop hints between two polls, during which other threads can take the lock.
const PAUSES_PER_LOOK: u32 = 4;
/// How long the last handle to an adapter waits on drop for the adapter to fetch written data.
const LINGER: Duration = Duration::from_secs(1);
/// Interval at which [`Adapter::flush`] checks whether the adapter has fetched all data.
const FLUSH_PAUSE: Duration = Duration::from_micros(100);
/// Event data of the kick descriptor in the epoll instance; the link uses 0.
const KICK: epoll::EventData = epoll::EventData::new_u64(1);

/// An adapter. Clones refer to the same adapter; the link closes when the last clone and the last socket made through it are dropped.
///
/// The last drop waits, for a second at most, until the adapter has fetched all written data. The adapter then sends that data and closes
/// the closed connections on its own, even if this process has exited.
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
    /// There is no adapter (`NotFound`), or the adapter refuses (`ConnectionRefused`); the text of the error says what to do.
    pub fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        Self::open(AdapterAddress::Unix(path), DriverConfig::default())
    }

    /// Attaches to an adapter that works next to the kernel. Listeners and connections start in the kernel; connections move to the adapter
    /// and back as `handoff` says, which is invisible to their users.
    ///
    /// # Errors
    /// The errors of [`Adapter::open`].
    pub fn open_beside_kernel(
        address: AdapterAddress,
        config: DriverConfig,
        handoff: Handoff,
    ) -> io::Result<Self> {
        Self::start(address, config, Some(handoff))
    }

    /// Attaches to an adapter, with parameters other than the defaults.
    ///
    /// # Errors
    /// There is no adapter, the adapter refuses, or a parameter is invalid.
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

    /// Returns whether an adapter is attached. After the loss of an adapter, the crate looks for another; until it finds one, connections
    /// cannot be opened.
    pub fn is_attached(&self) -> bool {
        self.handle.lock().host.driver.is_attached()
    }

    /// Waits, for a second at most, until the adapter has fetched all written data and knows of all closed sockets; the adapter then sends
    /// the data and closes the connections on its own. Dropping the last handle does the same; this method is for processes that exit
    /// without dropping the handle. It uses no thread-local values, which may be destroyed already.
    pub fn flush(&self) {
        let end = Instant::now() + LINGER;
        while !self.handle.call(Core::is_flushed) && Instant::now() < end {
            thread::sleep(FLUSH_PAUSE);
        }
    }

    /// Calls `look` with the underlying driver, for its counters.
    pub fn with_driver<T>(&self, look: impl FnOnce(&Driver) -> T) -> T {
        look(&self.handle.lock().host.driver)
    }

    /// Calls `look` with the layer of kernel sockets, if connections start in the kernel.
    pub fn with_kernel<T>(&self, look: impl FnOnce(&KernelLayer) -> T) -> Option<T> {
        self.handle.lock().host.kernel().map(look)
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }
}

/// Shared handle of adapters and sockets. The link closes when the last handle is dropped.
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
    /// Does not wait.
    None,
    /// Waits until this instant.
    Until(Instant),
    /// Waits without a limit.
    Endless,
}

impl From<Option<Duration>> for Timeout {
    fn from(timeout: Option<Duration>) -> Self {
        match timeout {
            Some(Duration::ZERO) => Self::None,
            // A time that the clock cannot represent never comes.
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

/// State that all threads share.
#[derive(Debug)]
pub struct Shared {
    core: Mutex<Core>,
}

thread_local! {
    /// Whether this thread holds the lock.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is inside a call of an adapter. Descriptors that it closes are then not the application's.
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// The held lock. Wakes threads and tasks only after it has released the lock.
#[derive(Debug)]
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
        for one in to_wake {
            one.wake();
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
        // A thread that panics within a call leaves the state usable for others.
        let core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        INSIDE.set(true);
        core.host.driver.hold_time();
        Guard { core: Some(core) }
    }

    /// Runs `call`, which must not block, under the lock.
    pub(crate) fn call<T>(&self, call: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.lock();
        let outcome = call(&mut core);
        core.settle();
        outcome
    }

    /// Repeats `attempt` until it succeeds or `timeout` expires. An attempt that is given a waiter registers it if it has to wait.
    pub(crate) fn block<T>(
        &self,
        timeout: Timeout,
        attempt: impl FnMut(&mut Core, Option<&Waiter>) -> Option<T>,
    ) -> Option<T> {
        self.block_beside(timeout, &mut Beside::nothing(), attempt)
    }

    /// Works like [`Shared::block`], but also stops when a descriptor of `beside` is ready or its sleep fails.
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

    /// Makes attempts for a task.
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

    /// Waits once for the adapter, on behalf of all threads. Afterwards the caller has to check whether its own condition holds.
    fn lead<'a>(
        &'a self,
        mut core: Guard<'a>,
        parker: &Arc<Parker>,
        deadline: Option<Instant>,
        beside: &mut Beside<'_>,
    ) -> Guard<'a> {
        core.host.driver.hold_time();
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
        // While this thread spun, others may have taken the lock and processed what this thread waits for.
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
            // If another thread has become the leader meanwhile, the kick is for that thread.
            core.handle_kick();
        }
        core.turn();
        core
    }

    /// Tries to attach to an adapter. Releases the lock meanwhile, because attaching may take long, and calls of other threads should fail
    /// instead of waiting for it.
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

    /// Polls for news for as long as spinning has paid off. Returns true if there is news or the thread was notified.
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

    /// Sleeps until the leader or another thread wakes this thread.
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

    /// The loop of the keeper thread.
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
                let pause = core.keepers_pause().map(Duration::from);
                let until = pause.map(|pause| Instant::now() + pause);
                core = self.lead(core, &parker, until, &mut Beside::nothing());
                core.set_keeper_at_link(false);
                if !core.is_led_by(&parker) {
                    // A thread that has to wait itself has become the leader, and may be asleep already.
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

    /// Waits briefly until the adapter has fetched all written data.
    fn linger(&self) {
        self.block(Timeout::from(Some(LINGER)), |core, _| {
            core.is_flushed().then_some(())
        });
    }
}
