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
    /// Where what is written stands until the adapter can fetch it.
    static OUTGOING: RefCell<Arena> = RefCell::new(Arena::default());
}

/// A connection through an adapter, as [`std::net::TcpStream`] is one through the kernel.
///
/// Errors have the kinds that the standard library's have on Linux; in addition, all connections end with `ConnectionAborted` when the
/// adapter is gone. Clones ([`TcpStream::try_clone`]) are the same connection, which is closed with the last of them.
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
    /// Of a connection of the kernel's that was taken in.
    direct: Option<Arc<Direct>>,
    peer: SocketAddr,
    /// This end, once it is known.
    local: OnceLock<SocketAddr>,
    nonblocking: AtomicBool,
    nodelay: AtomicBool,
    /// This side wants to read no more.
    read_shut: AtomicBool,
    /// It ends by a reset: because it was given up before it was open, say.
    given_up: AtomicBool,
    /// Which times are told: bits of `Timestamping`.
    timestamping: AtomicU32,
    /// The error was told by `take_error`.
    error_taken: AtomicBool,
    timeouts: Mutex<Timeouts>,
    /// Data that was looked at and not taken.
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

    /// Opens a connection, if that takes no longer than `timeout`.
    ///
    /// # Errors
    /// As [`TcpStream::connect`]; `TimedOut` when it takes longer; `InvalidInput` when `timeout` is zero.
    pub fn connect_timeout(adapter: &Adapter, peer: SocketAddr, timeout: Duration) -> Result<Self> {
        let timeout = Some(not_zero(timeout)?);
        Self::connect_within(adapter, peer, Timeout::from(timeout))
    }

    /// Opens a connection by TCP Fast Open (RFC 7413), and sends the beginning of `data`; gives how many bytes that were. They go with the
    /// SYN to a peer that gave a cookie before, and otherwise once the connection is open. No more go than the adapter takes in one
    /// transfer without fetching them, some kilobytes, and with the SYN no more than that holds. A network that duplicates packets may have them come twice, on two connections: it is for
    /// requests where that does no harm (RFC 7413 2.1).
    ///
    /// # Errors
    /// As [`TcpStream::connect`]; `InvalidInput` when the adapter cannot do it, `Unsupported` where connections begin in the kernel.
    pub fn connect_fast_open(
        adapter: &Adapter,
        peer: SocketAddr,
        data: &[u8],
    ) -> Result<(Self, usize)> {
        let (stream, taken) = Self::begin_fast_open(adapter, peer, data, false)?;
        Ok((stream.opened(Timeout::Endless)?, taken))
    }

    /// The same without waiting for the connection, which [`TcpStream::readiness`] and [`Poll`](crate::Poll) tell of. With
    /// `without_cookie` data goes with the SYN to any peer: to such as take it so (RFC 7413 3, Linux's TCP_FASTOPEN_NO_COOKIE); others
    /// get it once the connection is open.
    ///
    /// # Errors
    /// `InvalidInput` when the adapter cannot do it, `Unsupported` where connections begin in the kernel, `NetworkDown` when the adapter
    /// is gone. What becomes of the connection is told by calls on it.
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

    /// A connection of the kernel's that may move to an adapter [beside it](Adapter::open_beside_kernel) from now on. While it is away the
    /// kernel's socket, of which the caller may have other descriptors, has none; it comes back on a new socket, for which these can be
    /// [replaced](KernelSocket::followed_by).
    ///
    /// # Errors
    /// It is not connected; `Unsupported` where the adapter is not beside the kernel, `QuotaExceeded` when there are as many sockets as may
    /// be.
    pub fn from_kernel(adapter: &Adapter, socket: impl Into<KernelSocket>) -> Result<Self> {
        let socket = socket.into();
        Self::take_in(adapter, |stack| stack.take_in(socket))
    }

    /// The same of a connection that the kernel is opening to `peer`. It can be written to when it is open.
    ///
    /// # Errors
    /// As [`TcpStream::from_kernel`].
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

    /// The same once it is open.
    fn opened(self, timeout: Timeout) -> Result<Self> {
        let stream = self;
        let handle = &stream.inner.handle;
        let connected = handle.block(timeout, |core, waiter| stream.connected(core, waiter));
        let connected = connected.unwrap_or(Err(ErrorKind::TimedOut.into()));
        // A handshake that is under way is given up, if so.
        stream
            .inner
            .given_up
            .store(connected.is_err(), Ordering::Relaxed);
        connected.map(|()| stream)
    }

    /// Begins to open a connection.
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

    /// Whether it is open; or registers the waiter.
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

    /// Takes what has come, at most `max` bytes, without a copy; nothing at the end of the stream.
    ///
    /// # Errors
    /// As those of [`Read::read`].
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

    /// Copies what has come into `buffer` and leaves it to be read; gives how many bytes, none at the end of the stream.
    ///
    /// # Errors
    /// As those of [`Read::read`].
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
                    // What there is comes first.
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

    /// What can be done with it now. Where it cannot be written it becomes writable later.
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

    /// Bytes that a write would take now, about. Where that is none the stream becomes writable later.
    ///
    /// # Errors
    /// `BrokenPipe`: nothing can be sent any more.
    pub fn send_room(&self) -> Result<usize> {
        let socket = self.inner.socket;
        let room = self.inner.handle.call(|core| core.host.send_room(socket));
        room.map_err(|_| ErrorKind::BrokenPipe.into())
    }

    /// Holds partial segments back while set.
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

    /// Whether the end of the last hold on it resets the connection rather than close it.
    ///
    /// # Errors
    /// None.
    pub fn set_abort(&self, abort: bool) -> Result<()> {
        self.inner.given_up.store(abort, Ordering::Relaxed);
        Ok(())
    }

    /// Sends as much of `data` as there is room for, and waits for room if there is none; gives how many bytes.
    ///
    /// # Errors
    /// As those of [`Write::write`].
    pub fn send(&self, data: &Bytes) -> Result<usize> {
        self.send_after(data, |_| {})
    }

    /// The same; `prepare` goes before each attempt.
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

    /// Ends one direction, or both. What was written before is sent.
    ///
    /// # Errors
    /// None.
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

    /// This end. What only the adapter knows it is asked for, once.
    ///
    /// # Errors
    /// The connection is over (`NotConnected`), and the adapter was not asked before.
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

    /// Whether calls fail with `WouldBlock` rather than wait.
    ///
    /// # Errors
    /// None.
    pub fn set_nonblocking(&self, nonblocking: bool) -> Result<()> {
        self.inner.nonblocking.store(nonblocking, Ordering::Relaxed);
        Ok(())
    }

    /// Whether partial segments are sent at once rather than wait for the acknowledgment of what is under way.
    ///
    /// # Errors
    /// The connection is over (`NotConnected`), or the adapter has more to do than it can take now (`WouldBlock`).
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

    /// What [`TcpStream::set_nodelay`] has set.
    ///
    /// # Errors
    /// None.
    pub fn nodelay(&self) -> Result<bool> {
        Ok(self.inner.nodelay.load(Ordering::Relaxed))
    }

    /// How long a read waits before it fails with `WouldBlock`; `None` is without end.
    ///
    /// # Errors
    /// `InvalidInput` when it is zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> Result<()> {
        self.lock_timeouts().read = timeout.map(not_zero).transpose()?;
        Ok(())
    }

    /// How long a write waits before it fails with `WouldBlock`; `None` is without end.
    ///
    /// # Errors
    /// `InvalidInput` when it is zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> Result<()> {
        self.lock_timeouts().write = timeout.map(not_zero).transpose()?;
        Ok(())
    }

    /// What [`TcpStream::set_read_timeout`] has set.
    ///
    /// # Errors
    /// None.
    pub fn read_timeout(&self) -> Result<Option<Duration>> {
        Ok(self.timeouts().read)
    }

    /// What [`TcpStream::set_write_timeout`] has set.
    ///
    /// # Errors
    /// None.
    pub fn write_timeout(&self) -> Result<Option<Duration>> {
        Ok(self.timeouts().write)
    }

    /// Why the connection is of no use any more, if so and if this was not asked before.
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

    /// Nothing waits here.
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

/// The first of `data`, where the adapter's link can take it from.
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
