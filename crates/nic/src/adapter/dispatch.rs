//! Runs an adapter one piece of work at a time: queues the work for the adapter's processor, and selects the next piece (handoff-policies
//! 3.1).

mod requests;

use super::pump::{begin_transfers, finish_transfer, put_responses};
use super::{Adapter, SessionId};
use crate::config::Config;
use crate::drops::{Drop, Drops};
use crate::queues::{QueueLengths, Queues, Stamp};
use crate::scheduler::{Heads, Order, Schedule, Source};
use baton_bus::Descriptor;
use baton_bus::descriptor::entries;
use baton_bus::link::{AdapterLink, Inline, LinkError, Violation};
use baton_tcp::Stack;
use baton_wire::{Payload, Time};
use requests::{Begun, Requests};

/// A piece of work of an adapter.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<F> {
    /// Look up the owner of a received packet, then [sort](Dispatch::sort) the packet.
    Lookup(F),
    /// Pass a received packet to the host.
    HostReceive(F),
    /// Process a received packet in TCP.
    Receive(F),
    /// [Carry out](Dispatch::carry_out) a request about packets of the host, or all pending requests for the parts of one packet.
    HostRequest,
    /// Carry out a command of the data cache.
    CacheCommand,
    /// Carry out any other request, of this many descriptors.
    Request(u32),
    /// [Finish](Dispatch::finish_transfer) a completed data transfer, or all those of a packet.
    Transfer,
    /// Send segments, or [stop](Dispatch::handle_quiet) if TCP has none.
    Transmit,
    /// Run due timers.
    Timers,
}

/// Purpose of a data transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transferred {
    /// A packet that the host sends, by a request that arrived at this time.
    FromHost(Time),
    /// A packet that was passed to the host.
    ToHost,
    /// A connection on the adapter.
    Connection,
}

/// Work that an application is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Number of requests whose answers [fit](Adapter::room_for_requests) in the response queue.
    pub requests: usize,
    /// Whether a data transfer has completed.
    pub is_over: bool,
}

/// The firmware's queues and scheduler around an [`Adapter`]. `F` is a received packet. All packets share common queues, whereas each
/// application has its own queues of requests. The scheduler sees only the kinds of work; among requests of one kind from several
/// applications, the earliest comes first.
///
/// The caller uses [`Dispatch::attach`] and [`Dispatch::detach`] like those of the adapter, and [`Dispatch::handle_frame`],
/// [`Dispatch::take_requests`] and [`Dispatch::handle_timers`] as input arrives. When the processor is free, the caller does the work that
/// [`Dispatch::next_piece`] returns, passes TCP's events to the adapter, calls [`Dispatch::handle_output`] if TCP may have something to
/// send, and [`Dispatch::end_piece`] for each application that has pending transfers or responses.
#[derive(Debug)]
pub struct Dispatch<F> {
    config: Config,
    order: Order,
    queues: Queues<F>,
    requests: Vec<Requests>,
    next_stamp: Stamp,
    /// Arrival of the current piece.
    current: Stamp,
    /// Set if TCP may have segments to send: stamp of the oldest arrival that may have caused them.
    transmit: Option<Stamp>,
    /// Stamp at which timers were found to be due.
    timers: Option<Stamp>,
    /// The current request, or the current requests about one packet.
    entry: Vec<Descriptor>,
    /// The application whose request or transfer is being processed.
    session: SessionId,
    /// Purpose of the transfers that the current piece starts.
    owner: Transferred,
    drops: Drops,
}

impl<F> Dispatch<F> {
    /// Creates a dispatcher without applications or work. Uses only the scheduler and the queue lengths of `config`.
    pub fn new(config: &Config) -> Self {
        Self {
            config: config.clone(),
            order: Order::new(config.scheduler),
            queues: Queues::new(config),
            requests: Vec::new(),
            next_stamp: Stamp::default(),
            current: Stamp::default(),
            transmit: None,
            timers: None,
            entry: Vec::new(),
            session: SessionId(0),
            owner: Transferred::Connection,
            drops: Drops::default(),
        }
    }

    // --- getters ---

    /// Returns Qlen: the number of packets that wait for the adapter's TCP, and under FCFS also those that wait for lookup.
    pub fn qlen(&self) -> u32 {
        self.queues.qlen(self.order.looks_up_first())
    }

    /// Returns the lengths of all queues.
    pub fn queue_lengths(&self) -> QueueLengths {
        let of = |length: fn(&Requests) -> usize| self.requests.iter().map(length).sum();
        QueueLengths {
            host_send: of(|requests| requests.host_send.len()),
            commands: of(|requests| requests.commands.len()),
            ..self.queues.lengths()
        }
    }

    /// Returns the application to which the current request or transfer belongs.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Returns the counts of received packets that were dropped.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    /// Returns whether there may be a piece of work, even if only to find that TCP has nothing to send. `ready` is as in
    /// [`Dispatch::next_piece`].
    pub fn has_work(&self, ready: impl Fn(SessionId) -> Ready) -> bool {
        let any_requests = || {
            self.requests
                .iter()
                .any(|requests| requests.has_work(&ready))
        };
        self.transmit.or(self.timers).is_some() || self.queues.any() || any_requests()
    }

