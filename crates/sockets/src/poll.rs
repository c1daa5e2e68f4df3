//! Readiness of many sockets for one thread.

use crate::Adapter;
use crate::adapter::{Guard, Handle, Timeout};
use crate::beside::Readiness;
use crate::core::{Core, Side};
use crate::direct::{Direct, Watch};
use crate::instance::Instance;
use crate::listener::TcpListener;
use crate::stream::TcpStream;
use crate::waiter::{Waiter, Waiters};
use baton_host::SocketId;
use rustix::fd::OwnedFd;
use sealed::Sealed;
use std::collections::VecDeque;
use std::io;
use std::ops::BitOr;
use std::sync::Arc;
use std::time::Duration;

/// The application's name for a socket in the events of a [`Poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub usize);

/// The events of a socket to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    readable: bool,
    writable: bool,
    times: bool,
}

impl Interest {
    /// Received data, the end of the stream, an error, or a connection to accept.
    pub const READABLE: Self = Self {
        readable: true,
        writable: false,
        times: false,
    };
    /// Buffer space after a write has found none, or that the connection is established.
    pub const WRITABLE: Self = Self {
        readable: false,
        writable: true,
        times: false,
    };
    /// Transmit times of sent bytes, for [`Adapter::wait_beside`]; a [`Poll`] reports them as readable.
    pub const TIMES: Self = Self {
        readable: false,
        writable: false,
        times: true,
    };

    pub(crate) fn reads(self) -> bool {
        self.readable
    }

    pub(crate) fn writes(self) -> bool {
        self.writable
    }

    pub(crate) fn wants_times(self) -> bool {
        self.times
    }
}

impl BitOr for Interest {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self {
            readable: self.readable || other.readable,
            writable: self.writable || other.writable,
            times: self.times || other.times,
        }
    }
}

/// An event of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    token: Token,
    ready: Interest,
}

impl Event {
    /// Returns the token of the socket.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Returns whether there may be something to read or to accept, including an error or the end of the stream.
    pub fn is_readable(&self) -> bool {
        self.ready.readable
    }

    /// Returns whether there may be buffer space for data.
    pub fn is_writable(&self) -> bool {
        self.ready.writable
    }
}

/// The events of one [`Poll::poll`].
#[derive(Debug)]
pub struct Events {
    events: Vec<Event>,
    capacity: usize,
}

impl Events {
    /// Creates a buffer for this many events, at least one. Further events wait for the next poll.
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self {
            events: Vec::with_capacity(capacity),
            capacity,
        }
    }

    /// Returns an iterator over the events.
    pub fn iter(&self) -> std::slice::Iter<'_, Event> {
        self.events.iter()
    }

    /// Returns whether there are none, because the timeout expired.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl<'a> IntoIterator for &'a Events {
    type Item = &'a Event;
    type IntoIter = std::slice::Iter<'a, Event>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A socket that can be registered with a [`Poll`].
pub trait Source: sealed::Sealed {}

impl Source for TcpStream {}
impl Source for TcpListener {}

pub(crate) mod sealed {
    use super::{Arc, Direct, Handle, SocketId};

    pub trait Sealed {
        fn socket(&self) -> SocketId;
        fn is_listener(&self) -> bool;
        fn handle(&self) -> &Arc<Handle>;

        /// Returns the state shared with an application that may use a connection directly.
        fn direct(&self) -> Option<&Direct> {
            None
        }
    }
}

/// A [look](Poll::look) at connections.
#[derive(Debug)]
pub struct Look<'a>(Guard<'a>);

impl Look<'_> {
    /// Returns what can be done with a connection now, without processing what has arrived. If it is not writable, it becomes writable later.
    pub fn readiness(&mut self, stream: &TcpStream) -> Readiness {
        stream.readiness_in(&mut self.0)
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.0.settle();
    }
}

/// Waits for many sockets at once, like an edge-triggered epoll instance: an event reports a change, so the application has to read, write
/// or accept until that would block, and should set its sockets to non-blocking.
///
/// ```no_run
/// use baton_sockets::{Adapter, Events, Interest, Poll, TcpListener, Token};
///
/// let adapter = Adapter::connect("/run/baton/adapter.sock")?;
/// let listener = TcpListener::bind(&adapter, "0.0.0.0:80".parse().unwrap())?;
/// listener.set_nonblocking(true)?;
/// let poll = Poll::new(&adapter);
/// poll.register(&listener, Token(0), Interest::READABLE)?;
/// let mut events = Events::with_capacity(128);
/// loop {
///     poll.poll(&mut events, None)?;
///     for event in &events {
///         println!("{:?} has something to say", event.token());
///     }
/// #   break;
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Poll {
    handle: Arc<Handle>,
    id: usize,
    instance: Option<Arc<Instance>>,
}

impl Poll {
    /// Creates a poll without sockets.
    pub fn new(adapter: &Adapter) -> Self {
        Self::open(adapter, None)
    }

