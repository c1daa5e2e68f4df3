//! The kernel's sockets, for the web server: to compare with, or where there is nothing else.
//!
//! As good as one thread can do it: edge-triggered readiness, no system call to find out that there is nothing, and one
//! call for a whole response.

mod socket;

#[cfg(test)]
mod tests;

use crate::clock::Clock;
use crate::port::Arena;
use crate::snapshot::SnapshotSource;
use crate::world::SocketWorld;
use baton_host::{Gone, Ready, Receive, SocketId, Sockets, Unread};
use baton_wire::{Endpoint, Time};
use bytes::Bytes;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::sockopt;
use slab::Slab;
use socket::{Flushed, Socket};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Events that one wait gives at most.
const EVENTS: usize = 256;
/// Listeners have numbers from here on among the events; sockets are below.
const FIRST_LISTENER: u64 = 1 << 32;

/// What these sockets count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelStats {
    /// Connections accepted.
    pub accepted: u64,
    /// Times that connections had to wait to be accepted because there were as many as may be, or no descriptor was left.
    pub accepts_deferred: u64,
    /// Waits that gave something.
    pub waits: u64,
    /// Connections that ended by an error.
    pub ended_abnormally: u64,
}

/// A listening socket.
#[derive(Debug)]
struct Listener {
    fd: OwnedFd,
    /// It may have connections to accept: no accept has found none since the kernel told of the last one.
    pending: bool,
}

/// Non-blocking sockets of the kernel, and which of them have something to say.
pub struct KernelSockets {
    epoll: OwnedFd,
    listeners: Vec<Listener>,
    sockets: Slab<Socket>,
    ready: VecDeque<Ready>,
    events: Vec<epoll::Event>,
    /// That there are connections to accept waits in the queue.
    accept_queued: bool,
    most_sockets: usize,
    arena: Arena,
    clock: Clock,
    stats: KernelStats,
}

