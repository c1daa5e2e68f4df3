//! The stack: lookup of connections by four-tuple, listeners, timers, TIME-WAIT.

mod arrival;
mod changed;
mod check;
mod cookies;
mod fast_open;
mod holding;
mod listening;
mod memory;
mod moving;
mod path;
mod settings;
mod table;
mod times;

use crate::challenge::ChallengeLimit;
use crate::clock::TimestampClock;
use crate::config::Config;
use crate::connection::{Connection, Context, Departure, Effects, End, Marks};
use crate::fast_open::FastOpenState;
use crate::flow_table::FlowTable;
use crate::isn::Secret;
use crate::listener::Listener;
use crate::memory::Memory;
use crate::path_mtus::PathMtus;
use crate::profiles::{ProfileId, Profiles};
use crate::segment::{Outgoing, OutgoingRun, RunLimit, Segment};
use crate::send_buffer::Lent;
use crate::time_wait::TimeWait;
use crate::types::{CloseReason, ConnId, Event, ListenerId, State, Stats, WriteError, WriteFlags};
use crate::wheel::Wheel;
use baton_wire::{Ecn, Endpoint, Flags, Flow, Header, Payload, SeqNr, Span, Time};
use changed::Changed;
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;
use times::Times;

/// Maximum number of resets and TIME-WAIT answers that wait to be sent.
const MOST_ANSWERS: usize = 1024;

/// Connections, listeners and timers of one host, NIC or client machine.
///
/// Calling order: after any `handle_*` or mutator, call [`Stack::poll_event`] and [`Stack::poll_transmit`] until each
/// returns `None`; call [`Stack::handle_timeouts`] at the time that [`Stack::poll_timeout`] returns. Time never goes back.
///
/// A [`ConnId`] is valid until [`Stack::poll_event`] has returned [`Event::Closed`] for it, or until it is exported. Before a
/// connection is accepted, its only event is [`Event::Acceptable`].
///
/// The example connects two stacks by a wire without delay. On a real wire, each call passes the current time, and timeouts are handled:
///
/// ```
/// use baton_tcp::{Config, Event, Stack};
/// use baton_wire::{Endpoint, Flow, Time};
/// use bytes::Bytes;
///
/// /// Carries segments until neither has any.
/// fn exchange(now: Time, a: &mut Stack<Bytes>, b: &mut Stack<Bytes>) {
///     loop {
///         if let Some((_, segment)) = a.poll_transmit(now) {
///             b.handle_segment(now, segment);
///         } else if let Some((_, segment)) = b.poll_transmit(now) {
///             a.handle_segment(now, segment);
///         } else {
///             return;
///         }
///     }
/// }
///
/// let now = Time::ZERO;
/// let mut client = Stack::new(Config::default(), 1);
/// let mut server = Stack::new(Config::default(), 2);
/// let address = Endpoint::new([10, 0, 0, 2].into(), 80);
/// let listener = server.listen(address, 16);
///
/// let flow = Flow { local: Endpoint::new([10, 0, 0, 1].into(), 49152), remote: address };
/// let asking = client.connect(now, flow).expect("the flow is not in use");
/// exchange(now, &mut client, &mut server);
/// assert_eq!(client.poll_event(), Some((asking, Event::Connected)));
/// let answering = server.accept(listener).expect("it has been acceptable");
///
/// client.write(asking, Bytes::from_static(b"hello")).expect("there is room");
/// exchange(now, &mut client, &mut server);
/// assert_eq!(server.read(answering, 100), Some(Bytes::from_static(b"hello")));
/// ```
#[derive(Debug)]
pub struct Stack<P> {
    /// Parameters in use: the stack's own and those of connections and listeners that differ.
    profiles: Profiles,
    secret: Secret,
    connections: Slab<Connection<P>>,
    flows: FlowTable,
    listeners: Slab<Listener>,
    listening: FxHashMap<Endpoint, ListenerId>,
    time_wait: TimeWait,
    wheel: Wheel,
    /// Connections that may have something to send. Entries whose connection is not `queued` are stale.
    output: VecDeque<u32>,
    /// Segments to send that belong to no connection: resets, and acknowledgments of TIME-WAIT.
    answers: VecDeque<Answer>,
    /// Connections that have changed, if the owner wants to know them.
    changed: Option<Changed>,
    /// Connections in the output queue that are reset when they have nothing more to send.
    resets: Vec<u32>,
    /// The segment that is being sent.
    departure: Departure,
    events: VecDeque<(ConnId, Event)>,
    stats: Stats,
    challenges: ChallengeLimit,
    fast_open: FastOpenState,
    path_mtus: PathMtus,
    /// Times of connections whose owners asked for them, by slot.
    times: FxHashMap<u32, Times>,
    /// The interface accepts no segments.
    is_held: bool,
    /// The largest MSS of connections over IPv6, whose header is longer than IPv4's.
    ipv6_mss: u16,
    memory: Memory,
}

