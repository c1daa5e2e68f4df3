//! The adapter: the sockets that hosts have on it, by descriptors (batching 2, "Event-driven TCP").
//!
//! An [`Adapter`] serves any number of applications over one TCP [`Stack`], which its owner lends to each call. It is
//! sans-I/O: whole entries of the request ring, transfers of data that are over, and events of the stack go in; transfers to begin
//! and responses come out. [`pump`] moves them to and from a link.
//!
//! What a host can rely on:
//! - Each request is answered exactly once, whatever happens, and in order where order means something: SENDs of a socket
//!   among themselves, RECVs of a socket among themselves; only what is refused is refused at once. With cumulative completion an
//!   answer to a SEND stands for the earlier ones.
//! - A buffer is the adapter's from the request to its answer. Where a connection ends while data of it is being transferred, the
//!   answer waits for the transfer.
//! - SEND is answered when its data has been fetched, not when it has been acknowledged: acknowledgments are never told.
//! - After a peer has closed and all its data has been delivered, RECVs that wait are answered with
//!   [`Status::EndOfStream`](baton_bus::descriptor::Status), and then the news `PeerClosed` is told, once. It is left out when the
//!   host has closed the socket or the connection is over by then.
//! - CLOSE of a connection is answered when it is over, after everything else of the socket; then the number is free. If a
//!   connection comes to its end without a CLOSE of both directions, the news `Over` takes the answer's place: the number is free
//!   as well, and requests that are on their way to it are refused with `NoSuchSocket`.
//! - CLOSE of the sending direction is answered when TCP has everything that comes before it.
//! - A CONNECT that failed leaves the socket as it was before, bound where it was bound.
//! - Sockets that an ACCEPT reserves take RECVs at once, before there is a connection.
//! - An INSERT is answered when it has been fetched; a SEND from the cache sends what was asked to stand there when the SEND was asked for,
//!   however long either takes, and nothing that is put there later changes it.
//! - What a host does wrong (no such socket, wrong state, too many) is answered with a status. Only descriptors that make no sense,
//!   lengths beyond what was agreed on and addresses beyond the end of memory are a [`Violation`].
//!
//! An application that does not take its responses stops only itself: as long as they find no room in its queue,
//! [`Adapter::room_for_requests`] is 0, and what arrives for it fills the windows of its own connections.

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
pub use pump::pump;
pub use rows::{SessionRow, SocketRow};
pub use stats::{ByStatus, SessionStats};

use crate::activity::ActivityClock;
use crate::load_control::Governor;
use baton_bus::link::{Dma, Inline, Violation};
use baton_bus::{Batching, BatchingError, BatchingRule, Descriptor, DescriptorQueue};
use baton_tcp::{ConnId, Event, Stack};
use baton_wire::{Payload, Span, Time};
use limits::Limits;
use on_board::OnBoard;
use owners::{Owner, Owners};
use ports::Ports;
use session::{Session, Shared, Work};
use slab::Slab;
use std::collections::VecDeque;

/// One application at the adapter. Good until [`Adapter::detach`]; used again after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// What becomes of the connections of an application that is gone. Those that it has closed itself go on to their end, and those whose
/// data has not all been fetched are reset, either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// They are reset.
    Reset,
    /// They are closed: what the adapter has is sent.
    Drain,
}

/// An application cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// There are as many as may be.
    #[error("too many applications: the adapter serves at most {0}")]
    TooMany(u32),
    /// Its batching cannot work.
    #[error(transparent)]
    Batching(#[from] BatchingError),
}

/// Sockets for applications on the other side of a bus.
///
/// Order of calls: events of the stack go to [`Adapter::handle_event`]. [`Adapter::handle_requests`], for at most as many descriptors as
/// [`Adapter::room_for_requests`] says, and [`Adapter::handle_dma`], as things arrive. After any of these: [`Adapter::poll_dma`] until it
/// gives nothing; then [`Adapter::next_transfer`] and, for what the link took of it, [`Adapter::transferred`], until there is none; and
/// the stack's segments and events. [`Adapter::handle_timeouts`] and `next_transfer` again when [`Adapter::poll_timeout`]'s moment has
/// come. Methods that take a [`SessionId`] panic when there is no such session.
#[derive(Debug)]
pub struct Adapter<P> {
    shared: Shared<P>,
    sessions: Slab<Session<P>>,
    /// Totals of those that are gone.
    of_gone: SessionStats,
    /// Memory for one transfer of descriptors.
    scratch: Vec<Descriptor>,
}

