//! The adapter's end.

use super::captured::CapturedStats;
use super::memory::{Memory, Table};
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

/// A broker that lives answers sooner.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// An adapter's place at a broker. When it is dropped the adapter has ended in order; what goes with the process was killed.
#[derive(Debug)]
pub struct BrokerLink {
    stream: UnixStream,
    memory: Arc<Memory>,
    mode: Mode,
    queues: u32,
    /// They keep the programs attached when the broker is killed.
    links: Vec<OwnedFd>,
    /// Where the next one would listen, and what it has to know.
    path: PathBuf,
    arrival: Arrival,
}

impl BrokerLink {
    /// Becomes the adapter of the broker at `path`, on the interface `name` of this thread's network namespace. Connections get the parameters `tcp` where the handshake left
    /// them open; applications that have no policy of their own are told this one. None where nobody answers.
    ///
    /// # Errors
    /// It is the broker of another interface or network namespace, or has an adapter already.
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
            // Or it is just about to end.
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

    /// The mode in which the program runs that finds packets.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Receive queues of the interface, each of which is to have a socket.
    pub fn queues(&self) -> u32 {
        self.queues
    }

    /// From here on the packets of `queue` go to this socket (AF_XDP) until it is closed.
    ///
    /// # Errors
    /// There is no such queue, or the socket is not set up.
    pub(crate) fn give_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        give_socket(&self.stream, queue, socket)
    }

    /// Becomes the adapter of the next broker with all that it has, `sockets` by queue among it: from one packet to the next they come by the
    /// programs of that one.
    ///
    /// # Errors
    /// There is none, or it has another adapter.
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

    /// Gives the kernel an IP packet that was received here. It may be lost.
    pub(crate) fn inject(&self, packet: &[u8]) {
        let _ = messages::send(&self.stream, INJECT, packet, &[]);
    }

    /// Whether the broker is there.
    pub(crate) fn is_there(&self) -> bool {
        let peeked = recv(
            &self.stream,
            &mut [0; 1],
            RecvFlags::PEEK | RecvFlags::DONTWAIT,
        );
        peeked.is_err_and(|error| error == Errno::AGAIN)
    }

    /// What the adapter keeps of its connections.
    pub(crate) fn table(&self) -> &Table {
        &self.memory
    }

    /// The memory in which that stands.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// What the broker had counted a moment ago.
    pub(crate) fn stats(&self) -> CapturedStats {
        let counters = &self.memory.counters;
        let words = counters
            .each_ref()
            .map(|counter| counter.load(Ordering::Relaxed));
        CapturedStats::from_words(words)
    }

    /// Whether all connections are to go back to the kernel.
    pub(crate) fn is_closed(&self) -> bool {
        self.memory.closed.load(Ordering::Relaxed) != 0
    }

    /// After that: connections of applications that are on the adapter. Departures come before.
    pub(crate) fn set_on_adapter(&self, connections: u64) {
        self.memory.on_adapter.store(connections, Ordering::Release);
    }
}

impl Drop for BrokerLink {
    fn drop(&mut self) {
        // An adapter that has failed has not reset what it had.
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
