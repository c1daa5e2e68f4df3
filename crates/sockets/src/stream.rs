//! Connections in the style of the standard library.

use crate::Adapter;
use crate::adapter::{Handle, Timeout};
use crate::beside::Readiness;
use crate::core::{Core, Side};
use crate::direct::Direct;
use crate::host::Host;
use crate::kernel::{KernelSocket, KernelStack};
use crate::poll::sealed::Sealed;
use crate::waiter::Waiter;
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

/// One write takes no more than this, bytes.
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
        let outcome = self
            .inner
            .handle
            .block(timeout, |core, waiter| self.try_receive(core, max, waiter));
        outcome.unwrap_or(Err(ErrorKind::WouldBlock.into()))
    }

    pub(crate) fn try_receive(
        &self,
        core: &mut Core,
        max: usize,
        waiter: Option<&Waiter>,
    ) -> Option<Result<Bytes>> {
        if max == 0 || self.inner.read_shut.load(Ordering::Relaxed) {
            return Some(Ok(Bytes::new()));
        }
        let mut peeked = lock(&self.inner.peeked);
        if !peeked.is_empty() {
            let len = peeked.len().min(max);
            return Some(Ok(peeked.split_to(len)));
        }
        let received = core.receive(self.inner.socket, max, waiter);
        drop(peeked);
        self.begin_direct(core);
        received
    }

    /// Lets the application use it directly again, where it wants to and nothing of it is here.
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
        let timeout = self.timeout(self.timeouts().read);
        let wanted = buffer.len();
        let outcome = self.inner.handle.block(timeout, |core, waiter| {
            let mut peeked = lock(&self.inner.peeked);
            if !peeked.is_empty() && peeked.len() < wanted {
                // Who looks again wants to see what has come since.
                core.turn();
            }
            while peeked.len() < wanted && !self.inner.read_shut.load(Ordering::Relaxed) {
                let waiter = waiter.filter(|_| peeked.is_empty());
                match core.receive(self.inner.socket, wanted - peeked.len(), waiter) {
                    Some(Ok(more)) if !more.is_empty() => {
                        *peeked = [&peeked[..], &more[..]].concat().into();
                    }
                    // Return the data that has arrived before reporting an error.
                    None | Some(Err(_)) if !peeked.is_empty() => break,
                    Some(Ok(_)) => break,
                    None => return None,
                    Some(Err(error)) => return Some(Err(error)),
                }
            }
            let len = peeked.len().min(wanted);
            buffer[..len].copy_from_slice(&peeked[..len]);
            Some(Ok(len))
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
        let (opening, failed) = (host.is_opening(socket), host.error_of(socket).is_some());
        let room = host.send_room(socket);
        Readiness {
            unread: unread.len + lock(&inner.peeked).len(),
            ended: unread.ended || inner.read_shut.load(Ordering::Relaxed),
            writable: room != Ok(0) || failed,
            shut: room.is_err(),
            failed,
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
        let timeout = self.timeout(self.timeouts().write);
        let socket = self.inner.socket;
        let outcome = self.inner.handle.block(timeout, |core, waiter| {
            prepare(&mut core.host);
            let sent = core.send(socket, data, waiter);
            self.begin_direct(core);
            sent
        });
        outcome.unwrap_or(Err(ErrorKind::WouldBlock.into()))
    }

    pub(crate) fn try_send(
        &self,
        core: &mut Core,
        data: &Bytes,
        waiter: Option<&Waiter>,
    ) -> Option<Result<usize>> {
        core.send(self.inner.socket, data, waiter)
    }

    /// Leaves a connection of the [kernel's](TcpStream::from_kernel) to the kernel from now on, since another process has its socket, too.
    /// False where it cannot be: it is on the adapter, or something of it is here.
    pub fn keep_in_kernel(&self) -> bool {
        let has_peeked = !lock(&self.inner.peeked).is_empty();
        let socket = self.inner.socket;
        let keep = |core: &mut Core| core.host.keep_in_kernel(socket);
        !has_peeked && self.inner.handle.call(keep)
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
        self.inner.handle.call(|core| {
            if how != Shutdown::Read {
                core.host.shutdown(socket);
                core.wake(socket, Side::Write);
            }
            if how != Shutdown::Write {
                self.inner.read_shut.store(true, Ordering::Relaxed);
                core.wake(socket, Side::Read);
            }
        });
        Ok(())
    }

    /// The other end.
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

    /// Another hold on the same connection.
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

    /// Sets whether partial segments are sent at once instead of waiting until all data in flight is acknowledged.
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
        let error = self.inner.handle.call(|core| {
            core.turn();
            core.host.error_of(self.inner.socket)
        });
        let fresh = error.filter(|_| !self.inner.error_taken.swap(true, Ordering::Relaxed));
        Ok(fresh)
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
        self.handle.call(|core| {
            if given_up {
                core.abort(self.socket);
            } else {
                core.close(self.socket, self.direct.as_deref());
            }
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
        let text = "a timeout of zero would never let anything happen";
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
