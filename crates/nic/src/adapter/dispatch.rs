//! One piece of work at a time: what waits for an adapter's processor, and which of it is done next (handoff-policies 3.1).

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
    /// Find out whose a received packet is, and [sort](Dispatch::sort) it.
    Lookup(F),
    /// Pass a received packet to the host.
    HostReceive(F),
    /// TCP input of a received packet.
    Receive(F),
    /// [Carry out](Dispatch::carry_out) a request about packets of the host, or all there are about the parts of one.
    HostRequest,
    /// The same for a command of the data cache.
    CacheCommand,
    /// The same for any other request, of so many descriptors.
    Request(u32),
    /// Take note of a transfer of data that [is over](Dispatch::finish_transfer), or of all those of a packet.
    Transfer,
    /// Send segments; [no more](Dispatch::handle_quiet) if TCP has none.
    Transmit,
    /// Run timers that are due.
    Timers,
}

/// What a transfer of data is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transferred {
    /// A packet that the host sends, by a request that arrived then.
    FromHost(Time),
    /// A packet that was passed to the host.
    ToHost,
    /// A connection on the adapter.
    Connection,
}

/// What may be done now for an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Requests for the answers to which there is [room](Adapter::room_for_requests).
    pub requests: usize,
    /// A transfer of data is over.
    pub is_over: bool,
}

/// The firmware's queues and scheduler around an [`Adapter`]. `F` is a received packet. Packets wait in common, requests of each application
/// in queues of its own; the scheduler knows only their kinds, and of requests of one kind that of any application is first which came first.
///
/// Order of calls: [`Dispatch::attach`] and [`Dispatch::detach`] as the adapter's; [`Dispatch::handle_frame`],
/// [`Dispatch::take_requests`] and [`Dispatch::handle_timers`] as things come. When the processor is free, [`Dispatch::next_piece`];
/// what it names is done, what TCP tells goes to the adapter, then [`Dispatch::handle_output`] if TCP may have something to send, and
/// [`Dispatch::end_piece`] for each application for which there is something.
#[derive(Debug)]
pub struct Dispatch<F> {
    config: Config,
    order: Order,
    queues: Queues<F>,
    requests: Vec<Requests>,
    next_stamp: Stamp,
    /// Arrival of the piece under way.
    current: Stamp,
    /// TCP may have segments to send; stamp of the oldest arrival that may have caused them.
    transmit: Option<Stamp>,
    /// Timers were due when this stamp was taken.
    timers: Option<Stamp>,
    /// The request under way, or those of a packet.
    entry: Vec<Descriptor>,
    /// The application whose request or transfer is under way.
    session: SessionId,
    /// What the transfers are about that the piece under way begins.
    owner: Transferred,
    drops: Drops,
}

impl<F> Dispatch<F> {
    /// Without applications, and with nothing to do. Of the parameters it uses the scheduler and the lengths of queues.
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

    /// Qlen: packets that wait for the adapter's TCP, and under FCFS all that wait for lookup.
    pub fn qlen(&self) -> u32 {
        self.queues.qlen(self.order.looks_up_first())
    }

    /// Lengths of all queues.
    pub fn queue_lengths(&self) -> QueueLengths {
        let of = |length: fn(&Requests) -> usize| self.requests.iter().map(length).sum();
        QueueLengths {
            host_send: of(|requests| requests.host_send.len()),
            commands: of(|requests| requests.commands.len()),
            ..self.queues.lengths()
        }
    }

    /// The application whose request or transfer the piece under way is.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Received packets that were dropped.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    /// Whether there may be a piece of work, if only to find that TCP has nothing to send; `ready` is that of [`Dispatch::next_piece`].
    pub fn has_work(&self, ready: impl Fn(SessionId) -> Ready) -> bool {
        let any_requests = || {
            self.requests
                .iter()
                .any(|requests| requests.has_work(&ready))
        };
        self.transmit.or(self.timers).is_some() || self.queues.any() || any_requests()
    }

    /// Whether timers that are due have become work that waits for its turn.
    pub fn has_timers(&self) -> bool {
        self.timers.is_some()
    }

    /// Asserts what always holds.
    pub fn check(&self) {
        self.queues.check();
        self.requests.iter().for_each(Requests::check);
    }

    // --- mutators ---

    /// A scheduler of the caller's own, before there is any work.
    pub fn set_schedule(&mut self, schedule: Box<dyn Schedule>) {
        self.order.set_own(Some(schedule));
    }

    // --- applications ---

    /// Serves another application.
    pub fn attach(&mut self, session: SessionId) {
        self.requests.push(Requests::new(&self.config, session));
    }

