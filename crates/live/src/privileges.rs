//! What a daemon may do beyond an ordinary user, of which it needs little once it is set up: it drops capabilities (capabilities(7)) and
//! user 0, and confines itself to the system calls that it makes.

mod calls;
mod filter;
mod user;

pub use filter::{Confinement, confine};
pub use user::{ServiceUser, ServiceUserError};

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

/// What a broker needs: repair mode, injected packets and programs at the interface; ports below 1024 for connections that come back;
/// packets with headers of its own; maps and programs.
const OF_BROKER: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::BPF);

/// A thread that has ended is gone from the kernel's list by then.
const LONGEST_EXIT: Duration = Duration::from_secs(5);
/// Bits that a set of capabilities has room for.
const MOST_CAPABILITIES: u32 = 64;

/// This process, and all threads that it starts from now on, may do what a broker needs, as far as it might before, and no more; as `user`,
/// if one is given.
///
/// # Errors
/// It has more than one thread, as others would keep what they have; or the system refuses.
pub fn keep_privileges_of_broker(user: Option<&ServiceUser>) -> Result<(), LiveError> {
    keep(OF_BROKER, user)
}

/// The same with nothing beyond an ordinary user.
///
/// # Errors
/// As [`keep_privileges_of_broker`].
pub fn keep_no_privileges(user: Option<&ServiceUser>) -> Result<(), LiveError> {
    keep(CapabilitySet::empty(), user)
}

fn keep(kept: CapabilitySet, user: Option<&ServiceUser>) -> Result<(), LiveError> {
    let keep = || {
        await_single_thread()?;
        empty_bounding_set()?;
        clear_ambient_capability_set()?;
        if let Some(user) = user {
            // Without it the kernel drops all capabilities with user 0.
            set_keep_capabilities(true)?;
            user.become_it()?;
            set_keep_capabilities(false)?;
        }
        keep_capabilities(kept)?;
        set_no_new_privs(true)?;
        // Other processes of the user may neither trace it nor read its memory.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(())
    };
    keep().map_err(LiveError::failed("cannot drop privileges"))
}

/// Does `work` in a thread that has no capability. Those that it starts have none either.
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

/// Capabilities belong to threads, and a thread can drop only its own.
fn await_single_thread() -> io::Result<()> {
    let limit = Instant::now() + LONGEST_EXIT;
    loop {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads == 1 {
            return Ok(());
        }
        if Instant::now() > limit {
            let text = format!("{threads} threads run, each with its own; expected one");
            return Err(io::Error::other(text));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// No program that is executed can get any capability. Takes CAP_SETPCAP; without it nothing is executed all the same, as the filter of system
/// calls forbids it.
fn empty_bounding_set() -> io::Result<()> {
    for bit in 0..MOST_CAPABILITIES {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The kernel has no more, or the process may not.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
