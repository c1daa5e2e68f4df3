//! The sockets of an application: on the adapter from the start, or in the kernel, from where they may move there and back.

use crate::config::DriverConfig;
use crate::direct::Direct;
use crate::driver::Driver;
use crate::error::{OpenError, error_of};
use crate::kernel::{Handoff, KernelLayer, KernelStack};
use crate::stream::endpoint;
use baton_bus::descriptor::{SocketOption, Status};
use baton_host::adapter::NotSubmitted;
use baton_host::layer::{HostStack, Place, SocketState};
use baton_host::{Gone, Ready, Receive, SocketId, Sockets, Unread};
use baton_iolib::AdapterAddress;
use baton_tcp::{CloseReason, ConnId, ListenerId};
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;
use rustix::event::epoll;
use std::io::{self, Error, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections that may wait at a listener to be accepted.
const BACKLOG: u32 = 1024;
/// Listeners of the kernel have numbers from here on; connections are below.
pub(crate) const FIRST_LISTENER: u32 = 1 << 31;
/// Between two looks at the kernel where it has no sockets of ours: the broker may ask something.
const BETWEEN_LOOKS: Span = Span::from_ms(1);
/// The number of the kernel's sockets among the events of the driver's epoll instance.
const KERNEL: epoll::EventData = epoll::EventData::new_u64(2);

/// The host's half: the link to the adapter, and where the sockets are.
#[derive(Debug)]
pub(crate) struct Host {
    pub driver: Driver,
    /// Where connections begin in the kernel: all of them do then.
    kernel: Option<KernelLayer>,
    /// When the kernel is asked next although all connections are on the adapter.
    looks_at: Time,
}

/// A connection of the kernel's that was taken in.
#[derive(Debug)]
pub(crate) struct TakenIn {
    pub socket: SocketId,
    pub flow: Flow,
    pub direct: Option<Arc<Direct>>,
}

impl Host {
    /// All sockets are on the adapter; or all are the kernel's, and move there by `handoff`.
    pub(crate) fn open(
        address: AdapterAddress,
        config: DriverConfig,
        handoff: Option<Handoff>,
    ) -> Result<Self, OpenError> {
        let most_sockets = config.os.most_sockets as usize;
        let mut driver = Driver::open(address, config)?;
        let Some(handoff) = handoff else {
            return Ok(Self {
                driver,
                kernel: None,
                looks_at: Time::ZERO,
            });
        };
        let mut kernel =
            KernelLayer::new(most_sockets, Some(handoff)).map_err(OpenError::NoRoom)?;
        let interest = epoll::EventFlags::IN;
        epoll::add(driver.epoll(), kernel.stack().epoll(), KERNEL, interest)
            .map_err(|error| OpenError::NoRoom(error.into()))?;
        kernel
            .follow_limits(&mut driver)
            .map_err(OpenError::NoRoom)?;
        Ok(Self {
            driver,
            kernel: Some(kernel),
            looks_at: Time::ZERO,
        })
    }

    /// The sockets of the kernel's, if connections begin there.
    pub(crate) fn kernel(&self) -> Option<&KernelLayer> {
        self.kernel.as_ref()
    }

    /// Whether connections begin in the kernel.
    pub(crate) fn is_on_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// Whether no connection can begin.
    pub(crate) fn is_down(&self) -> bool {
        !self.is_on_kernel() && !self.driver.is_attached()
    }

    /// Whether to look for news again at once, at most until `due`, rather than to sleep. What the kernel has to tell is not seen by that.
    pub(crate) fn spins_on(&mut self, due: Option<Instant>) -> bool {
        !self.is_on_kernel() && self.driver.spins_on(due)
    }

    // --- the loop ---

    /// Lets go what is due and takes in what has come. True when something happened.
    pub(crate) fn turn(&mut self) -> bool {
        let moved = self.driver.turn_attached();
        let Some(kernel) = &mut self.kernel else {
            return moved;
        };
        let now = self.driver.now();
        if kernel.stack().has_watched() || now >= self.looks_at {
            self.looks_at = now + BETWEEN_LOOKS;
            // Whatever hinders it, the next turn will tell.
            let _ = kernel.stack_mut().wait(Duration::ZERO);
        }
        kernel.take_news(now, Some(&mut self.driver));
        let has_news = kernel.layer().has_ready();
        self.driver.transmit();
        moved || has_news
    }

    /// When something has to be done even if nothing comes.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let of_kernel = self.kernel.as_ref().and_then(KernelLayer::poll_timeout);
        let of_driver = self.driver.poll_timeout();
        [of_driver, of_kernel].into_iter().flatten().min()
    }

    /// `timeout`, or less if something is to be done earlier.
    pub(crate) fn longest_wait(&self, timeout: Option<Duration>) -> Option<Duration> {
        let due = self.poll_timeout();
        let due = due.map(|due| Duration::from(due.saturating_since(self.driver.now())));
        [timeout, due].into_iter().flatten().min()
    }

    /// The next socket that has something to say.
    pub(crate) fn next_ready(&mut self) -> Option<Ready> {
        match &mut self.kernel {
            Some(kernel) => kernel.layer_mut().next_ready(),
            None => self.driver.next_ready(),
        }
    }

    /// Whether nothing that was taken from the application is left here.
    pub(crate) fn is_flushed(&self) -> bool {
        let kernel = self.kernel.as_ref();
        let of_kernel = kernel.is_none_or(|kernel| kernel.is_flushed());
        of_kernel && (self.driver.os().is_flushed() || !self.driver.is_attached())
    }

    /// In the child of a process that was copied: closes its copies of all descriptors.
    pub(crate) fn close_copies(&mut self) {
        if let Some(kernel) = &mut self.kernel {
            kernel.close_copies();
        }
    }

    // --- listeners and connections begin ---

    /// Listens there.
    pub(crate) fn listen(
        &mut self,
        local: SocketAddr,
        fast_open: u32,
    ) -> io::Result<(SocketId, SocketAddr)> {
        if let Some(kernel) = &mut self.kernel {
            let (listener, local) = kernel.listen(local, BACKLOG, false)?;
            return Ok((SocketId(FIRST_LISTENER + listener.0), local));
        }
        let now = self.driver.now();
        let os = self.driver.os_mut();
        let listening = os.listen_fast_open(now, endpoint(local), BACKLOG, fast_open);
        Ok((listening.map_err(error_of)?, local))
    }

    /// Begins to open a connection.
    pub(crate) fn connect(&mut self, to: SocketAddr) -> io::Result<SocketId> {
        let now = self.driver.now();
        let Some(kernel) = &mut self.kernel else {
            if self.is_down() {
                return Err(ErrorKind::NetworkDown.into());
            }
            let os = self.driver.os_mut();
            return os.connect(now, endpoint(to)).map_err(error_of);
        };
        let conn = kernel.stack_mut().connect(to)?;
        let socket = kernel.admit(now, &mut self.driver, conn);
        socket.ok_or_else(too_many)
    }

    /// Begins to open a connection by TCP Fast Open, and sends the beginning of `data`; gives how many bytes.
    pub(crate) fn connect_fast_open(
        &mut self,
        to: SocketAddr,
        data: &Bytes,
        without_cookie: bool,
    ) -> io::Result<(SocketId, usize)> {
        if self.kernel.is_some() {
            return Err(ErrorKind::Unsupported.into());
        }
        if self.is_down() {
            return Err(ErrorKind::NetworkDown.into());
        }
        let now = self.driver.now();
        let os = self.driver.os_mut();
        os.connect_fast_open(now, endpoint(to), data, without_cookie)
            .map_err(error_of)
    }

    /// Takes in a connection of the kernel's, by one of the stack's ways.
    pub(crate) fn take_in(
        &mut self,
        take_in: impl FnOnce(&mut KernelStack) -> io::Result<ConnId>,
    ) -> io::Result<TakenIn> {
        let now = self.driver.now();
        let kernel = self.kernel.as_mut().ok_or(ErrorKind::Unsupported)?;
        let conn = take_in(kernel.stack_mut())?;
        let flow = kernel.stack().flow(conn);
        let direct = kernel.stack().direct(conn).cloned();
        let socket = kernel.admit(now, &mut self.driver, conn);
        Ok(TakenIn {
            socket: socket.ok_or_else(too_many)?,
            flow,
            direct,
        })
    }

    // --- what the application uses directly ---

    /// The application has used a connection directly: the policy is asked.
    pub(crate) fn consider_direct(&mut self, socket: SocketId, direct: &Direct) {
        let now = self.driver.now();
        if let Some(kernel) = self.kernel.as_mut().filter(|_| direct.is_open()) {
            let (used, corked) = (direct.take_used(), direct.is_corked());
            let mut calls = kernel.calls(now, Some(&mut self.driver));
            let next = calls.consider_used(socket, &used, corked);
            direct.set_next_look(next);
        }
    }

    /// The application uses a connection directly no more.
    pub(crate) fn end_direct(&mut self, socket: SocketId, direct: &Direct) {
        let corked = direct.is_corked();
        self.account_direct(socket, direct);
        if let Some((kernel, conn)) = self.in_stack(socket)
            && kernel.stack_mut().end_direct(conn)
        {
            self.set_cork(socket, corked);
        }
    }

    /// It may again, if it wants to and nothing of it is here.
    pub(crate) fn begin_direct(&mut self, socket: SocketId) {
        if let Some((kernel, conn)) = self.in_stack(socket)
            && kernel.layer().is_wholly_in_stack(socket)
        {
            kernel.stack_mut().begin_direct(conn);
        }
    }

    /// What the policy has not been told of how a connection was used is counted.
    pub(crate) fn account_direct(&mut self, socket: SocketId, direct: &Direct) {
        let now = self.driver.now();
        if let Some(kernel) = &mut self.kernel {
            let mut calls = kernel.calls(now, Some(&mut self.driver));
            calls.account(socket, &direct.take_used());
        }
    }

    fn in_stack(&mut self, socket: SocketId) -> Option<(&mut KernelLayer, ConnId)> {
        let kernel = self.kernel.as_mut()?;
        match kernel.layer().state_of(socket)?.place {
            Place::Host(conn) => Some((kernel, conn)),
            _ => None,
        }
    }

    /// The next connection of a listener.
    pub(crate) fn accept(&mut self, listener: SocketId) -> Option<SocketId> {
        let now = self.driver.now();
        match &mut self.kernel {
            Some(kernel) => {
                let mut calls = kernel.calls(now, Some(&mut self.driver));
                calls.accept_on(listener_of(listener)?)
            }
            None => self.driver.os_mut().accept_on(listener),
        }
    }

    /// Whether a listener may have connections.
    pub(crate) fn is_acceptable(&self, listener: SocketId) -> bool {
        match (&self.kernel, listener_of(listener)) {
            (Some(kernel), Some(listener)) => kernel.has_acceptable(listener),
            _ => self.driver.os().acceptable(listener) > 0,
        }
    }

    /// Where a listener listens, if only the adapter knows.
    pub(crate) fn listening_at(&self, listener: SocketId) -> Option<Endpoint> {
        match self.kernel {
            Some(_) => None,
            None => self.driver.os().local(listener),
        }
    }

    /// Losses of the adapter that took its listeners along.
    pub(crate) fn losses_of_listeners(&self) -> u64 {
        match self.kernel {
            Some(_) => 0,
            None => self.driver.links_lost(),
        }
    }

    /// Whether a listener listens.
    pub(crate) fn is_listening(&self, listener: SocketId) -> bool {
        self.is_on_kernel() || self.driver.os().is_listening(listener)
    }

    // --- what is known of a socket ---

    /// Where a socket of the kernel's layer is.
    fn state_of(&self, socket: SocketId) -> Option<(&KernelLayer, SocketState)> {
        let kernel = self.kernel.as_ref()?;
        Some((kernel, kernel.layer().state_of(socket)?))
    }

    /// Why a socket is of no use any more, if so.
    pub(crate) fn error_of(&self, socket: SocketId) -> Option<Error> {
        if self.kernel.is_none() {
            return self.driver.os().error_of(socket).map(error_of);
        }
        let (kernel, state) = self.state_of(socket)?;
        match state.place {
            Place::Host(conn) => kernel.stack().error_of(conn).map(Error::from),
            Place::HandingOff(at) | Place::Adapter(at) | Place::Restoring(at) => {
                self.driver.os().error_of(at).map(error_of)
            }
            Place::Ended(CloseReason::Normal) => None,
            Place::Ended(CloseReason::Reset) => Some(error_of(Status::Reset)),
            Place::Ended(_) => Some(error_of(Status::Aborted)),
        }
    }

    /// Whether a socket is a connection that is open.
    pub(crate) fn is_open(&self, socket: SocketId) -> bool {
        if self.kernel.is_none() {
            return self.driver.os().is_open(socket);
        }
        self.state_of(socket)
            .is_some_and(|(kernel, state)| match state.place {
                Place::Host(conn) => {
                    !kernel.stack().is_opening(conn) && kernel.stack().error_of(conn).is_none()
                }
                Place::Adapter(at) => self.driver.os().is_open(at),
                Place::HandingOff(_) | Place::Restoring(_) => true,
                Place::Ended(_) => false,
            })
    }

    /// Whether it is not known yet that a connection can be opened.
    pub(crate) fn is_opening(&self, socket: SocketId) -> bool {
        if self.kernel.is_none() {
            return self.driver.os().is_opening(socket);
        }
        self.state_of(socket)
            .is_some_and(|(kernel, state)| match state.place {
                Place::Host(conn) => kernel.stack().is_opening(conn),
                _ => false,
            })
    }

    /// The other end.
    pub(crate) fn peer(&self, socket: SocketId) -> Option<Endpoint> {
        if self.kernel.is_none() {
            return self.driver.os().peer(socket);
        }
        self.state_of(socket).map(|(_, state)| state.flow.remote)
    }

    /// This end. None as long as the adapter has to be asked for it, which is done.
    pub(crate) fn local(&mut self, socket: SocketId) -> Option<io::Result<Endpoint>> {
        if self.kernel.is_some() {
            let known = self.state_of(socket).map(|(_, state)| state.flow.local);
            return Some(known.ok_or_else(|| ErrorKind::NotConnected.into()));
        }
        if let Some(local) = self.driver.os().local(socket) {
            return Some(Ok(local));
        }
        let now = self.driver.now();
        match self.driver.os_mut().query_local(now, socket) {
            Err(NotSubmitted::NoSuchSocket) => Some(Err(ErrorKind::NotConnected.into())),
            _ => None,
        }
    }

    /// Bytes that were taken and have found no room yet.
    pub(crate) fn held(&self, socket: SocketId) -> usize {
        match &self.kernel {
            None => self.driver.os().held(socket),
            // A socket layer takes no more than there is room for.
            Some(_) => 0,
        }
    }

    /// What there is to receive.
    pub(crate) fn unread(&mut self, socket: SocketId) -> Unread {
        let now = self.driver.now();
        match &mut self.kernel {
            Some(kernel) => kernel.ask_unread(now, &mut self.driver, socket),
            None => self.driver.os().unread(socket),
        }
    }

    /// Bytes that a socket would take now. Where that is none it becomes writable later.
    pub(crate) fn send_room(&mut self, socket: SocketId) -> Result<usize, Gone> {
        let now = self.driver.now();
        match &mut self.kernel {
            Some(kernel) => {
                let mut calls = kernel.calls(now, Some(&mut self.driver));
                let room = calls.send_room(socket);
                if room == Ok(0) {
                    calls.want_room(socket);
                }
                room
            }
            None => {
                let mut calls = self.driver.calls();
                let room = calls.send_room(socket);
                if room == Ok(0) {
                    calls.want_room(socket);
                }
                room
            }
        }
    }

    // --- what an application does with one ---

    /// Takes what has come.
    pub(crate) fn receive(&mut self, socket: SocketId, max: usize) -> Receive<Bytes> {
        self.with_calls(|calls| calls.receive(socket, max))
    }

    /// Sends what of `data` there is room for; gives how many bytes.
    pub(crate) fn send(&mut self, socket: SocketId, data: &Bytes) -> Result<usize, Gone> {
        match &mut self.kernel {
            Some(kernel) => {
                let now = self.driver.now();
                let mut calls = kernel.calls(now, Some(&mut self.driver));
                calls.send(socket, data.clone())
            }
            None => self.driver.calls().send_some(socket, data),
        }
    }

    /// Holds partial segments back while set.
    pub(crate) fn set_cork(&mut self, socket: SocketId, cork: bool) {
        self.with_calls(|calls| calls.set_cork(socket, cork));
    }

    /// Sends partial segments at once.
    pub(crate) fn set_nodelay(
        &mut self,
        socket: SocketId,
        nodelay: bool,
    ) -> Result<(), NotSubmitted> {
        let now = self.driver.now();
        let mut at = Some(socket);
        if let Some(kernel) = &mut self.kernel {
            at = kernel.set_nodelay(socket, nodelay);
        }
        let Some(at) = at else {
            return Ok(());
        };
        let os = self.driver.os_mut();
        // Nobody waits for the adapter's yes.
        while os.poll_completion().is_some() {}
        os.set_option(now, at, SocketOption::NoDelay, nodelay.into())
    }

    /// A connection stays in the kernel; false where it is not there, or not wholly.
    pub(crate) fn keep_in_kernel(&mut self, socket: SocketId) -> bool {
        let now = self.driver.now();
        let kernel = self.kernel.as_mut();
        kernel.is_some_and(|kernel| kernel.keep(now, &mut self.driver, socket))
    }

    /// Whether to end a connection is to reset it: a peer whose data nobody reads any more is told so (RFC 2525 2.17). The kernel sees to
    /// that itself.
    pub(crate) fn closes_by_reset(&mut self, socket: SocketId) -> bool {
        let kernel = self.kernel.as_ref();
        let is_kernels = kernel.is_some_and(|kernel| kernel.layer().is_wholly_in_stack(socket));
        !is_kernels && self.unread(socket).len > 0
    }

    /// Nothing more will be sent.
    pub(crate) fn shutdown(&mut self, socket: SocketId) {
        self.with_calls(|calls| {
            calls.shutdown(socket);
        });
    }

    /// Ends a connection in order, or a listener.
    pub(crate) fn close(&mut self, socket: SocketId) {
        if let (Some(kernel), Some(listener)) = (&mut self.kernel, listener_of(socket)) {
            return kernel.close_listener(listener);
        }
        self.with_calls(|calls| calls.close(socket));
    }

    /// Resets a connection.
    pub(crate) fn abort(&mut self, socket: SocketId) {
        self.with_calls(|calls| calls.abort(socket));
    }

    fn with_calls<T>(&mut self, call: impl FnOnce(&mut dyn Sockets<Bytes>) -> T) -> T {
        let now = self.driver.now();
        match &mut self.kernel {
            Some(kernel) => call(&mut kernel.calls(now, Some(&mut self.driver))),
            None => call(&mut self.driver.calls()),
        }
    }
}

fn listener_of(socket: SocketId) -> Option<ListenerId> {
    socket.0.checked_sub(FIRST_LISTENER).map(ListenerId)
}

fn too_many() -> Error {
    ErrorKind::QuotaExceeded.into()
}
