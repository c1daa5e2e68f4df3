//! The process of an adapter: the order in which one processor does the adapter's work, on a simulated NIC and live.

use crate::adapter::{Adapter, Dispatch, Piece, Ready, SessionId, Transferred, pump};
use crate::{Config, Drop, Drops, QueueLengths, Schedule, Scheduler, Task};
use baton_bus::link::{AdapterLink, Inline, LinkError};
use baton_tcp::Stack;
use baton_wire::{Payload, Span, Time};

/// Maximum number of received packets that are processed together.
const MOST_FRAMES: usize = 64;

/// Access to the links of the applications that an adapter serves.
pub trait Links<P> {
    /// Type of the links.
    type Link: AdapterLink<Data = P>;

    /// Returns the link of an application for immediate use.
    fn link(&mut self, session: SessionId) -> Option<&mut Self::Link>;

    /// Returns the work that an application is ready for, if the answers to `answers` requests fit in its response queue.
    fn ready(&self, session: SessionId, answers: usize) -> Ready {
        let _ = session;
        Ready {
            requests: answers,
            is_over: true,
        }
    }

    /// Returns whether requests may wait on the link of an application.
    fn has_requests(&self, session: SessionId) -> bool {
        let _ = session;
        true
    }

    /// Returns whether an application has promised to ring before the next change on its link, and has not rung.
    fn is_asleep(&self, session: SessionId) -> bool {
        let _ = session;
        false
    }
}

/// Owner of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A host that receives the packets of its own connections.
    Host,
    /// The adapter.
    Adapter,
    /// None: the packet is not of TCP, so it is not sorted.
    Nobody,
}

/// The layers below an adapter's sockets: TCP, IP and the wire.
pub trait Lower {
    /// Payload of TCP.
    type Data: Payload + Inline;
    /// A received packet.
    type Packet;

    /// Returns the adapter's TCP.
    fn stack(&mut self) -> &mut Stack<Self::Data>;

    /// Returns the memory that a received packet occupies, in bytes.
    fn packet_bytes(packet: &Self::Packet) -> u32;

    /// Looks up the owner of a received packet.
    fn look_up(&mut self, now: Time, adapter: &Adapter<Self::Data>, packet: &Self::Packet)
    -> Owner;

    /// Looks for packets that went past the process to the lower layers, and passes those that no connection here claims to their hosts.
    /// Called only if all work is done at once. Returns Qlen, including the `waiting` packets in the process, if load control is to run.
    fn arrived(
        &mut self,
        now: Time,
        adapter: &mut Adapter<Self::Data>,
        waiting: u32,
    ) -> Option<u32> {
        let _ = now;
        adapter.passes_packets().then_some(waiting)
    }

    /// Passes a received packet to TCP, or to its host if no connection here claims it.
    fn take_in(&mut self, now: Time, adapter: &mut Adapter<Self::Data>, packet: Self::Packet);

    /// Passes a packet that the lookup found to be a host's to that host.
    fn pass(&mut self, now: Time, adapter: &mut Adapter<Self::Data>, packet: Self::Packet) {
        self.take_in(now, adapter, packet);
    }

    /// Is called when a packet is dropped after the lookup, because its queue is full.
    fn dropped(&mut self, now: Time, reason: Drop, packet: &Self::Packet) {
        let _ = (now, reason, packet);
    }

    /// Sends the packets that hosts want to send, and takes in those that they forward. The hosts' requests arrived at `since`, if known.
    /// Returns whether there were any packets.
    fn take_packets(
        &mut self,
        now: Time,
        adapter: &mut Adapter<Self::Data>,
        since: Option<Time>,
    ) -> bool;

    /// Returns how many more segments may be sent.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// Sends at most `most` segments of TCP. Returns how many there were.
    fn transmit(&mut self, now: Time, most: usize) -> usize;

    /// Returns when the next timer of TCP or IP is due.
    fn poll_timeout(&mut self) -> Option<Time>;

    /// Runs the due timers of TCP and IP. Returns the number of TCP timers.
    fn handle_timeouts(&mut self, now: Time) -> u32;

    /// Is called at the end of each piece of work, before answers go to the hosts.
    fn end_piece(&mut self, now: Time) {
        let _ = now;
    }

    /// Returns the time for which the processor has worked, if known.
    fn busy(&self, now: Time) -> Option<Span> {
        let _ = now;
        None
    }

    /// Is called for each task that the process itself performs.
    fn ran(&mut self, task: Task, count: u32) {
        let _ = (task, count);
    }
}

