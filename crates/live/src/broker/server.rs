//! The broker itself: a thread that listens, and a thread for each client, be it an application or the adapter.

mod adapter;
mod client;
mod made;
mod requests;

use super::applications::Applications;
use super::captured::Captured;
use super::limits::{Limit, Limits, Resources, Share};
use super::notice::BrokerNotice;
use crate::error::LiveError;
use crate::loopback::Loopback;
use crate::neighbourhood::Neighbourhood;
use crate::port::link_info_or_loopback;
use crate::xdp::{LookupConfig, Mode, XdpError};
use baton_iolib::Lines;
use baton_iolib::unix_socket::SocketFile;
use baton_sockets::broker::messages::{self, REFUSED, WAS_RESET};
use client::Serving;
use made::Made;
use requests::Refusal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::fs;
use std::io;
use std::net::Shutdown;
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest time until the broker notices that it must end.
const LONGEST_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Time within which an adapter whose broker was killed finds the next broker, if there is such an adapter.
const LONGEST_RETURN: Duration = Duration::from_secs(1);
/// Time within which all connections are given back, unless a peer or an application prevents it.
const LONGEST_RESTORE: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// Time between two sweeps for connections that have ended.
const BETWEEN_SWEEPS: Duration = Duration::from_millis(100);

/// Serves applications and one adapter at a time until it is dropped. It owns what must survive the adapter: the programs that find the
/// connections' packets, and the memory in which the adapter records each connection's state.
#[derive(Debug)]
pub struct Broker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    captured: Captured,
    /// Restores the settings of `lo` when dropped.
    _loopback: Option<Loopback>,
    applications: Applications,
    made: Made,
    /// Asks the kernel which routes use the interface.
    ways: Mutex<Neighbourhood>,
    /// The ports that the kernel gives to connections: see [`Captured::keep_port`].
    kept_ports: RangeInclusive<u16>,
    /// User that has started the broker. It differs from the broker's own user if the broker has dropped root.
    starter: u32,
    limits: Arc<Limits>,
    lines: Mutex<Lines<&'static str>>,
    /// Number of clients so far.
    clients: AtomicU64,
    ends: AtomicBool,
}

/// A client that is being served.
#[derive(Debug)]
struct Client {
    stream: Arc<UnixStream>,
    thread: JoinHandle<()>,
    _share: Share,
}

