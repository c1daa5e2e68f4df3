//! One kernel socket.

use super::options;
use super::stack::endpoint;
use crate::direct::Direct;
use baton_host::Unread;
use baton_iolib::Arena;
use baton_wire::Flow;
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType, sockopt,
};
use smallvec::SmallVec;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Maximum number of bytes that a corked socket holds; more data goes to the kernel immediately.
const MOST_HELD_BYTES: usize = 64 * 1024;
/// The application decides whether the descriptor is blocking, so each call must say that it does not block.
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
/// Maximum number of buffers that one call sends.
const MOST_PIECES: usize = 8;

/// Outcome of passing to the kernel the data that a socket holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// The kernel has taken all data.
    Wholly,
    /// The kernel has no buffer space for the rest.
    Partly,
}

/// Makes whoever has other descriptors of a socket replace them: see [`KernelSocket::followed_by`].
type Follow = Box<dyn Fn(BorrowedFd<'_>, BorrowedFd<'_>, &mut dyn FnMut()) + Send + Sync>;

/// The socket of a connection that a program has created, for [`TcpStream::from_kernel`](crate::TcpStream::from_kernel) and similar
/// functions.
pub struct KernelSocket {
    fd: OwnedFd,
    follow: Option<Follow>,
}

impl KernelSocket {
    /// Wraps a descriptor of a socket for which the caller has other descriptors. A connection that has been on an adapter comes back on a
    /// new socket. Before the new socket is used, `follow` is called with the old and the new socket, and replaces the caller's
    /// descriptors. It must call its last argument exactly once, which copies the options: options set on the old socket after that call
    /// are lost. It must not use the adapter.
    pub fn followed_by(
        fd: OwnedFd,
        follow: impl Fn(BorrowedFd<'_>, BorrowedFd<'_>, &mut dyn FnMut()) + Send + Sync + 'static,
    ) -> Self {
        Self {
            fd,
            follow: Some(Box::new(follow)),
        }
    }
}

impl From<OwnedFd> for KernelSocket {
    fn from(fd: OwnedFd) -> Self {
        Self { fd, follow: None }
    }
}

impl AsFd for KernelSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl fmt::Debug for KernelSocket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = formatter.debug_tuple("KernelSocket");
        text.field(&self.fd).finish()
    }
}

/// The socket of a connection, and what is known of the connection.
pub(super) struct Socket {
    fd: Arc<OwnedFd>,
    follow: Option<Follow>,
    flow: Flow,
    /// State shared with an application that may use the connection directly.
    direct: Option<Arc<Direct>>,
    /// The kernel has not reported yet whether the connection is established.
    opening: bool,
    /// The stack's epoll instance watches the socket.
    pub(super) watched: bool,
    /// The connection is to leave the kernel, and takes no more data until then.
    settling: bool,
    /// The kernel has reported that both directions have ended.
    over: bool,
    /// Whether Nagle's algorithm is off; `None` until that was set.
    nodelay: Option<bool>,
    /// The connection has failed. The kernel reports the error only once, so this library leaves it to the application.
    failed: bool,
    /// The error of the connection, once it was fetched.
    error: Option<Errno>,
    /// There may be something to receive.
    readable: bool,
    /// The number of bytes to receive, if the kernel was asked since the last event.
    unread: Option<usize>,
    /// The end of the stream or an error follows the received data.
    ended: bool,
    /// A send found no buffer space.
    wants_room: bool,
    corked: bool,
    /// Data that was taken from the application and not yet passed to the kernel, in order.
    held: SmallVec<[Bytes; 4]>,
    held_bytes: usize,
    /// The application has shut down sending.
    shut: bool,
    /// Whether to shut down sending in the kernel once no data is held any more.
    owes_end: bool,
    /// The socket is to be closed once no data is held any more.
    closing: bool,
}

impl Socket {
    pub(super) fn new(socket: impl Into<KernelSocket>, flow: Flow) -> Self {
        let KernelSocket { fd, follow } = socket.into();
        Self {
            fd: Arc::new(fd),
            follow,
            flow,
            direct: None,
            opening: false,
            watched: false,
            settling: false,
            over: false,
            nodelay: None,
            failed: false,
            error: None,
            readable: false,
            unread: None,
            ended: false,
            wants_room: false,
            corked: false,
            held: SmallVec::new(),
            held_bytes: 0,
            shut: false,
            owes_end: false,
            closing: false,
        }
    }

    pub(super) fn flow(&self) -> Flow {
        self.flow
    }

    /// Marks the connection as still being established; the kernel has to be asked for the outcome.
    pub(super) fn opening(self) -> Self {
        Self {
            opening: true,
            ..self
        }
    }