impl<P: Payload> Stack<P> {
    /// Creates an empty stack. `secret` seeds initial sequence numbers and everything else that must not be guessed.
    pub fn new(config: Config, secret: u64) -> Self {
        let secret = Secret::new(secret);
        let key = secret.table_key();
        let fast_open = FastOpenState::new(&secret);
        Self {
            profiles: Profiles::new(config),
            secret,
            connections: Slab::new(),
            flows: FlowTable::new(key),
            listeners: Slab::new(),
            listening: FxHashMap::default(),
            time_wait: TimeWait::new(key),
            wheel: Wheel::new(),
            output: VecDeque::new(),
            answers: VecDeque::new(),
            changed: None,
            resets: Vec::new(),
            departure: Departure::default(),
            events: VecDeque::new(),
            stats: Stats::default(),
            challenges: ChallengeLimit::new(key),
            fast_open,
            path_mtus: PathMtus::default(),
            times: FxHashMap::default(),
            is_held: false,
            ipv6_mss: u16::MAX,
            memory: Memory::new(),
        }
    }

    // --- getters ---

    /// The stack's own parameters.
    pub fn config(&self) -> &Config {
        &self.profiles[0]
    }

    /// Secret of the flow labels of this host's IPv6 packets.
    pub fn flow_label_key(&self) -> u64 {
        self.secret.flow_label_key()
    }

    /// Totals since the stack was created.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Number of connections, without those in TIME-WAIT.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Reports whether there is no connection.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of connections in TIME-WAIT; expired ones count until their memory is reused.
    pub fn time_wait_len(&self) -> usize {
        self.time_wait.len()
    }

    /// Reports whether `flow` is in TIME-WAIT.
    pub fn in_time_wait(&self, now: Time, flow: &Flow) -> bool {
        self.time_wait.contains(now, flow)
    }

    /// The connection of `flow`, if the stack has it and it is not in TIME-WAIT.
    pub fn find(&self, flow: &Flow) -> Option<ConnId> {
        self.flows
            .find(flow, |slot| &self.connections[slot as usize].flow)
            .map(ConnId)
    }

    /// The connection of an arriving segment. Tries the last one first, since consecutive segments often share a connection.
    #[inline(always)]
    fn find_recent(&mut self, segment: &Segment<P>) -> Option<ConnId> {
        if let Some(slot) = self.flows.recent()
            && segment.is_of(&self.connections[slot as usize].flow)
        {
            return Some(ConnId(slot));
        }
        let Self {
            flows, connections, ..
        } = self;
        let flow = segment.flow_at_receiver();
        flows
            .find_for_segment(&flow, |slot| &connections[slot as usize].flow)
            .map(ConnId)
    }

    /// The connection's four-tuple.
    pub fn flow(&self, id: ConnId) -> Flow {
        self.conn(id).flow
    }

    /// The connection's state. [`State::TimeWait`] also stands for a connection that has ended but whose owner has data to
    /// read or has not polled [`Event::Closed`].
    pub fn state(&self, id: ConnId) -> State {
        self.conn(id).state
    }

    /// Bytes that [`Stack::write`] would accept now.
    pub fn send_space(&self, id: ConnId) -> usize {
        let conn = self.conn(id);
        conn.send_space(
            &self.profiles[conn.profile],
            self.memory.judged(conn.charge),
        )
    }

