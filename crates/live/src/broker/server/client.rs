//! Serves a client: an application or an adapter.

use super::requests::{Answer, Refusal};
use super::{Shared, refuse};
use crate::broker::captured::Taker;
use crate::broker::limits::{Limit, Resources, Share, is_operator};
use baton_sockets::broker::messages::{
    self, ADOPT, ATTACH, DONE, Excess, GIVE_BACK, HISTORY, Incoming, KNOWS, MOST_SMALL_BYTES,
    Message, Most, PLACES, Progress, RECLAIM, RECOVER, RESTORE_ALL, SUBSCRIBE, TAKE,
};
use rustix::event::PollFlags;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time from the first byte of a message to its last, and to send an answer, however slowly the bytes trickle.
const LONGEST_MESSAGE: Duration = Duration::from_secs(5);
/// Minimum time between two answers that go through all connections.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(50);
/// Interval at which to check for free memory.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Serves a client, which is not trusted.
pub(super) struct Serving<'a> {
    shared: &'a Arc<Shared>,
    /// Non-blocking.
    stream: Arc<UnixStream>,
    pid: i32,
    taker: Taker,
    /// Whether the client has made a request about a connection.
    has_asked: bool,
}

/// Why a client is no longer served.
enum End {
    /// The client has disconnected, possibly in the middle of a message.
    Gone,
    /// The client has hit a limit. The broker sends it the reason, if that helps.
    Limit(Limit, Option<Refusal>),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl<'a> Serving<'a> {
    pub(super) fn new(
        shared: &'a Arc<Shared>,
        stream: Arc<UnixStream>,
        user: u32,
        pid: i32,
        number: u64,
    ) -> Self {
        Self {
            shared,
            stream,
            pid,
            taker: Taker {
                number,
                user,
                pid: pid.unsigned_abs(),
            },
            has_asked: false,
        }
    }

    /// Serves the client until it disconnects, becomes a subscriber or an adapter, or hits a limit.
    pub(super) fn serve(mut self) {
        if let Err(End::Limit(limit, refusal)) = self.serve_requests() {
            self.shared.limits.count(limit);
            if let Some(refusal) = refusal {
                let _ = refuse(&self.stream, &refusal);
            }
        }
        // This goes through all connections.
        if self.has_asked {
            self.shared.captured.abandon(self.taker);
        }
    }

    fn serve_requests(&mut self) -> Result<(), End> {
        loop {
            let (message, memory, turn) = self.receive()?;
            match message.kind {
                SUBSCRIBE => {
                    if let Ok(pid) = u32::try_from(self.pid) {
                        let stream = Arc::clone(&self.stream);
                        let applications = &self.shared.applications;
                        applications.add(stream, pid, self.taker.user);
                    }
                    return Ok(());
                }
                ATTACH | ADOPT => {
                    drop((memory, turn));
                    // An adapter runs as the broker's user or root.
                    self.stream.set_nonblocking(false)?;
                    if self.serve_adapter(message) {
                        return Ok(());
                    }
                    self.stream.set_nonblocking(true)?;
                }
                _ => self.answer(message, memory, turn)?,
            }
        }
    }

    /// Receives the next request. Also returns the memory charged for it, unless it is small, and the permission to serve it now.
    fn receive(&self) -> Result<(Message, Option<Share>, Share), End> {
        let user = self.taker.user;
        let mut incoming = Incoming::default();
        let (mut limit, mut memory) = (None, None);
        loop {
            let waited = messages::wait(&self.stream, PollFlags::IN, limit);
            if waited.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
                return Err(End::Limit(Limit::LateMessage, None));
            }
            // Other requests of this user wait while bytes are read, because reading takes time, as serving does.
            let turn = self.shared.limits.turn(user);
            let progress = match incoming.read(&self.stream, Most::of) {
                // A small message needs no memory of its user, and may have arrived completely.
                Ok(Progress::Announced(len)) if len <= MOST_SMALL_BYTES => {
                    incoming.read(&self.stream, Most::of)
                }
                progress => progress,
            };
            match progress {
                Ok(Progress::Whole(message)) => return Ok((message, memory, turn)),
                Ok(Progress::Gone) => return Err(End::Gone),
                Ok(progress) => {
                    drop(turn);
                    if !incoming.has_begun() {
                        continue;
                    }
                    let limit = *limit.get_or_insert_with(|| Instant::now() + LONGEST_MESSAGE);
                    if let Progress::Announced(len) = progress {
                        memory = Some(self.memory_for(len as u64, limit)?);
                    }
                }
                Err(error) => {
                    let excess = error.downcast::<Excess>().map_err(|_| End::Gone)?;
                    return Err(End::Limit(Limit::Excess, Some(excess.into())));
                }
            }
        }
    }

