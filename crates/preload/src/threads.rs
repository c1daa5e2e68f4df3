//! The threads of the program, and those of this library.

use crate::signals::AT_ONCE;
use std::cell::Cell;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the program has started threads.
static PROGRAMS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether the threads that this thread starts are the library's.
    static STARTS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// Notes that a thread is about to be started.
pub fn note() {
    if !STARTS_OURS.get() {
        PROGRAMS.store(true, Ordering::Relaxed);
    }
}

/// Returns whether the program has had more than one thread.
pub fn are_several() -> bool {
    PROGRAMS.load(Ordering::Relaxed)
}

/// Resets the state in the child of fork(2), which has one thread.
pub fn forget() {
    PROGRAMS.store(false, Ordering::Relaxed);
}

/// Lets `start` start threads of this library. They block signals: otherwise the kernel would deliver signals to them that the program's
/// threads have blocked.
pub fn ours<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are filled in before they are read.
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
        // SAFETY: the set is filled in before it is read.
        unsafe {
            let mut blocked = mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut blocked);
            libc::sigismember(&blocked, signal) == 1
        }
    }

    #[test]
    fn threads_of_the_library_handle_no_signals() {
        let thread = ours(|| thread::spawn(|| blocks(libc::SIGTERM) && !blocks(libc::SIGSEGV)));
        assert!(thread.join().expect("it ends") && !blocks(libc::SIGTERM));
        let thread = thread::spawn(|| blocks(libc::SIGTERM));
        assert!(!thread.join().expect("it ends") && are_several());
    }
}
