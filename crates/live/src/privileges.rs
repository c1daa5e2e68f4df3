//! Drops the privileges of a daemon, which needs few of them once it is set up: it drops capabilities (capabilities(7)) and user 0, and
//! confines itself to the system calls that it makes.

mod calls;
mod filter;
mod user;

pub use filter::{Confinement, confine};
pub use user::{ServiceUser, ServiceUserError, user_name, user_number};

use crate::error::LiveError;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// Capabilities of a broker: for repair mode, injected packets and programs at the interface; for binding returning connections to ports
/// below 1024; for packets with their own headers; for maps and programs.
const OF_BROKER: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::BPF);

/// Time within which a thread that has ended disappears from the kernel's list.
const LONGEST_EXIT: Duration = Duration::from_secs(5);
/// Number of bits in a set of capabilities.
const MOST_CAPABILITIES: u32 = 64;

/// Reduces the capabilities of this process, and of all threads that it starts from now on, to those that a broker needs, as far as it has
/// them. Switches to `user`, if given.
///
/// # Errors
/// The process has more than one thread, whose privileges would remain, or the system refuses.
pub fn keep_privileges_of_broker(user: Option<&ServiceUser>) -> Result<(), LiveError> {
    keep(OF_BROKER, user)
}

/// Drops all capabilities, and switches to `user`, if given.
///
/// # Errors
/// See [`keep_privileges_of_broker`].
pub fn keep_no_privileges(user: Option<&ServiceUser>) -> Result<(), LiveError> {
    keep(CapabilitySet::empty(), user)
}

fn keep(kept: CapabilitySet, user: Option<&ServiceUser>) -> Result<(), LiveError> {
    let keep = || {
        await_single_thread()?;
        empty_bounding_set()?;
        clear_ambient_capability_set()?;
        if let Some(user) = user {
            // Otherwise the kernel drops all capabilities when the process stops being user 0.
            set_keep_capabilities(true)?;
            user.become_it()?;
            set_keep_capabilities(false)?;
        }
        keep_capabilities(kept)?;
        set_no_new_privs(true)?;
        // Other processes of the user may neither trace the process nor read its memory.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(())
    };
    keep().map_err(LiveError::failed("cannot drop privileges"))
}

/// Runs `work` in a thread without capabilities. Threads that it starts have none either.
///
/// # Errors
/// The system refuses.
pub fn without_capabilities<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, LiveError> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            keep_capabilities(CapabilitySet::empty())?;
            Ok(work())
        });
        match thread.join() {
            Ok(outcome) => outcome.map_err(LiveError::failed("cannot drop capabilities")),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn keep_capabilities(kept: CapabilitySet) -> io::Result<()> {
    let kept = capabilities(None)?.permitted & kept;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}

/// Waits until the process has only one thread, because capabilities belong to threads and a thread can drop only its own.
fn await_single_thread() -> io::Result<()> {
    let limit = Instant::now() + LONGEST_EXIT;
    loop {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads == 1 {
            return Ok(());
        }
        if Instant::now() > limit {
            let text = format!("{threads} threads have capabilities; expected a single thread");
            return Err(io::Error::other(text));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Prevents executed programs from getting any capability. This takes CAP_SETPCAP; without it, programs cannot be executed anyway, because
/// the filter of system calls forbids it.
fn empty_bounding_set() -> io::Result<()> {
    for bit in 0..MOST_CAPABILITIES {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The kernel has no more capabilities, or the process lacks the permission.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
