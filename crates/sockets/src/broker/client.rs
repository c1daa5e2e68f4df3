//! The application's end.

use super::Subscription;
use super::messages::{
    self, ADAPTER, COUNTERS, DONE, GIVE_BACK, KNOWS, Message, PLACES, POLICY, RECLAIM, RECOVER,
    REFUSED, RESTORE_ALL, Recovery, TAKE,
};
use crate::kernel::PlaceRow;
use baton_host::SelectionConfig;
use baton_iolib::unix_socket;
use baton_wire::Flow;
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

/// A broker that lives answers sooner.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The next one is there by then, if somebody starts it at once.
const LONGEST_ABSENCE: Duration = Duration::from_millis(1200);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// Why a connection has not moved.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The broker says why. The connection is where it was.
    #[error("{0}")]
    Refused(String),
    /// No broker listens.
    #[error("no broker is there: {0}")]
    Absent(io::Error),
    /// The broker is gone, or does not answer. It may have done what it was asked for.
    #[error("no answer of the broker: {0}")]
    NoAnswer(#[from] io::Error),
}

/// Where the connections of an application are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationPlaces {
    /// Its process.
    pub pid: u32,
    /// A connection each.
    pub places: Vec<PlaceRow>,
    /// Why it has not told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<String>,
}

/// A connection to the broker, or to the next one when that is gone.
#[derive(Debug)]
pub struct BrokerClient {
    path: PathBuf,
    /// None once it has broken off.
    stream: Option<UnixStream>,
    /// The one that has answered last is not known to be that which has taken connections, nor to have its adapter.
    is_other: bool,
    /// No broker has come when one was waited for.
    is_missed: bool,
}

