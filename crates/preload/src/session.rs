//! The link of this process to the adapter: from the first socket that needs it, through fork(2), until exit.

use crate::description::Description;
use crate::memory;
use crate::reason::{self, Reason};
use crate::signals::{self, Hold};
use crate::table::{self, Entry, Held};
use crate::threads;
use baton_sockets::kernel::Handoff;
use baton_sockets::{Adapter, AdapterAddress, DriverConfig, Forking, TcpStream};
use libc::c_int;
use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Names the variable for the Unix socket at which the adapter listens.
const ADAPTER: &str = "BATON_ADAPTER";
/// Names the variable for the broker's Unix socket, which is set if connections begin in the kernel.
const BROKER: &str = "BATON_BROKER";
/// Names the variable for the handoff policy, if the broker does not set it.
const POLICY: &str = "BATON_HANDOFF";

/// The settings from the environment.
#[derive(Debug)]
struct Surroundings {
    adapter: Option<PathBuf>,
    broker: Option<PathBuf>,
    policy: Option<String>,
}

static SURROUNDINGS: OnceLock<Surroundings> = OnceLock::new();
/// Between two attempts to attach.
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

impl Surroundings {
    fn attach(&self) -> Option<io::Result<Adapter>> {
        let adapter = self.adapter.as_ref()?;
        let Some(broker) = &self.broker else {
            return Some(Adapter::connect(adapter));
        };
        let handoff = Handoff::named(broker, self.policy.as_deref());
        let address = AdapterAddress::Unix(adapter.clone());
        Some(handoff.and_then(|handoff| {
            Adapter::open_beside_kernel(address, DriverConfig::default(), handoff)
        }))
    }
}

/// What is held still while the process is copied.
struct Still {
    table: Held,
    /// Connections with which the child can go on by itself.
    kernels: Vec<c_int>,
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
    // The child would drop entries that are not its own.
    table::drop_retired();
    let kernels = table::range(0, c_int::MAX)
        .into_iter()
        .filter(|&fd| table::socket(fd).is_some_and(|socket| is_kernels_alone(&socket)))
        .collect();
    let session = session();
    let adapter = session.adapter.map(Adapter::before_fork);
    let table = table::hold();
    STILL.set(Some(Still {
        table,
        kernels,
        session,
        adapter,
        _hold: hold,
    }));
}

/// Whether it is a connection in the kernel, where it stays from now on.
fn is_kernels_alone(socket: &Description) -> bool {
    socket.stream().is_some_and(TcpStream::keep_in_kernel)
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
    still.table.replace(|fd, entry| match entry {
        Entry::Socket(_) if still.kernels.binary_search(&fd).is_ok() => None,
        Entry::Socket(description) => Some(Entry::Socket(Arc::new(description.for_child()))),
        Entry::Epoll(_) => None,
        Entry::Unconnected(_) | Entry::Listening => Some(entry.clone()),
    });
}

/// The kernel closes what a process leaves; here this does. What was written before goes out.
pub extern "C" fn at_exit() {
    if !table::is_claimed() {
        return;
    }
    let _hold = signals::hold();
    for fd in table::range(0, i32::MAX) {
        table::remove(fd);
    }
    let adapter = session().adapter;
    if let Some(adapter) = adapter {
        adapter.flush();
    }
    reason::tell_counts();
}
