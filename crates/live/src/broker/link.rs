//! The adapter's end of the connection to its broker.

use super::captured::CapturedStats;
use super::memory::{CLOSED_BY_ADAPTER, Memory, Table};
use super::session::{Arrival, Return, Welcome};
use crate::error::LiveError;
use crate::places::own_number;
use crate::xdp::Mode;
use baton_host::SelectionConfig;
use baton_sockets::broker::messages::{
    self, ADOPT, ATTACH, DETACH, DONE, GIVE_SOCKET, INJECT, Message, REFUSED, TAKE_OVER,
};
use baton_tcp::Config;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// Longest wait for an answer of the broker.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// An adapter's connection to its broker. Dropping it detaches the adapter in order. If the process disappears without that, the broker
/// assumes that it was killed.
#[derive(Debug)]
pub struct BrokerLink {
    stream: UnixStream,
    memory: Arc<Memory>,
    mode: Mode,
    queues: u32,
    /// Links that keep the programs attached when the broker is killed.
    links: Vec<OwnedFd>,
    /// Path at which the next broker would listen, and the message to send to it.
    path: PathBuf,
    arrival: Arrival,
}

impl BrokerLink {
    /// Becomes the adapter of the broker at `path`, on the interface `name` of this thread's network namespace. Connections get the
    /// parameters `tcp` where the handshake left them open, and applications without a policy of their own get `policy`. Returns `None` if
    /// nobody answers.
    ///
    /// # Errors
    /// The broker serves another interface or network namespace, or already has an adapter.
    pub fn attach(
        path: &Path,
        name: &str,
        tcp: &Config,
        policy: &SelectionConfig,
    ) -> Result<Option<Self>, LiveError> {
        let arrival = Arrival {
            interface: name.to_owned(),
            namespace: own_number().unwrap_or_default(),
            tcp: tcp.clone(),
            policy: policy.to_string(),
        };
        match Self::attach_by(path, arrival) {
            Ok(link) => Ok(Some(link)),
            // Nobody listens, or the broker is just ending.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound
                        | ErrorKind::ConnectionRefused
                        | ErrorKind::ConnectionReset
                        | ErrorKind::BrokenPipe
                        | ErrorKind::UnexpectedEof
                ) =>
            {
                Ok(None)
            }
            Err(error) => {
                let text = format!("--broker {}: {error}", path.display());
                Err(LiveError::BadInput(text))
            }
        }
    }

    fn attach_by(path: &Path, arrival: Arrival) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        messages::limit_waits(&stream, LONGEST_WAIT)?;
        messages::send(&stream, ATTACH, &serde_json::to_vec(&arrival)?, &[])?;
        let answer = answer(&stream)?;
        let Welcome { is_native, queues } = serde_json::from_slice(&answer.body)?;
        let mut files = answer.files.into_iter();
        let memory = files.next().ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self {
            stream,
            memory: Arc::new(Memory::open(memory)?),
            mode: match is_native {
                true => Mode::Native,
                false => Mode::Generic,
            },
            queues,
            links: files.collect(),
            path: path.to_owned(),
            arrival,
        })
    }

    /// Returns the mode of the program that finds packets.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the number of receive queues of the interface. Each needs a socket.
    pub fn queues(&self) -> u32 {
        self.queues
    }

    /// Directs the packets of `queue` to this socket (AF_XDP) until it is closed.
    ///
    /// # Errors
    /// There is no such queue, or the socket is not set up.
    pub(crate) fn give_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        give_socket(&self.stream, queue, socket)
    }

    /// Becomes the adapter of the next broker with everything it has, including `sockets`, one per queue. The next broker's programs
    /// replace those of the last one between two packets.
    ///
    /// # Errors
    /// There is no other broker, or it has another adapter.
    pub(crate) fn find_next(&mut self, sockets: &[OwnedFd]) -> io::Result<()> {
        let stream = UnixStream::connect(&self.path)?;
        messages::limit_waits(&stream, LONGEST_WAIT)?;
        let body = serde_json::to_vec(&Return {
            is_native: self.mode == Mode::Native,
            arrival: self.arrival.clone(),
        })?;
        let mut files = vec![self.memory.as_fd()];
        files.extend(self.links.iter().map(OwnedFd::as_fd));
        messages::send(&stream, ADOPT, &body, &files)?;
        answer(&stream)?;
        for (queue, socket) in (0..).zip(sockets) {
            give_socket(&stream, queue, socket.as_fd())?;
        }
        messages::send(&stream, TAKE_OVER, &[], &[])?;
        answer(&stream)?;
        self.stream = stream;
        Ok(())
    }

    /// Passes an IP packet that was received here to the kernel. The packet may be lost.
    pub(crate) fn inject(&self, packet: &[u8]) {
        let _ = messages::send(&self.stream, INJECT, packet, &[]);
    }

    /// Returns whether the broker is still connected.
    pub(crate) fn is_there(&self) -> bool {
        let peeked = recv(
            &self.stream,
            &mut [0; 1],
            RecvFlags::PEEK | RecvFlags::DONTWAIT,
        );
        peeked.is_err_and(|error| error == Errno::AGAIN)
    }

    /// Returns the adapter's records of its connections.
    pub(crate) fn table(&self) -> &Table {
        &self.memory
    }

    /// Returns the memory that holds the records.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Returns the broker's counters as of a moment ago.
    pub(crate) fn stats(&self) -> CapturedStats {
        let counters = &self.memory.counters;
        let words = counters
            .each_ref()
            .map(|counter| counter.load(Ordering::Relaxed));
        CapturedStats::from_words(words)
    }

    /// Returns whether all connections must go back to the kernel.
    pub(crate) fn is_closed(&self) -> bool {
        self.memory.closed.load(Ordering::Relaxed) != 0
    }

    /// Announces that the adapter is shutting down: it accepts no more connections, and gives back those it has.
    pub(crate) fn close(&self) {
        let closed = &self.memory.closed;
        let _ = closed.compare_exchange(0, CLOSED_BY_ADAPTER, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// After [`BrokerLink::close`], sets the number of connections of applications that are still on the adapter. Connections that have
    /// left must have changed their owner before.
    pub(crate) fn set_on_adapter(&self, connections: u64) {
        self.memory.on_adapter.store(connections, Ordering::Release);
    }
}

impl Drop for BrokerLink {
    fn drop(&mut self) {
        // A panicking adapter has not reset its connections.
        if !thread::panicking() && messages::send(&self.stream, DETACH, &[], &[]).is_ok() {
            let _ = answer(&self.stream);
        }
    }
}

fn give_socket(stream: &UnixStream, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    messages::send(stream, GIVE_SOCKET, &queue.to_ne_bytes(), &[socket])?;
    answer(stream).map(drop)
}

fn answer(stream: &UnixStream) -> io::Result<Message> {
    let answer = messages::receive(stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    match answer.kind {
        DONE => Ok(answer),
        REFUSED => Err(io::Error::other(
            String::from_utf8_lossy(&answer.body).into_owned(),
        )),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
