//! Waiting for sockets of an adapter beside other things, and what can be done with a socket now.

use crate::Adapter;
use crate::adapter::Timeout;
use crate::core::{Core, Side};
use crate::listener::TcpListener;
use crate::poll::{Interest, Poll, sealed::Sealed};
use crate::stream::TcpStream;
use crate::waiter::{Parker, Waiter};
use rustix::event::{PollFd, Timespec, poll};
use smallvec::SmallVec;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a thread sleeps that cannot be woken, since the system has no file left for that.
const WITHOUT_BELL: Duration = Duration::from_millis(10);

/// What can be done with a connection now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Bytes that wait to be read.
    pub unread: usize,
    /// The peer will send no more, or this side reads no more.
    pub ended: bool,
    /// There is room for data, or a write fails at once.
    pub writable: bool,
    /// Nothing can be sent any more.
    pub shut: bool,
    /// The connection is lost; `take_error` tells why.
    pub failed: bool,
    /// It is not known yet whether it can be opened.
    pub opening: bool,
    /// There are times of bytes that were sent, for [`TcpStream::take_transmit_time`].
    pub times: bool,
}

impl Readiness {
    /// A read does not wait.
    pub fn is_readable(&self) -> bool {
        !self.opening && (self.unread > 0 || self.ended || self.failed)
    }
}

/// Something that [`Adapter::wait_beside`] waits for.
#[derive(Clone, Copy, Debug)]
pub enum Watched<'a> {
    /// A connection, until it can be read or written.
    Stream(&'a TcpStream, Interest),
    /// A listener, until there is a connection.
    Listener(&'a TcpListener),
    /// A poll, until it has an event.
    Poll(&'a Poll),
}

impl Watched<'_> {
    /// Whether it is ready; or registers the waiter.
    fn check(&self, core: &mut Core, waiter: Option<&Waiter>) -> bool {
        match self {
            Self::Stream(stream, interest) => {
                let now = stream.readiness_in(core);
                let wants = |wanted: bool, side, core: &mut Core| {
                    if let (true, Some(waiter)) = (wanted, waiter) {
                        core.wait_until(stream.socket(), side, waiter);
                    }
                };
                wants(interest.reads() || interest.wants_times(), Side::Read, core);
                wants(interest.writes(), Side::Write, core);
                interest.reads() && now.is_readable()
                    || interest.writes() && now.writable
                    || interest.wants_times() && now.times
            }
            Self::Listener(listener) => {
                if let Some(waiter) = waiter {
                    core.wait_until(listener.socket(), Side::Read, waiter);
                }
                listener.is_acceptable_in(core)
            }
            Self::Poll(poll) => poll.has_events(core, waiter),
        }
    }
}

impl Adapter {
    /// Waits until one of `watched` is ready, one of `others` is, or `timeout` is over: the thread that waits takes in what the adapter
    /// tells, so that there is none between it and its sockets. What is ready is to be looked up then. `sleep` is poll(2), or does more, such as
    /// ppoll(2).
    ///
    /// # Errors
    /// `Interrupted` by a signal; the system cannot wait.
    pub fn wait_beside(
        &self,
        watched: &[Watched<'_>],
        others: &[PollFd<'_>],
        timeout: Option<Duration>,
        mut sleep: impl FnMut(&mut [PollFd<'_>], Option<&Timespec>) -> rustix::io::Result<usize>,
    ) -> io::Result<()> {
        let mut beside = Beside {
            others: Some((others, &mut sleep)),
            outcome: None,
        };
        self.handle()
            .block_beside(Timeout::from(timeout), &mut beside, |core, waiter| {
                // All are looked at: each is to know of the waiter.
                let ready = watched.iter().filter(|one| one.check(core, waiter));
                (ready.count() > 0).then_some(())
            });
        beside.outcome.unwrap_or(Ok(()))
    }
}

/// poll(2), or what stands for it.
type Sleep<'a> =
    &'a mut dyn FnMut(&mut [PollFd<'_>], Option<&Timespec>) -> rustix::io::Result<usize>;

/// What a thread waits for beside the adapter.
pub(crate) struct Beside<'a> {
    /// None: it does not want to hear of signals either.
    others: Option<(&'a [PollFd<'a>], Sleep<'a>)>,
    /// One of them is ready, or it cannot be waited for.
    outcome: Option<io::Result<()>>,
}

impl<'a> Beside<'a> {
    pub(crate) fn nothing() -> Self {
        Self {
            others: None,
            outcome: None,
        }
    }

    pub(crate) fn has_happened(&self) -> bool {
        self.outcome.is_some()
    }

    /// Sleeps until `own` is ready, or one of the others.
    pub(crate) fn sleep(&mut self, own: Option<PollFd<'_>>, timeout: Option<Duration>) {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds: SmallVec<[PollFd<'_>; 8]> = own.into_iter().collect();
        let owned = fds.len();
        let Some((others, sleep)) = &mut self.others else {
            // That the system cannot wait is no reason not to look.
            let _ = poll(&mut fds, timeout.as_ref());
            return;
        };
        fds.extend(others.iter().cloned());
        match sleep(&mut fds, timeout.as_ref()) {
            Ok(_) if fds[owned..].iter().all(|fd| fd.revents().is_empty()) => {}
            Ok(_) => self.outcome = Some(Ok(())),
            Err(error) => self.outcome = Some(Err(error.into())),
        }
    }

    /// Sleeps until this thread is notified, or one of the others is ready.
    pub(crate) fn park(&mut self, parker: &Arc<Parker>, deadline: Option<Instant>) {
        if self.others.is_none() {
            return parker.park(deadline);
        }
        let bell = parker.bell();
        while !parker.is_notified() && self.outcome.is_none() {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return;
            }
            let Some(bell) = bell else {
                self.sleep(None, Some(left.unwrap_or(WITHOUT_BELL).min(WITHOUT_BELL)));
                continue;
            };
            self.sleep(Some(crate::driver::readable(bell)), left);
            // It rings after the note was taken: perhaps for one that this thread has seen before it slept.
            let _ = rustix::io::read(bell, &mut [0; 8]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_bell_does_not_keep_a_thread_awake() {
        let parker = Parker::current();
        let bell = parker.bell().expect("a bell");
        parker.unpark();
        parker.reset();
        let mut beside = Beside {
            others: Some((&[], &mut poll)),
            outcome: None,
        };
        let soon = Instant::now() + Duration::from_millis(20);
        beside.park(&parker, Some(soon));
        assert!(Instant::now() >= soon);
        let rings = rustix::io::read(bell, &mut [0; 8]);
        assert_eq!(rings, Err(rustix::io::Errno::AGAIN));
    }
}
