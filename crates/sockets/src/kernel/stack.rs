//! The kernel's TCP for the socket layer: non-blocking sockets and their events.

use super::socket::{self, Flushed, KernelSocket, Socket};
use crate::broker::messages::Recovery;
use crate::broker::{BrokerClient, BrokerError, Subscription};
use crate::direct::Direct;
use baton_host::layer::{HostStack, Reached};
use baton_host::{Gone, MoveReason, NextLook, Receive, Unread};
use baton_iolib::Arena;
use baton_iolib::log::{self, Level};
use baton_tcp::{CloseReason, ConnId, Event, ListenerId, Moved, Portable};
use baton_wire::{Endpoint, Flow, Time};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{self, sockopt};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use slab::Slab;
use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of events that one wait returns.
const EVENTS: usize = 256;
/// Listeners have numbers from here on in the event data; connections have smaller ones.
const FIRST_LISTENER: u64 = 1 << 32;
/// Event data of a descriptor of [`KernelStack::wait_also_for`].
const OTHER: u64 = u64::MAX;
/// Event data of the broker's questions.
const BROKER: u64 = OTHER - 1;
/// Event data of the timer of corks.
const CORKS: u64 = OTHER - 2;
/// Longest time that a cork holds data back, as in Linux (tcp(7)).
pub const LONGEST_CORK: Duration = Duration::from_millis(200);
/// Buffer space reported to the layer. The kernel does not say how long its buffers are: the space is this value or 0.
const ROOM: u32 = 64 * 1024;

/// Counters of the kernel stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelStats {
    /// Times that connections had to wait to be accepted because no descriptor was available.
    pub accepts_deferred: u64,
    /// Waits that returned events.
    pub waits: u64,
    /// Connections that ended with an error.
    pub ended_abnormally: u64,
    /// Connections that the broker did not take out of the kernel.
    pub not_taken: u64,
    /// Connections that were lost because the broker did not put them back, other than those that their peers reset meanwhile.
    pub not_given_back: u64,
    /// Options set by programs that the new sockets of returned connections rejected.
    pub options_not_kept: u64,
}

/// A listening socket.
#[derive(Debug)]
struct Listener {
    fd: OwnedFd,
    nodelay: bool,
    /// There may be connections to accept: no accept has found the queue empty since the kernel's last event.
    pending: bool,
}

/// The kernel's connections, with their indices in `sockets` as IDs.
#[derive(Debug)]
pub struct KernelStack {
    epoll: OwnedFd,
    listeners: Slab<Listener>,
    sockets: Slab<Socket>,
    /// Number of sockets that the epoll instance watches: all but those that the application uses directly.
    watched: usize,
    /// Sockets whose connection is on an adapter.
    away: FxHashMap<Flow, Socket>,
    broker: Option<BrokerClient>,
    /// Why the next connection moves.
    why: MoveReason,
    /// The broker asks something.
    asked: bool,
    happened: VecDeque<(ConnId, Event)>,
    /// Received data that was not read, of the connection that was exported last.
    unread: Option<Bytes>,
    /// Connections whose direct use has ended because they are to move.
    ended_direct: Vec<Arc<Direct>>,
    /// Number of times that the application has directly received something.
    direct_requests: Arc<AtomicU64>,
    /// Corked connections that began to hold data back, oldest first, with the times at which they send it.
    corks: VecDeque<(Instant, ConnId)>,
    /// Readable when the first cork is due; created when it is needed.
    cork_timer: Option<OwnedFd>,
    arena: Arena,
    stats: KernelStats,
}

