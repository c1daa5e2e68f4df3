//! Calls that install signal handlers.

use crate::signals::{act, bit};
use libc::{c_int, sighandler_t};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Signals that siginterrupt(3) has set to interrupt calls even if signal(2) installs their handler.
static INTERRUPTING: AtomicU64 = AtomicU64::new(0);

/// sigaction(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: valid by the manual page.
    unsafe { act(signal, new, old) }
}

/// Installs a handler with these flags, and returns the previous handler.
fn install(signal: c_int, handler: sighandler_t, flags: c_int) -> sighandler_t {
    // SAFETY: all zeros are a valid `sigaction`.
    unsafe {
        let (mut new, mut old): (libc::sigaction, libc::sigaction) = mem::zeroed();
        new.sa_sigaction = handler;
        new.sa_flags = flags;
        match act(signal, &new, &mut old) {
            0 => old.sa_sigaction,
            _ => libc::SIG_ERR,
        }
    }
}

/// signal(2) with the semantics of BSD.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(number: c_int, handler: sighandler_t) -> sighandler_t {
    let ends = INTERRUPTING.load(Ordering::Relaxed) & bit(number) != 0;
    install(number, handler, if ends { 0 } else { libc::SA_RESTART })
}

/// Another name of signal(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsd_signal(number: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: by this function's contract.
    unsafe { signal(number, handler) }
}

/// Another name of signal(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ssignal(number: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: by this function's contract.
    unsafe { signal(number, handler) }
}

/// signal(2) with the semantics of System V.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    install(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER)
}

/// Another name of [`__sysv_signal`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    install(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER)
}

/// siginterrupt(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn siginterrupt(signal: c_int, ends: c_int) -> c_int {
    // SAFETY: `act` fills in the action before it is read.
    unsafe {
        let mut action = mem::zeroed::<libc::sigaction>();
        if act(signal, ptr::null(), &mut action) != 0 {
            return -1;
        }
        match ends {
            0 => {
                INTERRUPTING.fetch_and(!bit(signal), Ordering::Relaxed);
                action.sa_flags |= libc::SA_RESTART;
            }
            _ => {
                INTERRUPTING.fetch_or(bit(signal), Ordering::Relaxed);
                action.sa_flags &= !libc::SA_RESTART;
            }
        }
        act(signal, &action, ptr::null_mut())
    }
}
