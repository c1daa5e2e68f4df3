//! The link of this process to the adapter: from the first socket that needs it, through fork(2), until exit.

use crate::leaving;
use crate::memory;
use crate::reason::{self, Reason};
use crate::signals::{self, Hold};
use crate::sys;
use crate::table::{self, Entry, Held};
use crate::threads;
use baton_sockets::kernel::{Handoff, LONGEST_CORK};
use baton_sockets::{Adapter, AdapterAddress, DriverConfig, Forking};
use baton_wire::Span;
use libc::c_long;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Names the variable for the Unix socket at which the adapter listens.
const ADAPTER: &str = "BATON_ADAPTER";
/// Names the variable for the broker's Unix socket, which is set if connections begin in the kernel.
const BROKER: &str = "BATON_BROKER";
/// Names the variable for the handoff policy, if the broker does not set it.
const POLICY: &str = "BATON_HANDOFF";
/// Names the variable for the minimum time that a connection stays in one place, ms.
const LEAST_STAY: &str = "BATON_LEAST_STAY_MS";
/// Names the variable that lets only connections over the loopback interface move.
const LOOPBACK: &str = "BATON_LOOPBACK";

/// The settings from the environment.
#[derive(Debug)]
struct Surroundings {
    adapter: Option<PathBuf>,
    broker: Option<PathBuf>,
    policy: Option<String>,
    least_stay: Option<Span>,
    on_loopback: bool,
}

static SURROUNDINGS: OnceLock<Surroundings> = OnceLock::new();
/// Minimum number of a link's buffers in a process with a small address space: 2 MiB.
const LEAST_BUFFERS: u64 = 128;
/// Time between two attempts to attach.
pub const PAUSE: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug)]
struct Session {
    adapter: Option<&'static Adapter>,
    failed_at: Option<Instant>,
}

static SESSION: Mutex<Session> = Mutex::new(Session {
    adapter: None,
    failed_at: None,
});

fn session() -> MutexGuard<'static, Session> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the environment, which some programs clear when they start.
extern "C" fn at_load() {
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    SURROUNDINGS.get_or_init(|| Surroundings {
        adapter: path(ADAPTER),
        broker: path(BROKER),
        policy: std::env::var(POLICY).ok(),
        least_stay: std::env::var(LEAST_STAY)
            .ok()
            .and_then(|text| text.parse().ok().map(Span::from_ms)),
        on_loopback: std::env::var_os(LOOPBACK).is_some(),
    });
    reason::at_load();
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// Claims the table for this process, and registers handlers for fork(2) and exit(3). Call this before the table has its first entry.
pub fn prepare() {
    static ONCE: Once = Once::new();
    let _hold = signals::hold();
    ONCE.call_once(|| {
        table::claim();
        memory::follow_forks();
        // SAFETY: these are functions of this library, which stays loaded.
        unsafe {
            libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
            libc::atexit(at_exit);
        }
    });
}

/// Returns the adapter, to which this attaches the process if needed; `None` if there is none.
pub fn adapter() -> Option<&'static Adapter> {
    let _hold = signals::hold();
    let mut session = session();
    let is_too_soon = |at: Instant| at.elapsed() < PAUSE;
    if session.adapter.is_some() || session.failed_at.is_some_and(is_too_soon) {
        return session.adapter;
    }
    let surroundings = SURROUNDINGS.get()?;
    match threads::ours(|| surroundings.attach())? {
        // The adapter lives as long as the process, since a fork(2) borrows it.
        Ok(adapter) => session.adapter = Some(Box::leak(Box::new(adapter))),
        Err(error) => {
            session.failed_at = Some(Instant::now());
            Reason::NoAdapter.count(error);
        }
    }
    session.adapter
}

/// Returns whether the environment names an adapter.
pub fn has_adapter() -> bool {
    SURROUNDINGS.get().is_some_and(|it| it.adapter.is_some())
}

/// Returns whether connections begin in the kernel, and may move from there.
pub fn begins_in_kernel() -> bool {
    SURROUNDINGS.get().is_some_and(|it| it.broker.is_some())
}