impl KernelStack {
    /// Creates a stack without sockets. With a broker, its connections can move.
    ///
    /// # Errors
    /// The system has no resources for another epoll instance.
    pub fn new(broker: Option<BrokerClient>) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            listeners: Slab::new(),
            sockets: Slab::new(),
            watched: 0,
            away: FxHashMap::default(),
            broker,
            why: MoveReason::Unknown,
            asked: false,
            happened: VecDeque::new(),
            unread: None,
            ended_direct: Vec::new(),
            direct_requests: Arc::default(),
            corks: VecDeque::new(),
            cork_timer: None,
            arena: Arena::default(),
            stats: KernelStats::default(),
        })
    }

    /// Opens a listener, whose connections have TCP_NODELAY if `nodelay`. Also returns the local address: the kernel chooses a port for 0.
    ///
    /// # Errors
    /// The port is in use, or the process may not use it.
    pub fn listen(
        &mut self,
        at: SocketAddr,
        backlog: u32,
        nodelay: bool,
    ) -> io::Result<(ListenerId, SocketAddr)> {
        let fd = socket::listen(at, backlog, nodelay)?;
        let local = SocketAddr::try_from(net::getsockname(&fd)?)?;
        let place = self.listeners.insert(Listener {
            fd,
            nodelay,
            pending: false,
        });
        let data = epoll::EventData::new_u64(FIRST_LISTENER + place as u64);
        let interest = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &self.listeners[place].fd, data, interest)?;
        Ok((ListenerId(place as u32), local))
    }

    /// Closes a listener.
    pub fn close_listener(&mut self, listener: ListenerId) {
        self.listeners.try_remove(listener.0 as usize);
    }

    /// Starts to open a connection. [`Event::Connected`] reports that the connection is established.
    ///
    /// # Errors
    /// The attempt cannot even be started.
    pub fn connect(&mut self, to: SocketAddr) -> io::Result<ConnId> {
        self.take_in_opening(socket::connect(to)?.into(), to)
    }

    /// Takes in an established connection. The application may use it directly later.
    ///
    /// # Errors
    /// The socket is not connected, or the system has no resources for it.
    pub(crate) fn take_in(&mut self, socket: KernelSocket) -> io::Result<ConnId> {
        let flow = socket::flow_of(&socket)?;
        let mut socket = Socket::new(socket, flow).with_direct(false, &self.direct_requests);
        // Data may have arrived already; the next read finds out without waiting for an event.
        socket.handle_readable(false);
        self.adopt(socket)
    }

    /// Takes in a connection with these endpoints, which the application uses directly at first.
    pub(crate) fn take_in_direct(
        &mut self,
        socket: KernelSocket,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<ConnId> {
        self.adopt(
            Socket::new(socket, flow(local, remote)).with_direct(true, &self.direct_requests),
        )
    }

    /// Takes in a connection to `remote` that is still being established.
    pub(crate) fn take_in_opening(
        &mut self,
        socket: KernelSocket,
        remote: SocketAddr,
    ) -> io::Result<ConnId> {
        let local = SocketAddr::try_from(net::getsockname(&socket)?)?;
        let socket = Socket::new(socket, flow(local, remote)).opening();
        self.adopt(socket.with_direct(false, &self.direct_requests))
    }

    /// Makes waits end when `fd` becomes readable, too.
    ///
    /// # Errors
    /// The epoll instance cannot watch the descriptor.
    pub fn wait_also_for(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let data = epoll::EventData::new_u64(OTHER);
        Ok(epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN)?)
    }

    /// Returns how many times the application has directly received something.
    pub(crate) fn direct_requests(&self) -> u64 {
        self.direct_requests.load(Ordering::Relaxed)
    }

    /// Returns the next event of a connection or a listener.
    pub fn poll_event(&mut self) -> Option<(ConnId, Event)> {
        self.happened.pop_front()
    }

    /// Waits until something has happened, at most for `longest`.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait(&mut self, longest: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(longest);
        let timeout = timeout.expect("our longest time is shorter than the system's");
        let mut room = [MaybeUninit::uninit(); EVENTS];
        let events = match epoll::wait(&self.epoll, &mut room, Some(&timeout)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.stats.waits += u64::from(!events.is_empty());
        for event in events {
            self.handle(event.data.u64(), event.flags);
        }
        Ok(())
    }

    fn handle(&mut self, number: u64, flags: epoll::EventFlags) {
        match number {
            OTHER => return,
            BROKER => return self.asked = true,
            CORKS => return self.end_corks(),
            _ => {}
        }
        if let Some(place) = number.checked_sub(FIRST_LISTENER) {
            if let Some(listener) = self.listeners.get_mut(place as usize) {
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
        let may_have_room = flags.intersects(epoll::EventFlags::OUT | failed);
        if may_have_room && !self.sockets[index].is_holding_back() {
            self.flush(index);
        }
        let Some(socket) = self.open_mut(ConnId(index as u32)) else {
            return;
        };
        let conn = ConnId(index as u32);
        let is_opened = socket.handle_opened();
        if flags.contains(epoll::EventFlags::HUP) {
            socket.handle_over();
        }
        if flags.contains(epoll::EventFlags::ERR) {
            socket.handle_failed();
        }
        let ended = flags.intersects(epoll::EventFlags::RDHUP | failed);
        let has_news = ended || flags.contains(epoll::EventFlags::IN);
        if has_news {
            socket.handle_readable(ended);
        }
        let has_room = may_have_room && socket.take_writable();
        if is_opened {
            self.happened.push_back((conn, Event::Connected));
        }
        if has_news {
            self.happened.push_back((conn, Event::Readable));
        }
        if has_room {
            self.happened.push_back((conn, Event::Acknowledged(0)));
        }
    }

    /// Notes that a corked connection has begun to hold data back. Without a timer, the cork holds the data until it is removed.
    fn begin_cork(&mut self, conn: ConnId) {
        if self.corks.iter().any(|(_, other)| *other == conn) {
            return;
        }
        self.corks.push_back((Instant::now() + LONGEST_CORK, conn));
        if self.corks.len() == 1 {
            self.set_cork_timer(LONGEST_CORK);
        }
    }

    fn set_cork_timer(&mut self, after: Duration) {
        if self.cork_timer.is_none() {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags).ok();
            let data = epoll::EventData::new_u64(CORKS);
            self.cork_timer = timer.filter(|timer| {
                epoll::add(&self.epoll, timer, data, epoll::EventFlags::IN).is_ok()
            });
        }
        // A time of zero would stop the timer.
        let after = Timespec::try_from(after.max(Duration::from_nanos(1)));
        if let (Some(timer), Ok(it_value)) = (&self.cork_timer, after) {
            let it_interval = Timespec::default();
            let once = Itimerspec {
                it_interval,
                it_value,
            };
            let _ = timerfd_settime(timer, TimerfdTimerFlags::empty(), &once);
        }
    }

    /// Sends what corked connections have held back for long enough.
    fn end_corks(&mut self) {
        if let Some(timer) = &self.cork_timer {
            let _ = rustix::io::read(timer, &mut [0; 8]);
        }
        let now = Instant::now();
        while let Some((_, conn)) = self.corks.pop_front_if(|(due, _)| *due <= now) {
            let index = conn.0 as usize;
            if (self.sockets.get(index)).is_some_and(Socket::is_holding_back) {
                self.flush(index);
            }
        }
        if let Some((due, _)) = self.corks.front() {
            self.set_cork_timer(due.saturating_duration_since(now));
        }
    }

    /// Sends the data that the socket holds, and removes a closing socket that has sent everything.
    fn flush(&mut self, index: usize) {
        let socket = &mut self.sockets[index];
        let outcome = socket.flush();
        if socket.is_closing() && !matches!(outcome, Ok(Flushed::Partly)) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) {
        // The application may keep a descriptor of its own open, and the next connection gets this number.
        self.unwatch(ConnId(index as u32));
        self.sockets.remove(index);
        self.offer_accept();
    }

    /// Reports a listener that may have connections to accept, if there is one.
    fn offer_accept(&mut self) {
        if let Some((place, _)) = self.listeners.iter().find(|(_, one)| one.pending) {
            let listener = ListenerId(place as u32);
            let told = (ConnId(0), Event::Acceptable(listener));
            if self.happened.back() != Some(&told) {
                self.happened.push_back(told);
            }
        }
    }

    /// Subscribes this application to the questions of the broker, if there is one. A question ends a wait.
    pub(super) fn subscribe(&self) -> Option<Subscription> {
        let subscription = self.broker.as_ref()?.subscribe().ok()?;
        let data = epoll::EventData::new_u64(BROKER);
        epoll::add(&self.epoll, &subscription, data, epoll::EventFlags::IN).ok()?;
        Some(subscription)
    }

    /// Looks for the next broker if the one that has taken connections is gone.
    pub(super) fn look_for_broker(&mut self) {
        if let Some(broker) = &mut self.broker {
            broker.look_for_next(self.away.keys().next());
        }
    }

    /// Returns whether the broker has asked something or disappeared since the last call.
    pub(super) fn take_asked(&mut self) -> bool {
        std::mem::take(&mut self.asked)
    }

    /// Returns the counters.
    pub fn stats(&self) -> &KernelStats {
        &self.stats
    }

    /// Returns the descriptor that becomes readable when there are events.
    pub(crate) fn epoll(&self) -> &OwnedFd {
        &self.epoll
    }

    /// Returns whether the kernel has taken all data sent on a connection.
    pub(super) fn has_all(&self, conn: ConnId) -> bool {
        self.open(conn).is_some_and(Socket::is_flushed)
    }

    /// Returns whether there are sockets that may have events.
    pub(crate) fn has_watched(&self) -> bool {
        self.watched > 0 || !self.listeners.is_empty()
    }

    /// Returns whether the kernel has taken all data sent on all connections.
    pub(crate) fn is_flushed(&self) -> bool {
        self.sockets.iter().all(|(_, socket)| socket.is_flushed())
    }

    /// Returns whether a connection is still being established.
    pub(crate) fn is_opening(&self, conn: ConnId) -> bool {
        self.open(conn).is_some_and(Socket::is_opening)
    }

    /// Returns whether a connection has failed.
    pub(crate) fn is_failed(&self, conn: ConnId) -> bool {
        self.open(conn).is_some_and(Socket::is_failed)
    }

    /// Fetches the error of a failed connection, which the kernel reports only once.
    pub(crate) fn fetch_error(&mut self, conn: ConnId) {
        if let Some(socket) = self.open_mut(conn) {
            socket.fetch_error();
        }
    }

    /// Asks the kernel whether there is buffer space for data.
    pub(crate) fn ask_room(&mut self, conn: ConnId) {
        if self.open_mut(conn).is_some_and(Socket::ask_room) {
            // The kernel's event that follows is no news to the socket, but the layer may hold data that waited for buffer space.
            self.happened.push_back((conn, Event::Acknowledged(0)));
        }
    }

    /// Returns the error of a connection, if known.
    pub(crate) fn error_of(&self, conn: ConnId) -> Option<Errno> {
        self.open(conn)?.error()
    }

    /// Peeks at received data. Returns `None` if the connection is being closed.
    pub(crate) fn peek(&mut self, conn: ConnId, max: usize) -> Option<io::Result<Bytes>> {
        let socket = self.sockets.get_mut(conn.0 as usize);
        let socket = socket.filter(|socket| !socket.is_closing())?;
        Some(socket.peek(&mut self.arena, max))
    }

    /// Shuts down reading in the kernel.
    pub(crate) fn shut_for_reading(&self, conn: ConnId) {
        if let Some(socket) = self.open(conn) {
            // On a connection that has ended, failure does not matter.
            let _ = net::shutdown(socket, net::Shutdown::Read);
        }
    }

    /// Returns whether nothing more can be sent.
    pub(crate) fn is_shut(&self, conn: ConnId) -> bool {
        self.open(conn).is_none_or(Socket::is_shut)
    }

    /// Returns whether the kernel has closed the connection.
    pub(crate) fn is_over(&self, conn: ConnId) -> bool {
        self.open(conn).is_none_or(Socket::is_over)
    }

    /// Asks the kernel how many bytes can be received, unless that is known.
    pub(crate) fn ask_unread(&mut self, conn: ConnId) {
        if let Some(socket) = self.open_mut(conn) {
            socket.ask_unread();
        }
    }

    /// Sets TCP_NODELAY on the socket of a connection that is on an adapter.
    pub(crate) fn set_nodelay_of_away(&mut self, flow: &Flow, nodelay: bool) {
        if let Some(socket) = self.away.get_mut(flow) {
            socket.set_nodelay(nodelay);
        }
    }

    /// In the child of fork(2): closes its copies of all descriptors.
    pub(super) fn close_copies(&mut self) {
        self.broker = None;
        self.sockets.clear();
        self.watched = 0;
        self.away.clear();
        self.listeners.clear();
    }

    fn open(&self, conn: ConnId) -> Option<&Socket> {
        let socket = self.sockets.get(conn.0 as usize);
        socket.filter(|socket| !socket.is_closing())
    }

    fn open_mut(&mut self, conn: ConnId) -> Option<&mut Socket> {
        let socket = self.sockets.get_mut(conn.0 as usize);
        socket.filter(|socket| !socket.is_closing())
    }

    /// Makes the broker put a connection back into the kernel, on a new socket.
    fn bring_back(
        &mut self,
        flow: &Flow,
        put_back: impl FnOnce(&mut BrokerClient) -> Result<OwnedFd, BrokerError>,
    ) -> Result<ConnId, CloseReason> {
        let lost = CloseReason::Aborted;
        let broker = self.broker.as_mut().ok_or(lost)?;
        let mut socket = self.away.remove(flow).ok_or(lost)?;
        let why = std::mem::take(&mut self.why).name();
        let fd = match put_back(broker) {
            Ok(fd) => fd,
            Err(error @ BrokerError::Reset(_)) => {
                told(Level::Info, flow, "was reset on its way back", &error);
                return Err(CloseReason::Reset);
            }
            Err(error) => {
                self.stats.not_given_back += 1;
                told(Level::Warn, flow, "was lost on its way back", &error);
                return Err(lost);
            }
        };
        told(Level::Info, flow, "is back in the kernel", &why);
        self.stats.options_not_kept += socket.handle_restored(fd);
        self.adopt(socket).map_err(|_| lost)
    }

    fn adopt(&mut self, socket: Socket) -> io::Result<ConnId> {
        let is_direct = socket.is_direct();
        let conn = ConnId(self.sockets.insert(socket) as u32);
        if !is_direct && let Err(error) = self.watch(conn) {
            self.sockets.remove(conn.0 as usize);
            return Err(error);
        }
        Ok(conn)
    }

    fn watch(&mut self, conn: ConnId) -> io::Result<()> {
        let data = epoll::EventData::new_u64(conn.0.into());
        use epoll::EventFlags as Flags;
        let interest = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
        let socket = &mut self.sockets[conn.0 as usize];
        epoll::add(&self.epoll, &*socket, data, interest)?;
        socket.watched = true;
        self.watched += 1;
        Ok(())
    }

    fn unwatch(&mut self, conn: ConnId) {
        let socket = &mut self.sockets[conn.0 as usize];
        if std::mem::take(&mut socket.watched) {
            // The number may belong to another connection later.
            let _ = epoll::delete(&self.epoll, &*socket);
            self.watched -= 1;
        }
    }

    // --- connections that the application uses directly ---

    /// Returns a connection whose direct use has ended because it is to move.
    pub(crate) fn poll_ended_direct(&mut self) -> Option<Arc<Direct>> {
        self.ended_direct.pop()
    }

    /// Returns the state shared with an application that may use a connection directly.
    pub(crate) fn direct(&self, conn: ConnId) -> Option<&Arc<Direct>> {
        self.open(conn)?.direct()
    }

    /// Makes the next direct use of every connection ask the policy.
    pub(super) fn look_again(&self) {
        let directs = self.sockets.iter().filter_map(|(_, it)| it.direct());
        directs.for_each(|direct| direct.set_next_look(NextLook::AT_ONCE));
    }

    /// Lets the application use a connection directly again, if it wants to and this library holds none of the connection's data.
    pub(crate) fn begin_direct(&mut self, conn: ConnId) {
        let socket = self.open(conn).filter(|socket| socket.may_be_direct());
        let direct = socket.and_then(Socket::direct);
        let Some(direct) = direct.filter(|direct| direct.may_open()).cloned() else {
            return;
        };
        self.unwatch(conn);
        if !direct.open() {
            // The stack watches the socket as before. If that fails, reads and writes still report the state of the connection.
            let _ = self.watch(conn);
        }
    }

    /// Ends the direct use of a connection; returns false if there is none. The caller has to set whether the connection is corked.
    pub(crate) fn end_direct(&mut self, conn: ConnId) -> bool {
        let Some(socket) = self.open_mut(conn).filter(|socket| socket.is_direct()) else {
            return false;
        };
        socket.set_cork(false);
        if let Some(direct) = socket.direct() {
            direct.close();
        }
        self.watch_again(conn);
        true
    }

    /// Watches a connection whose direct use has ended.
    fn watch_again(&mut self, conn: ConnId) {
        let socket = &mut self.sockets[conn.0 as usize];
        if !socket.watched {
            socket.handle_readable(false);
            // If watching fails, reads and writes still report the state of the connection.
            let _ = self.watch(conn);
        }
    }
}

