//! Connections in the style of the standard library.

use crate::Adapter;
use crate::adapter::{Handle, Timeout};
use crate::beside::Readiness;
use crate::core::{Core, Side};
use crate::direct::Direct;
use crate::host::{Host, Told};
use crate::kernel::{KernelSocket, KernelStack};
use crate::poll::sealed::Sealed;
use crate::waiter::Waiter;
use baton_bus::descriptor::SocketOption;
use baton_host::SocketId;
use baton_host::adapter::NotSubmitted;
use baton_iolib::Arena;
use baton_tcp::ConnId;
use baton_wire::Endpoint;
use bytes::Bytes;
use std::cell::RefCell;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Number of attempts to ask the adapter before a call fails, and the time between two attempts.
const MOST_ATTEMPTS: u32 = 100;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(5);
/// How long the application waits for a connection to return to the kernel.
const LONGEST_RETURN: Duration = Duration::from_secs(1);
/// Maximum time that a nonblocking call waits for data that the adapter has received.
const LONGEST_DELIVERY: Duration = Duration::from_millis(100);
/// Maximum number of bytes of one write.
const LONGEST_WRITE: usize = 64 * 1024;

thread_local! {
    /// Buffer of written data until the adapter can fetch it.
    static OUTGOING: RefCell<Arena> = RefCell::new(Arena::default());
}

/// A connection through an adapter, the counterpart of [`std::net::TcpStream`] through the kernel.
///
/// Errors have the same kinds as those of the standard library on Linux; in addition, all connections end with `ConnectionAborted` when the
/// adapter is gone. Clones ([`TcpStream::try_clone`]) refer to the same connection, which closes when the last clone is dropped.
///
/// ```no_run
/// use baton_sockets::{Adapter, TcpStream};
/// use std::io::{Read, Write};
/// use std::net::Shutdown;
///
/// let adapter = Adapter::connect("/run/baton/adapter.sock")?;
/// let mut stream = TcpStream::connect(&adapter, "10.9.0.1:80".parse().unwrap())?;
/// stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
/// stream.shutdown(Shutdown::Write)?;
/// let mut page = String::new();
/// stream.read_to_string(&mut page)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TcpStream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: Arc<Handle>,
    socket: SocketId,
    /// Present in kernel connections that were taken in.
    direct: Option<Arc<Direct>>,
    peer: SocketAddr,
    /// Local address, once known.
    local: OnceLock<SocketAddr>,
    nonblocking: AtomicBool,
    nodelay: AtomicBool,
    /// This side has shut down reading.
    read_shut: AtomicBool,
    /// Dropping the connection resets it, for example because the attempt to connect was given up.
    given_up: AtomicBool,
    /// Requested times: bits of `Timestamping`.
    timestamping: AtomicU32,
    /// The error was already reported to the application.
    error_taken: AtomicBool,
    timeouts: Mutex<Timeouts>,
    /// Data that was peeked at and not read.
    peeked: Mutex<Bytes>,
}