    /// Lets the application use the connection directly, from the start if `is_open`. Its reads are counted in `requests`.
    pub(super) fn with_direct(self, is_open: bool, requests: &Arc<AtomicU64>) -> Self {
        let direct = Direct::new(&self.fd, is_open, requests);
        Self {
            direct: Some(Arc::new(direct)),
            ..self
        }
    }

    /// Returns the state shared with an application that may use the connection directly.
    pub(super) fn direct(&self) -> Option<&Arc<Direct>> {
        self.direct.as_ref()
    }

    /// Returns whether the application uses the connection directly now.
    pub(super) fn is_direct(&self) -> bool {
        self.direct.as_ref().is_some_and(|direct| direct.is_open())
    }

    /// Returns whether the application may use the connection directly, since this library holds none of its data.
    pub(super) fn may_be_direct(&self) -> bool {
        self.may_move() && self.is_flushed() && !self.corked && !self.settling
    }

    /// Records a value of TCP_NODELAY that the socket is known to have.
    pub(super) fn with_nodelay(self, nodelay: bool) -> Self {
        Self {
            nodelay: Some(nodelay),
            ..self
        }
    }

    pub(super) fn is_opening(&self) -> bool {
        self.opening
    }

    /// Handles an event of a connection that may still be being established. Returns true if the connection is established now.
    pub(super) fn handle_opened(&mut self) -> bool {
        if !std::mem::take(&mut self.opening) {
            return false;
        }
        match sockopt::socket_error(&self.fd) {
            Ok(Ok(())) => true,
            Ok(Err(errno)) | Err(errno) => {
                self.error = Some(errno);
                self.handle_readable(true);
                false
            }
        }
    }

    /// Returns the error of the connection, if known.
    pub(super) fn error(&self) -> Option<Errno> {
        self.error
    }

    /// Returns whether a send would find no buffer space, as far as is known.
    pub(super) fn is_full(&self) -> bool {
        self.wants_room || self.settling
    }

    /// Sets whether the socket refuses data because the connection is about to leave the kernel.
    pub(super) fn set_settling(&mut self, settling: bool) {
        self.settling = settling;
        // The next send finds out whether there is buffer space.
        self.wants_room &= settling;
    }

    /// Returns whether the peer has acknowledged all sent data.
    pub(super) fn is_at_rest(&self) -> bool {
        self.is_flushed() && options::unacknowledged(self.fd.as_fd()) == Some(0)
    }

    /// Makes the kernel send partial segments that direct calls of the application have held back.
    pub(super) fn push(&self) {
        // On a connection that has ended, failure does not matter.
        let _ = sockopt::set_tcp_cork(&self.fd, false);
    }

    /// Records that the connection has failed.
    pub(super) fn handle_failed(&mut self) {
        self.failed = true;
    }

    /// Returns whether the connection has failed.
    pub(super) fn is_failed(&self) -> bool {
        self.failed || self.error.is_some()
    }

    /// Fetches the error from the kernel, unless that was done before.
    pub(super) fn fetch_error(&mut self) {
        if self.failed
            && self.error.is_none()
            && let Ok(Err(errno)) = sockopt::socket_error(&self.fd)
        {
            self.note(Some(errno));
        }
    }

    /// Asks the kernel whether there is buffer space. Returns true if there is some for the first time since a send found none.
    pub(super) fn ask_room(&mut self) -> bool {
        if self.opening || !self.held.is_empty() {
            return false;
        }
        let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
        if poll(&mut fds, Some(&Timespec::default())) == Ok(0) {
            self.wants_room = true;
            return false;
        }
        self.take_writable()
    }

    /// Returns whether nothing more can be sent.
    pub(super) fn is_shut(&self) -> bool {
        self.shut || self.over
    }

    /// Returns whether the kernel has closed the connection.
    pub(super) fn is_over(&self) -> bool {
        options::is_closed(self.fd.as_fd())
    }

    /// Records that both directions have ended.
    pub(super) fn handle_over(&mut self) {
        self.over = true;
    }

    /// Returns whether the connection may move: it is established and at least one direction is open, as far as is known.
    pub(super) fn may_move(&self) -> bool {
        let is_over = self.over || self.shut && self.ended || self.is_failed();
        !self.opening && !self.closing && !is_over
    }

