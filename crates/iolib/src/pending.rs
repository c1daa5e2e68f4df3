//! Applications that have connected and not yet sent their hello.

use crate::handshake::{FrameReader, Hello, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use smallvec::SmallVec;
use std::io::{self, Read};
use std::mem::discriminant;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Maximum number of waiting clients; others stay in the backlog.
const MOST_PENDING: usize = 16;
/// Maximum number of waiting clients of one user.
const MOST_OF_USER: usize = 4;
/// Maximum number of clients that are accepted in a row, so that clients that keep reconnecting do not keep the adapter busy.
const MOST_AT_ONCE: usize = 16;
/// Time after which a client without a hello is disconnected.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);

/// A stream that can be made nonblocking.
pub(crate) trait NonBlocking: AsFd {
    fn set_nonblocking(&self) -> io::Result<()>;
}

impl NonBlocking for std::os::unix::net::UnixStream {
    fn set_nonblocking(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl NonBlocking for std::net::TcpStream {
    fn set_nonblocking(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

/// A client that has sent its hello.
pub(crate) struct Greeted<S> {
    pub stream: S,
    pub hello: Result<Hello, Refusal>,
}

/// A client that has not sent its hello yet.
#[derive(Debug)]
struct Silent<S> {
    stream: S,
    hello: FrameReader,
    /// `None` if the user is not known.
    user: Option<u32>,
    since: Instant,
}

/// All waiting clients, and the number of refusals.
#[derive(Debug)]
pub(crate) struct Pending<S> {
    silent: Vec<Silent<S>>,
    /// Number of clients accepted since [`Pending::next`] last returned `None`.
    came: usize,
    refusals: Vec<(Refusal, u64)>,
}

impl<S> Default for Pending<S> {
    fn default() -> Self {
        Self {
            silent: Vec::new(),
            came: 0,
            refusals: Vec::new(),
        }
    }
}

impl<S: NonBlocking> Pending<S>
where
    for<'a> &'a S: Read,
{
    /// Accepts clients by `accept`, and returns the next client that has sent its hello. Returns `None` once no accepted client is ready to
    /// be served.
    pub fn next(
        &mut self,
        accept: impl Fn() -> io::Result<S>,
        user_of: impl Fn(&S) -> Option<u32>,
    ) -> Option<Greeted<S>> {
        while self.silent.len() < MOST_PENDING
            && self.came < MOST_AT_ONCE
            && let Ok(stream) = accept()
        {
            self.came += 1;
            if stream.set_nonblocking().is_ok() {
                let user = user_of(&stream);
                self.make_room(user);
                self.silent.push(Silent {
                    stream,
                    hello: FrameReader::default(),
                    user,
                    since: Instant::now(),
                });
            }
        }
        let mut at = 0;
        while let Some(waiting) = self.silent.get_mut(at) {
            match waiting.hello.read_hello(&waiting.stream) {
                Ok(Some(hello)) => {
                    let stream = self.silent.remove(at).stream;
                    return Some(Greeted { stream, hello });
                }
                Ok(None) if waiting.since.elapsed() < HELLO_TIMEOUT => at += 1,
                // The client is gone, or has sent no hello in time.
                Ok(None) | Err(_) => {
                    self.silent.remove(at);
                    self.count(&Refusal::NoHello);
                }
            }
        }
        self.came = 0;
        None
    }

    /// If the user has the maximum number of waiting clients, disconnects the oldest of them whose hello has not arrived.
    fn make_room(&mut self, user: Option<u32>) {
        let is_of_user = |waiting: &Silent<S>| user.is_some() && waiting.user == user;
        let of_user = self.silent.iter().filter(|waiting| is_of_user(waiting));
        if of_user.count() < MOST_OF_USER {
            return;
        }
        let mut fds: Vec<_> = (self.silent.iter())
            .map(|waiting| PollFd::new(&waiting.stream, PollFlags::IN))
            .collect();
        let _ = poll(&mut fds, Some(&Timespec::default()));
        let has_spoken: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut silent = self.silent.iter().zip(has_spoken);
        let oldest = silent.position(|(waiting, spoken)| is_of_user(waiting) && !spoken);
        if let Some(oldest) = oldest {
            self.silent.remove(oldest);
            self.count(&Refusal::TooManySilent);
        }
    }

    /// Returns the events to wait for: `listener`, while more clients can be accepted, and the waiting clients.
    pub fn fds<'a>(
        &'a self,
        listener: BorrowedFd<'a>,
    ) -> SmallVec<[(BorrowedFd<'a>, PollFlags); 4]> {
        let mut fds = SmallVec::new();
        if self.silent.len() < MOST_PENDING {
            fds.push((listener, PollFlags::IN));
        }
        let silent = self.silent.iter();
        fds.extend(silent.map(|waiting| (waiting.stream.as_fd(), PollFlags::IN)));
        fds
    }
}

impl<S> Pending<S> {
    /// Counts a refusal by its reason; keeps the details of the latest.
    pub fn count(&mut self, refusal: &Refusal) {
        let mut refusals = self.refusals.iter_mut();
        match refusals.find(|(known, _)| discriminant(known) == discriminant(refusal)) {
            Some((known, count)) => {
                *known = *refusal;
                *count += 1;
            }
            None => self.refusals.push((*refusal, 1)),
        }
    }

    pub fn refusals(&self) -> &[(Refusal, u64)] {
        &self.refusals
    }
}
