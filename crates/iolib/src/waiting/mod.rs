//! Waiting: spins for as long as that has paid off recently, and sleeps after that.

mod spin;

pub use spin::{Spin, SpinStats};

use crate::live_link::LiveLink;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use smallvec::SmallVec;
use std::io;
use std::time::{Duration, Instant};

/// Number of checks for news per reading of the clock, which costs more.
const LOOKS_PER_CLOCK: u32 = 32;

/// Waits until there may be news, or for `timeout`. A violation by the other side counts as news, too: the next use of the link reports it.
///
/// # Errors
/// The system cannot wait.
pub fn wait(
    link: &mut impl LiveLink,
    spin: &mut Spin,
    timeout: Option<Duration>,
) -> io::Result<()> {
    // A time beyond the end of the clock is never reached.
    let due = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    if spins_until_news(link, spin, due) || !link.prepare_to_sleep().unwrap_or(false) {
        return Ok(());
    }
    let left = due.map(|due| due.saturating_duration_since(Instant::now()));
    let interest = link.interest();
    let mut fds = SmallVec::<[PollFd<'_>; 2]>::new();
    fds.push(PollFd::new(link, interest));
    fds.extend((link.other_fd()).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    sleep(&mut fds, left)
}

/// Checks for news for as long as that pays off. Returns whether there is news.
fn spins_until_news(link: &mut impl LiveLink, spin: &mut Spin, due: Option<Instant>) -> bool {
    while spin.goes_on(Instant::now(), due) {
        let came = (0..LOOKS_PER_CLOCK).any(|_| {
            std::hint::spin_loop();
            link.has_news().unwrap_or(true)
        });
        if came {
            spin.came();
            return true;
        }
    }
    false
}

/// Sleeps until one of `fds` is ready, or for `timeout`. A signal may end the sleep earlier.
///
/// # Errors
/// The system cannot wait.
pub fn sleep(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    // A timeout that the system cannot represent means no timeout.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