    /// Creates a poll that works together with an epoll instance of the application, given by a descriptor. The instance watches the
    /// connections that the application uses [directly](TcpStream::directly), as long as it does so.
    ///
    /// # Errors
    /// The system has no resources for another file.
    pub fn beside(adapter: &Adapter, instance: OwnedFd) -> io::Result<Self> {
        let instance = Arc::new(Instance::new(instance)?);
        Ok(Self::open(adapter, Some(instance)))
    }

    fn open(adapter: &Adapter, instance: Option<Arc<Instance>>) -> Self {
        let handle = Arc::clone(adapter.handle());
        let id = handle.lock().polls.open(instance.clone());
        Self {
            handle,
            id,
            instance,
        }
    }

    /// Begins to look at what can be done with several connections of the adapter, under one lock. Meanwhile the thread must not use sockets in
    /// any other way, nor drop them.
    pub fn look(&self) -> Look<'_> {
        Look(self.handle.lock())
    }

    /// Makes the keeper process news for this poll even if no thread waits on it.
    pub(crate) fn keep_looking(&self) {
        let id = self.id;
        self.handle.call(|core| core.polls.be_kept(id));
    }

    /// Returns the application's instance that the poll works [together with](Poll::beside), if there is one.
    pub fn beside_instance(&self) -> Option<&OwnedFd> {
        Some(&self.instance()?.epoll)
    }

    pub(crate) fn instance(&self) -> Option<&Instance> {
        self.instance.as_deref()
    }

    /// Registers a socket. Its first event reports what is ready already. Other polls and threads may wait for the socket, too.
    ///
    /// # Errors
    /// The socket is registered here already, or belongs to another adapter.
    pub fn register(
        &self,
        source: &impl Source,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.add(source, token, interest, |_| Ok(false))
    }

    /// Registers a connection that the [instance](Poll::beside) watches, as `watch` says, while the application uses the connection
    /// directly; meanwhile this poll reports no events for it. Replaces an earlier registration with this poll. A connection that is also
    /// registered elsewhere is not used directly any more.
    ///
    /// # Errors
    /// The connection belongs to another adapter, or the instance cannot watch it.
    pub fn register_beside(
        &self,
        stream: &TcpStream,
        token: Token,
        interest: Interest,
        watch: Watch,
    ) -> io::Result<()> {
        self.take(&mut self.handle.lock(), stream.socket());
        self.add(stream, token, interest, |instance| {
            let direct = stream.direct().zip(instance);
            direct.map_or(Ok(false), |(direct, instance)| {
                direct.watch(&instance.epoll, watch)
            })
        })
    }

    fn add(
        &self,
        source: &impl Source,
        token: Token,
        interest: Interest,
        watch: impl FnOnce(Option<&Instance>) -> io::Result<bool>,
    ) -> io::Result<()> {
        if !Arc::ptr_eq(&self.handle, source.handle()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut core = self.handle.lock();
        let socket = source.socket();
        if core.registration(socket, self.id).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let is_elsewhere = !core.registrations(socket).is_empty();
        if let Some(direct) = source.direct().filter(|_| is_elsewhere) {
            direct.shut();
            core.end_direct(socket, direct);
        }
        let in_kernel = !is_elsewhere && watch(self.instance())?;
        let registration = Registration::new(self.id, token, interest, in_kernel);
        core.add_registration(socket, registration);
        if !in_kernel {
            if core.host.is_opening(socket) {
                // The kernel may have established the connection by now, and the next wait must report that.
                core.turn();
            }
            core.signal_present(socket, source.is_listener());
        }
        Ok(())
    }

    fn take(&self, core: &mut Core, socket: SocketId) -> Option<Registration> {
        let registrations = core.registrations(socket);
        let at = registrations.iter().position(|it| it.poll == self.id)?;
        let registration = registrations.swap_remove(at);
        core.polls.forget(&registration, socket);
        Some(registration)
    }

    /// Changes the token and the interest of a registered socket.
    ///
    /// # Errors
    /// The socket is not registered here.
    pub fn reregister(
        &self,
        source: &impl Source,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.deregister(source)?;
        self.register(source, token, interest)
    }

    /// Removes a socket from the poll. Closing the socket does the same.
    ///
    /// # Errors
    /// The socket is not registered here.
    pub fn deregister(&self, source: &impl Source) -> io::Result<()> {
        let mut core = self.handle.lock();
        let taken = self.take(&mut core, source.socket());
        if let Some(direct) = source.direct().filter(|_| taken.is_some()) {
            direct.unwatch();
        }
        taken.map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    /// Waits until something has happened, at most for `timeout`, and stores the events in `events`.
    ///
    /// # Errors
    /// None today.
    pub fn poll(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.events.clear();
        let id = self.id;
        self.handle.block(Timeout::from(timeout), |core, waiter| {
            while events.events.len() < events.capacity
                && let Some(socket) = core.polls.pop(id)
            {
                if let Some(registration) = core.registration(socket, id) {
                    events.events.push(registration.take_event());
                }
            }
            if events.events.is_empty() {
                core.polls.wait(id, waiter);
                return None;
            }
            Some(())
        });
        Ok(())
    }

    /// Returns whether there is an event, and registers the waiter.
    pub(crate) fn has_events(&self, core: &mut Core, waiter: Option<&Waiter>) -> bool {
        core.polls.wait(self.id, waiter);
        core.polls.has_events(self.id)
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        self.handle.lock().close_poll(self.id);
    }
}

/// The registration of one socket with a poll.
#[derive(Debug)]
pub(crate) struct Registration {
    pub poll: usize,
    token: Token,
    interest: Interest,
    ready: Interest,
    /// The application's epoll instance watches the socket instead of the poll.
    pub in_kernel: bool,
}

const NOTHING: Interest = Interest {
    readable: false,
    writable: false,
    times: false,
};

impl Registration {
    fn new(poll: usize, token: Token, interest: Interest, in_kernel: bool) -> Self {
        Self {
            poll,
            token,
            interest,
            ready: NOTHING,
            in_kernel,
        }
    }

    /// Records that a side has become ready. Returns true if the poll has to be notified.
    pub(crate) fn signal(&mut self, side: Side) -> bool {
        let before = self.ready;
        match side {
            Side::Read => self.ready.readable |= self.interest.readable,
            Side::Write => self.ready.writable |= self.interest.writable,
        }
        before == NOTHING && self.ready != NOTHING
    }

    fn take_event(&mut self) -> Event {
        Event {
            token: self.token,
            ready: std::mem::replace(&mut self.ready, NOTHING),
        }
    }
}

/// The ready sockets of one poll, and who waits for them.
#[derive(Debug, Default)]
struct State {
    ready: VecDeque<SocketId>,
    waiters: Waiters,
    instance: Option<Arc<Instance>>,
    /// The keeper processes news for this poll even if no thread waits on it.
    is_kept: bool,
}

/// All polls.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    states: Vec<Option<State>>,
    kept: usize,
}