impl Inner {
    fn new(
        handle: &Arc<Handle>,
        socket: SocketId,
        peer: SocketAddr,
        local: Option<SocketAddr>,
    ) -> Self {
        Self {
            handle: Arc::clone(handle),
            socket,
            direct: None,
            peer,
            local: local.map_or_else(OnceLock::new, OnceLock::from),
            nonblocking: AtomicBool::new(false),
            nodelay: AtomicBool::new(false),
            read_shut: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            timestamping: AtomicU32::new(0),
            error_taken: AtomicBool::new(false),
            timeouts: Mutex::new(Timeouts::default()),
            peeked: Mutex::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Timeouts {
    read: Option<Duration>,
    write: Option<Duration>,
}

impl TcpStream {
    /// Opens a connection.
    ///
    /// # Errors
    /// The peer refuses (`ConnectionRefused`), cannot be reached (`HostUnreachable`) or does not answer (`TimedOut`); or the
    /// adapter is gone (`NetworkDown`).
    pub fn connect(adapter: &Adapter, peer: SocketAddr) -> Result<Self> {
        Self::connect_within(adapter, peer, Timeout::Endless)
    }

    /// Opens a connection, within `timeout`.
    ///
    /// # Errors
    /// The errors of [`TcpStream::connect`]; `TimedOut` if it takes longer; `InvalidInput` if `timeout` is zero.
    pub fn connect_timeout(adapter: &Adapter, peer: SocketAddr, timeout: Duration) -> Result<Self> {
        let timeout = Some(not_zero(timeout)?);
        Self::connect_within(adapter, peer, Timeout::from(timeout))
    }

    /// Opens a connection with TCP Fast Open (RFC 7413) and sends the beginning of `data`. Returns how many bytes that were: at most what
    /// the adapter takes in one transfer without fetching it, some kilobytes. If the peer gave a cookie before, the SYN carries as many of
    /// them as fit; the rest follows once the connection is established. A network that duplicates packets may deliver the bytes twice, on
    /// two connections: use it only for requests where that does no harm (RFC 7413 2.1).
    ///
    /// # Errors
    /// The errors of [`TcpStream::connect`]; `InvalidInput` if the adapter cannot do it, `Unsupported` if connections start in the kernel.
    pub fn connect_fast_open(
        adapter: &Adapter,
        peer: SocketAddr,
        data: &[u8],
    ) -> Result<(Self, usize)> {
        let (stream, taken) = Self::begin_fast_open(adapter, peer, data, false)?;
        Ok((stream.opened(Timeout::Endless)?, taken))
    }

    /// Works like [`TcpStream::connect_fast_open`] without waiting for the connection, which [`TcpStream::readiness`] and
    /// [`Poll`](crate::Poll) report. With `without_cookie`, the SYN carries data to any peer: some accept it (RFC 7413 3, Linux's
    /// TCP_FASTOPEN_NO_COOKIE); others get it once the connection is established.
    ///
    /// # Errors
    /// `InvalidInput` if the adapter does not support it, `Unsupported` if connections start in the kernel, `NetworkDown` if the adapter is
    /// gone. Calls on the connection report later errors.
    pub fn begin_fast_open(
        adapter: &Adapter,
        peer: SocketAddr,
        data: &[u8],
        without_cookie: bool,
    ) -> Result<(Self, usize)> {
        let data = outgoing(data);
        let mut taken = 0;
        let stream = Self::start_with(adapter, peer, |host| {
            let (socket, len) = host.connect_fast_open(peer, &data, without_cookie)?;
            taken = len;
            Ok(socket)
        })?;
        Ok((stream, taken))
    }

    /// Takes in a kernel connection, which may from now on move to an adapter [next to the kernel](Adapter::open_beside_kernel). While it
    /// is away, the kernel's socket, of which the caller may have other descriptors, has no connection; the connection comes back on a new
    /// socket, which can [replace](KernelSocket::followed_by) these descriptors.
    ///
    /// # Errors
    /// The socket is not connected; `Unsupported` if the adapter does not work next to the kernel, `QuotaExceeded` if the maximum number of
    /// sockets is reached.
    pub fn from_kernel(adapter: &Adapter, socket: impl Into<KernelSocket>) -> Result<Self> {
        let socket = socket.into();
        Self::take_in(adapter, |stack| stack.take_in(socket))
    }

    /// Takes in a connection to `peer` that the kernel is still establishing. It can be written once it is established.
    ///
    /// # Errors
    /// The errors of [`TcpStream::from_kernel`].
    pub fn from_kernel_opening(
        adapter: &Adapter,
        socket: impl Into<KernelSocket>,
        peer: SocketAddr,
    ) -> Result<Self> {
        let socket = socket.into();
        Self::take_in(adapter, |stack| stack.take_in_opening(socket, peer))
    }

    pub(crate) fn take_in(
        adapter: &Adapter,
        take_in: impl FnOnce(&mut KernelStack) -> Result<ConnId>,
    ) -> Result<Self> {
        let handle = adapter.handle();
        let taken = handle.call(|core| {
            let taken = core.host.take_in(take_in)?;
            core.open(taken.socket);
            Ok::<_, Error>(taken)
        })?;
        let (local, peer) = (
            socket_addr(taken.flow.local),
            socket_addr(taken.flow.remote),
        );
        let mut inner = Inner::new(handle, taken.socket, peer, Some(local));
        inner.direct = taken.direct;
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    fn connect_within(adapter: &Adapter, peer: SocketAddr, timeout: Timeout) -> Result<Self> {
        Self::start(adapter, peer)?.opened(timeout)
    }

    /// Waits until the connection is established.
    fn opened(self, timeout: Timeout) -> Result<Self> {
        let stream = self;
        let handle = &stream.inner.handle;
        let connected = handle.block(timeout, |core, waiter| stream.connected(core, waiter));
        let connected = connected.unwrap_or(Err(ErrorKind::TimedOut.into()));
        // On failure, dropping the stream aborts a handshake in progress.
        stream
            .inner
            .given_up
            .store(connected.is_err(), Ordering::Relaxed);
        connected.map(|()| stream)
    }

    /// Starts to open a connection.
    pub(crate) fn start(adapter: &Adapter, peer: SocketAddr) -> Result<Self> {
        Self::start_with(adapter, peer, |host| host.connect(peer))
    }

    fn start_with(
        adapter: &Adapter,
        peer: SocketAddr,
        connect: impl FnOnce(&mut Host) -> Result<SocketId>,
    ) -> Result<Self> {
        let handle = adapter.handle();
        let socket = handle.call(|core| {
            let socket = connect(&mut core.host)?;
            core.open(socket);
            Ok::<_, Error>(socket)
        })?;
        Ok(Self::new(handle, socket, peer, None))
    }

    /// Reports that the connection is established or why it failed, or registers the waiter.
    pub(crate) fn connected(&self, core: &mut Core, waiter: Option<&Waiter>) -> Option<Result<()>> {
        if core.host.is_down() {
            return Some(Err(ErrorKind::NetworkDown.into()));
        }
        core.connected(self.inner.socket, waiter)
    }

    pub(crate) fn new(
        handle: &Arc<Handle>,
        socket: SocketId,
        peer: SocketAddr,
        local: Option<SocketAddr>,
    ) -> Self {
        let inner = Inner::new(handle, socket, peer, local);
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Receives at most `max` bytes without copying them; an empty result is the end of the stream.
    ///
    /// # Errors
    /// The errors of [`Read::read`]. An error of the connection is reported once; after that the stream has ended, as in the kernel.
    pub fn receive(&self, max: usize) -> Result<Bytes> {
        let timeout = self.timeout(self.timeouts().read);
        let outcome =
            self.block_for_data(timeout, |core, waiter| self.try_receive(core, max, waiter));
        outcome.unwrap_or(Err(ErrorKind::WouldBlock.into()))
    }

    /// Waits until an attempt succeeds. If the adapter has received the data already, even a nonblocking call waits for its delivery, since
    /// the kernel would return the data.
    fn block_for_data<T>(
        &self,
        timeout: Timeout,
        mut attempt: impl FnMut(&mut Core, Option<&Waiter>) -> Option<T>,
    ) -> Option<T> {
        let (handle, socket) = (&self.inner.handle, self.inner.socket);
        let mut is_due = false;
        let outcome = handle.block(timeout, |core, waiter| {
            let outcome = attempt(core, waiter);
            is_due = outcome.is_none() && core.host.is_delivery_due(socket);
            outcome
        });
        if !is_due || !matches!(timeout, Timeout::None) {
            return outcome;
        }
        let delivered =
            handle.block(
                Timeout::from(Some(LONGEST_DELIVERY)),
                |core, waiter| match attempt(core, waiter) {
                    None if core.host.is_delivery_due(socket) => None,
                    outcome => Some(outcome),
                },
            );
        delivered.flatten()
    }

    /// Receives more data, as [`TcpStream::receive`] does, without waiting. Returns an empty result if there is none: errors and the end of
    /// the stream are left to the next call.
    pub fn receive_more(&self, max: usize) -> Bytes {
        let received = self.block_for_data(Timeout::None, |core, waiter| {
            self.take_received(core, max, waiter)
        });
        received.and_then(Result::ok).unwrap_or_default()
    }

    pub(crate) fn try_receive(
        &self,
        core: &mut Core,
        max: usize,
        waiter: Option<&Waiter>,
    ) -> Option<Result<Bytes>> {
        let received = self.take_received(core, max, waiter)?;
        Some(received.or_else(|error| self.tell(error, Ok(Bytes::new()))))
    }

    fn take_received(
        &self,
        core: &mut Core,
        max: usize,
        waiter: Option<&Waiter>,
    ) -> Option<Result<Bytes>> {
        if max == 0 {
            return Some(Ok(Bytes::new()));
        }
        let mut peeked = lock(&self.inner.peeked);
        if !peeked.is_empty() {
            let len = peeked.len().min(max);
            return Some(Ok(peeked.split_to(len)));
        }
        let is_shut = self.inner.read_shut.load(Ordering::Relaxed);
        let waiter = waiter.filter(|_| !is_shut);
        if is_shut {
            // Data may have arrived nevertheless, and no event reports it.
            core.turn();
        }
        let received = core.receive(self.inner.socket, max, waiter);
        drop(peeked);
        self.begin_direct(core);
        // Data that arrived before the shutdown, or arrives in spite of it, can be read.
        received.or_else(|| is_shut.then(|| Ok(Bytes::new())))
    }

    /// Returns the error of the connection, or `then` if the error was reported before.
    fn tell<T>(&self, error: Error, then: Result<T>) -> Result<T> {
        match self.inner.error_taken.swap(true, Ordering::Relaxed) {
            true => then,
            false => Err(error),
        }
    }

    /// Lets the application use the connection directly again, if it wants to and this library holds none of the connection's data.
    fn begin_direct(&self, core: &mut Core) {
        if let Some(direct) = &self.inner.direct
            && lock(&self.inner.peeked).is_empty()
        {
            core.begin_direct(self.inner.socket, direct);
        }
    }

    /// Copies received data into `buffer` without consuming it. Returns how many bytes, 0 at the end of the stream.
    ///
    /// # Errors
    /// The errors of [`Read::read`].
    pub fn peek(&self, buffer: &mut [u8]) -> Result<usize> {
        let seen = self.peek_bytes(buffer.len())?;
        buffer[..seen.len()].copy_from_slice(&seen);
        Ok(seen.len())
    }

    /// Peeks at no more than `wanted` bytes, without copying them to a buffer.
    ///
    /// # Errors
    /// The errors of [`Read::read`].
    pub fn peek_bytes(&self, wanted: usize) -> Result<Bytes> {
        let timeout = self.timeout(self.timeouts().read);
        let outcome = self.block_for_data(timeout, |core, waiter| {
            let mut peeked = lock(&self.inner.peeked);
            let is_shut = self.inner.read_shut.load(Ordering::Relaxed);
            if is_shut || !peeked.is_empty() && peeked.len() < wanted {
                // A caller that peeks again expects to see newly arrived data.
                core.turn();
            }
            if peeked.is_empty()
                && let Some(seen) = core.peek_in_kernel(self.inner.socket, wanted)
            {
                return match seen {
                    Ok(seen) => Some(Ok(seen)),
                    Err(error) if error.kind() != ErrorKind::WouldBlock => {
                        Some(self.tell(error, Ok(Bytes::new())))
                    }
                    Err(_) if is_shut => Some(Ok(Bytes::new())),
                    Err(_) => {
                        if let Some(waiter) = waiter {
                            core.wait_until(self.inner.socket, Side::Read, waiter);
                        }
                        None
                    }
                };
            }
            while peeked.len() < wanted {
                let asked = waiter.filter(|_| peeked.is_empty() && !is_shut);
                match core.receive(self.inner.socket, wanted - peeked.len(), asked) {
                    None if core.host.is_delivery_due(self.inner.socket) => {
                        if let Some(waiter) = waiter {
                            core.wait_until(self.inner.socket, Side::Read, waiter);
                        }
                        return None;
                    }
                    Some(Ok(more)) if !more.is_empty() => {
                        *peeked = [&peeked[..], &more[..]].concat().into();
                    }
                    // Return the data that has arrived before reporting an error.
                    None | Some(Err(_)) if !peeked.is_empty() => break,
                    None if !is_shut => return None,
                    None | Some(Ok(_)) => break,
                    Some(Err(error)) => return Some(self.tell(error, Ok(Bytes::new()))),
                }
            }
            Some(Ok(peeked.slice(..peeked.len().min(wanted))))
        });
        outcome.unwrap_or(Err(ErrorKind::WouldBlock.into()))
    }

    /// Returns what can be done with the connection now. If it is not writable, it becomes writable later.
    pub fn readiness(&self) -> Readiness {
        self.inner.handle.call(|core| {
            core.turn();
            self.readiness_in(core)
        })
    }

    pub(crate) fn readiness_in(&self, core: &mut Core) -> Readiness {
        let inner = &self.inner;
        let socket = inner.socket;
        let host = &mut core.host;
        let unread = host.unread(socket);
        let (opening, failed) = (host.is_opening(socket), host.is_failed(socket));
        let room = host.send_room(socket);
        Readiness {
            unread: unread.len + lock(&inner.peeked).len(),
            ended: unread.ended || failed || inner.read_shut.load(Ordering::Relaxed),
            writable: room != Ok(0) || failed,
            shut: room.is_err(),
            failed,
            untold: failed && !inner.error_taken.load(Ordering::Relaxed),
            opening,
            times: host.has_transmit_time(socket),
        }
    }

    /// Returns approximately how many bytes a write would take now. If that is 0, the stream becomes writable later.
    ///
    /// # Errors
    /// `BrokenPipe`: nothing can be sent any more.
    pub fn send_room(&self) -> Result<usize> {
        let socket = self.inner.socket;
        let room = self.inner.handle.call(|core| core.host.send_room(socket));
        room.map_err(|_| ErrorKind::BrokenPipe.into())
    }

    /// Announces that the application is about to send this many bytes. The policy may have the connection move first.
    pub fn announce(&self, bytes: u64) {
        let socket = self.inner.socket;
        let handle = &self.inner.handle;
        handle.call(|core| core.host.announce(socket, bytes));
    }

    /// Holds back partial segments while `cork` is set.
    ///
    /// # Errors
    /// None.
    pub fn set_cork(&self, cork: bool) -> Result<()> {
        let socket = self.inner.socket;
        self.inner.handle.call(|core| {
            core.host.set_cork(socket, cork);
            core.hold_if_held(socket);
        });
        Ok(())
    }

    /// Sets whether dropping the last clone resets the connection instead of closing it.
    ///
    /// # Errors
    /// None.
    pub fn set_abort(&self, abort: bool) -> Result<()> {
        self.inner.given_up.store(abort, Ordering::Relaxed);
        Ok(())
    }

    /// Sends as much of `data` as there is buffer space for, and waits if there is none. Returns how many bytes.
    ///
    /// # Errors
    /// The errors of [`Write::write`].
    pub fn send(&self, data: &Bytes) -> Result<usize> {
        self.send_after(data, |_| {})
    }

    /// Works like [`TcpStream::send`], and calls `prepare` before each attempt.
    pub(crate) fn send_after(&self, data: &Bytes, prepare: impl Fn(&mut Host)) -> Result<usize> {
        let sent = self.send_or_else(|core, waiter| {
            prepare(&mut core.host);
            let sent = core.send(self.inner.socket, data, waiter);
            self.begin_direct(core);
            sent.map(Some)
        });
        sent.unwrap_or(Ok(0))
    }

    /// Makes attempts to send, until one returns something other than `None`. Returns `None` if that is `Some(None)`.
    pub(crate) fn send_or_else(
        &self,
        attempt: impl FnMut(&mut Core, Option<&Waiter>) -> Option<Option<Result<usize>>>,
    ) -> Option<Result<usize>> {
        let timeout = self.timeout(self.timeouts().write);
        let outcome = self.inner.handle.block(timeout, attempt);
        let sent = outcome.unwrap_or(Some(Err(ErrorKind::WouldBlock.into())))?;
        Some(sent.or_else(|error| match error.kind() {
            ErrorKind::WouldBlock => Err(error),
            // Like Linux, reports a pending error also after a shutdown of this side.
            ErrorKind::BrokenPipe => Err(self.untold_error().unwrap_or(error)),
            _ => self.tell(error, Err(ErrorKind::BrokenPipe.into())),
        }))
    }

    pub(crate) fn try_send(
        &self,
        core: &mut Core,
        data: &Bytes,
        waiter: Option<&Waiter>,
    ) -> Option<Result<usize>> {
        core.send(self.inner.socket, data, waiter)
    }

    /// Starts to move a [kernel](TcpStream::from_kernel) connection back to the kernel if it is away, and keeps it there from now on.
    pub fn begin_return(&self) {
        let socket = self.inner.socket;
        self.end_direct(true);
        self.inner.handle.call(|core| {
            let unread = std::mem::take(&mut *lock(&self.inner.peeked));
            core.host.go_home(socket, unread);
        });
    }

    /// Waits briefly until a connection has [returned](TcpStream::begin_return) to the kernel, with all data that was written or not read.
    /// Returns false if it has not: it has ended, the broker or the adapter does not answer, or the peer accepts no data. If true, the
    /// application may keep using the kernel's socket alone: dropping the stream does not end the connection.
    pub fn is_returned(&self) -> bool {
        let socket = self.inner.socket;
        let limit = Timeout::from(Some(LONGEST_RETURN));
        let returned = self.inner.handle.block(limit, |core, waiter| {
            let is_home = core.host.is_home(socket);
            if let (None, Some(waiter)) = (is_home, waiter) {
                core.wait_until(socket, Side::Read, waiter);
                core.wait_until(socket, Side::Write, waiter);
            }
            is_home
        });
        // If this library has fetched an error while it sent corked data, the kernel does not report the error to the application any more.
        let is_told = self.inner.error_taken.load(Ordering::Relaxed);
        let knows_error = |core: &mut Core| core.host.error_of(socket).is_some();
        let is_home = returned == Some(true) && (is_told || !self.inner.handle.call(knows_error));
        if is_home {
            // Closing this descriptor does not end the connection: the application has its own.
            self.inner.given_up.store(false, Ordering::Relaxed);
            if self.inner.read_shut.load(Ordering::Relaxed) {
                let shut = |core: &mut Core| core.host.shut_for_reading(socket);
                self.inner.handle.call(shut);
            }
        }
        is_home
    }

    /// Returns whether the kernel's socket has no connection: it is on the adapter or moving, or has ended there.
    pub fn is_away(&self) -> bool {
        let socket = self.inner.socket;
        self.inner.handle.call(|core| core.host.is_away(socket))
    }

    /// Shuts down one direction, or both. Data that was written before is sent, and data that still arrives can be read.
    ///
    /// # Errors
    /// The connection has ended (`NotConnected`).
    pub fn shutdown(&self, how: Shutdown) -> Result<()> {
        if how != Shutdown::Write {
            self.end_direct(true);
        }
        let socket = self.inner.socket;
        if self.is_over() {
            return Err(ErrorKind::NotConnected.into());
        }
        self.inner.handle.call(|core| {
            if how != Shutdown::Read {
                core.host.shutdown(socket);
            }
            if how != Shutdown::Write {
                self.inner.read_shut.store(true, Ordering::Relaxed);
            }
            // Waiters have to check again. If the connection is in the kernel, the kernel reports a shutdown of sending itself.
            if how != Shutdown::Write || !core.host.is_in_stack(socket) {
                core.signal(socket, Side::Read);
                core.signal(socket, Side::Write);
            }
        });
        Ok(())
    }

    /// Returns whether both directions have ended, and the peer knows.
    pub fn is_over(&self) -> bool {
        let socket = self.inner.socket;
        self.inner.handle.call(|core| core.host.is_over(socket))
    }

    /// Returns whether [`TcpStream::shutdown`] has shut down reading.
    pub fn is_shut_for_reading(&self) -> bool {
        self.inner.read_shut.load(Ordering::Relaxed)
    }

    /// Returns the remote address.
    ///
    /// # Errors
    /// None.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        Ok(self.inner.peer)
    }

    /// Returns the local address. If only the adapter knows it, asks the adapter once.
    ///
    /// # Errors
    /// The connection has ended (`NotConnected`), and the adapter was not asked before.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        let inner = &self.inner;
        if let Some(local) = inner.local.get() {
            return Ok(*local);
        }
        let asked = inner.handle.block(Timeout::Endless, |core, waiter| {
            core.local(inner.socket, waiter)
        });
        let local = socket_addr(asked.unwrap_or(Err(ErrorKind::WouldBlock.into()))?);
        Ok(*inner.local.get_or_init(|| local))
    }

    /// Sets options of the connection if it is on the adapter; in the kernel, its socket has options of its own. Skips options that do not
    /// fit into the adapter's request queue or that the adapter refuses.
    pub fn set_on_adapter(&self, options: &[(SocketOption, u32)]) {
        let (handle, socket) = (&self.inner.handle, self.inner.socket);
        let limit = Timeout::from(Some(LONGEST_RETURN));
        handle.block(limit, |core, waiter| {
            if core.host.is_moving(socket) {
                if let Some(waiter) = waiter {
                    core.wait_until(socket, Side::Write, waiter);
                }
                return None;
            }
            for &(option, value) in options {
                core.host.set_option(socket, option, value);
            }
            Some(())
        });
    }

    /// Returns the number of bytes that were written and that the kernel has not taken yet; 0 if the connection is not in the kernel.
    pub fn kept_from_kernel(&self) -> usize {
        let socket = self.inner.socket;
        self.inner
            .handle
            .call(|core| core.host.kept_from_kernel(socket))
    }

    /// Returns what TCP on the adapter knows of the connection.
    ///
    /// # Errors
    /// The connection is not on the adapter (`NotConnected`), or the adapter does not answer (`WouldBlock`).
    pub fn info(&self) -> Result<Told> {
        let (handle, socket) = (&self.inner.handle, self.inner.socket);
        for _ in 0..MOST_ATTEMPTS {
            let told = handle.block(Timeout::from(Some(BETWEEN_ATTEMPTS)), |core, waiter| {
                let told = core.host.info(socket);
                if let (None, Some(waiter)) = (&told, waiter) {
                    core.wait_until(socket, Side::Write, waiter);
                }
                told
            });
            // No event reports that the adapter's queue has space for the request.
            if let Some(told) = told {
                return told;
            }
        }
        Err(ErrorKind::WouldBlock.into())
    }

    /// Returns another handle to the same connection.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self) -> Result<Self> {
        let inner = Arc::clone(&self.inner);
        Ok(Self { inner })
    }

    /// Sets whether calls fail with `WouldBlock` instead of waiting.
    ///
    /// # Errors
    /// None.
    pub fn set_nonblocking(&self, nonblocking: bool) -> Result<()> {
        self.inner.nonblocking.store(nonblocking, Ordering::Relaxed);
        Ok(())
    }

    /// Sets whether partial segments are sent immediately instead of waiting until all data in flight is acknowledged.
    ///
    /// # Errors
    /// The connection has ended (`NotConnected`), or the adapter's request queue is full (`WouldBlock`).
    pub fn set_nodelay(&self, nodelay: bool) -> Result<()> {
        let socket = self.inner.socket;
        let asked = self
            .inner
            .handle
            .call(|core| core.host.set_nodelay(socket, nodelay));
        asked.map_err(|error| match error {
            NotSubmitted::NoRoom => Error::new(ErrorKind::WouldBlock, error),
            _ => Error::new(ErrorKind::NotConnected, error),
        })?;
        self.inner.nodelay.store(nodelay, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the value set by [`TcpStream::set_nodelay`].
    ///
    /// # Errors
    /// None.
    pub fn nodelay(&self) -> Result<bool> {
        Ok(self.inner.nodelay.load(Ordering::Relaxed))
    }

    /// Sets how long a read waits before it fails with `WouldBlock`; `None` means forever.
    ///
    /// # Errors
    /// The timeout is zero (`InvalidInput`).
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> Result<()> {
        self.lock_timeouts().read = timeout.map(not_zero).transpose()?;
        Ok(())
    }

    /// Sets how long a write waits before it fails with `WouldBlock`; `None` means forever.
    ///
    /// # Errors
    /// The timeout is zero (`InvalidInput`).
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> Result<()> {
        self.lock_timeouts().write = timeout.map(not_zero).transpose()?;
        Ok(())
    }

    /// Returns the value set by [`TcpStream::set_read_timeout`].
    ///
    /// # Errors
    /// None.
    pub fn read_timeout(&self) -> Result<Option<Duration>> {
        Ok(self.timeouts().read)
    }

    /// Returns the value set by [`TcpStream::set_write_timeout`].
    ///
    /// # Errors
    /// None.
    pub fn write_timeout(&self) -> Result<Option<Duration>> {
        Ok(self.timeouts().write)
    }

    /// Returns the error of the connection, if there is one that was not reported yet.
    ///
    /// # Errors
    /// None.
    pub fn take_error(&self) -> Result<Option<Error>> {
        self.inner.handle.call(Core::turn);
        Ok(self.untold_error())
    }

    fn untold_error(&self) -> Option<Error> {
        let socket = self.inner.socket;
        if self.inner.error_taken.load(Ordering::Relaxed) {
            return None;
        }
        let error = self.inner.handle.call(|core| core.host.fetch_error(socket));
        error.filter(|_| !self.inner.error_taken.swap(true, Ordering::Relaxed))
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.inner.handle
    }

    pub(crate) fn socket_id(&self) -> SocketId {
        self.inner.socket
    }

    pub(crate) fn asked_times(&self) -> &AtomicU32 {
        &self.inner.timestamping
    }

    fn timeout(&self, timeout: Option<Duration>) -> Timeout {
        if self.inner.nonblocking.load(Ordering::Relaxed) {
            Timeout::None
        } else {
            Timeout::from(timeout)
        }
    }

    fn timeouts(&self) -> Timeouts {
        *self.lock_timeouts()
    }

    fn lock_timeouts(&self) -> std::sync::MutexGuard<'_, Timeouts> {
        lock(&self.inner.timeouts)
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Inner {
    fn drop(&mut self) {
        let unread = !lock(&self.peeked).is_empty();
        let given_up = *self.given_up.get_mut() || unread;
        let direct = self.direct.as_deref();
        self.handle.call(|core| match given_up {
            true => core.abort(self.socket, direct),
            false => core.close(self.socket, direct),
        });
    }
}

impl Read for &TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let data = self.receive(buffer.len())?;
        buffer[..data.len()].copy_from_slice(&data);
        Ok(data.len())
    }
}

impl Write for &TcpStream {
    fn write(&mut self, data: &[u8]) -> Result<usize> {
        self.send(&outgoing(data))
    }

    /// Does nothing: no data is buffered here.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Read for TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for TcpStream {
    fn write(&mut self, data: &[u8]) -> Result<usize> {
        (&*self).write(data)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Sealed for TcpStream {
    fn socket(&self) -> SocketId {
        self.inner.socket
    }

    fn is_listener(&self) -> bool {
        false
    }

    fn handle(&self) -> &Arc<Handle> {
        &self.inner.handle
    }

    fn direct(&self) -> Option<&Direct> {
        self.inner.direct.as_deref()
    }
}

/// Copies the first bytes of `data` to a buffer from which the adapter's link can take them.
pub(crate) fn outgoing(data: &[u8]) -> Bytes {
    let first = &data[..data.len().min(LONGEST_WRITE)];
    OUTGOING.with_borrow_mut(|arena| arena.copy(first))
}

fn not_zero(timeout: Duration) -> Result<Duration> {
    if timeout.is_zero() {
        let text = "the timeout must not be zero";
        return Err(Error::new(ErrorKind::InvalidInput, text));
    }
    Ok(timeout)
}

pub(crate) fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::new(address.ip(), address.port())
}

pub(crate) fn socket_addr(endpoint: Endpoint) -> SocketAddr {
    SocketAddr::new(endpoint.addr, endpoint.port)
}