    /// Returns whether due timers already wait as a piece of work.
    pub fn has_timers(&self) -> bool {
        self.timers.is_some()
    }

    /// Asserts the invariants of the dispatcher.
    pub fn check(&self) {
        self.queues.check();
        self.requests.iter().for_each(Requests::check);
    }

    // --- mutators ---

    /// Sets the caller's own scheduler. Must be called before there is any work.
    pub fn set_schedule(&mut self, schedule: Box<dyn Schedule>) {
        self.order.set_own(Some(schedule));
    }

    // --- applications ---

    /// Adds an application.
    pub fn attach(&mut self, session: SessionId) {
        self.requests.push(Requests::new(&self.config, session));
    }

    /// Removes an application and its requests.
    pub fn detach(&mut self, session: SessionId) {
        self.requests.retain(|requests| requests.session != session);
    }

    fn requests_of(&mut self, session: SessionId) -> Option<&mut Requests> {
        one_of(&mut self.requests, |requests| requests.session == session)
    }

    // --- events in ---

    /// Returns whether the arrival queue has space for a packet.
    pub fn has_room_for_frame(&self) -> bool {
        !self.queues.arrivals.is_full()
    }

    /// Queues a received packet for lookup.
    ///
    /// # Errors
    /// Returns the reason if the packet was dropped (and counted).
    pub fn handle_frame(&mut self, frame: F) -> Result<(), Drop> {
        if self.queues.arrivals.is_full() {
            self.drops.count(Drop::ArrivalQueue);
            return Err(Drop::ArrivalQueue);
        }
        self.queues.arrivals.push(self.next_stamp.take(), frame);
        Ok(())
    }

    /// Takes the oldest packet that waits for lookup.
    pub(crate) fn take_frame(&mut self) -> Option<F> {
        self.queues.arrivals.pop()
    }

    /// Records that timers of TCP, of the adapter or of pending responses are due.
    pub fn handle_timers(&mut self) {
        if self.timers.is_none() {
            self.timers = Some(self.next_stamp.take());
        }
    }

    /// Records that the current piece has passed input to TCP, which may now have something to send.
    pub fn handle_output(&mut self) {
        let oldest = self
            .transmit
            .map_or(self.current, |old| old.min(self.current));
        self.transmit = Some(oldest);
    }

    /// Records that TCP has nothing to send.
    pub fn handle_quiet(&mut self) {
        self.transmit = None;
    }

    /// Queues the current packet after lookup has found its owner.
    ///
    /// # Errors
    /// Returns the packet and the reason if its queue is full. The caller must drop the packet, which has been counted.
    pub fn sort(&mut self, frame: F, ours: bool) -> Result<(), (Drop, F)> {
        let sorted = self.queues.sort(self.current, frame, ours);
        sorted.inspect_err(|(reason, _)| self.drops.count(*reason))
    }

    /// Moves queued packets of connections that have left the adapter to the queue of the host, in order of arrival, so that they precede
    /// all remaining work of the adapter. Returns the number of packets moved.
    pub fn sort_again(&mut self, is_of_host: impl FnMut(&F) -> bool) -> u32 {
        self.queues.sort_again(is_of_host)
    }

    /// Takes requests of an application from its link while the application's queues have space. Requests about packets of the host wait in
    /// the host send queue, all others in the command queue.
    ///
    /// # Errors
    /// Fails if the application has gone or violated the protocol.
    pub fn take_requests<P: Payload + Inline>(
        &mut self,
        now: Time,
        adapter: &Adapter<P>,
        session: SessionId,
        link: &mut impl AdapterLink<Data = P>,
    ) -> Result<(), LinkError> {
        let mut taken = std::mem::take(&mut self.entry);
        let result = self.take_all(now, adapter, session, link, &mut taken);
        self.entry = taken;
        result
    }