/// A piece of work that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// On a packet of a host.
    HostPacket,
    /// On the data cache.
    Cache,
    /// On connections here, by requests of this many descriptors.
    Connections {
        /// Number of descriptors.
        requests: u32,
    },
    /// On timers.
    Timers,
    /// All pending work.
    All,
}

/// An adapter's work, in one of two ways. One by one: one frame, one request, a few segments ([`Dispatch`]), in the order of the firmware of
/// the handoff papers or of any other [`Schedule`]. All at once: all pending work is one piece, as in the batching paper; only received
/// packets wait here, everything else on the links. `F` is a received packet.
///
/// Order of calls: [`Process::receive`] when a frame has arrived, and [`Process::look`] when anything else may have happened; then
/// [`Process::do_piece`], repeatedly. A caller that knows what has happened calls [`Process::handle_timers`] or [`Process::take_requests`]
/// instead of [`Process::look`].
#[derive(Debug)]
pub struct Process<F> {
    dispatch: Dispatch<F>,
    attached: Vec<SessionId>,
    does_all: bool,
    /// Maximum number of segments that TCP sends in one piece of work.
    burst: usize,
    /// Cnum when load control last ran.
    imported: u32,
    /// Number of exported connections when the waiting packets were last sorted.
    exported: u64,
    /// Applications for which no transfer had finished at the last check. Their links must be looked at before the next check.
    moving: Vec<SessionId>,
}

impl<F> Process<F> {
    /// Creates a process that does one piece of work at a time, without applications. Uses the scheduler, the queue lengths and the segment
    /// burst of `config`.
    pub fn new(config: &Config) -> Self {
        Self {
            dispatch: Dispatch::new(config),
            attached: Vec::new(),
            does_all: false,
            burst: config.transmit_burst_segments.max(1) as usize,
            imported: 0,
            exported: 0,
            moving: Vec::new(),
        }
    }

    /// Creates a process that does all pending work at once, without applications.
    pub fn all_at_once() -> Self {
        let config = Config {
            scheduler: Scheduler::Fcfs,
            arrival_queue_packets: u32::MAX,
            ..Config::default()
        };
        Self {
            does_all: true,
            ..Self::new(&config)
        }
    }

    // --- getters ---

    /// Returns whether all pending work is done at once.
    pub fn does_all(&self) -> bool {
        self.does_all
    }

    /// Returns the counts of dropped packets.
    pub fn drops(&self) -> &Drops {
        self.dispatch.drops()
    }

    /// Returns the lengths of the queues.
    pub fn queue_lengths(&self) -> QueueLengths {
        self.dispatch.queue_lengths()
    }

    /// Returns Qlen: the number of packets that wait for the adapter's TCP.
    pub fn qlen(&self) -> u32 {
        self.dispatch.qlen()
    }

    /// Returns whether due timers already wait as a piece of work.
    pub fn has_timers(&self) -> bool {
        self.dispatch.has_timers()
    }

    /// Returns whether there may be a piece of work.
    pub fn has_work<P: Payload + Inline>(
        &self,
        adapter: &Adapter<P>,
        links: &impl Links<P>,
    ) -> bool {
        match self.does_all {
            true => self.dispatch.qlen() > 0 || self.is_asked(adapter, links),
            false => {
                (self.dispatch).has_work(|session| readiness(&self.moving, adapter, links, session))
            }
        }
    }

    /// Returns whether the link of an application may have a completed transfer, or a request that can be answered.
    fn is_asked<P: Payload + Inline>(&self, adapter: &Adapter<P>, links: &impl Links<P>) -> bool {
        self.attached.iter().any(|&session| {
            let may_answer = || adapter.room_for_requests(session) > 0;
            links.ready(session, 0).is_over || links.has_requests(session) && may_answer()
        })
    }

    /// Asserts the invariants.
    pub fn check(&self) {
        self.dispatch.check();
    }

    // --- mutators ---

    /// Sets the caller's own scheduler. Must be called before there is any work.
    pub fn set_schedule(&mut self, schedule: Box<dyn Schedule>) {
        self.dispatch.set_schedule(schedule);
    }

    /// Adds an application of the adapter.
    pub fn attach(&mut self, session: SessionId) {
        self.dispatch.attach(session);
        self.attached.push(session);
    }

    /// Removes an application and its requests.
    pub fn detach(&mut self, session: SessionId) {
        self.dispatch.detach(session);
        self.attached.retain(|&attached| attached != session);
        self.has_moved(session);
    }