/// Returns whether connections with this local address may move: as set, either those over the loopback interface or all others.
pub fn may_move(local: SocketAddr) -> bool {
    let on_loopback = SURROUNDINGS.get().is_some_and(|it| it.on_loopback);
    local.ip().to_canonical().is_loopback() == on_loopback
}

impl Surroundings {
    fn attach(&self) -> Option<io::Result<Adapter>> {
        let adapter = self.adapter.as_ref()?;
        let Some(broker) = &self.broker else {
            let address = AdapterAddress::Unix(adapter.clone());
            return Some(Adapter::open(address, config()));
        };
        let handoff = Handoff::named(broker, self.policy.as_deref());
        let address = AdapterAddress::Unix(adapter.clone());
        Some(handoff.and_then(|mut handoff| {
            handoff.least_stay = self.least_stay.unwrap_or(handoff.least_stay);
            handoff.kept = Some(reason::counts);
            Adapter::open_beside_kernel(address, config(), handoff)
        }))
    }
}

/// Returns the parameters of the link. If the address space is limited, buffers get only a part of it.
fn config() -> DriverConfig {
    let mut config = DriverConfig::default();
    config.os.cork_timer_us = LONGEST_CORK.as_micros() as u32;
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the call fills in a limit.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    if limit.rlim_cur != libc::RLIM_INFINITY {
        let pages = std::fs::read_to_string("/proc/self/statm").ok();
        let pages = pages.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let left = limit.rlim_cur.saturating_sub(pages.unwrap_or(0) * 4096);
        let geometry = &mut config.geometry;
        let most = left / 4 / u64::from(geometry.buffer_bytes);
        let most = most.clamp(LEAST_BUFFERS, geometry.buffers.into()) as u32;
        geometry.buffers = 1 << most.ilog2();
    }
    config
}

/// Locks that are held while the process is copied.
struct Still {
    table: Held,
    session: MutexGuard<'static, Session>,
    adapter: Option<Forking<'static>>,
    /// Last, so that it is dropped last.
    _hold: Hold,
}

thread_local! {
    static STILL: RefCell<Option<Still>> = const { RefCell::new(None) };
}

extern "C" fn before_fork() {
    let hold = signals::hold();
    // The child would drop entries that belong to its parent.
    table::drop_retired();
    // Only the kernel knows which of the processes is the last to use or close a connection.
    leaving::leave_those(Reason::Shared, |_| true);
    let session = session();
    let adapter = session.adapter.map(Adapter::before_fork);
    let table = table::hold();
    STILL.set(Some(Still {
        table,
        session,
        adapter,
        _hold: hold,
    }));
}

/// Makes a system call that creates a child like fork(2) does, without the C library's knowledge.
pub fn forking(make: impl FnOnce() -> c_long) -> c_long {
    if !table::is_claimed() {
        return make();
    }
    before_fork();
    let child = make();
    match child {
        0 => in_child(),
        _ => {
            let errno = sys::last();
            in_parent();
            sys::set_errno(errno);
        }
    }
    child
}

extern "C" fn in_parent() {
    STILL.take();
}

/// The child listens again at its parent's addresses, once it waits there; connections that could not go back to the kernel stay with the
/// parent.
extern "C" fn in_child() {
    let Some(mut still) = STILL.take() else {
        return;
    };
    if let Some(adapter) = still.adapter.take() {
        adapter.in_child();
    }
    *still.session = Session {
        adapter: None,
        failed_at: None,
    };
    drop(still.session);
    table::claim();
    threads::forget();
    still.table.replace(|entry| match entry {
        Entry::Socket(description) => Some(Entry::Socket(Arc::new(description.for_child()))),
        Entry::Epoll(_) => None,
        Entry::Unconnected(_) | Entry::Listening | Entry::KernelOnly(_) => Some(entry.clone()),
    });
}

/// Waits a short time until the adapter has fetched what the program wrote.
pub fn flush() {
    if table::is_claimed() {
        let adapter = session().adapter;
        adapter.into_iter().for_each(Adapter::flush);
    }
}

/// Closes all sockets, as the kernel would at exit, after their data has been sent.
pub extern "C" fn at_exit() {
    if !table::is_claimed() {
        return;
    }
    let _hold = signals::hold();
    for fd in table::range(0, i32::MAX) {
        table::remove(fd);
    }
    flush();
    reason::tell_counts();
}