impl<P: Payload + Inline> Adapter<P> {
    /// An adapter without applications.
    ///
    /// # Errors
    /// Names the parameter that it cannot work with, and what was expected.
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

    /// Its parameters.
    pub fn config(&self) -> &AdapterConfig {
        &self.shared.config
    }

    /// Totals of all applications, those that are gone included.
    pub fn stats(&self) -> SessionStats {
        let mut stats = self.of_gone;
        for (_, session) in &self.sessions {
            stats += session.stats;
        }
        stats
    }

    /// The applications.
    pub fn sessions(&self) -> impl Iterator<Item = SessionRow> + '_ {
        self.sessions.iter().map(|(_, session)| session.row())
    }

    /// The sockets of an application.
    pub fn sockets<'a>(
        &'a self,
        stack: &'a Stack<P>,
        session: SessionId,
    ) -> impl Iterator<Item = SocketRow> + 'a {
        self.session(session).socket_rows(stack)
    }

    /// One application.
    pub fn row(&self, session: SessionId) -> SessionRow {
        self.session(session).row()
    }

    /// The application whose connection it is, if it is one's.
    pub fn session_of(&self, conn: ConnId) -> Option<SessionId> {
        match self.shared.owners.of(conn) {
            Owner::Socket(place) => Some(SessionId(place.session)),
            Owner::Nobody | Owner::Orphan { .. } => None,
        }
    }

    /// Whether there is something for [`pump`] to do even if the application has done nothing: transfers to begin, or responses that
    /// are not waiting for room at the application.
    pub fn has_work(&self, session: SessionId) -> bool {
        let session = self.session(session);
        let responses = session.responses.queue();
        let can_go = !responses.is_empty() && !responses.is_held_up();
        can_go || !session.asked.is_empty() || !session.owed.is_empty()
    }

    /// Whether no response waits for an application.
    #[inline]
    pub fn is_silent(&self, session: SessionId) -> bool {
        let session = self.session(session);
        session.responses.queue().is_empty() && session.owed.is_empty()
    }

    /// Totals of one application.
    pub fn stats_of(&self, session: SessionId) -> &SessionStats {
        &self.session(session).stats
    }

    /// Its responses that wait.
    pub fn queue(&self, session: SessionId) -> &DescriptorQueue {
        self.session(session).responses.queue()
    }

    /// Cnum: imported connections on the adapter.
    pub fn imported(&self) -> u32 {
        self.shared.limits.connections()
    }

    /// Connections that have left for their hosts since the start.
    pub fn exported(&self) -> u64 {
        self.shared.exported
    }

    /// Soft_Limit: the most connections that may be imported now.
    pub fn soft_limit(&self) -> u32 {
        self.shared.limits.soft_limit()
    }

    /// State of load control.
    pub fn load_state(&self) -> crate::LoadState {
        self.shared.limits.load_state()
    }

    /// Connections of applications that are gone, or that they have reset, which are not over yet.
    pub fn orphans(&self) -> usize {
        self.shared.owners.orphans()
    }

    /// Descriptors of requests that may be taken now: 0 while responses find no room.
    pub fn room_for_requests(&self, session: SessionId) -> usize {
        self.session(session).responses.room()
    }

    /// When [`Adapter::handle_timeouts`] or [`Adapter::next_transfer`] of some session is next to be called, if ever. May be early.
    pub fn poll_timeout(&self) -> Option<Time> {
        let overdue = self.shared.owners.next_overdue();
        let due = (self.sessions.iter())
            .map(|(_, session)| session.due())
            .fold(overdue.unwrap_or(Time::NEVER), Time::min);
        (due < Time::NEVER).then_some(due)
    }

    // --- mutators ---

    /// Load control of the caller's own in place of what the parameters say. To be given before there are connections.
    pub fn set_governor(&mut self, governor: Box<dyn Governor>) {
        self.shared.limits.set_governor(governor);
    }

    /// Takes over only what `custody` lets it. To be given before there are applications.
    pub fn set_custody(&mut self, custody: Box<dyn Custody<P>>) {
        self.shared.custody = Some(custody);
    }

    /// Whose an application is, by the system's number of that user.
    pub fn set_user(&mut self, session: SessionId, user: u32) {
        self.session_mut(session).user = Some(user);
    }

    /// Connections that leave for their hosts settle first, for so long at most ([`AdapterConfig::settle`]).
    pub fn settle_before_export(&mut self, longest: Span) {
        self.shared.config.settle = Some(longest);
    }

    /// Batching of an application's responses by a rule of the caller's own, before there are any.
    pub fn set_batching(&mut self, session: SessionId, rule: Box<dyn BatchingRule>) {
        self.session_mut(session).responses.set_batching(rule);
    }

    /// Tells an application times from now on, on a clock that it shares with the adapter: [`Time::ZERO`] was so many nanoseconds after that
    /// clock's. Without, what asks for times is refused.
    pub fn set_epoch(&mut self, session: SessionId, epoch_ns: u64) {
        self.session_mut(session).epoch_ns = Some(epoch_ns);
    }

    // --- applications ---

    /// Serves another application, with the batching of the adapter.
    ///
    /// # Errors
    /// There are too many.
    pub fn attach(&mut self) -> Result<SessionId, AttachError> {
        let batching = self.shared.config.batching.clone();
        self.attach_with(&batching, self.shared.config.ring_depth)
    }

    /// The same, with batching and a queue of its own.
    ///
    /// # Errors
    /// There are too many, or the batching cannot work.
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

    /// An application is gone. Nothing of it is left but connections on their way to their end.
    pub fn detach(&mut self, now: Time, stack: &mut Stack<P>, session: SessionId, ending: Ending) {
        let session = self.sessions.remove(session.0 as usize);
        self.of_gone += session.stats;
        let shared = &mut self.shared;
        session.leave(&mut Work { now, stack, shared }, ending);
        self.settle_memory(now, stack);
    }

    // --- events in ---

    /// Takes requests, whole entries as the link gave them.
    ///
    /// # Errors
    /// The application is not to be trusted: detach it, for this reason.
    pub fn handle_requests(
        &mut self,
        now: Time,
        stack: &mut Stack<P>,
        session: SessionId,
        requests: &[Descriptor],
    ) -> Result<(), Violation> {
        let (of, mut work) = self.begin(now, stack, session);
        let result = of.handle_requests(&mut work, requests);
        self.settle_memory(now, stack);
        result
    }

    /// A transfer of data is over.
    ///
    /// # Errors
    /// It was not asked for, or is not as long as what was asked for: the application is not to be trusted.
    pub fn handle_dma(
        &mut self,
        now: Time,
        stack: &mut Stack<P>,
        session: SessionId,
        dma: Dma<P>,
    ) -> Result<(), Violation> {
        let (of, mut work) = self.begin(now, stack, session);
        let result = of.handle_dma(&mut work, dma);
        self.settle_memory(now, stack);
        result
    }

    /// Takes note of what happened in the stack; false when it does not concern the adapter.
    pub fn handle_event(
        &mut self,
        now: Time,
        stack: &mut Stack<P>,
        conn: ConnId,
        event: &Event,
    ) -> bool {
        if let Event::Acceptable(listener) = *event {
            let Some(place) = self.shared.owners.of_listener(listener) else {
                return false;
            };
            let (session, mut work) = self.begin(now, stack, SessionId(place.session));
            session.serve_accepts(&mut work, place.slot);
            return true;
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
                self.settle_memory(now, stack);
                true
            }
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeouts(&mut self, now: Time, stack: &mut Stack<P>) {
        let shared = &mut self.shared;
        while let Some(conn) = shared.owners.pop_overdue(now) {
            closing::reset(&mut Work { now, stack, shared }, conn);
        }
        for (_, session) in &mut self.sessions {
            session.handle_timeouts(&mut Work { now, stack, shared });
        }
    }

    /// The same for one session.
    fn handle_session_timeouts(&mut self, now: Time, stack: &mut Stack<P>, session: SessionId) {
        let (session, mut work) = self.begin(now, stack, session);
        session.handle_timeouts(&mut work);
    }

    // --- effects out ---

    /// The next transfer of data to begin.
    pub fn poll_dma(&mut self, session: SessionId) -> Option<DmaRequest<P>> {
        self.session_mut(session).asked.pop_front()
    }

    /// The responses that are to be transferred next, and whether somebody waits for them; empty when none are due.
    #[inline]
    pub fn next_transfer(&mut self, now: Time, session: SessionId) -> (&[Descriptor], bool) {
        let session = self.session_mut(session);
        session.settle_all(now);
        session.responses.next_transfer(now)
    }

    /// The link has taken the first `taken` descriptors of the transfer of `offered` that was next.
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

    /// Memory for a transfer, empty.
    fn take_scratch(&mut self) -> Vec<Descriptor> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch
    }

    fn return_scratch(&mut self, scratch: Vec<Descriptor>) {
        self.scratch = scratch;
    }
}