    /// Bytes written and not yet acknowledged.
    pub fn unacknowledged(&self, id: ConnId) -> usize {
        self.conn(id).unacknowledged()
    }

    /// The sequence number after the last byte that was written.
    pub fn send_end(&self, id: ConnId) -> SeqNr {
        self.conn(id).send_end()
    }

    /// Reports whether everything before `seq`, which was written, has been acknowledged.
    pub fn has_acknowledged(&self, id: ConnId, seq: SeqNr) -> bool {
        self.conn(id).has_acknowledged(seq)
    }

    /// Distance of the byte with sequence number `seq` from the first unacknowledged byte.
    pub fn send_offset(&self, id: ConnId, seq: SeqNr) -> u32 {
        self.conn(id).send_offset(seq)
    }

    /// Reports whether everything sent, a FIN included, is acknowledged, and nothing was received beyond a hole. When a connection
    /// that [settles](Stack::set_settling) comes to rest, there is an [`Event::Acknowledged`].
    pub fn is_at_rest(&self, id: ConnId) -> bool {
        self.conn(id).is_at_rest()
    }

    /// Bytes that wait to be read.
    pub fn readable_len(&self, id: ConnId) -> usize {
        self.conn(id).readable_len()
    }

    /// Bytes that [`Stack::read`] returns before the last byte that the peer marked as urgent. `None` if there was none, or it was
    /// read.
    pub fn urgent_distance(&self, id: ConnId) -> Option<u32> {
        self.conn(id).urgent_distance()
    }

    fn conn(&self, id: ConnId) -> &Connection<P> {
        &self.connections[id.0 as usize]
    }

    // --- events in (segments: see `arrival`) ---

    /// Runs the timers that are due. Returns how many connections had one (for cost accounting).
    pub fn handle_timeouts(&mut self, now: Time) -> usize {
        let mut count = 0;
        let last_tick = self.last_tick(now);
        loop {
            let Self {
                wheel,
                connections,
                profiles,
                stats,
                challenges,
                fast_open,
                path_mtus,
                ..
            } = self;
            let deadline_of = |slot: u32| {
                connections
                    .get(slot as usize)
                    .map_or(Time::NEVER, Connection::next_deadline)
            };
            let Some(slot) = wheel.pop_due(last_tick, deadline_of) else {
                return count;
            };
            let Some(conn) = connections.get_mut(slot as usize) else {
                continue;
            };
            if conn.next_deadline() > last_tick {
                wheel.schedule(now, slot, conn.next_deadline());
                continue;
            }
            count += 1;
            // ICMP may have reported a smaller MTU of the path to another connection (RFC 8201 5.2).
            if let Some(mtu) = path_mtus.get(now, conn.flow.remote.addr) {
                conn.hear_of_path(&profiles[conn.profile], mtu);
            }
            let mut effects = conn.handle_timeouts(&mut Context {
                now,
                config: &profiles[conn.profile],
                stats,
                challenges,
                fast_open,
            });
            self.apply(now, ConnId(slot), &mut effects);
        }
    }

    // --- mutators ---

    /// Limits the MSS of future connections over IPv6, bytes (RFC 9293 3.7.1: the header of IPv6 takes 20 bytes more of a link's MTU than
    /// that of IPv4).
    pub fn limit_ipv6_mss(&mut self, mss: u16) {
        self.ipv6_mss = mss;
    }

    /// The parameters of a profile for a connection with this local address.
    fn profile_for(&mut self, local: Endpoint, profile: ProfileId) -> ProfileId {
        let config = &self.profiles[profile];
        if local.addr.is_ipv4() || config.mss <= self.ipv6_mss {
            return profile;
        }
        let narrower = Config {
            mss: self.ipv6_mss,
            ..config.clone()
        };
        let Some(narrower) = self.profiles.intern(&narrower) else {
            return profile;
        };
        self.profiles.release(profile);
        narrower
    }

    /// Opens a connection with the stack's parameters. Returns `None` if one with this four-tuple exists (TIME-WAIT included).
    pub fn connect(&mut self, now: Time, flow: Flow) -> Option<ConnId> {
        let profile = self.profiles.share(0);
        self.open_actively(now, flow, profile)
    }

