//! The link of this process to the adapter: from the first socket that needs it, over fork(2), to the end.

use crate::reason::{self, Reason};
use crate::table::{self, Entry, Held};
use baton_sockets::{Adapter, Forking};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Where the adapter listens: the name of a Unix socket.
const PLACE: &str = "BATON_ADAPTER";
static ADAPTER_AT: OnceLock<Option<PathBuf>> = OnceLock::new();
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
    ADAPTER_AT.get_or_init(|| std::env::var_os(PLACE).map(PathBuf::from));
    reason::at_load();
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// Sees to it that this process is known, and what becomes of it. To be called before the table has its first entry.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        table::claim();
        // SAFETY: functions of this library, which stays loaded.
        unsafe {
            libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
            libc::atexit(at_exit);
        }
    });
}

/// The adapter, to which the process is attached now if it was not before. None where there is none.
pub fn adapter() -> Option<&'static Adapter> {
    let mut session = session();
    let is_too_soon = |at: Instant| at.elapsed() < PAUSE;
    if session.adapter.is_some() || session.failed_at.is_some_and(is_too_soon) {
        return session.adapter;
    }
    let place = ADAPTER_AT.get()?.as_ref()?;
    match Adapter::connect(place) {
        // It lives as long as the process: who forks holds it.
        Ok(adapter) => session.adapter = Some(Box::leak(Box::new(adapter))),
        Err(error) => {
            session.failed_at = Some(Instant::now());
            Reason::NoAdapter.count(error);
        }
    }
    session.adapter
}

/// What is held still while the process is copied.
struct Still {
    table: Held,
    session: MutexGuard<'static, Session>,
    adapter: Option<Forking<'static>>,
}

thread_local! {
    static STILL: RefCell<Option<Still>> = const { RefCell::new(None) };
}

extern "C" fn before_fork() {
    let session = session();
    let adapter = session.adapter.map(Adapter::before_fork);
    let table = table::hold();
    STILL.set(Some(Still {
        table,
        session,
        adapter,
    }));
}

extern "C" fn in_parent() {
    STILL.take();
}

/// The child listens again where its parent did, once it waits there; connections stay with the parent.
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
    still.table.replace(|entry| match entry {
        Entry::Socket(description) => Some(Entry::Socket(Arc::new(description.for_child()))),
        Entry::Epoll(_) => None,
    });
}

/// The kernel closes what a process leaves; here this does. What was written before goes out.
pub extern "C" fn at_exit() {
    if !table::is_claimed() {
        return;
    }
    for fd in table::range(0, i32::MAX) {
        table::remove(fd);
    }
    let adapter = session().adapter;
    if let Some(adapter) = adapter {
        adapter.flush();
    }
    reason::tell_counts();
}
