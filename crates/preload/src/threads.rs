//! Threads: the program's, and those of this library.

use crate::signals::AT_ONCE;
use std::cell::Cell;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The program has started some.
static PROGRAMS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What this thread starts is the library's.
    static STARTS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// A thread is about to be started.
pub fn note() {
    if !STARTS_OURS.get() {
        PROGRAMS.store(true, Ordering::Relaxed);
    }
}

/// Whether the program has had more than one.
pub fn are_several() -> bool {
    PROGRAMS.load(Ordering::Relaxed)
}

/// In the child of fork(2), which has one.
pub fn forget() {
    PROGRAMS.store(false, Ordering::Relaxed);
}

/// Lets `start` start threads of this library. They handle no signals: the kernel would give them those that the program's threads have blocked.
pub fn ours<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: sets are filled before they are read.
    unsafe {
        let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&mut all);
        for signal in AT_ONCE {
            libc::sigdelset(&mut all, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        STARTS_OURS.set(true);
        let started = start();
        STARTS_OURS.set(false);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn blocks(signal: libc::c_int) -> bool {
        // SAFETY: the set is filled before it is read.
        unsafe {
            let mut blocked = mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut blocked);
            libc::sigismember(&blocked, signal) == 1
        }
    }

    #[test]
    fn those_of_the_library_handle_no_signals() {
        let thread = ours(|| thread::spawn(|| blocks(libc::SIGTERM) && !blocks(libc::SIGSEGV)));
        assert!(thread.join().expect("it ends") && !blocks(libc::SIGTERM));
        let thread = thread::spawn(|| blocks(libc::SIGTERM));
        assert!(!thread.join().expect("it ends") && are_several());
    }
}
