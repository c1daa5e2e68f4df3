//! Waiting for the adapter.

use super::Driver;
use baton_wire::{Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Looks between two looks at the clock, which costs more.
const LOOKS_PER_CLOCK: u32 = 32;

impl Driver {
    /// Waits until something may have happened, at most for `timeout`: spins first, if that has paid off lately.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let until = self.longest_wait(timeout);
        if until == Some(Duration::ZERO) || self.spin(until) || !self.prepare_to_sleep() {
            return Ok(());
        }
        match self.link.wanted() {
            Some((fd, interest)) => sleep(&mut [PollFd::from_borrowed_fd(fd, interest)], until),
            None => sleep(&mut [], until),
        }
    }

    /// To be called before the application waits for [`Driver::as_fd`] by itself: the longest that it may wait. Zero when there is
    /// something to do already.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn before_wait(&mut self) -> io::Result<Option<Duration>> {
        let until = self.longest_wait(None);
        if until == Some(Duration::ZERO) || !self.prepare_to_sleep() {
            return Ok(Some(Duration::ZERO));
        }
        self.watch()?;
        Ok(until)
    }

    /// When something has to be done even if nothing comes.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        if self.link.is_lost() {
            return Some(self.retry.at());
        }
        self.os.poll_timeout()
    }

    /// Whether there is something to take in, or the link has to be looked at because it is lost.
    pub(crate) fn has_news(&mut self) -> bool {
        match self.link.live() {
            // An error is something to take in, too.
            Some(link) => link.has_news().unwrap_or(true),
            None => false,
        }
    }

    /// Asks the adapter to ring. False when there is something to do already.
    pub(crate) fn prepare_to_sleep(&mut self) -> bool {
        match self.link.live() {
            Some(link) => link.prepare_to_sleep().unwrap_or(false),
            None => true,
        }
    }

    /// What becomes readable when there is something to do, of however many links.
    pub(crate) fn epoll(&self) -> &Arc<OwnedFd> {
        &self.epoll
    }

    /// How long to spin before the next sleep of at most `until`.
    pub(crate) fn begin_spin(&mut self, until: Option<Duration>) -> Duration {
        if self.link.is_lost() {
            return Duration::ZERO;
        }
        let budget = self.spin.begin();
        until.map_or(budget, |until| until.min(budget))
    }

    /// Whether something came while it was spun.
    pub(crate) fn end_spin(&mut self, paid_off: bool) {
        let counters = self.link.counters_mut();
        if paid_off {
            counters.spins_paid_off += 1;
            self.spin.paid_off();
        } else {
            counters.spins_in_vain += 1;
            self.spin.was_in_vain();
        }
    }

    /// `timeout`, or less if something is to be done earlier.
    pub(crate) fn longest_wait(&self, timeout: Option<Duration>) -> Option<Duration> {
        let due = self.poll_timeout().map(|due| {
            let span = due.saturating_since(self.now());
            Duration::from_nanos(span.as_ps().div_ceil(1000))
        });
        [timeout, due].into_iter().flatten().min()
    }

    /// Looks for news again and again for as long as that has paid off; true when there are some.
    fn spin(&mut self, until: Option<Duration>) -> bool {
        let budget = self.begin_spin(until);
        if budget.is_zero() {
            return false;
        }
        let start = Instant::now();
        let came = loop {
            if (0..LOOKS_PER_CLOCK).any(|_| {
                std::hint::spin_loop();
                self.has_news()
            }) {
                break true;
            }
            if start.elapsed() >= budget {
                break false;
            }
        };
        self.end_spin(came);
        came
    }
}

/// What becomes readable when there is something to do; see [`Driver::before_wait`]. The same for all links.
impl AsFd for Driver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Sleeps until one of `fds` is ready, or for `timeout`.
///
/// # Errors
/// The system cannot wait.
pub(crate) fn sleep(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What an epoll instance is waited for.
pub(crate) fn readable(fd: &OwnedFd) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::IN)
}

/// A time span of the standard library as one of ours.
pub(crate) fn span(duration: Duration) -> Span {
    let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Span::from_ps(ns.saturating_mul(1000))
}