impl HostStack<Bytes> for KernelStack {
    fn accept(&mut self, listener: ListenerId) -> Option<ConnId> {
        let listener = self.listeners.get_mut(listener.0 as usize)?;
        while listener.pending {
            match socket::accept(&listener.fd) {
                Ok((fd, flow)) => {
                    let socket = Socket::new(fd, flow).with_nodelay(listener.nodelay);
                    return self.adopt(socket).ok();
                }
                // The connection is offered again when a socket is closed.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.stats.accepts_deferred += 1;
                    return None;
                }
                // This connection has ended already; there may be another.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::NOTCONN) => {}
                Err(_) => listener.pending = false,
            }
        }
        None
    }

    fn has_acceptable(&self, listener: ListenerId) -> bool {
        let listener = self.listeners.get(listener.0 as usize);
        listener.is_some_and(|listener| listener.pending)
    }

    fn flow(&self, conn: ConnId) -> Flow {
        self.sockets[conn.0 as usize].flow()
    }

    fn receive(&mut self, conn: ConnId, max: usize) -> Receive<Bytes> {
        let socket = self.sockets.get_mut(conn.0 as usize);
        let Some(socket) = socket.filter(|socket| !socket.is_closing()) else {
            return Receive::Gone;
        };
        match socket.receive(&mut self.arena, max) {
            Ok(data) if data.is_empty() => Receive::EndOfStream,
            Ok(data) => Receive::Data(data),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Receive::WouldBlock,
            Err(_) => {
                self.stats.ended_abnormally += 1;
                Receive::Gone
            }
        }
    }

    fn unread(&self, conn: ConnId) -> Unread {
        self.open(conn).map_or(Unread::GONE, Socket::unread)
    }

    fn send(&mut self, conn: ConnId, data: Bytes) -> Result<usize, Gone> {
        let socket = self.open_mut(conn).ok_or(Gone)?;
        let taken = socket.send(data).map_err(|_| Gone);
        if socket.is_holding_back() {
            self.begin_cork(conn);
        }
        taken
    }

    fn send_space(&self, conn: ConnId) -> usize {
        let is_full = self.open(conn).is_none_or(Socket::is_full);
        if is_full { 0 } else { ROOM as usize }
    }

    fn send_buffer(&self, _conn: ConnId) -> u32 {
        ROOM
    }

    fn unacknowledged(&self, conn: ConnId) -> usize {
        self.open(conn).map_or(0, Socket::held_bytes)
    }

    fn set_nodelay(&mut self, conn: ConnId, nodelay: bool) {
        if let Some(socket) = self.open_mut(conn) {
            socket.set_nodelay(nodelay);
        }
    }

    fn set_cork(&mut self, conn: ConnId, cork: bool) {
        if let Some(socket) = self.open_mut(conn) {
            socket.set_cork(cork);
        }
    }

    fn shutdown(&mut self, conn: ConnId) {
        if let Some(socket) = self.open_mut(conn) {
            socket.shutdown();
        }
    }

    fn close(&mut self, conn: ConnId) {
        if let Some(socket) = self.open_mut(conn)
            && socket.begin_close()
        {
            self.remove(conn.0 as usize);
        }
    }

    fn abort(&mut self, conn: ConnId) {
        if let Some(socket) = self.open(conn) {
            // Closing a socket whose linger time is zero resets the connection.
            let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
            self.remove(conn.0 as usize);
        }
    }

    fn may_move(&self, conn: ConnId) -> bool {
        self.broker.is_some() && self.open(conn).is_some_and(Socket::may_move)
    }

    fn is_at_rest(&self, conn: ConnId) -> bool {
        self.open(conn).is_none_or(Socket::is_at_rest)
    }

    fn settle(&mut self, conn: ConnId) -> bool {
        let Some(socket) = self.open_mut(conn) else {
            return true;
        };
        // The application's calls in progress end, so that none sees the kernel's socket without its connection.
        let direct = socket.direct().filter(|direct| direct.close()).cloned();
        // These calls may have sent something.
        let is_at_rest = socket.is_at_rest();
        if !is_at_rest {
            socket.push();
            socket.set_settling(true);
            self.watch_again(conn);
        }
        self.ended_direct.extend(direct);
        is_at_rest
    }

    fn unsettle(&mut self, conn: ConnId) {
        let Some(socket) = self.open_mut(conn) else {
            return;
        };
        socket.set_settling(false);
        let may_be_direct = socket.may_be_direct() && !socket.watched;
        let direct = socket.direct().filter(|_| may_be_direct);
        if !direct.is_some_and(|direct| direct.open()) {
            self.watch_again(conn);
        }
    }

    fn export(&mut self, _now: Time, conn: ConnId) -> Option<Portable<Bytes>> {
        let socket = self.sockets.get(conn.0 as usize)?;
        let broker = self.broker.as_mut()?;
        // The socket loses this option together with its connection.
        let reuses = sockopt::socket_reuseaddr(socket).unwrap_or_default();
        let taken = broker.take(socket.as_fd());
        if reuses {
            let _ = sockopt::set_socket_reuseaddr(socket, true);
        }
        if matches!(taken, Err(BrokerError::NoAnswer(_))) && !broker.wait_for_next() {
            // The kernel may still have the connection, whose packets go to the adapter. Without a broker the kernel cannot get them back.
            let _ = net::connect_unspec(socket);
        }
        let why = std::mem::take(&mut self.why).name();
        if let Err(error) = &taken {
            told(Level::Info, &socket.flow(), "stays in the kernel", error);
        }
        let taken = taken.ok().and_then(|(unread, state)| {
            self.unread = (!unread.is_empty()).then(|| unread.into());
            Moved::from_bytes(&state).ok()
        });
        let Some(state) = taken else {
            self.stats.not_taken += 1;
            return None;
        };
        told(
            Level::Info,
            &state.state.flow,
            "is moving to the adapter",
            &why,
        );
        self.unwatch(conn);
        let socket = self.sockets.remove(conn.0 as usize);
        self.away.insert(state.state.flow, socket);
        Some(state.state)
    }

    fn keeps_unread(&self) -> bool {
        true
    }

    fn take_unread(&mut self) -> Option<Bytes> {
        self.unread.take()
    }

    fn import(&mut self, now: Time, state: Portable<Bytes>) -> Result<ConnId, CloseReason> {
        self.import_unread(now, state, &mut VecDeque::new())
    }

    fn import_unread(
        &mut self,
        _now: Time,
        state: Portable<Bytes>,
        unread: &mut VecDeque<Bytes>,
    ) -> Result<ConnId, CloseReason> {
        let flow = state.flow;
        let unread = unread.drain(..).collect::<Vec<_>>().concat();
        let state = Moved::new(state).to_bytes();
        self.bring_back(&flow, |broker| broker.give_back_unread(&unread, &state))
    }

    fn say_why(&mut self, why: MoveReason) {
        self.why = why;
        if let Some(broker) = &mut self.broker {
            broker.set_why(why);
        }
    }

    fn takes_back(&self) -> bool {
        self.broker.as_ref().is_some_and(BrokerClient::is_there)
    }

    fn reclaim(&mut self, _now: Time, state: Portable<Bytes>) -> Option<ConnId> {
        let flow = state.flow;
        let state = Moved::new(state).to_bytes();
        self.bring_back(&flow, |broker| broker.reclaim(&state)).ok()
    }

    fn recover(&mut self, _now: Time, flow: &Flow, reached: Reached) -> Option<ConnId> {
        let Reached { sent, received } = reached;
        let recovery = Recovery {
            flow: *flow,
            sent,
            received,
        };
        self.bring_back(flow, |broker| broker.recover(&recovery))
            .ok()
    }

    fn forget(&mut self, flow: &Flow) {
        self.away.remove(flow);
    }
}

