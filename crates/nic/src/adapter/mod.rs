//! The adapter: sockets that hosts use by means of descriptors (batching 2, "Event-driven TCP").
//!
//! An [`Adapter`] serves any number of applications over one TCP [`Stack`], which its owner lends to each call. The adapter is sans-I/O: it
//! takes in whole entries of the request ring, completed data transfers and events of the stack; it gives out data transfers to start and
//! responses. [`pump`] moves all of these to and from a link.
//!
//! Guarantees to hosts:
//! - Each request is answered exactly once, and in order among the SENDs of a socket and among the RECVs of a socket; only refusals are
//!   immediate. With cumulative completion, an answer to a SEND also completes the earlier ones.
//! - The adapter owns a buffer from the request to its answer. If a connection ends during a transfer of its data, the answer waits for the
//!   transfer.
//! - A SEND is answered when its data has been fetched, not when it has been acknowledged: acknowledgments are never reported.
//! - After a peer has closed and all its data has been delivered, pending RECVs are answered with
//!   [`Status::EndOfStream`](baton_bus::descriptor::Status), followed by one notification `PeerClosed`. The notification is omitted if by
//!   then the host has closed the socket or the connection has ended.
//! - CLOSE of a connection is answered when the connection has ended, after everything else of the socket; then the socket number is free.
//!   If a connection ends without a CLOSE of both directions, the notification `Over` takes the place of the answer: the number is free as
//!   well, and requests already on their way to it are refused with `NoSuchSocket`.
//! - CLOSE of the sending direction is answered when TCP has accepted all earlier data.
//! - A failed CONNECT leaves the socket as it was before, including its binding.
//! - Sockets that an ACCEPT reserves take RECVs immediately, before they have a connection.
//! - An INSERT is answered when its data has been fetched. A SEND from the cache sends the data that earlier INSERTs had placed there when
//!   the SEND was requested, even if it is still being fetched; later INSERTs do not change it.
//! - Errors of a host (no such socket, wrong state, too many requests) are answered with a status. Only malformed descriptors, lengths
//!   beyond what was agreed on and addresses beyond the end of memory are a [`Violation`].
//!
//! An application that does not read its responses stops only itself: while its response queue is full, [`Adapter::room_for_requests`] is
//! 0, and data that arrives for it fills the windows of its own connections.

mod caching;
mod cancel;
mod check;
mod closing;
mod config;
mod connecting;
mod custody;
mod dispatch;
mod dma;
mod export;
mod import;
mod limits;
mod listening;
mod numbers;
mod on_board;
mod options;
mod owners;
mod packets;
mod ports;
mod pump;
mod receiving;
mod relief;
mod responses;
mod rows;
mod sending;
mod session;
mod socket;
mod stats;
mod times;

pub use config::{AdapterConfig, AdapterConfigError};
pub use custody::Custody;
pub use dispatch::{Dispatch, Piece, Ready, Transferred};
pub use dma::DmaRequest;
pub use on_board::OnBoardMemory;
pub use packets::{HostPacket, PacketSocket};
pub use ports::{PortRegistry, Sharing, overlap};
pub use pump::pump;
pub use rows::{SessionRow, SocketRow};
pub use stats::{ByStatus, SessionStats};

use crate::activity::ActivityClock;
use crate::load_control::Governor;
use baton_bus::link::{Dma, Inline, Violation};
use baton_bus::{Batching, BatchingError, BatchingRule, Descriptor, DescriptorQueue};
use baton_tcp::{ConnId, Event, ListenerId, Stack};
use baton_wire::{Endpoint, Payload, Span, Time};
use limits::Limits;
use on_board::OnBoard;
use owners::{Owner, Owners};
use ports::Ports;
use session::{Session, Shared, Work};
use slab::Slab;
use std::collections::VecDeque;

/// Identifies one application at the adapter. Valid until [`Adapter::detach`], which frees the number for reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// Treatment of the connections of an application that has gone. In either case, connections that the application has closed itself end in
/// order, and connections whose data has not been fetched completely are reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Resets the connections.
    Reset,
    /// Closes the connections: the data that the adapter holds is sent.
    Drain,
}

/// Reason why an application cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// The adapter serves the maximum number of applications.
    #[error("too many applications: the adapter serves at most {0}")]
    TooMany(u32),
    /// The batching parameters are invalid.
    #[error(transparent)]
    Batching(#[from] BatchingError),
}

