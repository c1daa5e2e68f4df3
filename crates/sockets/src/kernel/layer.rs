//! The socket layer on the kernel's sockets, with an adapter beside the kernel or without.

use super::places::PlaceRow;
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
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::slice;

/// The only one, if there is one.
const ADAPTER: AdapterId = AdapterId(0);

/// Time for several retransmission timeouts: each move forgets congestion window and round trip.
const LEAST_STAY: Span = Span::from_secs(1);

/// An adapter that lives tells its limits sooner.
const LONGEST_WAIT: Span = Span::from_ms(100);

/// Between two looks for a broker, which cost a system call or two.
const BETWEEN_ATTEMPTS: Span = Span::from_secs(1);

/// What moves connections between the kernel and an adapter.
#[derive(Debug)]
pub struct Handoff {
    /// Who takes connections out of the kernel.
    pub broker: BrokerClient,
    /// Which connections go to the adapter.
    pub selection: Box<dyn Selection>,
    /// How long a connection stays at least between two moves.
    pub least_stay: Span,
}

/// Sockets whose connections are the kernel's, until they are handed off.
#[derive(Debug)]
pub struct KernelLayer {
    stack: KernelStack,
    layer: SocketLayer<Bytes>,
    links_lost: u64,
    /// By which the broker asks, where there is one.
    subscription: Option<Subscription>,
    /// When to look for a broker, if there is none.
    looks_at: Time,
}

impl Handoff {
    /// By the broker at `path`, as `policy` says or, where there is none, the broker.
    ///
    /// # Errors
    /// Nobody answers there.
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
        })
    }

    /// The same, with the policy by its name.
    ///
    /// # Errors
    /// Nobody answers there; `InvalidInput` when no policy has that name.
    pub fn named(path: &Path, policy: Option<&str>) -> io::Result<Self> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let policy = policy
            .map(|name| name.parse().map_err(invalid))
            .transpose()?;
        Self::by(path, policy.as_ref())
    }
}

impl KernelLayer {
    /// No sockets yet, and at most so many connections. Without a way to hand them off they stay in the kernel.
    ///
    /// # Errors
    /// The system has no room for another epoll instance.
    pub fn new(most_sockets: usize, handoff: Option<Handoff>) -> io::Result<Self> {
        let least_stay = handoff.as_ref().map(|handoff| handoff.least_stay);
        let parts = handoff.map(|handoff| (handoff.broker, handoff.selection));
        let (broker, selection) = parts.unzip();
        let mut layer = SocketLayer::new(most_sockets, selection);
        layer.set_least_stay(least_stay.unwrap_or_default());
        Ok(Self {
            stack: KernelStack::new(broker)?,
            layer,
            links_lost: 0,
            subscription: None,
            looks_at: Time::ZERO,
        })
    }

    /// Has the adapter tell how many connections it takes, and waits until it has, that the first connection can be handed off; not for long.
    ///
    /// # Errors
    /// There are as many sockets as may be, or the system cannot wait.
    pub fn follow_limits(&mut self, driver: &mut Driver) -> io::Result<()> {
        // By a packet socket. No packets come by it beside a kernel; all applications ask for the same, of which no matter who gets it.
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

    /// The kernel's sockets.
    pub fn stack(&self) -> &KernelStack {
        &self.stack
    }

    /// The kernel's sockets, to listen, to connect and to wait.
    pub fn stack_mut(&mut self) -> &mut KernelStack {
        &mut self.stack
    }

    /// The socket layer.
    pub fn layer(&self) -> &SocketLayer<Bytes> {
        &self.layer
    }

    /// The socket layer, for what becomes ready and where it listens.
    pub fn layer_mut(&mut self) -> &mut SocketLayer<Bytes> {
        &mut self.layer
    }

    /// Listens there: see [`KernelStack::listen`].
    ///
    /// # Errors
    /// The port is in use, or may not be used.
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

    /// Listens nowhere any more.
    pub fn unlisten(&mut self) {
        for listener in self.layer.take_listeners() {
            self.stack.close_listener(listener);
        }
    }

    /// Listens there no more.
    pub fn close_listener(&mut self, listener: ListenerId) {
        self.layer.remove_listener(listener);
        self.stack.close_listener(listener);
    }

    /// A connection of the stack's gets a socket. None where there is no place for one: it is closed then.
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

    /// Whether a listener may have connections.
    pub fn has_acceptable(&self, listener: ListenerId) -> bool {
        self.stack.has_acceptable(listener)
    }

    /// What there is to receive on a connection, if need be after a question to the kernel.
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

    /// Sends partial segments of a connection at once, or not. Gives its socket on the adapter, which is to be told, if it is there.
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

    /// A connection stays where it is, since another process has its socket, too. False where that is not the kernel alone.
    pub(crate) fn keep(&mut self, now: Time, driver: &mut Driver, socket: SocketId) -> bool {
        let has_all = match self.place_of(socket) {
            Some(Place::Host(conn)) => self.stack.has_all(conn),
            _ => false,
        };
        let is_kept = has_all && self.layer.is_wholly_in_stack(socket);
        if is_kept {
            self.calls(now, Some(driver))
                .stay(socket, NotOffloaded::Shared);
        }
        is_kept
    }

    /// In the child of a process that was copied: closes its copies of all descriptors.
    pub(crate) fn close_copies(&mut self) {
        self.subscription = None;
        self.stack.close_copies();
    }

    /// When [`KernelLayer::take_news`] is to be called next even if nothing happens: connections may have come to rest that are to move.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.layer.poll_timeout()
    }

    /// Whether the kernel and the adapter have all that was sent.
    pub(crate) fn is_flushed(&self) -> bool {
        self.stack.is_flushed() && self.layer.is_flushed()
    }

    fn place_of(&self, socket: SocketId) -> Option<Place> {
        Some(self.layer.state_of(socket)?.place)
    }

    /// Takes note of what the adapter has told, and of what the last wait for the kernel has given.
    pub fn take_news(&mut self, now: Time, mut driver: Option<&mut Driver>) {
        if let Some(driver) = &mut driver {
            let lost = driver.links_lost();
            if std::mem::replace(&mut self.links_lost, lost) != lost {
                self.layer.handle_adapter_lost(ADAPTER);
                // What the policy has chosen may go to the next one.
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

    /// Has a broker ask, and finds the next one where that which has taken connections is gone. That it is there costs a system call to see.
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
        let rows = || states().map(|state| PlaceRow::new(now, &state)).collect();
        // The next broker is looked for later.
        self.subscription
            .take_if(|broker| broker.answer(rows).is_err());
    }

    /// The socket calls.
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