impl Broker {
    /// Creates the socket for [`Broker::start_at`] at `path`. A broker does not keep the privileges that are needed to create it and to set
    /// who may connect.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub fn bind(path: &Path) -> Result<SocketFile, LiveError> {
        let bad = |error| LiveError::BadInput(format!("--broker {}: {error}", path.display()));
        SocketFile::bind(path).map_err(bad)
    }

    /// Listens at `path` for an adapter of the interface `name`, in this thread's network namespace, and for applications.
    ///
    /// # Errors
    /// There is no such interface, it has no address, XDP or the path cannot be used, or the system has no thread left.
    pub fn start(path: &Path, name: &str, mode: Option<Mode>) -> Result<Self, LiveError> {
        let starter = rustix::process::getuid().as_raw();
        Self::start_at(Self::bind(path)?, name, mode, starter)
    }

    /// Starts like [`Broker::start`], but at an existing socket and for the user `starter`, who becomes an operator.
    ///
    /// # Errors
    /// See [`Broker::start`].
    pub fn start_at(
        socket: SocketFile,
        name: &str,
        mode: Option<Mode>,
        starter: u32,
    ) -> Result<Self, LiveError> {
        let unknown = || LiveError::failed("cannot ask the kernel about the interface");
        let mut ways = Neighbourhood::of(name).map_err(unknown())?;
        let addresses = ways.addresses().map_err(unknown())?;
        if addresses.is_empty() {
            let text = format!("--iface {name}: the interface has no address; assign one to it");
            return Err(LiveError::BadInput(text));
        }
        let lookup = LookupConfig {
            mode,
            ..LookupConfig::default()
        };
        let (_, is_loopback) = link_info_or_loopback(name).map_err(XdpError::from)?;
        let kept_ports = local_ports();
        let limits = Limits::new(kept_ports.len() as u64);
        let shared = Arc::new(Shared {
            captured: Captured::new(name, addresses, lookup)?,
            _loopback: is_loopback.then(Loopback::prepare).transpose()?,
            applications: Applications::new(Arc::clone(&limits)),
            limits,
            lines: Mutex::default(),
            made: Made::default(),
            ways: Mutex::new(ways),
            kept_ports,
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

    /// Returns the next notice for the operator. Frequent notices are only counted.
    pub fn poll_notice(&self) -> Option<BrokerNotice> {
        let Shared {
            captured,
            lines,
            limits,
            ..
        } = &*self.shared;
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while let Some(notice) = captured.poll_notice() {
            if lines.shows(now, notice.kind()) {
                return Some(notice);
            }
            limits.count(Limit::Notices);
        }
        let (kind, count) = lines.poll_hidden(now)?;
        Some(BrokerNotice::Hidden(kind, count))
    }

    /// Makes [`Broker::poll_notice`] report each connection that moves.
    pub fn tell_all_moves(&self) {
        self.shared.captured.history().tell_all();
    }

    /// Returns whether there is neither an adapter nor a connection of a former one.
    pub fn is_unused(&self) -> bool {
        self.shared.captured.is_unused()
    }

    /// Asks for all connections to go back to the kernel, and waits some time for that. Returns the number of those still away.
    pub fn restore_all(&self) -> u64 {
        self.shared.restore_all()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    fn listen(self: &Arc<Self>, socket: &SocketFile) {
        let mut clients: Vec<Client> = Vec::new();
        let mut swept = Instant::now();
        while !self.ends() {
            let mut fds = [PollFd::new(socket.listener(), PollFlags::IN)];
            let _ = poll(&mut fds, Some(&LONGEST_WAIT));
            if swept.elapsed() >= BETWEEN_SWEEPS {
                swept = Instant::now();
                self.captured.sweep();
            }
            clients.retain(|client| !client.thread.is_finished());
            match socket.listener().accept() {
                // A client that exceeds a limit sees its connection closed.
                Ok((stream, _)) => clients.extend(self.welcome(stream)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // No descriptor is free: clients continue to wait at the listener.
                Err(_) => thread::sleep(BETWEEN_LOOKS),
            }
        }
        for Client { stream, thread, .. } in clients {
            let _ = stream.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }

    fn welcome(self: &Arc<Self>, stream: UnixStream) -> Option<Client> {
        let credentials = sockopt::socket_peercred(&stream).ok()?;
        let (user, pid) = (credentials.uid.as_raw(), credentials.pid.as_raw_pid());
        let share = self.limits.take(user, Resources::Clients, 1);
        let share = share.map_err(|limit| self.limits.count(limit)).ok()?;
        stream.set_nonblocking(true).ok()?;
        let stream = Arc::new(stream);
        let number = self.clients.fetch_add(1, Ordering::Relaxed);
        let (serves, served) = (Arc::clone(self), Arc::clone(&stream));
        let builder = thread::Builder::new().name("broker client".to_owned());
        let thread = builder
            .spawn(move || Serving::new(&serves, served, user, pid, number).serve())
            .inspect_err(|_| self.limits.count(Limit::Clients))
            .ok()?;
        Some(Client {
            stream,
            thread,
            _share: share,
        })
    }

    /// Attaches the broker's programs to the interface. If an adapter of a killed broker keeps that broker's programs there, waits until the
    /// adapter attaches and hands them over. The first thread that needs the programs does this: an adapter may be served before
    /// [`Broker::start_at`] gets here.
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

    /// Asks the adapter to give back all connections, and waits some time for that. Returns the number of connections that are still away.
    fn restore_all(&self) -> u64 {
        self.captured.close();
        let end = Instant::now() + LONGEST_RESTORE;
        while self.captured.left() > 0 && Instant::now() < end {
            thread::sleep(BETWEEN_LOOKS);
        }
        self.captured.left()
    }
}

/// Returns the ports that the kernel gives to connections for which nobody has chosen one.
fn local_ports() -> RangeInclusive<u16> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = text.split_whitespace().map(str::parse);
    match (ends.next(), ends.next()) {
        (Some(Ok(first)), Some(Ok(last))) => first..=last,
        // The kernel's defaults.
        _ => 32_768..=60_999,
    }
}

fn refuse(stream: &UnixStream, refusal: &Refusal) -> io::Result<()> {
    let kind = if refusal.is_reset() {
        WAS_RESET
    } else {
        REFUSED
    };
    messages::send(stream, kind, refusal.to_string().as_bytes(), &[])
}
