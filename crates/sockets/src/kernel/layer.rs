//! The socket layer on kernel sockets, with or without an adapter.

use super::places::{ApplicationAnswer, PlaceRow};
use super::stack::KernelStack;
use crate::broker::{BrokerClient, Subscription};
use crate::driver::Driver;
use crate::error::error_of;
use crate::link::HostEnd;
use baton_host::layer::{AdapterEnd, AdapterId, HostStack, LayerCalls, Place, SocketLayer};
use baton_host::{NotOffloaded, Selection, SelectionConfig, SocketId, Sockets, Unread};
use baton_tcp::{ConnId, Event, ListenerId};
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::slice;
use std::time::Duration;

/// The only adapter, if there is one.
const ADAPTER: AdapterId = AdapterId(0);

/// Minimum time between two moves: several retransmission timeouts, because a move discards congestion window and round-trip time.
const LEAST_STAY: Span = Span::from_secs(1);

/// Maximum number of bytes kept while a connection moves. The kernel would have buffer space for them, and non-blocking programs may not
/// expect EAGAIN.
const MOST_KEPT_BYTES: usize = 64 * 1024;

/// Maximum wait for the adapter to report its limits; a running adapter reports them sooner.
const LONGEST_WAIT: Span = Span::from_ms(100);

/// Minimum interval between two reports of the application's work to the policy.
const BETWEEN_REPORTS: Span = Span::from_ms(5);

/// Interval between two looks for a broker, each of which costs a system call or two.
const BETWEEN_ATTEMPTS: Span = Span::from_secs(1);

/// The parts that move connections between the kernel and an adapter.
#[derive(Debug)]
pub struct Handoff {
    /// The broker that takes connections out of the kernel.
    pub broker: BrokerClient,
    /// The policy that selects connections for the adapter.
    pub selection: Box<dyn Selection>,
    /// Minimum time that a connection stays in one place between two moves.
    pub least_stay: Span,
    /// Returns what the application has left to the kernel for good, if the application counts it.
    pub kept: Option<Kept>,
}

/// Returns how often something was left to the kernel, by reason.
pub type Kept = fn() -> BTreeMap<String, u64>;

/// Sockets whose connections are in the kernel until they are handed off.
#[derive(Debug)]
pub struct KernelLayer {
    stack: KernelStack,
    layer: SocketLayer<Bytes>,
    links_lost: u64,
    /// The stream on which the broker asks, if there is a broker.
    subscription: Option<Subscription>,
    kept: Option<Kept>,
    /// When to look for a broker next, if there is none.
    looks_at: Time,
    /// When to report to the policy next; [`Time::NEVER`] if it does not want that.
    reports_at: Time,
}

impl Handoff {
    /// Uses the broker at `path` with this policy; without one, with the broker's policy.
    ///
    /// # Errors
    /// No broker listens there.
    pub fn by(path: &Path, policy: Option<&SelectionConfig>) -> io::Result<Self> {
        let mut broker = BrokerClient::connect(path)?;
        let selection = match policy {
            Some(policy) => policy.build(),
            None => broker.policy().map_err(io::Error::other)?.build(),
        };
        Ok(Self {
            broker,
            selection,
            least_stay: LEAST_STAY,
            kept: None,
        })
    }

    /// Works like [`Handoff::by`], with the name of a policy.
    ///
    /// # Errors
    /// No broker listens there; `InvalidInput` if no policy has that name.
    pub fn named(path: &Path, policy: Option<&str>) -> io::Result<Self> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let policy = policy
            .map(|name| name.parse().map_err(invalid))
            .transpose()?;
        Self::by(path, policy.as_ref())
    }
}

impl KernelLayer {
    /// Creates a layer without sockets, for at most `most_sockets` connections. Without `handoff` they stay in the kernel.
    ///
    /// # Errors
    /// The system has no resources for another epoll instance.
    pub fn new(most_sockets: usize, handoff: Option<Handoff>) -> io::Result<Self> {
        let least_stay = handoff.as_ref().map(|handoff| handoff.least_stay);
        let kept = handoff.as_ref().and_then(|handoff| handoff.kept);
        let parts = handoff.map(|handoff| (handoff.broker, handoff.selection));
        let (broker, selection) = parts.unzip();
        let mut layer = SocketLayer::new(most_sockets, selection);
        layer.set_least_stay(least_stay.unwrap_or_default());
        layer.set_most_kept(MOST_KEPT_BYTES);
        let reports_at = match layer.wants_work() {
            true => Time::ZERO,
            false => Time::NEVER,
        };
        Ok(Self {
            stack: KernelStack::new(broker)?,
            layer,
            reports_at,
            links_lost: 0,
            subscription: None,
            kept,
            looks_at: Time::ZERO,
        })
    }

