//! The application's end of a connection to the broker.

use super::messages::{
    self, ADAPTER, COUNTERS, DONE, GIVE_BACK, HISTORY, IS_LOOPBACK, KNOWS, Message, PLACES, POLICY,
    RECLAIM, RECOVER, REFUSED, RESTORE_ALL, Recovery, TAKE, WAS_RESET, parts_of_returned, returned,
};
use super::{HistoryAnswer, HistoryQuery, Subscription};
use crate::kernel::PlaceRow;
use baton_host::{MoveReason, SelectionConfig};
use baton_iolib::unix_socket;
use baton_wire::Flow;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum wait for an answer; a running broker answers sooner.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Maximum wait for the next broker; one that is restarted immediately listens within this time.
const LONGEST_ABSENCE: Duration = Duration::from_millis(1200);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// Why a request to the broker failed.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The broker refuses, for this reason. The connection stays where it was.
    #[error("{0}")]
    Refused(String),
    /// The peer has reset the connection in the meantime.
    #[error("{0}")]
    Reset(String),
    /// No broker listens.
    #[error("no broker is listening: {0}")]
    Absent(io::Error),
    /// The broker is gone or does not answer. It may still have carried out the request.
    #[error("the broker did not answer: {0}")]
    NoAnswer(#[from] io::Error),
}

/// Where the connections of one application are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationPlaces {
    /// Process ID of the application.
    pub pid: u32,
    /// One row for each connection.
    pub places: Vec<PlaceRow>,
    /// How often the application left a connection or a socket to the kernel for good, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, u64>,
    /// Why the application has not reported its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<String>,
}

/// A connection to the broker. Reconnects to the next broker when the broker is gone.
#[derive(Debug)]
pub struct BrokerClient {
    path: PathBuf,
    /// `None` once the connection is broken.
    stream: Option<UnixStream>,
    /// The broker that answered last may be a different one: it is not known to have taken this application's connections out of the
    /// kernel, or to have their adapter.
    is_other: bool,
    /// No broker appeared when the client waited for one.
    is_missed: bool,
    /// Why the next connection moves.
    why: MoveReason,
}

