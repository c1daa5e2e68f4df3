//! Runs signal handlers between the program's calls and while a call sleeps, as with kernel sockets, but never in the middle of a call.
//!
//! A handler may do anything that is safe in a handler: call write(2) or fork(2), or leave by siglongjmp(3). Handlers do not interrupt the
//! kernel's calls halfway, but they could interrupt this library's, which hold locks. So this library installs a handler of its own in
//! front of the program's. A signal that arrives during a call ([`hold`]) is sent to the thread again and blocked there, so that the kernel
//! keeps it until the call ends or [sleeps](sleep). Faults of this library's own [probes](probing) end there; the program's handler sees
//! all other faults immediately.

use crate::probing;
use crate::sys::{self, Errno, call, process, set_errno};
use baton_sockets::{Adapter, Watched};
use libc::{c_int, c_void, sigaction, sighandler_t, siginfo_t, sigset_t, ucontext_t};
use rustix::event::{PollFd, Timespec};
use std::marker::PhantomData;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst, compiler_fence};
use std::time::Duration;

/// Size of the kernel's signal sets, bytes.
pub const SET_BYTES: usize = 8;
/// Highest signal number; the lowest is 1.
const LAST: usize = 64;
/// Signals whose handlers run immediately: if a program blocks one and then causes it by a fault, the kernel kills the program.
pub const AT_ONCE: [c_int; 7] = [
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGTRAP,
];
/// Signals that a [probe](probing) can cause.
const FAULTS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];
/// Flags that this library implements itself: the kernel would apply them at the first of two deliveries.
const OURS: c_int = libc::SA_RESETHAND | libc::SA_NODEFER;

/// The handler that the program has installed for a signal.
struct Action {
    handler: AtomicUsize,
    flags: AtomicI32,
}

static ACTIONS: [Action; LAST + 1] = [const {
    Action {
        handler: AtomicUsize::new(libc::SIG_DFL),
        flags: AtomicI32::new(0),
    }
}; LAST + 1];

impl Action {
    fn load(&self) -> (sighandler_t, c_int) {
        (self.handler.load(SeqCst), self.flags.load(SeqCst))
    }

    fn store(&self, (handler, flags): (sighandler_t, c_int)) {
        self.flags.store(flags, SeqCst);
        self.handler.store(handler, SeqCst);
    }
}

/// State that a thread shares with the handlers that interrupt it.
struct State {
    /// Number of nested calls that the thread is in.
    held: AtomicU32,
    /// Signals that wait until the call ends, a bit each.
    postponed: AtomicU64,
    /// Number of handlers that have run.
    handled: AtomicU32,
    /// Number of those handlers after which calls are not restarted.
    ending: AtomicU32,
    /// Whether a handler after which calls are not restarted ran during the last sleep.
    was_ended: AtomicBool,
}

thread_local! {
    static STATE: State = const { State {
        held: AtomicU32::new(0),
        postponed: AtomicU64::new(0),
        handled: AtomicU32::new(0),
        ending: AtomicU32::new(0),
        was_ended: AtomicBool::new(false),
    } };
}

/// Postpones the thread's handlers while it exists.
#[derive(Debug)]
pub struct Hold(PhantomData<*const ()>);

/// Marks that this thread is in a call.
#[inline]
pub fn hold() -> Hold {
    STATE.with(|state| state.held.store(state.held.load(Relaxed) + 1, Relaxed));
    compiler_fence(SeqCst);
    Hold(PhantomData)
}

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        STATE.with(|state| {
            let held = state.held.load(Relaxed) - 1;
            state.held.store(held, Relaxed);
            compiler_fence(SeqCst);
            if held == 0 {
                state.let_in();
            }
        });
    }
}

impl State {
    /// Runs the handlers of the postponed signals.
    #[inline]
    fn let_in(&self) {
        if self.postponed.load(Relaxed) != 0 {
            let errno = sys::last();
            unblock(self.postponed.swap(0, Relaxed));
            set_errno(errno);
        }
    }
}

/// Unblocks these signals, a bit each.
#[cold]
fn unblock(signals: u64) {
    let none = ptr::null_mut::<u64>();
    // SAFETY: the call reads the set.
    unsafe {
        call!(
            SYS_rt_sigprocmask,
            libc::SIG_UNBLOCK,
            &raw const signals,
            none,
            SET_BYTES
        )
    };
}

/// Returns the bit of a signal, or 0 for a number that is no signal.
pub fn bit(signal: c_int) -> u64 {
    let place = signal.wrapping_sub(1) as u32;
    1_u64.checked_shl(place).unwrap_or(0)
}