    /// Reports to the policy how long this process has worked, and how many requests it has read directly, if the policy wants that and it is
    /// due. [`KernelLayer::turn`] does so, too.
    pub(crate) fn report_work(&mut self, now: Time) {
        if now < self.reports_at {
            return;
        }
        self.reports_at = now + BETWEEN_REPORTS;
        let busy = clock_gettime(ClockId::ProcessCPUTime);
        let busy = Duration::try_from(busy).unwrap_or_default();
        let direct = self.stack.direct_requests();
        self.layer.handle_work(now, Span::from(busy), direct);
    }

    /// Makes the adapter report how many connections it takes, and waits briefly for its answer, so that even the first connection can be
    /// handed off.
    ///
    /// # Errors
    /// The maximum number of sockets is reached, or the system cannot wait.
    pub fn follow_limits(&mut self, driver: &mut Driver) -> io::Result<()> {
        // This uses a packet socket. No packets arrive on it next to a kernel; all applications ask for the same packets, and it does not
        // matter who gets them.
        let any = Endpoint::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let now = driver.now();
        self.links_lost = driver.links_lost();
        driver.os_mut().keep_lost();
        driver.os_mut().packet_socket(now, any).map_err(error_of)?;
        let due = now + LONGEST_WAIT;
        loop {
            if driver.turn_attached() {
                continue;
            }
            let now = driver.now();
            if driver.os().soft_limit().is_some() || now >= due {
                return Ok(());
            }
            driver.wait(Some(due.saturating_since(now).into()))?;
        }
    }

    /// Returns the kernel's sockets.
    pub fn stack(&self) -> &KernelStack {
        &self.stack
    }

    /// Returns the kernel's sockets, to listen, to connect and to wait.
    pub fn stack_mut(&mut self) -> &mut KernelStack {
        &mut self.stack
    }

    /// Returns the socket layer.
    pub fn layer(&self) -> &SocketLayer<Bytes> {
        &self.layer
    }

    /// Returns the socket layer, for ready sockets and listeners.
    pub fn layer_mut(&mut self) -> &mut SocketLayer<Bytes> {
        &mut self.layer
    }

    /// Opens a listener: see [`KernelStack::listen`].
    ///
    /// # Errors
    /// The port is in use, or the process may not use it.
    pub fn listen(
        &mut self,
        at: SocketAddr,
        backlog: u32,
        nodelay: bool,
    ) -> io::Result<(ListenerId, SocketAddr)> {
        let (listener, local) = self.stack.listen(at, backlog, nodelay)?;
        self.layer.add_listener(listener, ADAPTER);
        Ok((listener, local))
    }

    /// Closes all listeners.
    pub fn unlisten(&mut self) {
        for listener in self.layer.take_listeners() {
            self.stack.close_listener(listener);
        }
    }

    /// Closes a listener.
    pub fn close_listener(&mut self, listener: ListenerId) {
        self.layer.remove_listener(listener);
        self.stack.close_listener(listener);
    }