/// Sockets for applications on the other side of a bus.
///
/// The caller passes events of the stack to [`Adapter::handle_event`], requests to [`Adapter::handle_requests`] (at most as many
/// descriptors as [`Adapter::room_for_requests`] returns), and completed transfers to [`Adapter::handle_dma`]. After any of these, it calls
/// [`Adapter::poll_dma`] until that returns `None`; then [`Adapter::next_transfer`] and, for the part that the link took,
/// [`Adapter::transferred`], until no response is due; and it handles the stack's segments and events. At the time that
/// [`Adapter::poll_timeout`] returns, it calls [`Adapter::handle_timeouts`] and `next_transfer` again. Methods that take a [`SessionId`]
/// panic if there is no such session.
#[derive(Debug)]
pub struct Adapter<P> {
    shared: Shared<P>,
    sessions: Slab<Session<P>>,
    /// Totals of detached sessions.
    of_gone: SessionStats,
    /// Reused buffer for one transfer of descriptors.
    scratch: Vec<Descriptor>,
}

impl<P: Payload + Inline> Adapter<P> {
    /// Creates an adapter without applications.
    ///
    /// # Errors
    /// Names the invalid parameter and the accepted values.
    pub fn new(config: AdapterConfig) -> Result<Self, AdapterConfigError> {
        config.validate()?;
        let shared = Shared {
            owners: Owners::new(config.most_drained),
            ports: Ports::new(&config),
            limits: Limits::new(&config.load_control, config.hard_limit),
            on_board: OnBoard::new(config.memory),
            activity: ActivityClock::default(),
            wanted: Vec::new(),
            packets: VecDeque::new(),
            packets_passed: 0,
            exported: 0,
            custody: None,
            config,
        };
        Ok(Self {
            shared,
            sessions: Slab::new(),
            of_gone: SessionStats::default(),
            scratch: Vec::new(),
        })
    }

    // --- getters ---

    /// Returns the parameters of the adapter.
    pub fn config(&self) -> &AdapterConfig {
        &self.shared.config
    }

    /// Returns the totals of all applications, including detached ones.
    pub fn stats(&self) -> SessionStats {
        let mut stats = self.of_gone;
        for (_, session) in &self.sessions {
            stats += session.stats;
        }
        stats
    }