impl Polls {
    fn open(&mut self, instance: Option<Arc<Instance>>) -> usize {
        let free = self.states.iter().position(Option::is_none);
        let id = free.unwrap_or_else(|| {
            self.states.push(None);
            self.states.len() - 1
        });
        self.states[id] = Some(State {
            instance,
            ..State::default()
        });
        id
    }

    pub(crate) fn close(&mut self, id: usize) {
        let closed = self.states[id].take();
        self.kept -= usize::from(closed.is_some_and(|state| state.is_kept));
    }

    fn state(&mut self, id: usize) -> Option<&mut State> {
        self.states.get_mut(id)?.as_mut()
    }

    fn be_kept(&mut self, id: usize) {
        if let Some(state) = self.state(id)
            && !std::mem::replace(&mut state.is_kept, true)
        {
            self.kept += 1;
        }
    }

    /// Returns whether the keeper has to process news for a poll.
    pub(crate) fn are_kept(&self) -> bool {
        self.kept > 0
    }

    /// Adds a socket with an event, and returns the waiters to wake.
    pub(crate) fn push(
        &mut self,
        id: usize,
        socket: SocketId,
    ) -> impl Iterator<Item = Waiter> + use<> {
        let waiters = self.state(id).map(|state| {
            state.ready.push_back(socket);
            if let Some(instance) = state.instance.as_ref().filter(|_| state.is_kept) {
                instance.raise();
            }
            state.waiters.take()
        });
        waiters.into_iter().flatten()
    }

    fn pop(&mut self, id: usize) -> Option<SocketId> {
        self.state(id)?.ready.pop_front()
    }

    fn has_events(&mut self, id: usize) -> bool {
        self.state(id).is_some_and(|state| !state.ready.is_empty())
    }

    /// Registers a waiter. Only threads wait for polls, so there are no tasks to count.
    fn wait(&mut self, id: usize, waiter: Option<&Waiter>) {
        if let (Some(state), Some(waiter)) = (self.state(id), waiter) {
            state.waiters.add(waiter);
        }
    }

    /// Counts one more registration that the poll's instance does not watch.
    pub(crate) fn enter(&mut self, id: usize) {
        if let Some(instance) = self.instance(id) {
            instance.enter();
        }
    }

    /// Counts one registration less that the poll's instance does not watch.
    pub(crate) fn leave(&mut self, id: usize) {
        if let Some(instance) = self.instance(id) {
            instance.leave();
        }
    }

    fn instance(&mut self, id: usize) -> Option<&Instance> {
        self.state(id)?.instance.as_deref()
    }

    /// Discards the events of a registration.
    pub(crate) fn forget(&mut self, registration: &Registration, socket: SocketId) {
        let id = registration.poll;
        if registration.in_kernel {
            return;
        }
        self.leave(id);
        if let Some(state) = self.state(id) {
            state.ready.retain(|&other| other != socket);
        }
    }
}
