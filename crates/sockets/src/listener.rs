//! Listeners in the style of the standard library.

use crate::Adapter;
use crate::adapter::{Handle, Timeout};
use crate::core::Core;
use crate::poll::sealed::Sealed;
use crate::stream::{TcpStream, socket_addr};
use baton_host::SocketId;
use baton_host::adapter::ListenOptions;
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A listener on an adapter, the counterpart of [`std::net::TcpListener`] in the kernel.
///
/// When the adapter is gone, each listener reports that once, by an error of the kind `ConnectionAborted`; after that `accept` waits until
/// there is an adapter again, on which the listener then listens. The address becomes free a moment after the listener was dropped, when
/// the adapter has processed the request.
///
/// ```no_run
/// use baton_sockets::{Adapter, TcpListener};
/// use std::io::Write;
///
/// let adapter = Adapter::connect("/run/baton/adapter.sock")?;
/// let listener = TcpListener::bind(&adapter, "0.0.0.0:7000".parse().unwrap())?;
/// for stream in listener.incoming() {
///     stream?.write_all(b"hello\n")?;
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TcpListener {
    handle: Arc<Handle>,
    socket: SocketId,
    local: SocketAddr,
    nonblocking: AtomicBool,
    /// Number of adapter losses that this listener has reported.
    losses_reported: AtomicU64,
}

impl TcpListener {
    /// Listens at an address of the adapter, or at all its addresses of one IP version. For port 0 the adapter chooses a free port, which
    /// [`TcpListener::local_addr`] returns.
    ///
    /// # Errors
    /// The address is in use (`AddrInUse`), it is not an address of the adapter (`AddrNotAvailable`), or the adapter is gone
    /// (`NetworkDown`).
    pub fn bind(adapter: &Adapter, local: SocketAddr) -> Result<Self> {
        Self::bind_with(adapter, local, ListenOptions::default())
    }

    /// Listens with TCP Fast Open, or at an address that other processes listen at.
    ///
    /// # Errors
    /// The errors of [`TcpListener::bind`].
    pub fn bind_with(adapter: &Adapter, local: SocketAddr, options: ListenOptions) -> Result<Self> {
        let handle = Arc::clone(adapter.handle());
        let (socket, local, losses) = handle.call(|core| {
            let (socket, local) = core.host.listen(local, options)?;
            core.open_listener(socket);
            Ok::<_, Error>((socket, local, core.host.losses_of_listeners()))
        })?;
        let mut listener = Self {
            handle,
            socket,
            local,
            nonblocking: AtomicBool::new(false),
            losses_reported: AtomicU64::new(losses),
        };
        let handle = &listener.handle;
        let listening = handle.block(Timeout::Endless, |core, waiter| {
            if core.host.is_down() {
                return Some(Err(ErrorKind::NetworkDown.into()));
            }
            let listening = core.listening(socket, waiter)?;
            Some(listening.map(|()| core.host.listening_at(socket)))
        });
        let at = listening.unwrap_or(Err(ErrorKind::WouldBlock.into()))?;
        listener.local = at.map_or(local, socket_addr);
        Ok(listener)
    }

    /// Waits for a connection and accepts it.
    ///
    /// # Errors
    /// The adapter is gone (`ConnectionAborted`, once), or no connection is pending and the listener is non-blocking (`WouldBlock`).
    pub fn accept(&self) -> Result<(TcpStream, SocketAddr)> {
        let timeout = if self.nonblocking.load(Ordering::Relaxed) {
            Timeout::None
        } else {
            Timeout::Endless
        };
        let accepted = self.handle.block(timeout, |core, waiter| {
            self.tell_loss(core.host.losses_of_listeners())
                .or_else(|| core.accept(self.socket, waiter))
                .map(|accepted| accepted.map(|socket| (socket, core.host.peer(socket))))
        });
        let (socket, peer) = accepted.unwrap_or(Err(ErrorKind::WouldBlock.into()))?;
        Ok(self.stream(socket, peer))
    }

    /// Returns an error if the adapter was lost since the last call.
    pub(crate) fn tell_loss<T>(&self, losses: u64) -> Option<Result<T>> {
        let reported = self.losses_reported.swap(losses, Ordering::Relaxed);
        (reported != losses).then(|| Err(ErrorKind::ConnectionAborted.into()))
    }

    pub(crate) fn stream(
        &self,
        socket: SocketId,
        peer: Option<baton_wire::Endpoint>,
    ) -> (TcpStream, SocketAddr) {
        let peer = peer.map_or(self.local, socket_addr);
        let is_known = !self.local.ip().is_unspecified();
        let local = is_known.then_some(self.local);
        let stream = TcpStream::new(&self.handle, socket, peer, local);
        (stream, peer)
    }

    /// Returns whether `accept` would return a connection or an error now.
    pub fn is_acceptable(&self) -> bool {
        self.handle.call(|core| {
            core.turn();
            self.is_acceptable_in(core)
        })
    }

    pub(crate) fn is_acceptable_in(&self, core: &Core) -> bool {
        let (host, socket) = (&core.host, self.socket);
        let is_lost = self.losses_reported.load(Ordering::Relaxed) != host.losses_of_listeners();
        is_lost || host.is_acceptable(socket) || host.error_of(socket).is_some()
    }

    /// Returns an endless iterator over accepted connections.
    pub fn incoming(&self) -> impl Iterator<Item = Result<TcpStream>> {
        std::iter::repeat_with(|| self.accept().map(|(stream, _)| stream))
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        Ok(self.local)
    }

    /// Sets whether `accept` fails with `WouldBlock` instead of waiting.
    ///
    /// # Errors
    /// None.
    pub fn set_nonblocking(&self, nonblocking: bool) -> Result<()> {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.handle.call(|core| core.close(self.socket, None));
    }
}

impl Sealed for TcpListener {
    fn socket(&self) -> SocketId {
        self.socket
    }

    fn is_listener(&self) -> bool {
        true
    }

    fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }
}