    /// Opens a connection with parameters of its own. Returns `None` if one with this four-tuple exists (TIME-WAIT included),
    /// or if too many different parameters are in use.
    pub fn connect_with(&mut self, now: Time, flow: Flow, config: Config) -> Option<ConnId> {
        let profile = self.profiles.intern(&config)?;
        self.open_actively(now, flow, profile)
    }

    fn open_actively(&mut self, now: Time, flow: Flow, profile: ProfileId) -> Option<ConnId> {
        if self.find(&flow).is_some() || self.time_wait.contains(now, &flow) {
            self.profiles.release(profile);
            return None;
        }
        let profile = self.profile_for(flow.local, profile);
        let iss = self.secret.sequence(now, &flow);
        let clock = TimestampClock::new(self.secret.timestamp_offset(&flow));
        let mut conn = Connection::connecting(now, flow, &self.profiles[profile], iss, clock);
        conn.profile = profile;
        let id = self.insert(conn);
        self.hear_of_path(now, id);
        self.touch(now, id);
        Some(id)
    }

    /// Appends data to be sent, all of it or as much as fits; returns how many bytes were accepted.
    ///
    /// # Errors
    /// When this direction was closed.
    pub fn write(&mut self, id: ConnId, data: P) -> Result<usize, WriteError> {
        self.write_with(id, data, WriteFlags::default())
    }

    /// Does the same as [`Stack::write`]; `flags` says how the data relates to data that is written later.
    ///
    /// # Errors
    /// When this direction was closed.
    pub fn write_with(
        &mut self,
        id: ConnId,
        data: P,
        flags: WriteFlags,
    ) -> Result<usize, WriteError> {
        self.judge(id);
        let conn = &mut self.connections[id.0 as usize];
        let taken = conn
            .write(data, flags, &self.profiles[conn.profile])
            .ok_or(WriteError::Closed)?;
        self.enqueue(id);
        Ok(taken)
    }

    /// Returns at most `max` bytes of received data from the `skip`-th on, from a single piece, without taking them: call
    /// again with a larger `skip` for more. `None` if there are no more.
    pub fn peek(&self, id: ConnId, skip: usize, max: usize) -> Option<P> {
        self.conn(id).peek(skip, max)
    }

    /// Reports the next data that arrives, even if the data that was reported before is not read yet. By default, [`Event::Readable`] is
    /// not repeated until something is read.
    pub fn report_more(&mut self, id: ConnId) {
        self.connections[id.0 as usize].report_more();
    }

    /// Acknowledges received data now, and the next segments immediately (TCP_QUICKACK).
    pub fn quick_ack(&mut self, id: ConnId) {
        let conn = &mut self.connections[id.0 as usize];
        conn.quick_ack(&self.profiles[conn.profile]);
        self.enqueue(id);
    }

    /// Delays ACKs, so that they can travel with answers, until one has waited without an answer (TCP_QUICKACK off).
    pub fn delay_acks(&mut self, id: ConnId) {
        self.connections[id.0 as usize].delay_acks();
    }

    /// Closes the receiving direction (SHUT_RD), without notice to the peer. As in Linux, data that arrives while this end may
    /// still write is received and can be read; later data is answered by a reset.
    pub fn shutdown_receive(&mut self, id: ConnId) {
        self.connections[id.0 as usize]
            .marks
            .insert(Marks::READ_SHUT);
    }

    /// Takes at most `max` bytes of received data. Does *not* open the window: see [`Stack::consume`].
    pub fn read(&mut self, id: ConnId, max: usize) -> Option<P> {
        let conn = &mut self.connections[id.0 as usize];
        let piece = conn.read(max);
        if piece.is_some() && conn.ended.is_some() {
            self.tell_end_if_read(id);
        }
        piece
    }

    /// Frees the buffer space of `len` bytes that `read` returned, which opens the window by as much.
    pub fn consume(&mut self, id: ConnId, len: usize) {
        self.connections[id.0 as usize].consume(len as u32);
        self.enqueue(id);
    }

