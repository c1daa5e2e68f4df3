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
    /// Waits until something may have happened, at most for `timeout`: spins first, if that has paid off lately.
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
        if self.end.link.is_lost() {
            return Some(self.retry.at());
        }
        self.end.os.poll_timeout()
    }

    /// Whether there is something to take in, or the link has to be looked at because it is lost.
    pub(crate) fn has_news(&mut self) -> bool {
        match self.end.link.live() {
            // An error is something to take in, too.
            Some(link) => link.has_news().unwrap_or(true),
            None => false,
        }
    }

    /// Asks the adapter to ring. False when there is something to do already.
    pub(crate) fn prepare_to_sleep(&mut self) -> bool {
        self.end.link.mask_lazy(self.end.os.masks_lazy());
        match self.end.link.live() {
            Some(link) => link.prepare_to_sleep().unwrap_or(false),
            None => true,
        }
    }

    /// What becomes readable when there is something to do, of however many links.
    pub(crate) fn epoll(&self) -> &Arc<OwnedFd> {
        &self.epoll
    }

    /// Whether to look for news again at once, at most until `due`, rather than to sleep.
    pub(crate) fn spins_on(&mut self, due: Option<Instant>) -> bool {
        !self.end.link.is_lost() && self.spin.goes_on(Instant::now(), due)
    }

    /// While it was spun something came.
    pub(crate) fn end_spin(&mut self) {
        self.spin.came();
    }

    /// `timeout`, or less if something is to be done earlier.
    pub(crate) fn longest_wait(&self, timeout: Option<Duration>) -> Option<Duration> {
        let due = self
            .poll_timeout()
            .map(|due| Duration::from(due.saturating_since(self.now())));
        [timeout, due].into_iter().flatten().min()
    }
}

/// What becomes readable when there is something to do; see [`Driver::before_wait`]. The same for all links.
impl AsFd for Driver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// What an epoll instance is waited for.
pub(crate) fn readable(fd: &OwnedFd) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::IN)
}
