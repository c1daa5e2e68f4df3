//! Waiting for the adapter.

use super::Driver;
use crate::link::HostEnd;
use baton_bus::HostLink;
use baton_iolib::{LiveLink, sleep, wait};
use baton_wire::Time;
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Driver {
    /// Waits until something may have happened, at most for `timeout`. Spins first, if that has paid off lately.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let until = self.longest_wait(timeout);
        if until == Some(Duration::ZERO) {
            return Ok(());
        }
        self.end.link.mask_lazy(self.end.os.masks_lazy());
        match &mut self.end.link {
            HostEnd::Attached(link) => wait(link, &mut self.spin, until),
            HostEnd::Lost(_) => sleep(&mut [], until),
        }
    }

    /// Prepares for the application's own wait on [`Driver::as_fd`], and returns the longest that it may wait: zero if there is work to do
    /// already.
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

    /// Returns when work is due even if nothing arrives.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        if self.end.link.is_lost() {
            return Some(self.retry.at());
        }
        self.end.os.poll_timeout()
    }

    /// Returns whether something has arrived, including an error that means that the link is lost.
    pub(crate) fn has_news(&mut self) -> bool {
        match self.end.link.live() {
            // An error is news, too.
            Some(link) => link.has_news().unwrap_or(true),
            None => false,
        }
    }

    /// Asks the adapter to wake this side up. Returns false if there is work to do already.
    pub(crate) fn prepare_to_sleep(&mut self) -> bool {
        self.end.link.mask_lazy(self.end.os.masks_lazy());
        match self.end.link.live() {
            Some(link) => link.prepare_to_sleep().unwrap_or(false),
            None => true,
        }
    }

    /// Returns the descriptor that becomes readable when there is work to do; it stays the same when the link changes.
    pub(crate) fn epoll(&self) -> &Arc<OwnedFd> {
        &self.epoll
    }

    /// Returns whether to poll again immediately, at most until `due`, rather than to sleep.
    pub(crate) fn spins_on(&mut self, due: Option<Instant>) -> bool {
        !self.end.link.is_lost() && self.spin.goes_on(Instant::now(), due)
    }

    /// Records that something arrived while spinning.
    pub(crate) fn end_spin(&mut self) {
        self.spin.came();
    }

    /// Returns `timeout`, or less if work is due earlier.
    pub(crate) fn longest_wait(&self, timeout: Option<Duration>) -> Option<Duration> {
        let due = self
            .poll_timeout()
            .map(|due| Duration::from(due.saturating_since(self.now())));
        [timeout, due].into_iter().flatten().min()
    }
}

/// The descriptor becomes readable when there is work to do; see [`Driver::before_wait`]. It stays the same when the link changes.
impl AsFd for Driver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Returns the poll(2) entry that waits for an epoll instance to become readable.
pub(crate) fn readable(fd: &OwnedFd) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::IN)
}