/// Calls `wait` in the middle of a call, and lets handlers run. If postponed handlers run first, it fails with EINTR, as if they had ended
/// the wait.
pub fn sleep_by(wait: impl FnOnce() -> Result<usize, Errno>) -> Result<usize, Errno> {
    STATE.with(|state| {
        let before = (state.handled.load(Relaxed), state.ending.load(Relaxed));
        let held = state.held.swap(0, Relaxed);
        compiler_fence(SeqCst);
        state.let_in();
        let outcome = match state.handled.load(Relaxed) == before.0 {
            true => wait(),
            false => Err(libc::EINTR),
        };
        compiler_fence(SeqCst);
        state.held.store(held, Relaxed);
        let was_ended = state.ending.load(Relaxed) != before.1;
        state.was_ended.store(was_ended, Relaxed);
        outcome
    })
}

/// Calls ppoll(2) in the middle of a call.
pub fn sleep(
    fds: &mut [PollFd<'_>],
    timeout: Option<&Timespec>,
    mask: Option<&sigset_t>,
) -> rustix::io::Result<usize> {
    let (at, len) = (fds.as_mut_ptr(), fds.len());
    // The kernel writes the remaining time.
    let mut left = timeout.copied();
    let left = left.as_mut().map_or(ptr::null_mut(), |left| left);
    let mask = mask.map_or(ptr::null(), |mask| mask);
    sleep_by(|| {
        // SAFETY: a `PollFd` is a `pollfd`, and `len` is their number.
        sys::outcome(unsafe { call!(SYS_ppoll, at, len, left, mask, SET_BYTES) })
    })
    .map_err(rustix::io::Errno::from_raw_os_error)
}

/// Calls [`Adapter::wait_beside`] in the middle of a call.
pub fn wait_beside(
    adapter: &Adapter,
    watched: &[Watched<'_>],
    others: &[PollFd<'_>],
    timeout: Option<Duration>,
    mask: Option<&sigset_t>,
) -> Result<(), Errno> {
    let sleep = |fds: &mut [PollFd<'_>], left: Option<&Timespec>| sleep(fds, left, mask);
    let waited = adapter.wait_beside(watched, others, timeout, sleep);
    waited.map_err(|error| sys::errno_of(&error))
}

/// Delivers the signals that a call's mask allows, even if the call does not have to wait; they end the call.
pub fn look(mask: Option<&sigset_t>) -> Result<(), Errno> {
    let now = Timespec::default();
    match mask.map(|_| sleep(&mut [], Some(&now), mask)) {
        Some(Err(errno)) => Err(errno.raw_os_error()),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Returns whether to restart a call whose [sleep] a signal has ended: all handlers that ran were installed with SA_RESTART.
pub fn restarts() -> bool {
    STATE.with(|state| !state.was_ended.load(Relaxed))
}

type Install = unsafe extern "C" fn(c_int, *const sigaction, *mut sigaction) -> c_int;

/// Returns sigaction(2) of the C library.
fn install() -> Install {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    let real = sys::next(&REAL, c"sigaction");
    // SAFETY: the C library's function of this name has this type.
    unsafe { mem::transmute::<usize, Install>(real) }
}

/// Carries out sigaction(2) for the program.
///
/// # Safety
/// As sigaction(2).
pub unsafe fn act(signal: c_int, new: *const sigaction, old: *mut sigaction) -> c_int {
    let slot = usize::try_from(signal).ok().and_then(|at| ACTIONS.get(at));
    let is_left = AT_ONCE.contains(&signal) && !FAULTS.contains(&signal);
    let Some(slot) = slot.filter(|_| !is_left) else {
        // SAFETY: by this function's contract.
        return unsafe { install()(signal, new, old) };
    };
    let before = slot.load();
    // SAFETY: by this function's contract.
    unsafe {
        // SIG_DFL and SIG_IGN are left to the kernel and do not change the slot, which a child of vfork(2) shares.
        let is_handler = |of: &&sigaction| of.sa_sigaction > libc::SIG_IGN && !is_behind(of);
        let behind = new.as_ref().filter(is_handler).map(|new| {
            slot.store((new.sa_sigaction, new.sa_flags));
            let mut behind = *new;
            behind.sa_sigaction = in_front(signal);
            behind.sa_flags = new.sa_flags & !OURS | libc::SA_SIGINFO;
            behind
        });
        let result = install()(signal, behind.as_ref().map_or(new, |behind| behind), old);
        if result != 0 {
            slot.store(before);
        } else if let Some(old) = old.as_mut()
            && is_behind(old)
        {
            (old.sa_sigaction, old.sa_flags) = before;
        }
        result
    }
}

/// Returns this library's handler of a signal.
fn in_front(signal: c_int) -> sighandler_t {
    match FAULTS.contains(&signal) {
        true => deliver_fault as *const () as sighandler_t,
        false => deliver as *const () as sighandler_t,
    }
}

/// Returns whether the action is one of this library's handlers.
fn is_behind(action: &sigaction) -> bool {
    let ours = [deliver as *const (), deliver_fault as *const ()];
    ours.contains(&(action.sa_sigaction as *const ()))
}

/// Installs this library's handler of faults where the program has none.
pub fn catch_faults() {
    for signal in FAULTS {
        // SAFETY: the calls fill in and read actions.
        unsafe {
            let mut action: sigaction = mem::zeroed();
            let found = install()(signal, ptr::null(), &raw mut action);
            if found == 0 && action.sa_sigaction == libc::SIG_DFL {
                action.sa_sigaction = in_front(signal);
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                install()(signal, &raw const action, ptr::null_mut());
            }
        }
    }
}

/// The handler of all signals for which the program has one.
unsafe extern "C" fn deliver(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    STATE.with(|state| {
        // SAFETY: the kernel passes the arguments of a handler with SA_SIGINFO.
        unsafe {
            match state.held.load(Relaxed) {
                0 => state.run(signal, info, context),
                _ => state.postpone(signal, info, context.cast()),
            }
        }
    });
}

/// The handler of faults.
unsafe extern "C" fn deliver_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the arguments of a handler with SA_SIGINFO.
    unsafe {
        if probing::recover(context) {
            return;
        }
        if ACTIONS[signal as usize].load().0 != libc::SIG_DFL {
            return STATE.with(|state| state.run(signal, info, context));
        }
        // The instruction faults again when this handler returns, and ends the program.
        let default: sigaction = mem::zeroed();
        install()(signal, &raw const default, ptr::null_mut());
        let was_sent = (*info).si_code <= 0;
        if was_sent {
            call!(SYS_tgkill, process(), call!(SYS_gettid), signal);
        }
    }
}

impl State {
    /// # Safety
    /// The context is that of a handler.
    unsafe fn postpone(&self, signal: c_int, info: *mut siginfo_t, context: *mut ucontext_t) {
        self.postponed.fetch_or(bit(signal), Relaxed);
        let errno = sys::last();
        // SAFETY: by this function's contract.
        unsafe {
            // The kernel restores this mask when the handler returns.
            libc::sigaddset(&raw mut (*context).uc_sigmask, signal);
            let (process, thread) = (process(), call!(SYS_gettid));
            if call!(SYS_rt_tgsigqueueinfo, process, thread, signal, info) != 0 {
                call!(SYS_tgkill, process, thread, signal);
            }
        }
        set_errno(errno);
    }

    /// # Safety
    /// As those of the program's handler.
    unsafe fn run(&self, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let (handler, flags) = ACTIONS[signal as usize].load();
        self.handled.fetch_add(1, Relaxed);
        if flags & libc::SA_RESTART == 0 {
            self.ending.fetch_add(1, Relaxed);
        }
        // SAFETY: the program's handler has one of the two types of sigaction(2); one takes the first argument of the other.
        unsafe {
            if flags & libc::SA_RESETHAND != 0 {
                let default: sigaction = mem::zeroed();
                install()(signal, &default, ptr::null_mut());
            }
            if flags & libc::SA_NODEFER != 0 {
                unblock(bit(signal));
            }
            type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
            mem::transmute::<sighandler_t, Handler>(handler)(signal, info, context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static SEEN: [AtomicUsize; LAST + 1] = [const { AtomicUsize::new(0) }; LAST + 1];

    /// Counts the signal, and adds the value that came with it.
    unsafe extern "C" fn see(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
        // SAFETY: the kernel passes valid information.
        let value = unsafe { (*info).si_value().sival_ptr } as usize;
        SEEN[signal as usize].fetch_add(1 + value, SeqCst);
    }

    /// Installs `see` for a signal; each test uses a signal of its own.
    fn catch(signal: c_int, flags: c_int) {
        let mut action = action();
        action.sa_sigaction = see as *const () as sighandler_t;
        action.sa_flags = flags | libc::SA_SIGINFO;
        // SAFETY: it is a valid action.
        assert_eq!(unsafe { act(signal, &action, ptr::null_mut()) }, 0);
    }

    fn action() -> sigaction {
        // SAFETY: all zeros are a valid `sigaction`.
        unsafe { mem::zeroed() }
    }

    fn installed(signal: c_int) -> sigaction {
        let mut old = action();
        // SAFETY: the call fills in an action.
        assert_eq!(unsafe { act(signal, ptr::null(), &mut old) }, 0);
        old
    }

    /// Sends the signal to this thread, with a value.
    fn raise(signal: c_int, value: usize) {
        let value = libc::sigval {
            sival_ptr: value as *mut c_void,
        };
        // SAFETY: this thread exists.
        assert_eq!(
            unsafe { libc::pthread_sigqueue(libc::pthread_self(), signal, value) },
            0
        );
    }

    fn seen(signal: c_int) -> usize {
        SEEN[signal as usize].load(SeqCst)
    }

    fn sleep_for_ever() -> rustix::io::Result<usize> {
        sleep(&mut [], None, None)
    }

    #[test]
    fn a_handler_runs_once_no_call_of_the_library_is_interrupted() {
        let signal = libc::SIGRTMIN() + 1;
        catch(signal, 0);
        raise(signal, 0);
        assert_eq!(seen(signal), 1);
        let outer = hold();
        let inner = hold();
        raise(signal, 10);
        raise(signal, 20);
        drop(inner);
        assert_eq!(seen(signal), 1);
        set_errno(libc::ENOENT);
        drop(outer);
        assert_eq!(sys::last(), libc::ENOENT);
        assert_eq!(seen(signal), 1 + 11 + 21);
    }

    #[test]
    fn a_postponed_signal_ends_a_sleep() {
        let signal = libc::SIGRTMIN() + 2;
        for (flags, restart) in [(0, false), (libc::SA_RESTART, true)] {
            catch(signal, flags);
            let hold = hold();
            let before = seen(signal);
            raise(signal, 0);
            assert_eq!(sleep_for_ever(), Err(rustix::io::Errno::INTR));
            assert_eq!((seen(signal), restarts()), (before + 1, restart));
            // The call has not ended yet.
            raise(signal, 0);
            assert_eq!(seen(signal), before + 1);
            drop(hold);
            assert_eq!(seen(signal), before + 2);
        }
    }

    #[test]
    fn a_mask_admits_signals_only_while_a_call_waits() {
        let signal = libc::SIGRTMIN() + 3;
        catch(signal, 0);
        // SAFETY: the sets are filled in before they are read.
        let (blocked, none) = unsafe {
            let (mut blocked, mut none): (sigset_t, sigset_t) = (mem::zeroed(), mem::zeroed());
            libc::sigemptyset(&mut none);
            libc::sigemptyset(&mut blocked);
            libc::sigaddset(&mut blocked, signal);
            (blocked, none)
        };
        // SAFETY: the call reads a set.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, ptr::null_mut()) };
        let _hold = hold();
        raise(signal, 0);
        assert_eq!(look(Some(&blocked)), Ok(()));
        assert_eq!((look(None), seen(signal)), (Ok(()), 0));
        assert_eq!(look(Some(&none)), Err(libc::EINTR));
        assert_eq!(seen(signal), 1);
        raise(signal, 0);
        let interrupted = Err(rustix::io::Errno::INTR);
        assert_eq!(sleep(&mut [], None, Some(&none)), interrupted);
        assert_eq!(seen(signal), 2);
    }

    #[test]
    fn programs_see_their_own_handlers() {
        let signal = libc::SIGRTMIN() + 4;
        catch(signal, libc::SA_RESETHAND | libc::SA_NODEFER);
        let found = installed(signal);
        assert_eq!(found.sa_sigaction, see as *const () as sighandler_t);
        let flags = libc::SA_RESETHAND | libc::SA_NODEFER | libc::SA_SIGINFO;
        assert_eq!(found.sa_flags, flags);
        let held = hold();
        raise(signal, 0);
        drop(held);
        assert_eq!(seen(signal), 1);
        assert_eq!(installed(signal).sa_sigaction, libc::SIG_DFL);
    }

    #[test]
    fn faults_of_the_program_reach_its_handler() {
        catch_faults();
        assert!(!is_behind(&installed(libc::SIGSEGV)));
        catch(libc::SIGSEGV, libc::SA_RESTART);
        let flags = libc::SA_RESTART | libc::SA_SIGINFO;
        assert_eq!(installed(libc::SIGSEGV).sa_flags, flags);
        let held = hold();
        raise(libc::SIGSEGV, 3);
        assert_eq!(seen(libc::SIGSEGV), 4, "at once");
        drop(held);
        assert!(!crate::probing::can_read(16, 1));
        assert_eq!(seen(libc::SIGSEGV), 4, "the probe's fault ends there");
    }
}
