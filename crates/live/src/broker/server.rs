//! The broker itself: a thread for each application that asks, and for the adapter.

mod adapter;
mod made;
mod requests;

use super::applications::Applications;
use super::captured::{Captured, Taker};
use super::notice::BrokerNotice;
use crate::error::LiveError;
use crate::neighbourhood::Neighbourhood;
use crate::xdp::{LookupConfig, Mode, XdpError};
use baton_iolib::unix_socket::SocketFile;
use baton_sockets::broker::messages::{self, ADOPT, ATTACH, DONE, REFUSED, SUBSCRIBE};
use made::Made;
use requests::{Answer, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
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

/// An adapter whose broker was killed has found the next one by then, or there is none.
const LONGEST_RETURN: Duration = Duration::from_secs(1);
/// Connections are given back within this time, or the peer or the application hinders it.
const LONGEST_RESTORE: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// Between two looks for connections that are over.
const BETWEEN_SWEEPS: Duration = Duration::from_millis(100);

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
    made: Made,
    /// The user that has started the broker, whose own is another if it has dropped root.
    starter: u32,
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
    /// The socket for [`Broker::start_at`], at `path`: what it takes to make it, and to say who may connect, a broker does not keep.
    ///
    /// # Errors
    /// It cannot be had.
    pub fn bind(path: &Path) -> Result<SocketFile, LiveError> {
        let bad = |error| LiveError::BadInput(format!("--broker {}: {error}", path.display()));
        SocketFile::bind(path).map_err(bad)
    }

    /// Listens at `path` for an adapter of the interface `name`, in this thread's network namespace, and for applications.
    ///
    /// # Errors
    /// There is no such interface, it has no address, XDP cannot be had, the path neither, or the system has no thread left.
    pub fn start(path: &Path, name: &str, mode: Option<Mode>) -> Result<Self, LiveError> {
        let starter = rustix::process::getuid().as_raw();
        Self::start_at(Self::bind(path)?, name, mode, starter)
    }

    /// The same at a socket that is there, for the user `starter`, who may ask for what concerns all.
    ///
    /// # Errors
    /// As [`Broker::start`].
    pub fn start_at(
        socket: SocketFile,
        name: &str,
        mode: Option<Mode>,
        starter: u32,
    ) -> Result<Self, LiveError> {
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
            made: Made::default(),
            starter,
            clients: AtomicU64::new(0),
            ends: AtomicBool::new(false),
        });
        let serves = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("broker".to_owned())
            .spawn(move || serves.listen(&socket))
            .map_err(LiveError::failed("cannot start a thread"))?;
        let broker = Self {
            shared,
            thread: Some(thread),
        };
        broker.shared.attach_programs()?;
        Ok(broker)
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
        let number = self.clients.fetch_add(1, Ordering::Relaxed);
        let taker = Taker { number, user };
        // An application that breaks off, or is gone, has nothing more to ask.
        while let Ok(Some(message)) = messages::receive(stream) {
            match message.kind {
                SUBSCRIBE => {
                    if let (Ok(stream), Ok(pid)) = (stream.try_clone(), u32::try_from(pid)) {
                        self.applications.add(stream, pid, user);
                    }
                    break;
                }
                // A broker that has no programs is about to end, and says why.
                ATTACH if self.attach_programs().is_err() => break,
                ATTACH => match self.attach(stream, &message.body, user, pid) {
                    Ok(session) => {
                        self.serve_adapter(stream, &session, None);
                        break;
                    }
                    Err(refusal) => {
                        let _ = refuse(stream, &refusal);
                    }
                },
                ADOPT => match self.adopt(stream, message, user, pid) {
                    Ok((session, programs)) => {
                        self.serve_adapter(stream, &session, Some(programs));
                        break;
                    }
                    Err(refusal) => {
                        let _ = refuse(stream, &refusal);
                    }
                },
                _ => {
                    let sent = match self.handle(message, taker) {
                        Ok(Answer { body, socket }) => {
                            let socket = socket.as_ref().map(OwnedFd::as_fd);
                            messages::send(stream, DONE, &body, socket.as_slice())
                        }
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

    /// Has the programs that find packets at the interface. Where an adapter whose broker was killed keeps the programs of that there, it comes and
    /// brings them. Whoever needs them first does it: an adapter may be served before [`Broker::start_at`] comes to it.
    fn attach_programs(&self) -> Result<(), XdpError> {
        let limit = Instant::now() + LONGEST_RETURN;
        loop {
            match self.captured.attach_here() {
                Ok(true) => return Ok(()),
                Err(XdpError::Occupied(_)) | Ok(false) if Instant::now() < limit => {
                    thread::sleep(BETWEEN_LOOKS);
                }
                outcome => return outcome.map(drop),
            }
        }
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
}

fn refuse(stream: &UnixStream, refusal: &Refusal) -> io::Result<()> {
    messages::send(stream, REFUSED, refusal.to_string().as_bytes(), &[])
}