impl KernelSockets {
    /// No sockets yet, and at most so many connections.
    ///
    /// # Errors
    /// The system has no room for another epoll instance.
    pub fn new(most_sockets: usize, clock: Clock) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            listeners: Vec::new(),
            sockets: Slab::new(),
            ready: VecDeque::new(),
            events: Vec::with_capacity(EVENTS),
            accept_queued: false,
            most_sockets,
            arena: Arena::default(),
            clock,
            stats: KernelStats::default(),
        })
    }

    /// Listens at `port` on all addresses. Gives where, one for each version of IP that the system has.
    ///
    /// # Errors
    /// The port is in use, or may not be used.
    pub fn listen(&mut self, port: u16, backlog: u32) -> io::Result<Vec<Endpoint>> {
        let mut at = Vec::new();
        for addr in [
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        ] {
            match socket::listen(SocketAddr::new(addr, port), backlog) {
                Ok(fd) => {
                    let number = FIRST_LISTENER + self.listeners.len() as u64;
                    let data = epoll::EventData::new_u64(number);
                    let interest = epoll::EventFlags::IN | epoll::EventFlags::ET;
                    epoll::add(&self.epoll, &fd, data, interest)?;
                    self.listeners.push(Listener { fd, pending: false });
                    at.push(Endpoint::new(addr, port));
                }
                // A system without this version.
                Err(error) if error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(at)
    }

    /// Totals.
    pub fn stats(&self) -> KernelStats {
        self.stats
    }

    fn poll(&mut self, timeout: &Timespec) -> io::Result<()> {
        let room = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, room, Some(timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.stats.waits += u64::from(!self.events.is_empty());
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            self.handle(event.data.u64(), event.flags);
        }
        self.events = events;
        Ok(())
    }

    fn handle(&mut self, number: u64, flags: epoll::EventFlags) {
        if let Some(listener) = number.checked_sub(FIRST_LISTENER) {
            if let Some(listener) = self.listeners.get_mut(listener as usize) {
                listener.pending = true;
                self.offer_accept();
            }
            return;
        }
        let index = number as usize;
        if !self.sockets.contains(index) {
            return;
        }
        let failed = epoll::EventFlags::ERR | epoll::EventFlags::HUP;
        let id = SocketId(index as u32);
        if flags.intersects(epoll::EventFlags::OUT | failed) {
            self.flush(index);
        }
        let Some(socket) = self
            .sockets
            .get_mut(index)
            .filter(|socket| !socket.is_closing())
        else {
            return;
        };
        let ended = flags.intersects(epoll::EventFlags::RDHUP | failed);
        if ended || flags.contains(epoll::EventFlags::IN) {
            socket.handle_readable(ended);
            self.ready.push_back(Ready::Readable(id));
        }
        if socket.take_writable() {
            self.ready.push_back(Ready::Writable(id));
        }
    }

    /// Sends what the socket holds; takes it away if that was the last thing it had to do.
    fn flush(&mut self, index: usize) {
        let socket = &mut self.sockets[index];
        let outcome = socket.flush();
        if socket.is_closing() && !matches!(outcome, Ok(Flushed::Partly)) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) {
        // Closing the descriptor takes it off the epoll instance.
        self.sockets.remove(index);
        self.offer_accept();
    }

    /// Tells the application, once, that there are connections to accept, if so and if there may be more.
    fn offer_accept(&mut self) {
        let pending = self.listeners.iter().any(|listener| listener.pending);
        if pending && !self.accept_queued && self.sockets.len() < self.most_sockets {
            self.accept_queued = true;
            self.ready.push_back(Ready::Acceptable);
        }
    }

    fn open(&self, socket: SocketId) -> Option<&Socket> {
        let socket = self.sockets.get(socket.0 as usize);
        socket.filter(|socket| !socket.is_closing())
    }

    fn open_mut(&mut self, socket: SocketId) -> Option<&mut Socket> {
        let socket = self.sockets.get_mut(socket.0 as usize);
        socket.filter(|socket| !socket.is_closing())
    }

    fn adopt(&mut self, fd: OwnedFd) -> io::Result<SocketId> {
        let entry = self.sockets.vacant_entry();
        let data = epoll::EventData::new_u64(entry.key() as u64);
        use epoll::EventFlags as Flags;
        let interest = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
        epoll::add(&self.epoll, &fd, data, interest)?;
        let id = SocketId(entry.key() as u32);
        entry.insert(Socket::new(fd));
        self.stats.accepted += 1;
        Ok(id)
    }
}

impl Sockets<Bytes> for &mut KernelSockets {
    fn accept(&mut self) -> Option<SocketId> {
        if self.sockets.len() >= self.most_sockets {
            self.stats.accepts_deferred += 1;
            return None;
        }
        let this = &mut **self;
        for listener in this.listeners.iter_mut().filter(|l| l.pending) {
            match socket::accept(&listener.fd) {
                Ok(fd) => {
                    let id = this.adopt(fd).ok();
                    this.offer_accept();
                    return id;
                }
                // It is offered again when a socket is closed.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    this.stats.accepts_deferred += 1;
                    return None;
                }
                // The connection is gone already; the next may be there.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(_) => listener.pending = false,
            }
        }
        None
    }

    fn receive(&mut self, socket: SocketId, max: usize) -> Receive<Bytes> {
        let this = &mut **self;
        let socket = this.sockets.get_mut(socket.0 as usize);
        let Some(socket) = socket.filter(|socket| !socket.is_closing()) else {
            return Receive::Gone;
        };
        match socket.receive(&mut this.arena, max) {
            Ok(data) if data.is_empty() => Receive::EndOfStream,
            Ok(data) => Receive::Data(data),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Receive::WouldBlock,
            Err(_) => {
                this.stats.ended_abnormally += 1;
                Receive::Gone
            }
        }
    }

    fn unread(&self, socket: SocketId) -> Unread {
        self.open(socket).map_or(
            Unread {
                len: 0,
                ended: true,
            },
            Socket::unread,
        )
    }

    fn send(&mut self, socket: SocketId, data: Bytes) -> Result<usize, Gone> {
        let socket = self.open_mut(socket).ok_or(Gone)?;
        socket.send(data).map_err(|_| Gone)
    }

    fn set_cork(&mut self, socket: SocketId, cork: bool) {
        if let Some(socket) = self.open_mut(socket) {
            socket.set_cork(cork);
        }
    }

    fn shutdown(&mut self, socket: SocketId) -> bool {
        if let Some(socket) = self.open_mut(socket) {
            socket.shutdown();
        }
        true
    }

    fn close(&mut self, socket: SocketId) {
        if let Some(socket_ref) = self.open_mut(socket)
            && socket_ref.begin_close()
        {
            self.remove(socket.0 as usize);
        }
    }

    fn abort(&mut self, socket: SocketId) {
        if let Some(socket_ref) = self.open(socket) {
            // Closing a socket that does not linger at all resets the connection.
            let _ = sockopt::set_socket_linger(socket_ref, Some(Duration::ZERO));
            self.remove(socket.0 as usize);
        }
    }
}

impl SocketWorld for KernelSockets {
    type Calls<'a> = &'a mut Self;

    fn name(&self) -> String {
        "the kernel's sockets".to_owned()
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn turn(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn next_ready(&mut self) -> Option<Ready> {
        let ready = self.ready.pop_front()?;
        if ready == Ready::Acceptable {
            self.accept_queued = false;
        }
        Some(ready)
    }

    fn calls(&mut self) -> Self::Calls<'_> {
        self
    }

    fn unlisten(&mut self) {
        self.listeners.clear();
    }

    fn wait(&mut self, due: Time) -> io::Result<()> {
        let span = due.saturating_since(self.clock.now());
        let timeout = Timespec::try_from(Duration::from(span));
        self.poll(&timeout.expect("our longest time is shorter than the system's"))
    }
}

impl SnapshotSource for KernelSockets {
    fn add_counters(&self, counters: &mut BTreeMap<String, u64>) {
        for (name, value) in [
            ("open", self.sockets.len() as u64),
            ("accepted", self.stats.accepted),
            ("accepts_deferred", self.stats.accepts_deferred),
            ("ended_abnormally", self.stats.ended_abnormally),
            ("waits", self.stats.waits),
        ] {
            counters.insert(format!("sockets.{name}"), value);
        }
    }
}
