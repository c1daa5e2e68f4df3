//! The broker itself: a thread for each application that asks.

use super::applications::Applications;
use super::captured::{CaptureError, Captured, Taker};
use super::fin::without_fin;
use super::namespace::namespace_of;
use crate::error::LiveError;
use crate::repair::{RepairError, cancel, flow_of, forget, give_back, take};
use baton_host::SelectionConfig;
use baton_iolib::unix_socket::SocketFile;
use baton_sockets::broker::messages::{
    self, DONE, GIVE_BACK, Message, PLACES, POLICY, REFUSED, RESTORE_ALL, SUBSCRIBE, TAKE,
};
use baton_tcp::{Config, DecodeError, Moved, NotEssential, State};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Applications that may ask at a time.
const MOST_CLIENTS: usize = 1024;
/// Of one user that is not root: others find room, too.
const MOST_OF_USER: usize = 256;
/// The broker looks at least so often whether it is to end.
const LONGEST_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Connections are given back within this time, or the peer or the application hinders it.
const LONGEST_RESTORE: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Why the broker does not do what it is asked for.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("a request without a socket")]
    NoSocket,
    #[error("an unknown request")]
    Unknown,
    #[error("no socket of TCP")]
    NotTcp,
    #[error("only root and the user of the adapter may ask for this")]
    NotOperator,
    #[error(transparent)]
    NotTold(#[from] serde_json::Error),
    #[error("a socket of another user")]
    NotOwner,
    #[error("a socket of another network namespace")]
    OtherNamespace,
    #[error("a connection that was not handed over by this application")]
    NotTaken,
    #[error("the connection is in {0:?}; expected ESTABLISHED")]
    State(State),
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Repair(#[from] RepairError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    NotEssential(#[from] NotEssential),
    #[error("{0}")]
    System(#[from] rustix::io::Errno),
}

/// Serves applications until it is dropped.
#[derive(Debug)]
pub struct Broker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    captured: Arc<Captured>,
    /// Parameters of connections that come from the kernel.
    tcp: Config,
    /// For applications that have no policy of their own.
    policy: SelectionConfig,
    applications: Applications,
    /// Clients so far.
    clients: AtomicU64,
    ends: AtomicBool,
}

/// An application that is being served.
#[derive(Debug)]
struct Client {
    user: u32,
    stream: UnixStream,
    thread: JoinHandle<()>,
}

impl Broker {
    /// Listens at `path`. Connections get the parameters `tcp` where the handshake left them open; applications that have no policy of their
    /// own are told this one.
    ///
    /// # Errors
    /// The path cannot be had, or the system has no thread left.
    pub fn start(
        path: &Path,
        captured: Arc<Captured>,
        tcp: Config,
        policy: SelectionConfig,
    ) -> Result<Self, LiveError> {
        let socket = SocketFile::bind(path).map_err(|error| {
            LiveError::BadInput(format!("--broker {}: {error}", path.display()))
        })?;
        let shared = Arc::new(Shared {
            captured,
            tcp,
            policy,
            applications: Applications::default(),
            clients: AtomicU64::new(0),
            ends: AtomicBool::new(false),
        });
        let serves = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("broker".to_owned())
            .spawn(move || serves.listen(&socket))
            .map_err(LiveError::failed("cannot start a thread"))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // What went wrong there it has told.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn listen(self: &Arc<Self>, socket: &SocketFile) {
        let mut clients: Vec<Client> = Vec::new();
        while !self.ends.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(socket.listener(), PollFlags::IN)];
            let _ = poll(&mut fds, Some(&LONGEST_WAIT));
            clients.retain(|client| !client.thread.is_finished());
            let Ok((stream, _)) = socket.listener().accept() else {
                continue;
            };
            // One too many sees that it is left alone.
            clients.extend(self.welcome(stream, &clients));
        }
        for Client { stream, thread, .. } in clients {
            let _ = stream.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }

    fn welcome(self: &Arc<Self>, stream: UnixStream, others: &[Client]) -> Option<Client> {
        let credentials = sockopt::socket_peercred(&stream).ok()?;
        let (user, pid) = (credentials.uid.as_raw(), credentials.pid.as_raw_pid());
        let of_user = others.iter().filter(|other| other.user == user).count();
        if others.len() >= MOST_CLIENTS || user != 0 && of_user >= MOST_OF_USER {
            return None;
        }
        stream.set_nonblocking(false).ok()?;
        let served = stream.try_clone().ok()?;
        let serves = Arc::clone(self);
        let builder = thread::Builder::new().name("broker client".to_owned());
        let thread = builder
            .spawn(move || serves.serve(&served, user, pid))
            .ok()?;
        Some(Client {
            user,
            stream,
            thread,
        })
    }

    fn serve(&self, stream: &UnixStream, user: u32, pid: i32) {
        let taker = self.clients.fetch_add(1, Ordering::Relaxed);
        // An application that breaks off, or is gone, has nothing more to ask.
        while let Ok(Some(message)) = messages::receive(stream) {
            if message.kind == SUBSCRIBE {
                if let (Ok(stream), Ok(pid)) = (stream.try_clone(), u32::try_from(pid)) {
                    self.applications.add(stream, pid, user);
                }
                break;
            }
            let sent = match self.handle(message, user, taker) {
                Ok(body) => messages::send(stream, DONE, &body, None),
                Err(refusal) => {
                    messages::send(stream, REFUSED, refusal.to_string().as_bytes(), None)
                }
            };
            if sent.is_err() {
                break;
            }
        }
        self.captured.abandon(taker);
    }

    fn handle(&self, message: Message, user: u32, taker: Taker) -> Result<Vec<u8>, Refusal> {
        match message.kind {
            POLICY => return Ok(self.policy.to_string().into_bytes()),
            PLACES => return Ok(serde_json::to_vec(&self.applications.places(user))?),
            RESTORE_ALL => return Ok(self.restore_all(user)?.to_string().into_bytes()),
            _ => {}
        }
        let socket = message.socket.ok_or(Refusal::NoSocket)?;
        self.check(&socket, user)?;
        match message.kind {
            TAKE => self.take(socket.as_fd(), taker),
            GIVE_BACK => {
                self.give_back(socket.as_fd(), &message.body, taker)?;
                Ok(Vec::new())
            }
            _ => Err(Refusal::Unknown),
        }
    }

    /// Has the adapter give all back, and waits for that a while; gives how many are left.
    fn restore_all(&self, user: u32) -> Result<u64, Refusal> {
        if user != 0 && user != rustix::process::getuid().as_raw() {
            return Err(Refusal::NotOperator);
        }
        self.captured.close();
        let end = Instant::now() + LONGEST_RESTORE;
        while self.captured.left() > 0 && Instant::now() < end {
            thread::sleep(BETWEEN_LOOKS);
        }
        Ok(self.captured.left())
    }

    /// Whether this user may ask for this socket.
    fn check(&self, socket: &OwnedFd, user: u32) -> Result<(), Refusal> {
        let family = sockopt::socket_domain(socket).map_err(|_| Refusal::NotTcp)?;
        let is_ip = matches!(family, AddressFamily::INET | AddressFamily::INET6);
        let is_stream = sockopt::socket_type(socket)? == SocketType::STREAM;
        if !is_ip || !is_stream {
            return Err(Refusal::NotTcp);
        }
        if user != 0 && fstat(socket)?.st_uid != user {
            return Err(Refusal::NotOwner);
        }
        match namespace_of(socket.as_fd()) {
            Ok(namespace) if namespace == self.captured.namespace() => Ok(()),
            _ => Err(Refusal::OtherNamespace),
        }
    }

    /// Packets first: none of the connection's reaches a kernel that does not know it any more.
    fn take(&self, socket: BorrowedFd<'_>, taker: Taker) -> Result<Vec<u8>, Refusal> {
        let flow = flow_of(socket)?;
        self.captured.capture(&flow, taker)?;
        let state = self.take_captured(socket);
        if state.is_err() {
            self.captured.let_go(&flow);
        }
        state
    }

    fn take_captured(&self, socket: BorrowedFd<'_>) -> Result<Vec<u8>, Refusal> {
        let tcp = Config {
            nagle: !sockopt::tcp_nodelay(socket)?,
            ..self.tcp.clone()
        };
        let essentials = take(socket)?.essentials;
        if essentials.state != State::Established {
            cancel(socket)?;
            return Err(Refusal::State(essentials.state));
        }
        forget(socket)?;
        let state = essentials.into_portable(&tcp);
        Ok(Moved::new(state).to_bytes())
    }

    fn give_back(&self, socket: BorrowedFd<'_>, state: &[u8], taker: Taker) -> Result<(), Refusal> {
        let moved = Moved::<Bytes>::from_bytes(state)?;
        let essentials = moved.state.essentials()?;
        let flow = essentials.flow;
        if !self.captured.is_of(&flow, taker) {
            return Err(Refusal::NotTaken);
        }
        let (essentials, fin) = without_fin(essentials);
        let outcome = give_back(socket, &essentials, || self.captured.let_go(&flow));
        // Whatever went wrong: a kernel without the connection answers the peer by a reset.
        self.captured.let_go(&flow);
        outcome?;
        if let Some(fin) = fin {
            // Without it the application waits for an end that the peer has told long ago; nothing better can be done.
            let _ = self.captured.inject(&fin);
        }
        Ok(())
    }
}