/// Logs what happens to a connection, and why.
fn told(level: Level, flow: &Flow, what: &'static str, why: &dyn Display) {
    let Flow { local, remote } = flow;
    let pid = std::process::id();
    log::tell(
        level,
        what,
        format_args!("{pid}: {local} to {remote} {what}: {why}"),
    );
}

fn flow(local: SocketAddr, remote: SocketAddr) -> Flow {
    Flow {
        local: endpoint(local),
        remote: endpoint(remote),
    }
}

/// Converts a socket address to an endpoint, with the canonical form of an IPv4-mapped IPv6 address.
pub(crate) fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    /// Returns a stack with a connection, and the non-blocking socket at the connection's far end.
    fn connected() -> (KernelStack, ConnId, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (far, _) = listener.accept().expect("a connection");
        far.set_nonblocking(true).expect("a socket");
        let mut stack = KernelStack::new(None).expect("descriptors are free");
        let conn = (stack.take_in(OwnedFd::from(near).into())).expect("it is connected");
        (stack, conn, far)
    }

    #[test]
    fn a_cork_holds_data_back_no_longer_than_in_linux() {
        let (mut stack, conn, mut far) = connected();
        for round in 0..2 {
            stack.set_cork(conn, true);
            assert_eq!(stack.send(conn, Bytes::from_static(b"ab")), Ok(2));
            let mut room = [0; 8];
            let early = far.read(&mut room).map_err(|error| error.kind());
            assert_eq!(early, Err(io::ErrorKind::WouldBlock), "round {round}");
            let read = loop {
                stack.wait(Duration::from_secs(30)).expect("it waits");
                if let Ok(read) = far.read(&mut room) {
                    break read;
                }
            };
            assert_eq!(&room[..read], b"ab");
        }
    }

    /// The layer may hold data of a connection that came back to a full send buffer. It sends the data when buffer space is reported.
    #[test]
    fn asking_for_space_does_not_hide_the_event() {
        let (mut stack, conn, mut far) = connected();
        let data = Bytes::from_static(&[7; 64 * 1024]);
        let mut sent = 0;
        while let taken = stack.send(conn, data.clone()).expect("it is open")
            && taken == data.len()
        {
            sent += taken;
        }
        while stack.send_space(conn) == 0 {
            let mut room = [0; 64 * 1024];
            let _ = far.read(&mut room);
            stack.ask_room(conn);
        }
        let events: Vec<_> = std::iter::from_fn(|| stack.poll_event()).collect();
        assert!(
            sent > 0 && events.contains(&(conn, Event::Acknowledged(0))),
            "{events:?}"
        );
    }
}