    // --- events in ---

    /// Queues a packet of `bytes` bytes that has arrived, for lookup.
    ///
    /// # Errors
    /// Returns the reason if the packet was dropped (and counted) for lack of space or memory.
    pub fn receive<P: Payload + Inline>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        packet: F,
        bytes: u32,
    ) -> Result<(), Drop> {
        if self.dispatch.has_room_for_frame() && !adapter.take_packet(now, bytes) {
            // If the adapter asks the hosts for relief, the request is sent when the next packet gets memory.
            return Err(Drop::Memory);
        }
        self.dispatch.handle_frame(packet)
    }

    /// Records that timers of TCP, of the adapter or of pending responses are due. If all work is done at once, that includes due timers anyway.
    pub fn handle_timers(&mut self) {
        if !self.does_all {
            self.dispatch.handle_timers();
        }
    }

    /// Takes the requests from an application's link while there is space for them. If all work is done at once, they wait on the link.
    ///
    /// # Errors
    /// The application has left or has violated the protocol.
    pub fn take_requests<P: Payload + Inline>(
        &mut self,
        now: Time,
        adapter: &Adapter<P>,
        session: SessionId,
        link: &mut impl AdapterLink<Data = P>,
    ) -> Result<(), LinkError> {
        match self.does_all {
            true => Ok(()),
            false => self.dispatch.take_requests(now, adapter, session, link),
        }
    }

    /// Looks for what has happened since the last piece of work: events and output of TCP, due timers, and requests and completed transfers
    /// on the links. If all work is done at once, does all that is pending, up to a limit for each application, and leaves only TCP's output
    /// to the caller. Returns whether there was anything on the links.
    ///
    /// # Errors
    /// An application, which is returned too, has left or violated the protocol. There may be more to find.
    pub fn look<W, L>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<W::Data>,
        lower: &mut W,
        links: &mut L,
    ) -> Result<bool, (SessionId, LinkError)>
    where
        W: Lower<Packet = F>,
        L: Links<W::Data>,
    {
        if self.does_all {
            return self.do_all(now, adapter, lower, links, 1);
        }
        adapter.handle_events(now, lower.stack());
        if lower.stack().may_transmit() {
            self.dispatch.handle_output();
        }
        if is_due(now, lower.poll_timeout()) || is_due(now, adapter.poll_timeout()) {
            self.dispatch.handle_timers();
        }
        self.look_at_links(now, adapter, lower.stack(), links)
    }

    /// Looks at each link on which something may have happened. Returns whether there was anything, or the first application that has failed
    /// once it has looked at all links.
    fn look_at_links<P: Payload + Inline>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        stack: &mut Stack<P>,
        links: &mut impl Links<P>,
    ) -> Result<bool, (SessionId, LinkError)> {
        let (mut any, mut failed) = (false, None);
        for index in 0..self.attached.len() {
            let session = self.attached[index];
            if links.is_asleep(session) && !adapter.has_work(session) {
                continue;
            }
            let Some(link) = links.link(session) else {
                continue;
            };
            let looked = match self.does_all {
                true => pump(now, adapter, stack, session, link),
                false => self.look_at(now, adapter, session, link),
            };
            match looked {
                Ok(did) => any |= did,
                Err(error) => failed = failed.or(Some((session, error))),
            }
        }
        failed.map_or(Ok(any), Err)
    }

    /// Takes the requests from an application's link, and puts responses there that waited for space. Returns whether it did the latter.
    fn look_at<P: Payload + Inline>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        session: SessionId,
        link: &mut impl AdapterLink<Data = P>,
    ) -> Result<bool, LinkError> {
        self.has_moved(session);
        self.dispatch.take_requests(now, adapter, session, link)?;
        self.dispatch.end_piece(now, adapter, session, link)
    }

    /// Notes that transfers of an application may have finished.
    fn has_moved(&mut self, session: SessionId) {
        self.moving.retain(|&moving| moving != session);
    }

    // --- work ---

    /// Does the piece of work that the scheduler chooses, passes TCP's events to the adapter, and its answers to the applications. Pieces
    /// that turn out to be empty do not count. Returns `None` if there is no work. If all work is done at once, the piece is all that is
    /// pending, however little.
    ///
    /// # Errors
    /// An application, which is returned too, has left or violated the protocol. There may be more to do.
    pub fn do_piece<W, L>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<W::Data>,
        lower: &mut W,
        links: &mut L,
    ) -> Result<Option<Work>, (SessionId, LinkError)>
    where
        W: Lower<Packet = F>,
        L: Links<W::Data>,
    {
        if self.does_all {
            self.do_all(now, adapter, lower, links, usize::MAX)?;
            let room = lower.room();
            lower.transmit(now, room);
            return Ok(Some(Work::All));
        }
        while lower.room() > 0 {
            let may_send = lower.stack().may_transmit();
            let ready = |session| readiness(&self.moving, adapter, links, session);
            let Some(piece) = self.dispatch.next_piece(ready, may_send) else {
                break;
            };
            let Some((work, may_output)) = self.run(now, piece, adapter, lower, links)? else {
                continue;
            };
            adapter.handle_events(now, lower.stack());
            if may_output && lower.stack().may_transmit() {
                self.dispatch.handle_output();
            }
            self.sort_again(now, adapter, lower);
            self.control_load(now, adapter, lower);
            lower.end_piece(now);
            self.answer(now, adapter, links)?;
            return Ok(Some(work));
        }
        Ok(None)
    }

    /// Does all pending work: processes received packets, runs timers, and looks at the links up to `rounds` times, as long as there is
    /// anything to do. Returns whether there was anything. Load control runs first, while the packets wait.
    fn do_all<W, L>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<W::Data>,
        lower: &mut W,
        links: &mut L,
        rounds: usize,
    ) -> Result<bool, (SessionId, LinkError)>
    where
        W: Lower<Packet = F>,
        L: Links<W::Data>,
    {
        if let Some(qlen) = lower.arrived(now, adapter, self.dispatch.qlen()) {
            adapter.control_load(now, qlen, lower.busy(now));
        }
        for _ in 0..MOST_FRAMES {
            let Some(packet) = self.dispatch.take_frame() else {
                break;
            };
            free_packet::<W>(now, &packet, adapter, lower);
            if adapter.passes_packets() {
                lower.ran(Task::Lookup, 1);
            }
            lower.take_in(now, adapter, packet);
        }
        if is_due(now, lower.poll_timeout()) {
            lower.handle_timeouts(now);
        }
        if is_due(now, adapter.poll_timeout()) {
            adapter.handle_timeouts(now, lower.stack());
        }
        adapter.handle_events(now, lower.stack());
        let mut did = false;
        for _ in 0..rounds {
            let looked = self.look_at_links(now, adapter, lower.stack(), links);
            let moved = lower.take_packets(now, adapter, None) | !matches!(looked, Ok(false));
            if !moved {
                break;
            }
            did = true;
            adapter.handle_events(now, lower.stack());
            looked?;
        }
        Ok(did)
    }

    /// Does one piece of work. Returns what it was, and whether TCP may have something to send because of it; `None` if there turned out to
    /// be nothing to do.
    #[inline]
    fn run<W, L>(
        &mut self,
        now: Time,
        piece: Piece<F>,
        adapter: &mut Adapter<W::Data>,
        lower: &mut W,
        links: &mut L,
    ) -> Result<Option<(Work, bool)>, (SessionId, LinkError)>
    where
        W: Lower<Packet = F>,
        L: Links<W::Data>,
    {
        let session = self.dispatch.session();
        let failed = |error| (session, error);
        let work = match piece {
            Piece::Lookup(packet) => return Ok(self.look_up(now, packet, adapter, lower)),
            Piece::HostReceive(packet) => {
                free_packet::<W>(now, &packet, adapter, lower);
                lower.pass(now, adapter, packet);
                Work::HostPacket
            }
            // If the packet's connection has left since the lookup, the packet is passed to the host.
            Piece::Receive(packet) => {
                free_packet::<W>(now, &packet, adapter, lower);
                lower.take_in(now, adapter, packet);
                Work::Connections { requests: 0 }
            }
            Piece::HostRequest | Piece::CacheCommand | Piece::Request(_) => {
                let carried_out = self.dispatch.carry_out(now, adapter, lower.stack());
                carried_out.map_err(failed)?;
                match piece {
                    Piece::HostRequest => Work::HostPacket,
                    Piece::CacheCommand => Work::Cache,
                    Piece::Request(requests) => Work::Connections { requests },
                    _ => unreachable!("it is a request"),
                }
            }
            Piece::Transfer => {
                let Some(link) = links.link(session) else {
                    return Ok(None);
                };
                let stack = lower.stack();
                let finished = self
                    .dispatch
                    .finish_transfer(now, adapter, stack, link)
                    .map_err(failed)?;
                let (work, since) = match finished {
                    None => {
                        self.moving.push(session);
                        return Ok(None);
                    }
                    Some(Transferred::Connection) => (Work::Connections { requests: 0 }, None),
                    Some(Transferred::ToHost) => (Work::HostPacket, None),
                    Some(Transferred::FromHost(since)) => (Work::HostPacket, Some(since)),
                };
                lower.take_packets(now, adapter, since);
                work
            }
            Piece::Transmit => {
                let burst = self.burst.min(lower.room());
                let sent = lower.transmit(now, burst);
                if sent < burst {
                    self.dispatch.handle_quiet();
                }
                return Ok((sent > 0).then_some((Work::Connections { requests: 0 }, false)));
            }
            Piece::Timers => {
                let ran = match is_due(now, lower.poll_timeout()) {
                    true => lower.handle_timeouts(now),
                    false => 0,
                };
                adapter.handle_timeouts(now, lower.stack());
                lower.ran(Task::Timer, ran);
                Work::Timers
            }
        };
        Ok(Some((work, true)))
    }

    /// Sorts a packet by its owner. Load control runs when a packet has arrived (handoff-policies 3.2).
    fn look_up<W: Lower<Packet = F>>(
        &mut self,
        now: Time,
        packet: F,
        adapter: &mut Adapter<W::Data>,
        lower: &mut W,
    ) -> Option<(Work, bool)> {
        let work = Work::Connections { requests: 0 };
        let owner = lower.look_up(now, adapter, &packet);
        if owner == Owner::Nobody {
            free_packet::<W>(now, &packet, adapter, lower);
            lower.take_in(now, adapter, packet);
            return Some((work, true));
        }
        if let Err((reason, packet)) = self.dispatch.sort(packet, owner == Owner::Adapter) {
            lower.dropped(now, reason, &packet);
            free_packet::<W>(now, &packet, adapter, lower);
        }
        if !adapter.passes_packets() {
            return None;
        }
        lower.ran(Task::Lookup, 1);
        adapter.control_load(now, self.dispatch.qlen(), lower.busy(now));
        Some((work, false))
    }

    /// After a connection has left for its host, moves the waiting packets of that connection to the host's queue.
    fn sort_again<W: Lower<Packet = F>>(
        &mut self,
        now: Time,
        adapter: &Adapter<W::Data>,
        lower: &mut W,
    ) {
        let exported = adapter.exported();
        if std::mem::replace(&mut self.exported, exported) != exported {
            let is_of_host = |packet: &F| lower.look_up(now, adapter, packet) == Owner::Host;
            let moved = self.dispatch.sort_again(is_of_host);
            lower.ran(Task::Lookup, moved);
        }
    }

    /// Runs load control after a connection was imported or has left, in addition to its runs after packets arrive (handoff-policies 3.2).
    fn control_load<W: Lower<Packet = F>>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<W::Data>,
        lower: &W,
    ) {
        let imported = adapter.imported();
        if std::mem::replace(&mut self.imported, imported) != imported {
            adapter.control_load(now, self.dispatch.qlen(), lower.busy(now));
        }
    }

    /// Starts the data transfers that the adapter requests, and passes its answers to the applications.
    fn answer<P: Payload + Inline>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        links: &mut impl Links<P>,
    ) -> Result<(), (SessionId, LinkError)> {
        let is_only = self.attached.len() == 1;
        for index in 0..self.attached.len() {
            let session = self.attached[index];
            if (is_only || adapter.has_work(session))
                && let Some(link) = links.link(session)
            {
                self.has_moved(session);
                let ended = self.dispatch.end_piece(now, adapter, session, link);
                ended.map_err(|error| (session, error))?;
            }
        }
        Ok(())
    }
}

/// Returns the operations that may be done for an application now.
#[inline]
fn readiness<P: Payload + Inline>(
    moving: &[SessionId],
    adapter: &Adapter<P>,
    links: &impl Links<P>,
    session: SessionId,
) -> Ready {
    let ready = links.ready(session, adapter.room_for_requests(session));
    Ready {
        is_over: ready.is_over && !moving.contains(&session),
        ..ready
    }
}

#[inline]
fn is_due(now: Time, timer: Option<Time>) -> bool {
    timer.is_some_and(|due| due <= now)
}

/// Frees the memory of a packet that no longer waits.
fn free_packet<W: Lower>(
    now: Time,
    packet: &W::Packet,
    adapter: &mut Adapter<W::Data>,
    lower: &mut W,
) {
    adapter.free_packet(W::packet_bytes(packet));
    adapter.settle_memory(now, lower.stack());
}