impl BrokerClient {
    /// Connects to the broker that listens at `path`.
    ///
    /// # Errors
    /// No broker listens there.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            stream: Some(connect(path)?),
            is_other: false,
            is_missed: false,
            why: MoveReason::Unknown,
        })
    }

    /// Sets the reason of the next move, which the broker records.
    pub fn set_why(&mut self, why: MoveReason) {
        self.why = why;
    }

    /// Returns when and why connections moved: those of this user, or of all users for root and the user of the broker.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn history(&mut self, query: &HistoryQuery) -> Result<HistoryAnswer, BrokerError> {
        let query = serde_json::to_vec(query).map_err(io::Error::from)?;
        let text = self.ask(HISTORY, &query, None)?.body;
        Ok(serde_json::from_slice(&text).map_err(io::Error::from)?)
    }

    /// Subscribes this application to the broker's questions.
    pub(crate) fn subscribe(&self) -> io::Result<Subscription> {
        Subscription::new(&self.path)
    }

    /// Returns where the connections of all applications of this user are; for root, those of all users.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn places(&mut self) -> Result<Vec<ApplicationPlaces>, BrokerError> {
        let text = self.ask(PLACES, &[], None)?.body;
        Ok(serde_json::from_slice(&text).map_err(io::Error::from)?)
    }

    /// Returns how often each limit of the broker took effect, by name. Only root and the broker's user may ask.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn counters(&mut self) -> Result<BTreeMap<String, u64>, BrokerError> {
        let text = self.ask(COUNTERS, &[], None)?.body;
        Ok(serde_json::from_slice(&text).map_err(io::Error::from)?)
    }

    /// Makes all connections return to the kernel and keeps any from leaving it again. Returns how many have not returned after some
    /// seconds.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn restore_all(&mut self) -> Result<u64, BrokerError> {
        let left = String::from_utf8(self.ask(RESTORE_ALL, &[], None)?.body);
        let left = left.ok().and_then(|left| left.parse().ok());
        left.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData).into())
    }

    /// Returns the policy for applications that have none of their own.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn policy(&mut self) -> Result<SelectionConfig, BrokerError> {
        let name = String::from_utf8(self.ask(POLICY, &[], None)?.body);
        let policy = name.ok().and_then(|name| name.parse().ok());
        policy.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData).into())
    }

    /// Returns whether the connections that may move are those over the loopback interface.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn is_loopback(&mut self) -> Result<bool, BrokerError> {
        Ok(self.ask(IS_LOOPBACK, &[], None)?.body == b"true")
    }

    /// Returns the process ID of the adapter, if there is an adapter.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn adapter(&mut self) -> Result<Option<u32>, BrokerError> {
        let text = String::from_utf8(self.ask(ADAPTER, &[], None)?.body);
        let pid: Option<u32> = text.ok().and_then(|pid| pid.parse().ok());
        let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok((pid != 0).then_some(pid))
    }

    /// Returns whether the connected broker knows this application's connections: it took them out of the kernel or has their adapter.
    pub fn is_there(&self) -> bool {
        !self.is_other && self.stream.as_ref().is_some_and(is_open)
    }

    /// If that broker is gone, looks for the next one. If a connection is `away`, the next broker must know it.
    pub(crate) fn look_for_next(&mut self, away: Option<&Flow>) {
        if self.is_there() {
            return;
        }
        let known = match away {
            Some(flow) => {
                let text = serde_json::to_vec(flow).expect("a flow can be written");
                self.ask(KNOWS, &text, None)
                    .is_ok_and(|answer| answer.body == b"true")
            }
            None => true,
        };
        self.is_other = !known;
    }

    /// Takes the connection of a socket out of the kernel. Returns the received data that was not read, and the state without that data as
    /// the bytes of a [`Moved`](baton_tcp::Moved), which must be given back unchanged. All sent data must be acknowledged. The socket stays
    /// open without a connection, whose packets go to the adapter from now on.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn take(&mut self, socket: BorrowedFd<'_>) -> Result<(Vec<u8>, Vec<u8>), BrokerError> {
        let answer = self.ask(TAKE, &[], Some(socket))?.body;
        let parts = parts_of_returned(&answer);
        let (unread, state) = parts.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok((unread.to_vec(), state.to_vec()))
    }

    /// Puts a connection with this state back into the kernel and returns its new socket.
    ///
    /// # Errors
    /// See [`BrokerError`]. The connection is lost then.
    pub fn give_back(&mut self, state: &[u8]) -> Result<OwnedFd, BrokerError> {
        self.give_back_unread(&[], state)
    }

    /// Puts a connection back together with `unread`, data that was received before that state and not read.
    ///
    /// # Errors
    /// See [`BrokerError`]. The connection is lost then.
    pub fn give_back_unread(
        &mut self,
        unread: &[u8],
        state: &[u8],
    ) -> Result<OwnedFd, BrokerError> {
        self.ask_for_socket(GIVE_BACK, &returned(unread, state))
    }

    /// Takes a connection back whose adapter disappeared during the handoff, provided that the adapter had not started to use it.
    ///
    /// # Errors
    /// See [`BrokerError`]. The connection is lost then.
    pub fn reclaim(&mut self, state: &[u8]) -> Result<OwnedFd, BrokerError> {
        self.ask_for_socket(RECLAIM, &returned(&[], state))
    }

    /// Takes a connection back whose adapter is gone, in the state in which the adapter left it.
    ///
    /// # Errors
    /// See [`BrokerError`]. The connection is lost then.
    pub fn recover(&mut self, recovery: &Recovery) -> Result<OwnedFd, BrokerError> {
        let text = serde_json::to_vec(recovery).map_err(io::Error::from)?;
        self.ask_for_socket(RECOVER, &text)
    }

    /// Waits for the next broker after a request was not answered. Returns false if none appears.
    pub(crate) fn wait_for_next(&mut self) -> bool {
        let limit = Instant::now() + LONGEST_ABSENCE;
        while !self.is_missed && self.policy().is_err_and(|error| is_silent(&error)) {
            self.is_missed = Instant::now() >= limit;
            thread::sleep(BETWEEN_ATTEMPTS);
        }
        !self.is_missed
    }

    /// Repeats the request if a broker is killed before it answers: the next broker knows whether the request was carried out.
    fn ask_for_socket(&mut self, kind: u32, body: &[u8]) -> Result<OwnedFd, BrokerError> {
        let limit = Instant::now() + LONGEST_ABSENCE;
        loop {
            match self.ask(kind, body, None) {
                Err(error) if is_silent(&error) && !self.is_missed && Instant::now() < limit => {
                    thread::sleep(BETWEEN_ATTEMPTS);
                }
                Err(error) => {
                    // There may be requests for many connections; do not wait again for each of them.
                    self.is_missed = is_silent(&error);
                    return Err(error);
                }
                Ok(answer) => {
                    self.is_missed = false;
                    return socket_of(answer);
                }
            }
        }
    }

    fn ask(
        &mut self,
        kind: u32,
        body: &[u8],
        socket: Option<BorrowedFd<'_>>,
    ) -> Result<Message, BrokerError> {
        let stream = match self.stream.take().filter(is_open) {
            Some(stream) => stream,
            None => {
                self.is_other = true;
                connect(&self.path).map_err(BrokerError::Absent)?
            }
        };
        let why = match kind {
            TAKE | GIVE_BACK => std::mem::take(&mut self.why).number(),
            _ => 0,
        };
        let kind = messages::with_why(kind, why);
        messages::send(&stream, kind, body, socket.as_slice())?;
        // Poll first, because a thread that waits in recv(2) is also woken when the broker has read the request.
        messages::wait(&stream, PollFlags::IN, Some(Instant::now() + LONGEST_WAIT))?;
        let answer = messages::receive(&stream)?.ok_or(io::ErrorKind::UnexpectedEof);
        let answer = answer.map_err(io::Error::from)?;
        // Only a stream that has answered is used again.
        self.stream = Some(stream);
        let text = || String::from_utf8_lossy(&answer.body).into_owned();
        match answer.kind {
            DONE => Ok(answer),
            REFUSED => Err(BrokerError::Refused(text())),
            WAS_RESET => Err(BrokerError::Reset(text())),
            _ => Err(io::Error::from(io::ErrorKind::InvalidData).into()),
        }
    }
}

fn is_silent(error: &BrokerError) -> bool {
    matches!(error, BrokerError::Absent(_) | BrokerError::NoAnswer(_))
}

/// Returns the socket of an answer. Until now, closing the socket would have reset its connection; this clears its linger option.
fn socket_of(answer: Message) -> Result<OwnedFd, BrokerError> {
    let socket = answer.files.into_iter().next();
    let socket = socket.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    sockopt::set_socket_linger(&socket, None).map_err(io::Error::from)?;
    Ok(socket)
}

/// Returns whether the other end is open and has sent nothing.
fn is_open(stream: &UnixStream) -> bool {
    let peeked = recv(stream, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    peeked.is_err_and(|error| error == Errno::AGAIN)
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = unix_socket::connect(path)?;
    messages::limit_waits(&stream, LONGEST_WAIT)?;
    Ok(stream)
}