    /// An application is gone, and what it has asked for with it.
    pub fn detach(&mut self, session: SessionId) {
        self.requests.retain(|requests| requests.session != session);
    }

    fn requests_of(&mut self, session: SessionId) -> Option<&mut Requests> {
        one_of(&mut self.requests, |requests| requests.session == session)
    }

    // --- events in ---

    /// Whether a packet may wait for lookup.
    pub fn has_room_for_frame(&self) -> bool {
        !self.queues.arrivals.is_full()
    }

    /// A packet has arrived, and waits for lookup.
    ///
    /// # Errors
    /// It was dropped (and counted) for the reason given.
    pub fn handle_frame(&mut self, frame: F) -> Result<(), Drop> {
        if self.queues.arrivals.is_full() {
            self.drops.count(Drop::ArrivalQueue);
            return Err(Drop::ArrivalQueue);
        }
        self.queues.arrivals.push(self.next_stamp.take(), frame);
        Ok(())
    }

    /// Timers are due: of TCP, of the adapter, or of responses that wait.
    pub fn handle_timers(&mut self) {
        if self.timers.is_none() {
            self.timers = Some(self.next_stamp.take());
        }
    }

    /// TCP was told something in the piece under way, and may have something to send.
    pub fn handle_output(&mut self) {
        let oldest = self
            .transmit
            .map_or(self.current, |old| old.min(self.current));
        self.transmit = Some(oldest);
    }

    /// TCP has nothing to send.
    pub fn handle_quiet(&mut self) {
        self.transmit = None;
    }

    /// Lookup has found whose the packet under way is.
    ///
    /// # Errors
    /// The queue for it is full: it is to be dropped (and was counted) for the reason given.
    pub fn sort(&mut self, frame: F, ours: bool) -> Result<(), (Drop, F)> {
        let sorted = self.queues.sort(self.current, frame, ours);
        sorted.inspect_err(|(reason, _)| self.drops.count(*reason))
    }

    /// Connections have left the adapter: of the packets that wait for TCP here, those that are a host's now go on to it before all that is
    /// left to do here, in the order in which they came. Gives how many.
    pub fn sort_again(&mut self, is_of_host: impl FnMut(&F) -> bool) -> u32 {
        self.queues.sort_again(is_of_host)
    }

    /// Takes an application's requests that have arrived on its link, as far as its queues have room for any. Those about packets of the
    /// host wait in the host send queue, all others in the command queue.
    ///
    /// # Errors
    /// The application is gone or broke the rules.
    pub fn take_requests<P, L>(
        &mut self,
        now: Time,
        adapter: &Adapter<P>,
        session: SessionId,
        link: &mut L,
    ) -> Result<(), LinkError>
    where
        P: Payload + Inline,
        L: AdapterLink<Data = P>,
    {
        let mut taken = std::mem::take(&mut self.entry);
        let result = self.take_all(now, adapter, session, link, &mut taken);
        self.entry = taken;
        result
    }

    fn take_all<P, L>(
        &mut self,
        now: Time,
        adapter: &Adapter<P>,
        session: SessionId,
        link: &mut L,
        taken: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError>
    where
        P: Payload + Inline,
        L: AdapterLink<Data = P>,
    {
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
        // There is mostly one application.
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

    /// The next piece of work, as the scheduler says, of what may be done. `may_send`: TCP may have something to send.
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
            // The adapter asks for all at once, by responses.
            Source::Relief => return None,
        };
        Some(piece)
    }

    /// Carries out the request under way, or those of a packet.
    ///
    /// # Errors
    /// The application broke the rules.
    pub fn carry_out<P: Payload + Inline>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        stack: &mut Stack<P>,
    ) -> Result<(), LinkError> {
        adapter.handle_requests(now, stack, self.session, &self.entry)?;
        Ok(())
    }

    /// Takes note of the transfer that is over, and of the others of the same packet; gives what it was about, or nothing if there is
    /// none after all.
    ///
    /// # Errors
    /// The application is gone or broke the rules.
    pub fn finish_transfer<P, L>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        stack: &mut Stack<P>,
        link: &mut L,
    ) -> Result<Option<Transferred>, LinkError>
    where
        P: Payload + Inline,
        L: AdapterLink<Data = P>,
    {
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

    /// Ends the piece under way for an application: begins the transfers of data that it asks for, and gives the host the responses that
    /// are due. True when it did something.
    ///
    /// # Errors
    /// The application is gone or broke the rules.
    pub fn end_piece<P, L>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        session: SessionId,
        link: &mut L,
    ) -> Result<bool, LinkError>
    where
        P: Payload + Inline,
        L: AdapterLink<Data = P>,
    {
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

/// The first for which this holds, of applications for one of which it does.
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