    /// Returns the applications.
    pub fn sessions(&self) -> impl Iterator<Item = SessionRow> + '_ {
        self.sessions.iter().map(|(_, session)| session.row())
    }

    /// Returns the sockets of an application.
    pub fn sockets<'a>(
        &'a self,
        stack: &'a Stack<P>,
        session: SessionId,
    ) -> impl Iterator<Item = SocketRow> + 'a {
        self.session(session).socket_rows(stack)
    }

    /// Returns the description of one application.
    pub fn row(&self, session: SessionId) -> SessionRow {
        self.session(session).row()
    }

    /// Returns the application that owns a connection, if any.
    pub fn session_of(&self, conn: ConnId) -> Option<SessionId> {
        match self.shared.owners.of(conn) {
            Owner::Socket(place) => Some(SessionId(place.session)),
            Owner::Nobody | Owner::Orphan { .. } => None,
        }
    }

    /// Returns whether [`pump`] has work even if the application has done nothing: transfers to start, or responses that are not held up by
    /// a full queue at the application.
    pub fn has_work(&self, session: SessionId) -> bool {
        let session = self.session(session);
        let responses = session.responses.queue();
        let can_go = !responses.is_empty() && !responses.is_held_up();
        can_go || !session.asked.is_empty() || !session.owed.is_empty()
    }

    /// Returns whether no response to an application is pending.
    #[inline]
    pub fn is_silent(&self, session: SessionId) -> bool {
        let session = self.session(session);
        session.responses.queue().is_empty() && session.owed.is_empty()
    }

    /// Returns the totals of one application.
    pub fn stats_of(&self, session: SessionId) -> &SessionStats {
        &self.session(session).stats
    }

    /// Returns the pending responses to an application.
    pub fn queue(&self, session: SessionId) -> &DescriptorQueue {
        self.session(session).responses.queue()
    }

    /// Returns Cnum: the number of imported connections on the adapter.
    pub fn imported(&self) -> u32 {
        self.shared.limits.connections()
    }

    /// Returns the number of connections handed back to their hosts since the start.
    pub fn exported(&self) -> u64 {
        self.shared.exported
    }

    /// Returns Soft_Limit: the maximum number of imported connections at present.
    pub fn soft_limit(&self) -> u32 {
        self.shared.limits.soft_limit()
    }

    /// Returns the state of load control.
    pub fn load_state(&self) -> crate::LoadState {
        self.shared.limits.load_state()
    }

    /// Returns whether an application waits for a connection at the listener for `local`, or `None` if there is no listener.
    pub fn is_accepting(&self, stack: &Stack<P>, local: Endpoint) -> Option<bool> {
        let listener = stack.listener_of(local)?;
        let mut places = self.shared.owners.of_listener(listener);
        Some(places.any(|place| {
            self.session(SessionId(place.session))
                .is_accepting(place.slot)
        }))
    }

    /// Returns the number of connections that have not ended yet although their application has gone or has reset them.
    pub fn orphans(&self) -> usize {
        self.shared.owners.orphans()
    }

    /// Returns the number of request descriptors that the session accepts now: 0 while responses do not fit in their queue.
    pub fn room_for_requests(&self, session: SessionId) -> usize {
        self.session(session).responses.room()
    }

    /// Returns the time at which [`Adapter::handle_timeouts`] or [`Adapter::next_transfer`] of some session must be called next, if any.
    /// The time may be early.
    pub fn poll_timeout(&self) -> Option<Time> {
        let overdue = self.shared.owners.next_overdue();
        let due = (self.sessions.iter())
            .map(|(_, session)| session.due())
            .fold(overdue.unwrap_or(Time::NEVER), Time::min);
        (due < Time::NEVER).then_some(due)
    }

    // --- mutators ---

    /// Replaces load control by the caller's own. Must be called before there are connections.
    pub fn set_governor(&mut self, governor: Box<dyn Governor>) {
        self.shared.limits.set_governor(governor);
    }

    /// Makes the adapter import only connections that `custody` permits. Must be called before there are applications.
    pub fn set_custody(&mut self, custody: Box<dyn Custody<P>>) {
        self.shared.custody = Some(custody);
    }

    /// Makes the adapter agree on ports with other adapters that have the same addresses. Must be called before there are applications.
    pub fn set_port_registry(&mut self, registry: Box<dyn PortRegistry>) {
        self.shared.ports.set_registry(registry);
    }

    /// Sets the operating system's number of the user that runs an application.
    pub fn set_user(&mut self, session: SessionId, user: u32) {
        self.session_mut(session).user = Some(user);
    }

    /// Makes the adapter settle connections before it hands them back, for at most `longest` ([`AdapterConfig::settle`]).
    pub fn settle_before_export(&mut self, longest: Span) {
        self.shared.config.settle = Some(longest);
    }

    /// Replaces the batching of an application's responses by the caller's own rule. Must be called before there are any responses.
    pub fn set_batching(&mut self, session: SessionId, rule: Box<dyn BatchingRule>) {
        self.session_mut(session).responses.set_batching(rule);
    }

    /// Enables timestamps for an application, on a clock that it shares with the adapter: [`Time::ZERO`] is `epoch_ns` nanoseconds after
    /// the zero of that clock. Without this, requests for timestamps are refused.
    pub fn set_epoch(&mut self, session: SessionId, epoch_ns: u64) {
        self.session_mut(session).epoch_ns = Some(epoch_ns);
    }

    // --- applications ---

    /// Adds an application, with the batching of the adapter.
    ///
    /// # Errors
    /// Fails if there are too many applications.
    pub fn attach(&mut self) -> Result<SessionId, AttachError> {
        let batching = self.shared.config.batching.clone();
        self.attach_with(&batching, self.shared.config.ring_depth)
    }

    /// Adds an application with its own batching and response queue depth.
    ///
    /// # Errors
    /// Fails if there are too many applications, or if the batching is invalid.
    pub fn attach_with(
        &mut self,
        batching: &Batching,
        ring_depth: u32,
    ) -> Result<SessionId, AttachError> {
        let config = &self.shared.config;
        if self.sessions.len() >= config.most_sessions as usize {
            return Err(AttachError::TooMany(config.most_sessions));
        }
        let entry = self.sessions.vacant_entry();
        let id = entry.key() as u32;
        entry.insert(Session::new(id, config, batching, ring_depth)?);
        Ok(SessionId(id))
    }

    /// Removes an application. Only connections that still have to end remain.
    pub fn detach(&mut self, now: Time, stack: &mut Stack<P>, session: SessionId, ending: Ending) {
        let session = self.sessions.remove(session.0 as usize);
        self.of_gone += session.stats;
        let shared = &mut self.shared;
        session.leave(&mut Work { now, stack, shared }, ending);
        self.settle_memory(now, stack);
    }

    // --- events in ---

    /// Processes requests: whole entries, as the link delivered them.
    ///
    /// # Errors
    /// Reports a violation by the application, which the caller must then detach.
    pub fn handle_requests(
        &mut self,
        now: Time,
        stack: &mut Stack<P>,
        session: SessionId,
        requests: &[Descriptor],
    ) -> Result<(), Violation> {
        let (of, mut work) = self.begin(now, stack, session);
        let result = of.handle_requests(&mut work, requests);
        of.count_states(&mut work);
        self.settle_memory(now, stack);
        result
    }

    /// Processes a completed data transfer.
    ///
    /// # Errors
    /// Fails if the adapter did not request the transfer, or if its length differs from the request. The caller must then detach the
    /// application.
    pub fn handle_dma(
        &mut self,
        now: Time,
        stack: &mut Stack<P>,
        session: SessionId,
        dma: Dma<P>,
    ) -> Result<(), Violation> {
        let (of, mut work) = self.begin(now, stack, session);
        let result = of.handle_dma(&mut work, dma);
        of.count_states(&mut work);
        self.settle_memory(now, stack);
        result
    }

    /// Processes all events of a stack that has no other user. Returns whether there were any.
    #[inline]
    pub fn handle_events(&mut self, now: Time, stack: &mut Stack<P>) -> bool {
        let mut any = false;
        while let Some((conn, event)) = stack.poll_event() {
            any = true;
            let known = self.handle_event(now, stack, conn, &event);
            debug_assert!(known, "all connections are sockets");
        }
        any
    }

    /// Processes an event of the stack. Returns false if the event does not concern the adapter.
    #[inline(never)]
    pub fn handle_event(
        &mut self,
        now: Time,
        stack: &mut Stack<P>,
        conn: ConnId,
        event: &Event,
    ) -> bool {
        if let Event::Acceptable(listener) = *event {
            return self.serve_listener(now, stack, listener);
        }
        match self.shared.owners.of(conn) {
            Owner::Nobody => false,
            Owner::Orphan { .. } => {
                if let Event::Closed(_) = event {
                    self.shared.forget(conn);
                    self.settle_memory(now, stack);
                }
                true
            }
            Owner::Socket(place) => {
                let (session, mut work) = self.begin(now, stack, SessionId(place.session));
                session.handle_event(&mut work, place.slot, conn, event);
                session.count_states(&mut work);
                self.settle_memory(now, stack);
                true
            }
        }
    }

    /// Gives a listener's connections to the sockets that share it, one ACCEPT each in turn. Returns false if it belongs to no socket.
    fn serve_listener(&mut self, now: Time, stack: &mut Stack<P>, listener: ListenerId) -> bool {
        let sharers = self.shared.owners.of_listener(listener).len();
        let mut without = 0;
        while without < sharers
            && let Some(place) = self.shared.owners.next_acceptor(listener)
        {
            let (session, mut work) = self.begin(now, stack, SessionId(place.session));
            let is_served = session.serve_accept(&mut work, place.slot);
            without = if is_served { 0 } else { without + 1 };
        }
        sharers > 0
    }

    /// Performs all actions that are due at `now`.
    pub fn handle_timeouts(&mut self, now: Time, stack: &mut Stack<P>) {
        let shared = &mut self.shared;
        while let Some(conn) = shared.owners.pop_overdue(now) {
            closing::reset(&mut Work { now, stack, shared }, conn);
        }
        for (_, session) in &mut self.sessions {
            let mut work = Work { now, stack, shared };
            session.handle_timeouts(&mut work);
            session.count_states(&mut work);
        }
    }

    /// Performs the actions of one session that are due at `now`.
    fn handle_session_timeouts(&mut self, now: Time, stack: &mut Stack<P>, session: SessionId) {
        let (session, mut work) = self.begin(now, stack, session);
        session.handle_timeouts(&mut work);
        session.count_states(&mut work);
    }

    // --- effects out ---

    /// Returns the next data transfer to start.
    pub fn poll_dma(&mut self, session: SessionId) -> Option<DmaRequest<P>> {
        self.session_mut(session).asked.pop_front()
    }

    /// Returns the responses to transfer next, and whether the application waits for them. Empty if none are due.
    #[inline]
    pub fn next_transfer(&mut self, now: Time, session: SessionId) -> (&[Descriptor], bool) {
        let session = self.session_mut(session);
        session.settle_all(now);
        session.responses.next_transfer(now)
    }

    /// Records that the link has taken the first `taken` of the `offered` descriptors that [`Adapter::next_transfer`] returned.
    pub fn transferred(&mut self, now: Time, session: SessionId, taken: usize, offered: usize) {
        let responses = &mut self.session_mut(session).responses;
        responses.transferred(now, taken, offered);
    }

    // --- inside ---

    fn session(&self, id: SessionId) -> &Session<P> {
        &self.sessions[id.0 as usize]
    }

    fn session_mut(&mut self, id: SessionId) -> &mut Session<P> {
        &mut self.sessions[id.0 as usize]
    }

    fn begin<'a>(
        &'a mut self,
        now: Time,
        stack: &'a mut Stack<P>,
        session: SessionId,
    ) -> (&'a mut Session<P>, Work<'a, P>) {
        let shared = &mut self.shared;
        let session = &mut self.sessions[session.0 as usize];
        (session, Work { now, stack, shared })
    }

    /// Returns an empty buffer for a transfer.
    fn take_scratch(&mut self) -> Vec<Descriptor> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch
    }

    fn return_scratch(&mut self, scratch: Vec<Descriptor>) {
        self.scratch = scratch;
    }
}
