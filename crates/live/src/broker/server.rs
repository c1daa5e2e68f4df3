//! The broker itself: a thread for each application that asks, and for the adapter.

use super::applications::Applications;
use super::captured::{CaptureError, Captured, NotRecovered, Taker};
use super::fin::without_fin;
use super::memory::now_ms;
use super::namespace::namespace_of;
use super::notice::{BrokerNotice, Loss};
use super::record::{self, Said};
use super::session::{Arrival, Session, Welcome};
use crate::error::LiveError;
use crate::neighbourhood::Neighbourhood;
use crate::port::link_info;
use crate::repair::{RepairError, cancel, flow_of, forget, give_back, take};
use crate::xdp::{LookupConfig, Mode};
use baton_iolib::unix_socket::SocketFile;
use baton_sockets::broker::messages::{
    self, ADAPTER, ATTACH, DETACH, DONE, GIVE_BACK, GIVE_SOCKET, INJECT, Message, PLACES, POLICY,
    RECLAIM, RECOVER, REFUSED, RESTORE_ALL, Recovery, SUBSCRIBE, TAKE,
};
use baton_tcp::{Config, DecodeError, Essentials, Moved, NotEssential, State};
use baton_wire::Flow;
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
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

/// IPv4 and TCP headers without options, bytes.
const HEADERS_BYTES: u16 = 40;

/// Connections are given back within this time, or the peer or the application hinders it.
const LONGEST_RESTORE: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// Between two looks for connections that are over.
const BETWEEN_SWEEPS: Duration = Duration::from_millis(100);