    fn take_all<P: Payload + Inline>(
        &mut self,
        now: Time,
        adapter: &Adapter<P>,
        session: SessionId,
        link: &mut impl AdapterLink<Data = P>,
        taken: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError> {
        let is_its = |requests: &Requests| requests.session == session;
        let Some(requests) = one_of(&mut self.requests, is_its) else {
            return Ok(());
        };
        loop {
            let room = requests.room();
            if room == 0 {
                return Ok(());
            }
            taken.clear();
            link.get(now, room, taken)?;
            if taken.is_empty() {
                return Ok(());
            }
            for entry in entries(taken) {
                let entry = entry.map_err(Violation::from)?;
                let of_host = adapter.is_about_packets(session, entry);
                requests.push(self.next_stamp.take(), now, entry, of_host);
            }
        }
    }

    // --- work ---

    #[inline]
    fn heads(&self, ready: impl Fn(SessionId) -> Ready) -> Heads {
        let mut heads = (self.queues.heads())
            .with(Source::Transmit, self.transmit)
            .with(Source::Timers, self.timers);
        // Usually there is only one application.
        let Some((first, others)) = self.requests.split_first() else {
            return heads;
        };
        let oldest = first.oldest(ready(first.session));
        heads = heads
            .with(Source::HostSend, oldest.packet)
            .with(Source::Commands, oldest.command)
            .with(Source::Transfers, oldest.transfer);
        for requests in others {
            let oldest = requests.oldest(ready(requests.session));
            heads = heads
                .with_sooner(Source::HostSend, oldest.packet)
                .with_sooner(Source::Commands, oldest.command)
                .with_sooner(Source::Transfers, oldest.transfer);
        }
        heads
    }

    /// Returns the next piece of work that can be done, as selected by the scheduler. `may_send` says whether TCP may have something to
    /// send.
    pub fn next_piece(
        &mut self,
        ready: impl Fn(SessionId) -> Ready,
        may_send: bool,
    ) -> Option<Piece<F>> {
        let mut heads = self.heads(&ready);
        let mut source = self.order.next(&heads)?;
        if source == Source::Transmit && !may_send {
            self.handle_quiet();
            heads = heads.with(Source::Transmit, None);
            source = self.order.next(&heads)?;
        }
        let stamp = heads.of(source)?;
        self.current = stamp;
        self.owner = Transferred::Connection;
        let piece = match source {
            Source::Arrivals => Piece::Lookup(self.queues.arrivals.pop()?),
            Source::HostReceive => {
                self.owner = Transferred::ToHost;
                Piece::HostReceive(self.queues.host_receive.pop()?)
            }
            Source::NicReceive => Piece::Receive(self.queues.nic_receive.pop()?),
            Source::HostSend => {
                let is_first = |requests: &Requests| requests.host_send.head() == Some(stamp);
                let first = one_of(&mut self.requests, is_first)?;
                self.session = first.session;
                let most = ready(self.session).requests;
                let since = first.pop_packet(most, &mut self.entry)?;
                self.owner = Transferred::FromHost(since);
                Piece::HostRequest
            }
            Source::Commands => {
                let is_first = |requests: &Requests| requests.commands.head() == Some(stamp);
                let first = one_of(&mut self.requests, is_first)?;
                self.session = first.session;
                match first.pop_command(&mut self.entry)? {
                    true => Piece::CacheCommand,
                    false => Piece::Request(self.entry.len() as u32),
                }
            }
            Source::Transfers => {
                let is_first = |requests: &Requests| {
                    let is_over = ready(requests.session).is_over;
                    let begun = requests.begun.front().filter(|_| is_over);
                    begun.is_some_and(|begun| begun.stamp == stamp)
                };
                self.session = one_of(&mut self.requests, is_first)?.session;
                Piece::Transfer
            }
            Source::Transmit => Piece::Transmit,
            Source::Timers => {
                self.timers = None;
                Piece::Timers
            }
            // The adapter itself asks for relief, by responses.
            Source::Relief => return None,
        };
        Some(piece)
    }

    /// Executes the current request, or the current requests about one packet.
    ///
    /// # Errors
    /// Fails if the application violated the protocol.
    pub fn carry_out<P: Payload + Inline>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        stack: &mut Stack<P>,
    ) -> Result<(), LinkError> {
        adapter.handle_requests(now, stack, self.session, &self.entry)?;
        Ok(())
    }

    /// Finishes a completed transfer and the other completed transfers of the same packet. Returns the purpose of the transfer, or `None`
    /// if none has completed after all.
    ///
    /// # Errors
    /// Fails if the application has gone or violated the protocol.
    pub fn finish_transfer<P: Payload + Inline>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        stack: &mut Stack<P>,
        link: &mut impl AdapterLink<Data = P>,
    ) -> Result<Option<Transferred>, LinkError> {
        let session = self.session;
        let Some(requests) = self.requests_of(session) else {
            return Ok(None);
        };
        let mut finished = None;
        while requests.goes_on_with(finished)
            && finish_transfer(now, adapter, stack, session, link)?
        {
            finished = requests.begun.pop();
        }
        Ok(finished.map(|begun| begun.owner))
    }

    /// Ends the current piece for an application: starts the data transfers that the adapter requests, and sends due responses to the host.
    /// Returns whether there were any.
    ///
    /// # Errors
    /// Fails if the application has gone or violated the protocol.
    pub fn end_piece<P: Payload + Inline>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        session: SessionId,
        link: &mut impl AdapterLink<Data = P>,
    ) -> Result<bool, LinkError> {
        let (stamp, owner) = (self.current, self.owner);
        let count = begin_transfers(now, adapter, session, link)?;
        if count > 0
            && let Some(requests) = self.requests_of(session)
        {
            for _ in 0..count {
                requests.begun.push(Begun { stamp, owner });
            }
        }
        Ok(put_responses(now, adapter, session, link)? | (count > 0))
    }
}

/// Returns the first application that satisfies the predicate. At least one must satisfy it.
#[inline]
fn one_of(all: &mut [Requests], is_it: impl Fn(&Requests) -> bool) -> Option<&mut Requests> {
    match all {
        [only] => {
            debug_assert!(is_it(only), "it is attached");
            Some(only)
        }
        all => all.iter_mut().find(|requests| is_it(requests)),
    }
}

#[cfg(test)]
mod tests;
