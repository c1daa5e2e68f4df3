//! Waiting for an adapter's sockets together with other descriptors, and the readiness of a socket.

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

/// How long a thread sleeps at a time if it cannot be woken because the process has no descriptor left for its bell.
const WITHOUT_BELL: Duration = Duration::from_millis(10);

/// What can be done with a connection now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Number of received bytes that are not read yet.
    pub unread: usize,
    /// The peer sends no more data, or this side has shut down reading.
    pub ended: bool,
    /// There is buffer space for data, or a write fails immediately.
    pub writable: bool,
    /// Nothing can be sent any more.
    pub shut: bool,
    /// The connection is lost.
    pub failed: bool,
    /// The connection's error was not reported yet; `take_error` reports it.
    pub untold: bool,
    /// The connection is still being opened.
    pub opening: bool,
    /// Transmit times of sent bytes are available from [`TcpStream::take_transmit_time`].
    pub times: bool,
}

impl Readiness {
    /// Returns whether a read returns without waiting.
    pub fn is_readable(&self) -> bool {
        !self.opening && (self.unread > 0 || self.ended || self.failed)
    }
}

/// A condition that [`Adapter::wait_beside`] waits for.
#[derive(Clone, Copy, Debug)]
pub enum Watched<'a> {
    /// The connection can be read or written, as the interest says.
    Stream(&'a TcpStream, Interest),
    /// This many bytes of the connection can be read, or no more will arrive.
    Unread(&'a TcpStream, usize),
    /// The listener has a connection to accept.
    Listener(&'a TcpListener),
    /// The poll has an event.
    Poll(&'a Poll),
}

impl Watched<'_> {
    /// Returns whether the condition holds, and registers the waiter.
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
            Self::Unread(stream, count) => {
                if let Some(waiter) = waiter {
                    core.wait_until(stream.socket(), Side::Read, waiter);
                }
                let now = stream.readiness_in(core);
                now.unread >= *count || now.ended
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
    /// Waits until one of `watched` or `others` is ready, or `timeout` expires. The waiting thread itself processes what the adapter
    /// reports, so that no other thread is involved. The caller then checks what is ready. `sleep` is poll(2) or an extension of it, such
    /// as ppoll(2).
    ///
    /// # Errors
    /// A signal arrived (`Interrupted`), or `sleep` failed.
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
                // Check all conditions, even after one holds, because each has to register the waiter.
                let ready = watched.iter().filter(|one| one.check(core, waiter));
                (ready.count() > 0).then_some(())
            });
        beside.outcome.unwrap_or(Ok(()))
    }
}

/// poll(2), or a replacement for it.
type Sleep<'a> =
    &'a mut dyn FnMut(&mut [PollFd<'_>], Option<&Timespec>) -> rustix::io::Result<usize>;

/// What a thread waits for in addition to the adapter.
pub(crate) struct Beside<'a> {
    /// `None` if there is nothing else to wait for; signals are then ignored as well.
    others: Option<(&'a [PollFd<'a>], Sleep<'a>)>,
    /// Result of the sleep, once one of the other descriptors is ready or sleeping has failed.
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

    /// Sleeps until `own` or one of the other descriptors is ready.
    pub(crate) fn sleep(&mut self, own: Option<PollFd<'_>>, timeout: Option<Duration>) {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds: SmallVec<[PollFd<'_>; 8]> = own.into_iter().collect();
        let owned = fds.len();
        let Some((others, sleep)) = &mut self.others else {
            // If the system cannot wait, the caller should still check.
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

    /// Sleeps until this thread is notified, or one of the other descriptors is ready.
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
            // The bell rings after the notification is set, so this ring may belong to a notification that the thread saw before it slept.
            let _ = rustix::io::read(bell, &mut [0; 8]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_wakeup_does_not_keep_a_thread_awake() {
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