    /// Waits until there is memory for a message. Meanwhile the message's bytes remain in the socket.
    fn memory_for(&self, bytes: u64, limit: Instant) -> Result<Share, End> {
        let limits = &self.shared.limits;
        let mut has_waited = false;
        loop {
            match limits.take(self.taker.user, Resources::Bytes, bytes) {
                Ok(share) => return Ok(share),
                Err(_) if Instant::now() > limit || self.shared.ends() => {
                    return Err(End::Limit(Limit::NoMemory, Some(Refusal::NoMemory)));
                }
                Err(limit) if !has_waited => limits.count(limit),
                Err(_) => {}
            }
            has_waited = true;
            thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Serves a request and sends the answer. Long requests do not count towards the limit of requests served at the same time.
    fn answer(&mut self, message: Message, memory: Option<Share>, turn: Share) -> Result<(), End> {
        let (shared, user) = (self.shared, self.taker.user);
        self.has_asked |= matches!(message.kind, TAKE | GIVE_BACK | RECLAIM | RECOVER | KNOWS);
        let turn = match message.kind {
            PLACES | RESTORE_ALL | HISTORY => {
                drop(turn);
                None
            }
            // The answer may be long: do not produce it before the user has read earlier ones.
            TAKE if shared.limits.is_out_of_memory(user) => {
                drop(turn);
                let limit = Instant::now() + LONGEST_MESSAGE;
                drop(self.memory_for(1, limit)?);
                Some(shared.limits.turn(user))
            }
            _ => Some(turn),
        };
        let question = match message.kind {
            // This goes through all connections, so users that are not operators are slowed down.
            HISTORY => Some(shared.limits.take(user, Resources::Questions, 1)),
            _ => None,
        };
        if let Some(Err(limit)) = &question {
            shared.limits.count(*limit);
            return Ok(refuse(&self.stream, &Refusal::Asked)?);
        }
        let began = Instant::now();
        let answer = match message.kind {
            PLACES => match shared.applications.places(user) {
                Ok((text, share)) => Ok((text.into(), share)),
                Err(limit) => {
                    shared.limits.count(limit);
                    Err(Refusal::Asked)
                }
            },
            _ => shared.handle(message, self.taker).map(|answer| {
                let bytes = answer.body.len() as u64;
                let share = shared.limits.charge(user, Resources::Bytes, bytes);
                (answer, share)
            }),
        };
        if question.is_some() && !is_operator(user) {
            // Moves wait while a question is answered, so answers may take at most a tenth of the time.
            thread::sleep(BETWEEN_QUESTIONS.max(began.elapsed() * 10));
        }
        drop((memory, turn, question));
        let limit = Instant::now() + LONGEST_MESSAGE;
        let sent = match answer {
            Ok((Answer { body, socket }, _share)) => {
                let socket = socket.as_ref().map(OwnedFd::as_fd);
                messages::send_until(&self.stream, DONE, &body, socket.as_slice(), limit)
            }
            Err(refusal) => refuse(&self.stream, &refusal),
        };
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => End::Limit(Limit::UnreadAnswer, None),
            _ => End::Gone,
        })
    }

    /// Serves an adapter until it detaches or disappears. Returns false if the adapter was refused.
    fn serve_adapter(&self, message: Message) -> bool {
        let (shared, stream, user, pid) = (self.shared, &self.stream, self.taker.user, self.pid);
        let session = match message.kind {
            // A broker without programs is about to end and reports the reason itself.
            ATTACH if shared.attach_programs().is_err() => return true,
            ATTACH => shared
                .attach(stream, &message.body, user, pid)
                .map(|session| (session, None)),
            _ => shared
                .adopt(stream, message, user, pid)
                .map(|(session, programs)| (session, Some(programs))),
        };
        match session {
            Ok((session, programs)) => {
                shared.serve_adapter(stream, &session, programs);
                true
            }
            Err(refusal) => {
                let _ = refuse(stream, &refusal);
                false
            }
        }
    }
}