    /// Returns whether the kernel has taken all sent data.
    pub(super) fn is_flushed(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns the number of bytes that were sent and that the kernel has not taken yet. Asking the kernel for the bytes that it holds
    /// would cost a system call per send.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Records that there is something to receive, and that nothing follows it if `ended`.
    pub(super) fn handle_readable(&mut self, ended: bool) {
        self.readable = true;
        self.unread = None;
        self.ended |= ended;
    }

    /// Replaces the socket after the connection has returned to the kernel. Returns how many options of the old socket the new one rejects.
    pub(super) fn handle_restored(&mut self, fd: OwnedFd) -> u64 {
        let mut refused = 0;
        let (old, new) = (self.fd.as_fd(), fd.as_fd());
        // While the connection is away, programs set options on the old socket.
        let mut copy = || refused = options::copy(old, new);
        match &self.follow {
            Some(follow) => follow(old, new, &mut copy),
            None => copy(),
        }
        self.fd = Arc::new(fd);
        if let Some(direct) = &self.direct {
            direct.set_fd(&self.fd);
        }
        // The kernel reports the end of the stream again on the new socket.
        (self.ended, self.over) = (false, false);
        self.set_settling(false);
        self.handle_readable(false);
        refused
    }

    /// Returns whether a writer that found no buffer space may try again now.
    pub(super) fn take_writable(&mut self) -> bool {
        self.held.is_empty() && std::mem::take(&mut self.wants_room)
    }

    /// Returns what can be received. The length is exact only after [asking](Self::ask_unread) the kernel.
    pub(super) fn unread(&self) -> Unread {
        let some = usize::from(self.readable && !self.ended);
        Unread {
            len: self.unread.unwrap_or(some),
            ended: self.ended,
        }
    }

    /// Asks the kernel how many bytes can be received.
    pub(super) fn ask_unread(&mut self) {
        if self.readable && self.unread.is_none() {
            let len = rustix::io::ioctl_fionread(&self.fd).unwrap_or_default();
            self.readable = len > 0 || self.ended;
            self.unread = Some(len as usize);
        }
    }

    pub(super) fn receive(&mut self, arena: &mut Arena, max: usize) -> io::Result<Bytes> {
        if !self.readable {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.unread = None;
        let fd = &self.fd;
        let outcome = arena.fill(max, |room| {
            let ((written, _), _) = net::recv(fd, room, RecvFlags::DONTWAIT)?;
            Ok(written)
        });
        if let Err(error) = &outcome {
            self.note(Errno::from_io_error(error));
        }
        // A short read has taken all there was (epoll(7)); if the end is known to follow, it still has to be read.
        self.readable = match &outcome {
            Ok(data) => data.len() == max || self.ended,
            Err(error) => error.kind() == io::ErrorKind::Interrupted,
        };
        outcome
    }

    /// Peeks at received data.
    pub(super) fn peek(&mut self, arena: &mut Arena, max: usize) -> io::Result<Bytes> {
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        let seen = arena.fill(max, |room| {
            let ((written, _), _) = net::recv(&self.fd, room, flags)?;
            Ok(written)
        });
        if let Err(error) = &seen {
            self.note(Errno::from_io_error(error));
        }
        seen
    }

    /// Takes data to send. Returns how many bytes.
    pub(super) fn send(&mut self, data: Bytes) -> io::Result<usize> {
        if self.shut || self.error.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.settling {
            return Ok(0);
        }
        let len = data.len();
        if len == 0 {
            let sent = net::send(&self.fd, &data, SEND_FLAGS);
            return sent
                .inspect_err(|&error| self.note(Some(error)))
                .map_err(io::Error::from);
        }
        if self.corked
            && !self.failed
            && self.held_bytes + len <= MOST_HELD_BYTES
            && !self.wants_room
        {
            self.hold(data);
            return Ok(len);
        }
        if self.flush()? == Flushed::Partly {
            self.wants_room = true;
            return Ok(0);
        }
        let taken = match net::send(&self.fd, &data, SEND_FLAGS) {
            Ok(taken) => taken,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => {
                self.note(Some(error));
                return Err(error.into());
            }
        };
        self.wants_room = taken < len;
        Ok(taken)
    }

    fn note(&mut self, error: Option<Errno>) {
        let passes = |errno| matches!(errno, Errno::AGAIN | Errno::INTR);
        let Some(error) = error.filter(|&errno| !passes(errno)) else {
            return;
        };
        // Later errors only follow from the first one. Data may have arrived before it.
        self.error = self.error.or(Some(error));
        self.handle_readable(true);
    }

    pub(super) fn set_nodelay(&mut self, nodelay: bool) {
        // An application that uses the connection directly has set the option in the kernel itself.
        if self.nodelay.replace(nodelay) != Some(nodelay) && !self.is_direct() {
            // On a connection that has ended, failure does not matter.
            let _ = sockopt::set_tcp_nodelay(&self.fd, nodelay);
        }
    }

    /// Returns whether the socket holds data back because it is corked.
    pub(super) fn is_holding_back(&self) -> bool {
        self.corked && !self.held.is_empty() && !self.wants_room && !self.closing
    }

    pub(super) fn set_cork(&mut self, cork: bool) {
        if let Some(direct) = self.direct.as_ref().filter(|direct| direct.is_open()) {
            if direct.set_corked(cork) != cork {
                // On a connection that has ended, failure does not matter.
                let _ = sockopt::set_tcp_cork(&self.fd, cork);
            }
            return;
        }
        self.corked = cork;
        if !cork {
            // The next receive or send reports an error.
            let _ = self.flush();
        }
    }

    /// Shuts down sending, after the held data.
    pub(super) fn shutdown(&mut self) {
        self.owes_end = !std::mem::replace(&mut self.shut, true);
        let _ = self.flush();
    }

    /// Starts to close the socket. Returns true if it can be closed immediately; otherwise it is closed when no data is held any more.
    pub(super) fn begin_close(&mut self) -> bool {
        self.closing = true;
        !matches!(self.flush(), Ok(Flushed::Partly))
    }

    /// Passes the held data to the kernel.
    pub(super) fn flush(&mut self) -> io::Result<Flushed> {
        while !self.held.is_empty() {
            match self.send_held() {
                Ok(sent) => self.forget(sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Flushed::Partly),
                Err(error) => {
                    self.note(Some(error));
                    self.held.clear();
                    self.held_bytes = 0;
                    self.handle_readable(true);
                    return Err(error.into());
                }
            }
        }
        if std::mem::take(&mut self.owes_end) {
            // If this fails, the peer has reset the connection and needs no FIN.
            let _ = net::shutdown(&self.fd, net::Shutdown::Write);
        }
        Ok(Flushed::Wholly)
    }

    fn send_held(&self) -> rustix::io::Result<usize> {
        let held = self.held.iter().take(MOST_PIECES);
        let pieces: SmallVec<[IoSlice<'_>; MOST_PIECES]> =
            held.map(|data| IoSlice::new(data)).collect();
        let mut control = net::SendAncillaryBuffer::default();
        net::sendmsg(&self.fd, &pieces, &mut control, SEND_FLAGS)
    }

    fn hold(&mut self, data: Bytes) {
        self.held_bytes += data.len();
        self.held.push(data);
    }

    /// Drops the first `count` held bytes, which the kernel has taken.
    fn forget(&mut self, mut count: usize) {
        self.held_bytes -= count;
        while count > 0 {
            let first = &mut self.held[0];
            if first.len() > count {
                let _ = first.split_to(count);
                return;
            }
            count -= first.len();
            self.held.remove(0);
        }
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = formatter.debug_struct("Socket");
        text.field("fd", &self.fd).field("flow", &self.flow);
        text.finish_non_exhaustive()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens a listener; accepted sockets inherit `nodelay`.
pub(super) fn listen(at: SocketAddr, backlog: u32, nodelay: bool) -> io::Result<OwnedFd> {
    let fd = stream_socket(at)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    sockopt::set_tcp_nodelay(&fd, nodelay)?;
    if at.is_ipv6() {
        sockopt::set_ipv6_v6only(&fd, true)?;
    }
    net::bind(&fd, &at)?;
    net::listen(&fd, i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(fd)
}

/// Starts to open a connection.
pub(super) fn connect(to: SocketAddr) -> io::Result<OwnedFd> {
    let fd = stream_socket(to)?;
    match net::connect(&fd, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(error) => Err(error.into()),
    }
}

fn stream_socket(of: SocketAddr) -> io::Result<OwnedFd> {
    let family = match of {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(net::socket_with(family, SocketType::STREAM, flags, None)?)
}

/// Returns both endpoints of a connection.
pub(super) fn flow_of(fd: impl AsFd + Copy) -> Result<Flow, Errno> {
    let address = |found: SocketAddrAny| SocketAddr::try_from(found).map(endpoint);
    Ok(Flow {
        local: address(net::getsockname(fd)?)?,
        remote: address(net::getpeername(fd)?.ok_or(Errno::NOTCONN)?)?,
    })
}

/// Accepts the next connection, and returns its socket and its endpoints.
pub(super) fn accept(listener: &OwnedFd) -> Result<(OwnedFd, Flow), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (fd, remote) = net::acceptfrom_with(listener, flags)?;
    let address = |found: SocketAddrAny| SocketAddr::try_from(found).map(endpoint);
    let flow = Flow {
        local: address(net::getsockname(&fd)?)?,
        remote: address(remote.ok_or(Errno::NOTCONN)?)?,
    };
    Ok((fd, flow))
}