/// Why the broker does not do what it is asked for.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("a request without a socket")]
    NoSocket,
    #[error("an unknown request")]
    Unknown,
    #[error("no socket of TCP")]
    NotTcp,
    #[error("only root and the user of the broker may ask for this")]
    NotOperator,
    #[error("an adapter of interface {of}; expected one of {expected}")]
    OtherInterface { of: String, expected: String },
    #[error("process {0} is the adapter; end it, or replace it (--replace)")]
    Occupied(u32),
    #[error("the connection is lost with the adapter: {0}")]
    Lost(Loss),
    #[error(transparent)]
    NotRecovered(#[from] NotRecovered),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
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

/// Serves an adapter, one after another, and applications until it is dropped. It has what must not go with the adapter: the programs that
/// find connections' packets, and the memory in which the adapter keeps where each connection is.
#[derive(Debug)]
pub struct Broker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    captured: Captured,
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
    /// Listens at `path` for an adapter of the interface `name`, in this thread's network namespace, and for applications.
    ///
    /// # Errors
    /// There is no such interface, it has no address, XDP cannot be had, the path neither, or the system has no thread left.
    pub fn start(path: &Path, name: &str, mode: Option<Mode>) -> Result<Self, LiveError> {
        let socket = SocketFile::bind(path).map_err(|error| {
            LiveError::BadInput(format!("--broker {}: {error}", path.display()))
        })?;
        let addresses = Neighbourhood::of(name)
            .and_then(|mut neighbourhood| neighbourhood.addresses())
            .map_err(LiveError::failed(
                "cannot ask the kernel about the interface",
            ))?;
        if addresses.is_empty() {
            let text = format!("--iface {name}: it has no address; expected one of the kernel's");
            return Err(LiveError::BadInput(text));
        }
        let lookup = LookupConfig {
            mode,
            ..LookupConfig::default()
        };
        let shared = Arc::new(Shared {
            captured: Captured::new(name, addresses, lookup)?,
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

    /// The next thing to tell the operator.
    pub fn poll_notice(&self) -> Option<BrokerNotice> {
        self.shared.captured.poll_notice()
    }

    /// Whether there is neither an adapter nor anything left of one.
    pub fn is_unused(&self) -> bool {
        self.shared.captured.is_unused()
    }

    /// Has all connections go back to the kernel, and waits for that a while; gives how many are left.
    pub fn restore_all(&self) -> u64 {
        self.shared.restore_all()
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
        let mut swept = Instant::now();
        while !self.ends.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(socket.listener(), PollFlags::IN)];
            let _ = poll(&mut fds, Some(&LONGEST_WAIT));
            if swept.elapsed() >= BETWEEN_SWEEPS {
                swept = Instant::now();
                self.captured.sweep();
            }
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
            match message.kind {
                SUBSCRIBE => {
                    if let (Ok(stream), Ok(pid)) = (stream.try_clone(), u32::try_from(pid)) {
                        self.applications.add(stream, pid, user);
                    }
                    break;
                }
                ATTACH => match self.attach(stream, &message.body, user, pid) {
                    Ok(session) => {
                        self.serve_adapter(stream, &session);
                        break;
                    }
                    Err(refusal) => {
                        let _ = refuse(stream, &refusal);
                    }
                },
                _ => {
                    let sent = match self.handle(message, user, taker) {
                        Ok(body) => messages::send(stream, DONE, &body, &[]),
                        Err(refusal) => refuse(stream, &refusal),
                    };
                    if sent.is_err() {
                        break;
                    }
                }
            }
        }
        self.captured.abandon(taker);
    }

    // --- the adapter ---

    fn attach(
        &self,
        stream: &UnixStream,
        body: &[u8],
        user: u32,
        pid: i32,
    ) -> Result<Arc<Session>, Refusal> {
        check_operator(user)?;
        let Arrival {
            interface,
            tcp,
            policy,
        } = serde_json::from_slice(body)?;
        let expected = &self.captured.interface;
        if interface != *expected {
            return Err(Refusal::OtherInterface {
                of: interface,
                expected: expected.clone(),
            });
        }
        let policy = policy.parse().map_err(|_| Refusal::Unknown)?;
        let mtu = link_info(expected).map_err(io::Error::other)?.mtu;
        let tcp = Config {
            mss: mtu.saturating_sub(HEADERS_BYTES),
            ..tcp
        };
        let session = Arc::new(Session::new(pid.unsigned_abs(), tcp, policy)?);
        self.captured
            .attach(Arc::clone(&session))
            .map_err(Refusal::Occupied)?;
        let lookup = self.captured.lookup();
        let welcome = Welcome {
            is_native: lookup.steering().mode() == Mode::Native,
            queues: lookup.steering().queues(),
        };
        let mut files = vec![session.memory.as_fd()];
        files.extend(lookup.links());
        // An adapter that does not hear it is found to be gone by what follows.
        let _ = messages::send(stream, DONE, &serde_json::to_vec(&welcome)?, &files);
        Ok(session)
    }

    /// What an adapter asks for, until it ends or is gone.
    fn serve_adapter(&self, stream: &UnixStream, session: &Arc<Session>) {
        while let Ok(Some(message)) = messages::receive(stream) {
            match message.kind {
                GIVE_SOCKET => {
                    let sent = match self.set_socket(&message) {
                        Ok(()) => messages::send(stream, DONE, &[], &[]),
                        Err(refusal) => refuse(stream, &refusal),
                    };
                    if sent.is_err() {
                        break;
                    }
                }
                // That the kernel takes no packets this way is as if it had lost them.
                INJECT => drop(self.captured.inject(&message.body)),
                DETACH => {
                    self.captured.part(session);
                    let _ = messages::send(stream, DONE, &[], &[]);
                    return;
                }
                _ => {}
            }
        }
        // At the broker's own end it is the stream that is gone.
        if !self.ends.load(Ordering::Relaxed) {
            self.captured.bury(session);
        }
    }

    fn set_socket(&self, message: &Message) -> Result<(), Refusal> {
        let socket = message.socket().ok_or(Refusal::NoSocket)?;
        let queue = message.body.first_chunk().ok_or(Refusal::Unknown)?;
        let steering = self.captured.lookup().steering();
        Ok(steering.set_socket(u32::from_ne_bytes(*queue), socket)?)
    }

    // --- applications ---

    fn handle(&self, message: Message, user: u32, taker: Taker) -> Result<Vec<u8>, Refusal> {
        match message.kind {
            POLICY => {
                let adapter = self.captured.adapter().ok_or(CaptureError::NoAdapter)?;
                return Ok(adapter.policy.to_string().into_bytes());
            }
            PLACES => return Ok(serde_json::to_vec(&self.applications.places(user))?),
            RESTORE_ALL => {
                check_operator(user)?;
                return Ok(self.restore_all().to_string().into_bytes());
            }
            ADAPTER => {
                let pid = self.captured.adapter().map_or(0, |adapter| adapter.pid);
                return Ok(pid.to_string().into_bytes());
            }
            _ => {}
        }
        let socket = message.socket().ok_or(Refusal::NoSocket)?;
        self.check(socket, user)?;
        match message.kind {
            TAKE => return self.take(socket, taker),
            GIVE_BACK => self.give_back(socket, &message.body, taker)?,
            RECLAIM => self.reclaim(socket, &message.body, taker)?,
            RECOVER => self.recover(socket, &message.body, taker)?,
            _ => return Err(Refusal::Unknown),
        }
        Ok(Vec::new())
    }

    /// Has the adapter give all back, and waits for that a while; gives how many are left.
    fn restore_all(&self) -> u64 {
        self.captured.close();
        let end = Instant::now() + LONGEST_RESTORE;
        while self.captured.left() > 0 && Instant::now() < end {
            thread::sleep(BETWEEN_LOOKS);
        }
        self.captured.left()
    }

    /// Whether this user may ask for this socket.
    fn check(&self, socket: BorrowedFd<'_>, user: u32) -> Result<(), Refusal> {
        let family = sockopt::socket_domain(socket).map_err(|_| Refusal::NotTcp)?;
        let is_ip = matches!(family, AddressFamily::INET | AddressFamily::INET6);
        let is_stream = sockopt::socket_type(socket)? == SocketType::STREAM;
        if !is_ip || !is_stream {
            return Err(Refusal::NotTcp);
        }
        if user != 0 && fstat(socket)?.st_uid != user {
            return Err(Refusal::NotOwner);
        }
        match namespace_of(socket) {
            Ok(namespace) if namespace == self.captured.namespace() => Ok(()),
            _ => Err(Refusal::OtherNamespace),
        }
    }

    /// Packets first: none of the connection's reaches a kernel that does not know it any more.
    fn take(&self, socket: BorrowedFd<'_>, taker: Taker) -> Result<Vec<u8>, Refusal> {
        let flow = flow_of(socket)?;
        let session = self.captured.capture(&flow, taker)?;
        let essentials = take_captured(socket).inspect_err(|_| self.captured.let_go(&flow))?;
        self.captured
            .note(&flow, &record::encode(&essentials, now_ms()));
        let tcp = Config {
            nagle: !sockopt::tcp_nodelay(socket).unwrap_or_default(),
            ..session.tcp.clone()
        };
        Ok(Moved::new(essentials.into_portable(&tcp)).to_bytes())
    }

    fn give_back(&self, socket: BorrowedFd<'_>, state: &[u8], taker: Taker) -> Result<(), Refusal> {
        let moved = Moved::<Bytes>::from_bytes(state)?;
        let essentials = moved.state.essentials()?;
        if !self.captured.is_of(&essentials.flow, taker) {
            return Err(Refusal::NotTaken);
        }
        self.put_back(socket, essentials)
    }

    fn put_back(
        &self,
        socket: BorrowedFd<'_>,
        essentials: Essentials<Bytes>,
    ) -> Result<(), Refusal> {
        let flow = essentials.flow;
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

    // --- after the end of an adapter that was killed ---

    /// A connection was on its way to the adapter: it comes back as it was, if that has done nothing with it.
    fn reclaim(&self, socket: BorrowedFd<'_>, state: &[u8], taker: Taker) -> Result<(), Refusal> {
        let moved = Moved::<Bytes>::from_bytes(state)?;
        let essentials = moved.state.essentials()?;
        let flow = essentials.flow;
        match self.captured.remains(&flow, taker)? {
            Said::Untouched => self.put_back(socket, essentials)?,
            Said::Incomplete | Said::Complete(_) => return Err(self.lose(&flow, Loss::Incomplete)),
        }
        self.captured.count_recovered();
        Ok(())
    }

    /// A connection was on the adapter: it comes back as that has left it, if the application has seen the same of it.
    fn recover(&self, socket: BorrowedFd<'_>, body: &[u8], taker: Taker) -> Result<(), Refusal> {
        let Recovery {
            flow,
            sent,
            received,
        } = serde_json::from_slice(body)?;
        let left = match self.captured.remains(&flow, taker)? {
            Said::Complete(words) => record::decode(flow, &words, now_ms()),
            Said::Untouched | Said::Incomplete => None,
        };
        let left = left.ok_or_else(|| self.lose(&flow, Loss::Incomplete))?;
        if (left.send_next, left.receive_next) != (sent, received) {
            return Err(self.lose(&flow, Loss::Mismatch));
        }
        if let Err(error) = give_back(socket, &left, || self.captured.let_go(&flow)) {
            self.lose(&flow, Loss::NotTaken);
            return Err(error.into());
        }
        self.captured.count_recovered();
        Ok(())
    }

    fn lose(&self, flow: &Flow, loss: Loss) -> Refusal {
        self.captured.lose(flow, loss);
        Refusal::Lost(loss)
    }
}

fn refuse(stream: &UnixStream, refusal: &Refusal) -> io::Result<()> {
    messages::send(stream, REFUSED, refusal.to_string().as_bytes(), &[])
}

fn check_operator(user: u32) -> Result<(), Refusal> {
    let may = user == 0 || user == rustix::process::getuid().as_raw();
    may.then_some(()).ok_or(Refusal::NotOperator)
}

/// A connection in the kernel whose packets go elsewhere.
fn take_captured(socket: BorrowedFd<'_>) -> Result<Essentials<Bytes>, Refusal> {
    let essentials = take(socket)?.essentials;
    if essentials.state != State::Established {
        cancel(socket)?;
        return Err(Refusal::State(essentials.state));
    }
    forget(socket)?;
    Ok(essentials)
}
