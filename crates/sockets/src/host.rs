//! The sockets of an application. Either all are on the adapter from the start, or they start in the kernel and may move to the adapter and
//! back.

use crate::config::DriverConfig;
use crate::direct::Direct;
use crate::driver::Driver;
use crate::error::{OpenError, error_of};
use crate::kernel::{Handoff, KernelLayer, KernelStack};
use crate::stream::endpoint;
use baton_bus::descriptor::{SocketOption, Status};
use baton_host::adapter::{ListenOptions, NotSubmitted};
use baton_host::layer::{HostStack, Place, SocketState};
use baton_host::{Gone, Ready, Receive, SocketId, Sockets, Unread};
use baton_iolib::AdapterAddress;
use baton_tcp::{CloseReason, ConnId, Info, ListenerId};
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;
use rustix::event::epoll;
use std::io::{self, Error, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of connections that wait at a listener to be accepted.
const BACKLOG: u32 = 1024;
/// Listeners in the kernel have numbers from here on; connections have smaller ones.
pub(crate) const FIRST_LISTENER: u32 = 1 << 31;
/// Interval at which the kernel is asked for events although none of our sockets is in the kernel: the broker may ask something.
const BETWEEN_LOOKS: Span = Span::from_ms(1);
/// Event data of the kernel's sockets in the driver's epoll instance.
const KERNEL: epoll::EventData = epoll::EventData::new_u64(2);

/// The host's half: the link to the adapter, and the layer of kernel sockets if connections start in the kernel.
#[derive(Debug)]
pub(crate) struct Host {
    pub driver: Driver,
    /// `Some` if connections start in the kernel; then all of them do.
    pub(crate) kernel: Option<KernelLayer>,
    /// When the kernel is asked next although all connections are on the adapter.
    looks_at: Time,
}

/// What is known of a connection that is on an adapter.
#[derive(Clone, Debug)]
pub struct Told {
    /// State of TCP.
    pub info: Info,
    /// Bytes in TCP's send buffer that the peer has not acknowledged, sent or not.
    pub unacknowledged: usize,
    /// Bytes that were written and that TCP has not received yet.
    pub unsent: usize,
}

/// A kernel connection that was taken in.
#[derive(Debug)]
pub(crate) struct TakenIn {
    pub socket: SocketId,
    pub flow: Flow,
    pub direct: Option<Arc<Direct>>,
}

impl Host {
    /// Attaches to the adapter. Without `handoff` all sockets are on the adapter; with it they start in the kernel, and `handoff` moves
    /// connections.
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

    /// Returns the layer of kernel sockets, if connections start in the kernel.
    pub(crate) fn kernel(&self) -> Option<&KernelLayer> {
        self.kernel.as_ref()
    }

    /// Returns whether connections start in the kernel.
    pub(crate) fn is_on_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// Returns whether no new connection is possible.
    pub(crate) fn is_down(&self) -> bool {
        !self.is_on_kernel() && !self.driver.is_attached()
    }

    /// Returns whether to poll again immediately, at most until `due`, rather than to sleep. Polling does not see events of the kernel.
    pub(crate) fn spins_on(&mut self, due: Option<Instant>) -> bool {
        !self.is_on_kernel() && self.driver.spins_on(due)
    }

    // --- the loop ---

    /// Submits what is due and processes what has arrived. Returns true if something happened.
    pub(crate) fn turn(&mut self) -> bool {
        let Some(kernel) = &mut self.kernel else {
            return self.driver.turn_attached();
        };
        let now = self.driver.now();
        if kernel.stack().has_watched() || now >= self.looks_at {
            self.looks_at = now + BETWEEN_LOOKS;
            // If this fails, the next turn finds out.
            let _ = kernel.stack_mut().wait(Duration::ZERO);
        }
        let moved = kernel.turn(now, Some(&mut self.driver));
        let has_news = kernel.layer().has_ready();
        self.driver.transmit();
        moved || has_news
    }

    /// Processes waiting messages of the adapter, such as a reset by the peer, if the connection is on the adapter or moving.
    pub(crate) fn look_at_adapter(&mut self, socket: SocketId) {
        let is_away = self.is_away(socket);
        match &mut self.kernel {
            None => {
                self.driver.turn_attached();
            }
            Some(kernel) if is_away => kernel.look_at_adapter(&mut self.driver),
            Some(_) => {}
        }
    }

    /// Returns whether connections are moving to the adapter or back.
    pub(crate) fn are_moving(&self) -> bool {
        self.kernel
            .as_ref()
            .is_some_and(|kernel| kernel.layer().are_moving())
    }

    /// Returns when work is due even if nothing arrives.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let of_kernel = self.kernel.as_ref().and_then(KernelLayer::poll_timeout);
        let of_driver = self.driver.poll_timeout();
        [of_driver, of_kernel].into_iter().flatten().min()
    }

    /// Returns `timeout`, or less if work is due earlier.
    pub(crate) fn longest_wait(&self, timeout: Option<Duration>) -> Option<Duration> {
        let due = self.poll_timeout();
        let due = due.map(|due| Duration::from(due.saturating_since(self.driver.now())));
        [timeout, due].into_iter().flatten().min()
    }

    /// Returns the next socket that has become ready.
    pub(crate) fn next_ready(&mut self) -> Option<Ready> {
        match &mut self.kernel {
            Some(kernel) => kernel.layer_mut().next_ready(),
            None => self.driver.next_ready(),
        }
    }

    /// Returns whether this side holds no data that was taken from the application.
    pub(crate) fn is_flushed(&self) -> bool {
        let kernel = self.kernel.as_ref();
        let of_kernel = kernel.is_none_or(|kernel| kernel.is_flushed());
        of_kernel && (self.driver.os().is_flushed() || !self.driver.is_attached())
    }

    /// In the child of fork(2): closes its copies of all descriptors.
    pub(crate) fn close_copies(&mut self) {
        if let Some(kernel) = &mut self.kernel {
            kernel.close_copies();
        }
    }

    // --- new listeners and connections ---

    /// Opens a listener at `local`.
    pub(crate) fn listen(
        &mut self,
        local: SocketAddr,
        options: ListenOptions,
    ) -> io::Result<(SocketId, SocketAddr)> {
        if let Some(kernel) = &mut self.kernel {
            let (listener, local) = kernel.listen(local, BACKLOG, false)?;
            return Ok((SocketId(FIRST_LISTENER + listener.0), local));
        }
        let now = self.driver.now();
        let os = self.driver.os_mut();
        let listening = os.listen_with(now, endpoint(local), BACKLOG, options);
        Ok((listening.map_err(error_of)?, local))
    }

    /// Starts to open a connection.
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

    /// Starts to open a connection with TCP Fast Open, and sends the beginning of `data`. Returns how many bytes that were.
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

    /// Takes in a kernel connection by calling a method of the stack.
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
        let socket = socket.ok_or_else(too_many)?;
        if let Some(direct) = &direct {
            direct.set_socket(socket);
        }
        Ok(TakenIn {
            socket,
            flow,
            direct,
        })
    }

    // --- connections that the application uses directly ---

    /// Returns a connection whose direct use has ended because it is to move.
    pub(crate) fn poll_ended_direct(&mut self) -> Option<Arc<Direct>> {
        self.kernel.as_mut()?.stack_mut().poll_ended_direct()
    }

    /// Reports to the policy how the application has used a connection directly; the policy may have the connection move.
    pub(crate) fn consider_direct(&mut self, socket: SocketId, direct: &Direct) {
        let now = self.driver.now();
        if let Some(kernel) = self.kernel.as_mut().filter(|_| direct.is_open()) {
            kernel.report_work(now);
            let (used, corked) = (direct.take_used(), direct.is_corked());
            let mut calls = kernel.calls(now, Some(&mut self.driver));
            let next = calls.consider_used(socket, &used, corked);
            direct.set_next_look(next);
        }
    }

    /// Announces that the application is about to send this many bytes; the policy may have the connection move first.
    pub(crate) fn announce(&mut self, socket: SocketId, bytes: u64) {
        let now = self.driver.now();
        if let Some(kernel) = &mut self.kernel {
            kernel
                .calls(now, Some(&mut self.driver))
                .announce(socket, bytes);
        }
    }

    /// Ends the direct use of a connection.
    pub(crate) fn end_direct(&mut self, socket: SocketId, direct: &Direct) {
        let corked = direct.is_corked();
        self.account_direct(socket, direct);
        if let Some((kernel, conn)) = self.in_stack(socket)
            && kernel.stack_mut().end_direct(conn)
        {
            self.set_cork(socket, corked);
        }
    }

    /// Allows direct use again, if the application wants it and this side holds no data of the connection.
    pub(crate) fn begin_direct(&mut self, socket: SocketId) {
        if let Some((kernel, conn)) = self.in_stack(socket)
            && kernel.layer().is_wholly_in_stack(socket)
        {
            kernel.stack_mut().begin_direct(conn);
        }
    }

    /// Adds the direct use of a connection that was not reported to the policy yet to the counters.
    pub(crate) fn account_direct(&mut self, socket: SocketId, direct: &Direct) {
        let now = self.driver.now();
        if let Some(kernel) = &mut self.kernel {
            let mut calls = kernel.calls(now, Some(&mut self.driver));
            calls.account(socket, &direct.take_used());
        }
    }

    /// Returns whether the connection is in the kernel.
    pub(crate) fn is_in_stack(&mut self, socket: SocketId) -> bool {
        self.in_stack(socket).is_some()
    }

    fn in_stack(&mut self, socket: SocketId) -> Option<(&mut KernelLayer, ConnId)> {
        let kernel = self.kernel.as_mut()?;
        match kernel.layer().state_of(socket)?.place {
            Place::Host(conn) => Some((kernel, conn)),
            _ => None,
        }
    }

    /// Accepts the next connection of a listener.
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

    /// Returns whether a listener may have connections to accept.
    pub(crate) fn is_acceptable(&self, listener: SocketId) -> bool {
        match (&self.kernel, listener_of(listener)) {
            (Some(kernel), Some(listener)) => kernel.has_acceptable(listener),
            _ => self.driver.os().acceptable(listener) > 0,
        }
    }

    /// Returns where a listener listens, if only the adapter knows.
    pub(crate) fn listening_at(&self, listener: SocketId) -> Option<Endpoint> {
        match self.kernel {
            Some(_) => None,
            None => self.driver.os().local(listener),
        }
    }

    /// Returns how often the adapter was lost together with the listeners.
    pub(crate) fn losses_of_listeners(&self) -> u64 {
        match self.kernel {
            Some(_) => 0,
            None => self.driver.links_lost(),
        }
    }

    /// Returns whether a listener listens.
    pub(crate) fn is_listening(&self, listener: SocketId) -> bool {
        self.is_on_kernel() || self.driver.os().is_listening(listener)
    }

    // --- the state of a socket ---

    /// Returns the state of a socket in the layer of kernel sockets.
    fn state_of(&self, socket: SocketId) -> Option<(&KernelLayer, SocketState)> {
        let kernel = self.kernel.as_ref()?;
        Some((kernel, kernel.layer().state_of(socket)?))
    }

    /// Returns why a socket is unusable, if it is.
    pub(crate) fn error_of(&self, socket: SocketId) -> Option<Error> {
        if self.kernel.is_none() {
            return self.driver.os().error_of(socket).map(error_of);
        }
        let (kernel, state) = self.state_of(socket)?;
        match state.place {
            Place::Host(conn) => kernel.stack().error_of(conn).map(Error::from),
            Place::HandingOff(at) | Place::Adapter(at) | Place::Restoring(at) => {
                let os = self.driver.os();
                let error = os.error_of(at)?;
                // As on Linux, a reset after the peer has ended its stream is reported as a broken pipe.
                let is_late = error == Status::Reset && os.has_ended(at);
                Some(match is_late {
                    true => ErrorKind::BrokenPipe.into(),
                    false => error_of(error),
                })
            }
            Place::Ended(CloseReason::Normal) => None,
            Place::Ended(CloseReason::Reset) => Some(match state.was_half_closed {
                true => ErrorKind::BrokenPipe.into(),
                false => error_of(Status::Reset),
            }),
            Place::Ended(_) => Some(error_of(Status::Aborted)),
        }
    }

    /// Fetches the connection's error, which the kernel reports only once, for the application.
    pub(crate) fn fetch_error(&mut self, socket: SocketId) -> Option<Error> {
        if let Some((kernel, conn)) = self.in_stack(socket) {
            kernel.stack_mut().fetch_error(conn);
        }
        self.error_of(socket)
    }

    /// Returns whether the connection has failed.
    pub(crate) fn is_failed(&self, socket: SocketId) -> bool {
        match self.state_of(socket) {
            Some((
                kernel,
                SocketState {
                    place: Place::Host(conn),
                    ..
                },
            )) => kernel.stack().is_failed(conn),
            _ => self.error_of(socket).is_some(),
        }
    }

    /// Returns whether a connection has ended in both directions, and its peer knows.
    pub(crate) fn is_over(&self, socket: SocketId) -> bool {
        match self
            .state_of(socket)
            .map(|(kernel, state)| (kernel, state.place))
        {
            Some((kernel, Place::Host(conn))) => kernel.stack().is_over(conn),
            Some((_, Place::Adapter(at))) => self.driver.os().is_over(at),
            Some((_, Place::Ended(_))) => true,
            Some(_) => false,
            None => self.driver.os().is_over(socket),
        }
    }

    /// Returns whether a socket is an established connection.
    pub(crate) fn is_open(&self, socket: SocketId) -> bool {
        if self.kernel.is_none() {
            return self.driver.os().is_open(socket);
        }
        self.state_of(socket)
            .is_some_and(|(kernel, state)| match state.place {
                Place::Host(conn) => {
                    !kernel.stack().is_opening(conn) && !kernel.stack().is_failed(conn)
                }
                Place::Adapter(at) => self.driver.os().is_open(at),
                Place::HandingOff(_) | Place::Restoring(_) => true,
                Place::Ended(_) => false,
            })
    }

    /// Returns whether a connection is not in the kernel.
    pub(crate) fn is_away(&self, socket: SocketId) -> bool {
        let state = self.state_of(socket);
        !state.is_some_and(|(_, state)| matches!(state.place, Place::Host(_)))
    }

    /// Returns whether a connection is still being opened.
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

    /// Returns the remote endpoint.
    pub(crate) fn peer(&self, socket: SocketId) -> Option<Endpoint> {
        if self.kernel.is_none() {
            return self.driver.os().peer(socket);
        }
        self.state_of(socket).map(|(_, state)| state.flow.remote)
    }

    /// Returns the local endpoint. If only the adapter knows it, asks the adapter and returns `None`.
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

    /// Returns the number of bytes that were taken from the application and wait for buffer space.
    pub(crate) fn held(&self, socket: SocketId) -> usize {
        match &self.kernel {
            None => self.driver.os().held(socket),
            // A socket layer takes no more data than it has space for.
            Some(_) => 0,
        }
    }

    /// Returns how many bytes the application has sent and the kernel has not taken yet; 0 if the connection is not in the kernel.
    pub(crate) fn kept_from_kernel(&mut self, socket: SocketId) -> usize {
        self.in_stack(socket).map_or(0, |(kernel, conn)| {
            kernel.stack().unacknowledged(conn) + kernel.layer().unsent(socket)
        })
    }

    /// Returns what can be received.
    pub(crate) fn unread(&mut self, socket: SocketId) -> Unread {
        let now = self.driver.now();
        match &mut self.kernel {
            Some(kernel) => kernel.ask_unread(now, &mut self.driver, socket),
            None => self.driver.os().unread(socket),
        }
    }

    /// Returns whether the last event of a readable socket reported nothing new.
    pub(crate) fn is_repeated(&self, socket: SocketId) -> bool {
        self.on_adapter(socket)
            .is_some_and(|at| self.driver.os().is_repeated(at))
    }

    /// Returns whether all delivered data was read, and the adapter has reported more, which it delivers without waiting for the peer.
    pub(crate) fn is_delivery_due(&self, socket: SocketId) -> bool {
        self.on_adapter(socket)
            .is_some_and(|at| self.driver.os().is_delivery_due(at))
    }

    /// Returns the adapter's socket of a connection, if the connection is on the adapter.
    pub(crate) fn on_adapter(&self, socket: SocketId) -> Option<SocketId> {
        match self.state_of(socket).map(|(_, state)| state.place) {
            Some(Place::Adapter(at)) => Some(at),
            None if self.kernel.is_none() => Some(socket),
            _ => None,
        }
    }

    /// Returns how many bytes a socket would take now. If that is 0, the socket becomes writable later.
    pub(crate) fn send_room(&mut self, socket: SocketId) -> Result<usize, Gone> {
        let now = self.driver.now();
        if let Some((kernel, conn)) = self.in_stack(socket) {
            if kernel.stack().is_shut(conn) {
                return Err(Gone);
            }
            kernel.stack_mut().ask_room(conn);
        }
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

    // --- operations on a socket ---

    /// Receives data that has arrived.
    pub(crate) fn receive(&mut self, socket: SocketId, max: usize) -> Receive<Bytes> {
        self.with_calls(|calls| calls.receive(socket, max))
    }

    /// Peeks at received data in the kernel. Returns `None` unless the kernel has the connection and the layer holds none of its data.
    pub(crate) fn peek_in_kernel(
        &mut self,
        socket: SocketId,
        max: usize,
    ) -> Option<io::Result<Bytes>> {
        let (kernel, conn) = self.in_stack(socket)?;
        match kernel.layer().has_early(socket) {
            true => None,
            false => kernel.stack_mut().peek(conn, max),
        }
    }

    /// Sends as much of `data` as there is buffer space for. Returns how many bytes.
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

    /// Holds back partial segments while `cork` is set.
    pub(crate) fn set_cork(&mut self, socket: SocketId, cork: bool) {
        self.with_calls(|calls| calls.set_cork(socket, cork));
    }

    /// Sets whether partial segments are sent immediately.
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
        // Nobody waits for the adapter's answer.
        while os.poll_completion().is_some() {}
        os.set_option(now, at, SocketOption::NoDelay, nodelay.into())
    }

    /// Sets an option of a connection on the adapter. In the kernel, the socket's options move with the connection.
    pub(crate) fn set_option(&mut self, socket: SocketId, option: SocketOption, value: u32) {
        if let Some((_, state)) = self.state_of(socket)
            && let Place::Adapter(at) = state.place
        {
            let now = self.driver.now();
            let os = self.driver.os_mut();
            // Nobody waits for the adapter's answer.
            while os.poll_completion().is_some() {}
            let _ = os.set_option(now, at, option, value);
        }
    }

    /// Returns whether a connection is moving.
    pub(crate) fn is_moving(&self, socket: SocketId) -> bool {
        let place = self.state_of(socket).map(|(_, state)| state.place);
        matches!(place, Some(Place::HandingOff(_) | Place::Restoring(_)))
    }

    /// Moves a connection back to the kernel, where it stays; `unread` goes to the kernel, too.
    pub(crate) fn go_home(&mut self, socket: SocketId, unread: Bytes) {
        let now = self.driver.now();
        if let Some(kernel) = &mut self.kernel {
            kernel.go_home(now, &mut self.driver, socket, unread);
        }
    }

    /// Returns whether the kernel alone has a connection; `None` while that may still change.
    pub(crate) fn is_home(&self, socket: SocketId) -> Option<bool> {
        let kernel = self.kernel.as_ref();
        kernel.map_or(Some(false), |kernel| kernel.is_home(socket))
    }

    /// Shuts down reading in the kernel, if the connection is there.
    pub(crate) fn shut_for_reading(&mut self, socket: SocketId) {
        if let Some((kernel, conn)) = self.in_stack(socket) {
            kernel.stack().shut_for_reading(conn);
        }
    }

    /// Returns what TCP on the adapter knows of a connection. If the adapter has to be asked first, asks it and returns `None`. Returns an
    /// error if the adapter does not have the connection.
    pub(crate) fn info(&mut self, socket: SocketId) -> Option<io::Result<Told>> {
        let not_there = || Some(Err(ErrorKind::NotConnected.into()));
        let at = match self.state_of(socket).map(|(_, state)| state.place) {
            Some(Place::Adapter(at)) => at,
            Some(Place::HandingOff(_) | Place::Restoring(_)) => return None,
            None if self.kernel.is_none() => socket,
            _ => return not_there(),
        };
        let now = self.driver.now();
        let os = self.driver.os_mut();
        if let Some(bytes) = os.take_info(at) {
            let Some((info, unacknowledged)) = Info::from_bytes(&bytes) else {
                return not_there();
            };
            return Some(Ok(Told {
                info,
                unsent: os.unsent(at),
                unacknowledged,
            }));
        }
        match os.query_info(now, at) {
            Err(NotSubmitted::NoSuchSocket) => not_there(),
            _ => None,
        }
    }

    /// Returns whether closing a connection must reset it, so that the peer learns that its data is not read any more (RFC 2525 2.17). The
    /// kernel does that itself.
    pub(crate) fn closes_by_reset(&mut self, socket: SocketId) -> bool {
        let kernel = self.kernel.as_ref();
        let is_kernels = kernel.is_some_and(|kernel| kernel.layer().is_wholly_in_stack(socket));
        !is_kernels && self.unread(socket).len > 0
    }

    /// Shuts down sending.
    pub(crate) fn shutdown(&mut self, socket: SocketId) {
        self.with_calls(|calls| {
            calls.shutdown(socket);
        });
    }

    /// Closes a connection in an orderly way, or closes a listener.
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
