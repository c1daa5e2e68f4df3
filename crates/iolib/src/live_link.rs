//! What live links can do beside carrying descriptors and data: be waited for.

use crate::counters::LinkCounters;
use crate::spin::Spin;
use baton_bus::link::LinkError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Looks between two looks at the clock, which costs more.
const LOOKS_PER_CLOCK: u32 = 32;

/// A link that can be waited for, alone or beside others.
///
/// To wait: [`LiveLink::prepare_to_sleep`], and only if it says so, wait until [`AsFd::as_fd`] is ready for
/// [`LiveLink::interest`]; then use the link again, which wakes it up. Whoever can, spins before, and looks at [`LiveLink::has_news`].
pub trait LiveLink: AsFd {
    /// Whether there is something to get, or something goes on that was held up: a look at memory where memory is shared.
    ///
    /// # Errors
    /// The other side breaks the rules.
    fn has_news(&mut self) -> Result<bool, LinkError>;

    /// Says to the other side that it has to wake this one. False when there is something to do already, and nothing will wake it.
    ///
    /// # Errors
    /// The other side breaks the rules.
    fn prepare_to_sleep(&mut self) -> Result<bool, LinkError>;

    /// The same for a side whose last put fell short and that can get nothing before there is room: whatever comes, it sleeps on.
    ///
    /// # Errors
    /// The other side breaks the rules.
    fn prepare_to_sleep_for_room(&mut self) -> Result<bool, LinkError>;

    /// What to wait for at the file descriptor.
    fn interest(&self) -> PollFlags;

    /// What it has counted.
    fn counters(&self) -> &LinkCounters;

    /// What it counts, for whoever spins.
    fn counters_mut(&mut self) -> &mut LinkCounters;
}

/// Waits until there may be news, at most for `timeout`: spins first if that pays off, and then sleeps.
///
/// # Errors
/// The other side breaks the rules.
pub fn wait(
    link: &mut impl LiveLink,
    spin: &mut Spin,
    timeout: Option<Duration>,
) -> Result<(), LinkError> {
    let budget = spin.begin();
    let budget = timeout.map_or(budget, |timeout| timeout.min(budget));
    if !budget.is_zero() {
        if spin_for(link, budget)? {
            spin.paid_off();
            link.counters_mut().spins_paid_off += 1;
            return Ok(());
        }
        spin.was_in_vain();
        link.counters_mut().spins_in_vain += 1;
    }
    if link.prepare_to_sleep()? {
        sleep(link, timeout.map(|timeout| timeout - budget));
    }
    Ok(())
}

/// Looks until there are news or the time is over; true in the first case.
fn spin_for(link: &mut impl LiveLink, budget: Duration) -> Result<bool, LinkError> {
    let start = Instant::now();
    loop {
        for _ in 0..LOOKS_PER_CLOCK {
            if link.has_news()? {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        if start.elapsed() >= budget {
            return Ok(false);
        }
    }
}

/// Sleeps until the link is ready. A signal may wake it earlier.
fn sleep(link: &impl LiveLink, timeout: Option<Duration>) {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let mut fds = [PollFd::new(link, link.interest())];
    let slept = poll(&mut fds, timeout.as_ref());
    debug_assert!(matches!(slept, Ok(_) | Err(Errno::INTR)), "{slept:?}");
}