    /// Turns Nagle's algorithm off (`true`) or on. When it is turned off, pending data is sent immediately, even if corked.
    pub fn set_nodelay(&mut self, id: ConnId, nodelay: bool) {
        self.connections[id.0 as usize].set_nodelay(nodelay);
        self.enqueue(id);
    }

    /// Holds partial segments back while set (TCP_NOPUSH, TCP_CORK); clearing it sends them.
    pub fn set_cork(&mut self, id: ConnId, cork: bool) {
        self.connections[id.0 as usize].marks.set(Marks::CORK, cork);
        self.enqueue(id);
    }

    /// Holds new data back while set, whatever the windows allow: an owner that sends in bursts may wait until a larger one is
    /// possible. Lost data is still sent again. Something must be in flight whose acknowledgment ends the wait.
    pub fn set_deferred(&mut self, id: ConnId, deferred: bool) {
        self.connections[id.0 as usize].set_deferred(deferred);
        if !deferred {
            self.enqueue(id);
        }
    }

    /// Makes an open connection settle, or resume. While it settles, it sends neither data nor a FIN that was not sent before, but still
    /// sends retransmissions, acknowledgments, window updates and probes. Once nothing is in flight, [`Stack::is_at_rest`] is true,
    /// unless the peer's data has a hole. After a move a connection does not settle any more.
    pub fn set_settling(&mut self, id: ConnId, settling: bool) {
        self.connections[id.0 as usize].set_settling(settling);
        self.enqueue(id);
    }

    /// Closes the sending direction: a FIN follows the written data (half close).
    pub fn shutdown(&mut self, id: ConnId) {
        self.connections[id.0 as usize].shutdown();
        self.enqueue(id);
    }

    /// Closes both directions: like `shutdown`, and data that still arrives is answered by a reset, as is data that
    /// waits to be read now (RFC 9293 3.6.1).
    pub fn close(&mut self, id: ConnId) {
        let conn = &mut self.connections[id.0 as usize];
        if conn.ended.is_some() {
            self.drop_unread(id);
        } else if conn.state == State::SynSent
            || (conn.readable_len() > 0 && self.profiles[conn.profile].abort_on_close_with_unread)
        {
            self.abort(id);
        } else {
            conn.close();
            self.enqueue(id);
        }
    }

    /// Ends the connection immediately with a reset.
    pub fn abort(&mut self, id: ConnId) {
        let conn = &mut self.connections[id.0 as usize];
        if conn.ended.is_some() {
            self.drop_unread(id);
            return;
        }
        let (flow, clock) = (conn.flow, conn.clock());
        if let Some(reset) = conn.abort_header(&self.profiles[conn.profile]) {
            self.answer_by(flow, reset, Some(clock));
        }
        self.finish(id, CloseReason::Aborted);
    }

    /// Sends the segments that may be sent now, and then ends the connection with a reset. Linux does the same on a socket that does not
    /// linger, because `send` has sent those segments by then.
    pub fn abort_after_output(&mut self, id: ConnId) {
        if self.conn(id).ended.is_some() {
            return self.abort(id);
        }
        self.resets.push(id.0);
        self.enqueue(id);
    }

    /// Drops the unread data of a connection that has ended.
    fn drop_unread(&mut self, id: ConnId) {
        let conn = &mut self.connections[id.0 as usize];
        if conn.readable_len() > 0 {
            conn.discard_received();
            self.charge(id);
            self.tell_end_if_read(id);
        }
    }

    // --- effects out ---

    /// Reports whether there may be a segment to send. If not, there is certainly none.
    #[inline]
    pub fn may_transmit(&self) -> bool {
        !self.answers.is_empty() || !self.output.is_empty()
    }