    /// Adds a socket for a connection of the stack. Closes the connection and returns `None` if the maximum number of sockets is reached.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        driver: &mut Driver,
        conn: ConnId,
    ) -> Option<SocketId> {
        let is_open = !self.stack.is_opening(conn);
        let mut calls = self.calls(now, Some(driver));
        let socket = calls.admit(conn, ADAPTER);
        match socket {
            Some(socket) if is_open => calls.opened(socket),
            Some(_) => {}
            None => self.stack.close(conn),
        }
        socket
    }

    /// Returns whether a listener may have connections to accept.
    pub fn has_acceptable(&self, listener: ListenerId) -> bool {
        self.stack.has_acceptable(listener)
    }

    /// Returns what can be received on a connection, after asking the kernel if necessary.
    pub(crate) fn ask_unread(
        &mut self,
        now: Time,
        driver: &mut Driver,
        socket: SocketId,
    ) -> Unread {
        if let Some(Place::Host(conn)) = self.place_of(socket) {
            self.stack.ask_unread(conn);
        }
        self.calls(now, Some(driver)).unread(socket)
    }

    /// Sets whether a connection sends partial segments immediately. If the connection is on the adapter, returns its socket there, whose
    /// option the caller has to set.
    pub(crate) fn set_nodelay(&mut self, socket: SocketId, nodelay: bool) -> Option<SocketId> {
        let state = self.layer.state_of(socket)?;
        if let Place::Host(conn) = state.place {
            self.stack.set_nodelay(conn, nodelay);
            return None;
        }
        self.stack.set_nodelay_of_away(&state.flow, nodelay);
        match state.place {
            Place::Adapter(at) => Some(at),
            _ => None,
        }
    }

    /// Moves a connection back to the kernel, where it stays; `unread` goes to the kernel, too.
    pub(crate) fn go_home(
        &mut self,
        now: Time,
        driver: &mut Driver,
        socket: SocketId,
        unread: Bytes,
    ) {
        self.calls(now, Some(driver))
            .go_home(socket, NotOffloaded::Shared, unread);
    }

    /// Returns whether the kernel alone has a connection; `None` while that may still change.
    pub(crate) fn is_home(&self, socket: SocketId) -> Option<bool> {
        match self.place_of(socket) {
            Some(Place::Host(conn)) => {
                let is_whole = self.layer.is_wholly_in_stack(socket);
                (is_whole && self.stack.has_all(conn)).then_some(true)
            }
            Some(Place::Ended(_)) | None => Some(false),
            Some(_) if !self.stack.takes_back() => Some(false),
            Some(_) => None,
        }
    }

    /// In the child of fork(2): closes its copies of all descriptors.
    pub(crate) fn close_copies(&mut self) {
        self.subscription = None;
        self.stack.close_copies();
    }

    /// Returns when to call [`KernelLayer::turn`] next even if nothing happens: connections that are to move may have come to rest.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.layer.poll_timeout()
    }

    /// Returns whether the kernel and the adapter have all sent data.
    pub(crate) fn is_flushed(&self) -> bool {
        self.stack.is_flushed() && self.layer.is_flushed()
    }

    fn place_of(&self, socket: SocketId) -> Option<Place> {
        Some(self.layer.state_of(socket)?.place)
    }

    /// Processes the messages of the adapter, the moves that they complete, and the kernel's events of the last wait. Returns whether there
    /// were messages.
    pub fn turn(&mut self, now: Time, mut driver: Option<&mut Driver>) -> bool {
        self.report_work(now);
        let any = driver.as_mut().is_some_and(|driver| driver.turn_attached());
        self.take_news(now, driver);
        any
    }

    /// Processes the messages of the adapter and the moves that they complete.
    pub(crate) fn look_at_adapter(&mut self, driver: &mut Driver) {
        if driver.turn_attached() {
            self.take_news(driver.now(), Some(driver));
        }
    }

    fn take_news(&mut self, now: Time, mut driver: Option<&mut Driver>) {
        if let Some(driver) = &mut driver {
            let lost = driver.links_lost();
            if std::mem::replace(&mut self.links_lost, lost) != lost {
                self.layer.handle_adapter_lost(ADAPTER);
                // Connections that the policy has selected may go to the next adapter.
                self.stack.look_again();
            }
            let ends = slice::from_mut(driver.adapter_end());
            self.layer.handle_adapters(now, &mut self.stack, ends);
        }
        if self.looks_at <= now {
            self.looks_at = now + BETWEEN_ATTEMPTS;
            self.look_for_broker(now, driver.as_deref_mut());
        }
        if self.stack.take_asked() {
            self.answer_broker(now);
        }
        while let Some((conn, event)) = self.stack.poll_event() {
            self.layer.handle_event(&mut self.stack, conn, &event);
            if event == Event::Connected
                && let Some(socket) = self.layer.socket_of(conn)
            {
                self.calls(now, driver.as_deref_mut()).opened(socket);
            }
        }
        let ends = driver.map_or(&mut [][..], |driver| slice::from_mut(driver.adapter_end()));
        self.layer.handle_settling(now, &mut self.stack, ends);
    }

    /// Subscribes to a broker, and finds the next one if the broker that has taken connections is gone. Checking for it costs a system
    /// call.
    fn look_for_broker(&mut self, now: Time, driver: Option<&mut Driver>) {
        if self.subscription.is_some() && self.stack.takes_back() {
            return;
        }
        self.subscription = self.subscription.take().or_else(|| self.stack.subscribe());
        self.stack.look_for_broker();
        if let Some(driver) = driver.filter(|_| self.stack.takes_back()) {
            let ends = slice::from_mut(driver.adapter_end());
            self.layer.restore_wanted(now, &self.stack, ends);
        }
    }

    fn answer_broker(&mut self, now: Time) {
        let states = || self.layer.states();
        let answer = || ApplicationAnswer {
            places: states().map(|state| PlaceRow::new(now, &state)).collect(),
            kept: self.kept.map_or_else(BTreeMap::new, |kept| kept()),
        };
        // A later turn looks for the next broker.
        self.subscription
            .take_if(|broker| broker.answer(answer).is_err());
    }

    /// Returns the socket calls.
    pub fn calls<'a>(
        &'a mut self,
        now: Time,
        driver: Option<&'a mut Driver>,
    ) -> LayerCalls<'a, Bytes, HostEnd, KernelStack> {
        let ends: &mut [AdapterEnd<Bytes, HostEnd>] = match driver {
            Some(driver) => slice::from_mut(driver.adapter_end()),
            None => &mut [],
        };
        self.layer.calls(now, &mut self.stack, ends)
    }
}