impl BrokerClient {
    /// Connects to the broker that listens at `path`.
    ///
    /// # Errors
    /// Nobody answers there.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            stream: Some(connect(path)?),
            is_other: false,
            is_missed: false,
        })
    }

    /// Has the broker ask this application.
    pub(crate) fn subscribe(&self) -> io::Result<Subscription> {
        Subscription::new(&self.path)
    }

    /// Where the connections of all applications of this user are; of all users for root.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn places(&mut self) -> Result<Vec<ApplicationPlaces>, BrokerError> {
        let text = self.ask(PLACES, &[], None)?.body;
        Ok(serde_json::from_slice(&text).map_err(io::Error::from)?)
    }

    /// How often each limit of the broker has acted, by its name. For root and the broker's user.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn counters(&mut self) -> Result<BTreeMap<String, u64>, BrokerError> {
        let text = self.ask(COUNTERS, &[], None)?.body;
        Ok(serde_json::from_slice(&text).map_err(io::Error::from)?)
    }

    /// Has all connections go back to the kernel, and none leave it any more. Gives how many have not after some seconds.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn restore_all(&mut self) -> Result<u64, BrokerError> {
        let left = String::from_utf8(self.ask(RESTORE_ALL, &[], None)?.body);
        let left = left.ok().and_then(|left| left.parse().ok());
        left.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData).into())
    }

    /// The policy of applications that have none of their own.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn policy(&mut self) -> Result<SelectionConfig, BrokerError> {
        let name = String::from_utf8(self.ask(POLICY, &[], None)?.body);
        let policy = name.ok().and_then(|name| name.parse().ok());
        policy.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData).into())
    }

    /// The process that is the adapter, if there is one.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn adapter(&mut self) -> Result<Option<u32>, BrokerError> {
        let text = String::from_utf8(self.ask(ADAPTER, &[], None)?.body);
        let pid: Option<u32> = text.ok().and_then(|pid| pid.parse().ok());
        let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok((pid != 0).then_some(pid))
    }

    /// Whether the broker is there that has taken connections, or one that has its adapter: another one knows nothing of them.
    pub fn is_there(&self) -> bool {
        !self.is_other && self.stream.as_ref().is_some_and(is_open)
    }

    /// Where that one is gone: looks for the next, which must know a connection that was taken, if one is away.
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

    /// Takes the connection of a socket out of the kernel: its state, a [`Moved`](baton_tcp::Moved) as bytes, which is to come back as it
    /// is. All that was sent must be acknowledged. The socket stays, without a connection; its packets go to the adapter.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn take(&mut self, socket: BorrowedFd<'_>) -> Result<Vec<u8>, BrokerError> {
        Ok(self.ask(TAKE, &[], Some(socket))?.body)
    }

    /// Puts a connection back into the kernel, with that state: on a new socket.
    ///
    /// # Errors
    /// See [`BrokerError`]. The connection is lost then.
    pub fn give_back(&mut self, state: &[u8]) -> Result<OwnedFd, BrokerError> {
        self.ask_for_socket(GIVE_BACK, state)
    }

    /// The same where the adapter that it was on its way to is gone: it comes back if that has not begun with it.
    ///
    /// # Errors
    /// See [`BrokerError`]. The connection is lost then.
    pub fn reclaim(&mut self, state: &[u8]) -> Result<OwnedFd, BrokerError> {
        self.ask_for_socket(RECLAIM, state)
    }

    /// The same where the adapter that had it is gone: it comes back as that has left it.
    ///
    /// # Errors
    /// See [`BrokerError`]. The connection is lost then.
    pub fn recover(&mut self, recovery: &Recovery) -> Result<OwnedFd, BrokerError> {
        let text = serde_json::to_vec(recovery).map_err(io::Error::from)?;
        self.ask_for_socket(RECOVER, &text)
    }

    /// After a request without an answer: waits until the next broker is there. False if none comes.
    pub(crate) fn wait_for_next(&mut self) -> bool {
        let limit = Instant::now() + LONGEST_ABSENCE;
        while !self.is_missed && self.policy().is_err_and(|error| is_silent(&error)) {
            self.is_missed = Instant::now() >= limit;
            thread::sleep(BETWEEN_ATTEMPTS);
        }
        !self.is_missed
    }

    /// A broker that is killed before it has answered may not have done what it was asked for: the next one knows.
    fn ask_for_socket(&mut self, kind: u32, body: &[u8]) -> Result<OwnedFd, BrokerError> {
        let limit = Instant::now() + LONGEST_ABSENCE;
        loop {
            match self.ask(kind, body, None) {
                Err(error) if is_silent(&error) && !self.is_missed && Instant::now() < limit => {
                    thread::sleep(BETWEEN_ATTEMPTS);
                }
                Err(error) => {
                    // There may be many connections to ask for, and nobody waits for each.
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
        messages::send(&stream, kind, body, socket.as_slice())?;
        let answer = messages::receive(&stream)?.ok_or(io::ErrorKind::UnexpectedEof);
        let answer = answer.map_err(io::Error::from)?;
        // What has answered may be asked again.
        self.stream = Some(stream);
        match answer.kind {
            DONE => Ok(answer),
            REFUSED => Err(BrokerError::Refused(
                String::from_utf8_lossy(&answer.body).into_owned(),
            )),
            _ => Err(io::Error::from(io::ErrorKind::InvalidData).into()),
        }
    }
}

fn is_silent(error: &BrokerError) -> bool {
    matches!(error, BrokerError::Absent(_) | BrokerError::NoAnswer(_))
}

/// The socket that comes with an answer. Until here it would have reset its connection if it had gone.
fn socket_of(answer: Message) -> Result<OwnedFd, BrokerError> {
    let socket = answer.files.into_iter().next();
    let socket = socket.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    sockopt::set_socket_linger(&socket, None).map_err(io::Error::from)?;
    Ok(socket)
}

/// Whether the other end is there, and has said nothing.
fn is_open(stream: &UnixStream) -> bool {
    let peeked = recv(stream, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    peeked.is_err_and(|error| error == Errno::AGAIN)
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = unix_socket::connect(path)?;
    messages::limit_waits(&stream, LONGEST_WAIT)?;
    Ok(stream)
}