    /// Returns the next segment to send, if any may be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Option<ConnId>, Segment<P>)> {
        let outgoing = self.poll_outgoing(now)?;
        Some((outgoing.conn, outgoing.to_segment()))
    }

    /// Returns the next segment to send without copying it, for callers that write it into a frame immediately.
    #[inline]
    pub fn poll_outgoing(&mut self, now: Time) -> Option<Outgoing<'_, P>> {
        Some(self.poll_run(now, RunLimit::ONE)?.first)
    }

    /// Returns the next segments to send that differ only in their numbers, for callers that write several frames at a time.
    #[inline]
    pub fn poll_run(&mut self, now: Time, limit: RunLimit) -> Option<OutgoingRun<'_, P>> {
        if self.is_held {
            self.hold_output(now);
            return None;
        }
        while self.answers.is_empty() {
            let &slot = self.output.front()?;
            if self.poll_connection(now, slot, limit) {
                let segments = self.departure.more + 1;
                self.stats.segments_sent += u64::from(segments);
                let conn = &mut self.connections[slot as usize];
                if !conn.queued {
                    self.output.pop_front();
                }
                let first = Outgoing {
                    conn: Some(ConnId(slot)),
                    src: conn.flow.local,
                    dst: conn.flow.remote,
                    ecn: self.departure.ecn,
                    header: &self.departure.header,
                    payload: conn.lend(&self.departure),
                };
                return Some(OutgoingRun {
                    first,
                    segments,
                    pushes: self.departure.pushes,
                });
            }
            self.output.pop_front();
            if self.resets.contains(&slot) {
                self.abort(ConnId(slot));
            }
        }
        let first = self.poll_answer(now)?;
        Some(OutgoingRun {
            first,
            segments: 1,
            pushes: false,
        })
    }

    fn poll_answer(&mut self, now: Time) -> Option<Outgoing<'_, P>> {
        let answer = self.answers.pop_front()?;
        let header = &mut self.departure.header;
        *header = answer.header;
        if let (Some(clock), Some(timestamps)) = (answer.clock, &mut header.options.timestamps) {
            timestamps.value = clock.value(now);
        }
        self.stats.segments_sent += 1;
        Some(Outgoing {
            conn: None,
            src: answer.flow.local,
            dst: answer.flow.remote,
            ecn: Ecn::NotCapable,
            header,
            payload: Lent::nothing(),
        })
    }

    /// Fills in the next segments of a connection in the output queue, if there are any. If none follow them, the connection is
    /// no longer `queued`.
    fn poll_connection(&mut self, now: Time, slot: u32, limit: RunLimit) -> bool {
        let Self {
            connections,
            profiles,
            stats,
            challenges,
            fast_open,
            wheel,
            departure,
            memory,
            resets,
            ..
        } = self;
        let conn = connections.get_mut(slot as usize);
        let Some(conn) = conn.filter(|conn| conn.queued) else {
            return false;
        };
        conn.charge = memory.judged(conn.charge);
        let mut context = Context {
            now,
            config: &profiles[conn.profile],
            stats,
            challenges,
            fast_open,
        };
        let sends = conn.poll_run(&mut context, limit, departure);
        wheel.schedule(now, slot, conn.next_deadline());
        let is_left = !departure.is_last || resets.contains(&slot);
        conn.queued = sends && is_left;
        if sends && conn.marks.contains(Marks::TRANSMIT_TIMES) {
            self.note_times(now, ConnId(slot), None);
        }
        sends
    }

    /// Returns the next event.
    #[inline]
    pub fn poll_event(&mut self) -> Option<(ConnId, Event)> {
        match self.events.is_empty() {
            true => None,
            false => self.take_event(),
        }
    }

    fn take_event(&mut self) -> Option<(ConnId, Event)> {
        let (id, event) = self.events.pop_front()?;
        if matches!(event, Event::Closed(_)) {
            self.remove(id);
        }
        Some((id, event))
    }

    /// When [`Stack::handle_timeouts`] must be called next, if ever. May be early, never late.
    pub fn poll_timeout(&self) -> Option<Time> {
        let next = self.wheel.next()?;
        match self.timer_tick() {
            0 => Some(next),
            tick => next
                .as_ps()
                .checked_next_multiple_of(tick)
                .map(Time::from_ps),
        }
    }

    /// Returns the last tick of the clock with which timers end.
    fn last_tick(&self, now: Time) -> Time {
        match self.timer_tick() {
            0 => now,
            tick => Time::from_ps(now.as_ps() / tick * tick),
        }
    }

    fn timer_tick(&self) -> u64 {
        Span::from_ms(self.config().timer_tick_ms.into()).as_ps()
    }

    /// Shortest time a timer of this stack can run; the granularity of `poll_timeout`.
    pub fn tick(&self) -> Span {
        Wheel::tick()
    }

    // --- inside ---

    /// Adds a connection with a new four-tuple.
    fn insert(&mut self, conn: Connection<P>) -> ConnId {
        let flow = conn.flow;
        let len = self.connections.len();
        if len == self.connections.capacity() {
            // Doubling, which is the default, would leave a third of many connections' memory unused.
            self.connections.reserve_exact((len / 8).max(64));
        }
        let slot = self.connections.insert(conn) as u32;
        let connections = &self.connections;
        self.flows
            .insert(&flow, slot, |slot| &connections[slot as usize].flow);
        ConnId(slot)
    }

    /// Frees a connection's slot.
    fn remove(&mut self, id: ConnId) -> Connection<P> {
        let mut conn = self.connections.remove(id.0 as usize);
        self.resets.retain(|&slot| slot != id.0);
        self.memory.release(&mut conn.charge);
        self.profiles.release(conn.profile);
        self.forget_times(id.0, conn.marks);
        conn
    }

    /// Queues a changed connection for output, and updates its timer.
    fn touch(&mut self, now: Time, id: ConnId) {
        self.enqueue(id);
        self.wheel
            .schedule(now, id.0, self.connections[id.0 as usize].next_deadline());
    }

    fn enqueue(&mut self, id: ConnId) {
        self.charge(id);
        let conn = &mut self.connections[id.0 as usize];
        if !conn.queued && conn.ended.is_none() {
            conn.queued = true;
            self.output.push_back(id.0);
        }
        if let Some(changed) = &mut self.changed {
            changed.push(id.0);
        }
    }

    /// Reports to the new owner what happened before the connection was accepted.
    fn tell_what_waited(&mut self, id: ConnId) {
        let conn = &mut self.connections[id.0 as usize];
        if conn.urgent_distance().is_some() {
            self.events.push_back((id, Event::Urgent));
        }
        if conn.readable_len() > 0 {
            conn.marks.insert(Marks::READABLE_TOLD);
            self.events.push_back((id, Event::Readable));
        }
        if conn.state == State::CloseWait {
            self.events.push_back((id, Event::PeerClosed));
        }
    }

    /// Carries out the effects of an operation on a connection.
    fn apply(&mut self, now: Time, id: ConnId, effects: &mut Effects) {
        let conn = &mut self.connections[id.0 as usize];
        if effects.established && conn.is_opened_fast() {
            // The listener's owner was notified when the SYN arrived.
            conn.end_fast_open();
            let local = conn.flow.local;
            self.end_fast_open(id, local);
        } else if effects.established {
            match conn.listener {
                Some(listener) => {
                    let waiting = &mut self.listeners[listener.0 as usize];
                    waiting.half_open_ended();
                    waiting.enqueue(id);
                    self.events.push_back((id, Event::Acceptable(listener)));
                }
                None => self.events.push_back((id, Event::Connected)),
            }
        }
        let conn = &mut self.connections[id.0 as usize];
        if conn.listener.is_none() {
            if effects.urgent {
                self.events.push_back((id, Event::Urgent));
            }
            tell_of_data(&mut self.events, id, conn, effects);
            if conn.marks.contains(Marks::SETTLING) && conn.is_at_rest() {
                push_acknowledged(&mut self.events, id, 0);
            }
            if effects.peer_closed && !conn.marks.contains(Marks::RECEIVE_CLOSED) {
                self.events.push_back((id, Event::PeerClosed));
            }
        }
        if let Some(reset) = effects.reset.take() {
            let (flow, clock) = (conn.flow, conn.clock());
            self.answer_by(flow, *reset, Some(clock));
        }
        match effects.end {
            Some(End::Closed(reason)) => {
                if reason == CloseReason::Reset && self.conn(id).is_opened_fast() {
                    self.reset_fast_open(now, id);
                }
                self.finish(id, reason);
            }
            Some(End::TimeWait) => self.enter_time_wait(now, id),
            None => self.touch(now, id),
        }
    }

    /// Acknowledges the peer's FIN and keeps the state that TIME-WAIT needs (RFC 9293 3.6.1).
    fn enter_time_wait(&mut self, now: Time, id: ConnId) {
        let conn = &mut self.connections[id.0 as usize];
        let owes_ack = conn.owes_ack();
        let remains = conn.remains(&self.profiles[conn.profile]);
        self.time_wait.insert(now, remains);
        if owes_ack {
            self.answer(remains.flow, remains.acknowledgment(now));
        }
        self.finish(id, CloseReason::Normal);
    }

    /// Ends the protocol's work on a connection. Its slot stays until the owner is notified.
    fn finish(&mut self, id: ConnId, reason: CloseReason) {
        let conn = &mut self.connections[id.0 as usize];
        self.flows.remove(&conn.flow, id.0);
        self.wheel.cancel(id.0);
        let conn = &mut self.connections[id.0 as usize];
        let half_open = conn.is_half_open();
        let pending = conn.is_opened_fast().then_some(conn.flow.local);
        let keeps = self.profiles[conn.profile].linux.keeps_received;
        conn.finish(reason, keeps);
        conn.queued = false;
        self.charge(id);
        let conn = &self.connections[id.0 as usize];
        let listener = conn.listener;
        if let Some(local) = pending {
            self.end_fast_open(id, local);
        }
        if let Some(listener) = listener {
            // The owner was never notified of the connection.
            let listener = &mut self.listeners[listener.0 as usize];
            if half_open {
                listener.half_open_ended();
            } else {
                listener.forget(id);
            }
            self.remove(id);
            return;
        }
        if reason != CloseReason::Normal && self.conn(id).readable_len() > 0 {
            // Data remains to be read: tell the owner, which may then ask why the connection ended.
            self.events.push_back((id, Event::Readable));
        }
        self.tell_end_if_read(id);
    }

    /// Reports the end of a connection once there is no more data to read.
    fn tell_end_if_read(&mut self, id: ConnId) {
        let conn = self.conn(id);
        if let Some(reason) = conn.ended
            && conn.readable_len() == 0
        {
            self.events.push_back((id, Event::Closed(reason)));
        }
    }

    /// Sends a segment that belongs to no connection.
    fn answer(&mut self, flow: Flow, header: Header) {
        self.answer_by(flow, header, None);
    }

    /// Sends a segment that belongs to no connection. Its timestamp, if it has one, is the reading of `clock` when it is sent.
    fn answer_by(&mut self, flow: Flow, header: Header, clock: Option<TimestampClock>) {
        if self.answers.len() >= MOST_ANSWERS {
            self.stats.answers_dropped += 1;
            return;
        }
        if header.flags.contains(Flags::RST) {
            self.stats.resets_sent += 1;
        }
        self.answers.push_back(Answer {
            flow,
            header,
            clock,
        });
    }
}

/// A segment that belongs to no connection, or no longer.
#[derive(Debug)]
struct Answer {
    flow: Flow,
    header: Header,
    /// Clock of its timestamp, unless the timestamp is filled in already.
    clock: Option<TimestampClock>,
}

/// Reports acknowledged and received data to the owner.
#[inline]
fn tell_of_data<P>(
    events: &mut VecDeque<(ConnId, Event)>,
    id: ConnId,
    conn: &mut Connection<P>,
    effects: &Effects,
) {
    if effects.acknowledged > 0 {
        push_acknowledged(events, id, effects.acknowledged);
    }
    if effects.readable {
        conn.marks.insert(Marks::READABLE_TOLD);
        events.push_back((id, Event::Readable));
    }
}

/// Adds an event, or adds to the last one, which may stand for several acknowledgments.
fn push_acknowledged(events: &mut VecDeque<(ConnId, Event)>, id: ConnId, len: u32) {
    if let Some((last, Event::Acknowledged(total))) = events.back_mut()
        && *last == id
    {
        *total += len;
        return;
    }
    events.push_back((id, Event::Acknowledged(len)));
}
