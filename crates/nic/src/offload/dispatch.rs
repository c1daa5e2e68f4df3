//! One piece of work at a time: what waits for an adapter's processor, and which of it is done next (handoff-policies 3.1).

use super::pump::{begin_transfers, finish_transfer, put_responses};
use super::{Adapter, SessionId};
use crate::config::Config;
use crate::drops::{Drop, Drops};
use crate::queues::{QueueLengths, Queues, Stamp};
use crate::scheduler::{Heads, Order, Schedule, Source};
use baton_bus::descriptor::{Opcode, entries};
use baton_bus::link::{AdapterLink, Inline, LinkError, Violation};
use baton_bus::{Descriptor, Fifo};
use baton_tcp::Stack;
use baton_wire::{Payload, Time};

/// A piece of work of an adapter.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<F> {
    /// Find out whose a received packet is, and [sort](Dispatch::sort) it.
    Lookup(F),
    /// Pass a received packet to the host.
    HostReceive(F),
    /// TCP input of a received packet.
    Receive(F),
    /// [Carry out](Dispatch::carry_out) a request about packets of the host.
    HostRequest,
    /// The same for a command of the data cache.
    CacheCommand,
    /// The same for any other request, of so many descriptors.
    Request(u32),
    /// Take note of a transfer of data that [is over](Dispatch::finish_transfer).
    Transfer,
    /// Send segments; [no more](Dispatch::handle_quiet) if TCP has none.
    Transmit,
    /// Run timers that are due.
    Timers,
}

/// A request about packets of the host.
#[derive(Clone, Copy, Debug)]
struct HostRequest {
    descriptor: Descriptor,
    /// When it arrived at the adapter.
    since: Time,
}

/// A transfer of data that has begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// That of the work that began it.
    stamp: Stamp,
    owner: Transferred,
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

/// The firmware's queues and scheduler around an [`Adapter`] with one application. `F` is a received packet.
///
/// Order of calls: [`Dispatch::handle_frame`], [`Dispatch::take_requests`] and [`Dispatch::handle_timers`] as things come. When the
/// processor is free, [`Dispatch::next_piece`]; what it names is done, what TCP tells goes to the adapter, then
/// [`Dispatch::handle_output`] if TCP may have something to send, and [`Dispatch::end_piece`].
#[derive(Debug)]
pub struct Dispatch<F> {
    session: SessionId,
    order: Order,
    queues: Queues<F, HostRequest, Descriptor>,
    /// Of the commands that wait, in their order.
    continuations: Fifo<Descriptor>,
    /// When those of them arrived that are of the data cache.
    cache_commands: Fifo<Stamp>,
    next_stamp: Stamp,
    /// Arrival of the piece under way.
    current: Stamp,
    /// TCP may have segments to send; stamp of the oldest arrival that may have caused them.
    transmit: Option<Stamp>,
    /// Timers were due when this stamp was taken.
    timers: Option<Stamp>,
    /// Transfers under way, in the order in which they will be over.
    begun: Fifo<Begun>,
    /// The request under way.
    entry: Vec<Descriptor>,
    /// What the transfers are about that the piece under way begins.
    owner: Transferred,
    drops: Drops,
}

impl<F> Dispatch<F> {
    /// For the application of `session`, with nothing to do. Of the parameters it uses the scheduler and the lengths of queues.
    pub fn new(config: &Config, session: SessionId) -> Self {
        Self {
            session,
            order: Order::new(config.scheduler),
            queues: Queues::new(config),
            continuations: Fifo::new(),
            cache_commands: Fifo::new(),
            next_stamp: Stamp::default(),
            current: Stamp::default(),
            transmit: None,
            timers: None,
            begun: Fifo::new(),
            entry: Vec::new(),
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
        self.queues.lengths()
    }

    /// Received packets that were dropped.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    /// Whether there may be a piece of work, if only to find that TCP has nothing to send. The arguments are those of
    /// [`Dispatch::next_piece`].
    pub fn has_work(&self, can_answer: bool, is_over: bool) -> bool {
        self.transmit.is_some() || self.heads(can_answer, is_over).any()
    }

    /// Whether timers that are due have become work that waits for its turn.
    pub fn has_timers(&self) -> bool {
        self.timers.is_some()
    }

    /// Asserts what always holds.
    pub fn check(&self) {
        self.queues.check();
        let commands = self.queues.commands.iter();
        let continuations: usize = commands.map(Descriptor::continuations).sum();
        assert_eq!(
            self.continuations.len(),
            continuations,
            "continuations belong to commands"
        );
    }

    // --- mutators ---

    /// A scheduler of the caller's own, before there is any work.
    pub fn set_schedule(&mut self, schedule: Box<dyn Schedule>) {
        self.order.set_own(Some(schedule));
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
    /// The queue for it is full: it is dropped (and counted) for the reason given.
    pub fn sort(&mut self, frame: F, ours: bool) -> Result<(), Drop> {
        let sorted = self.queues.sort(self.current, frame, ours);
        sorted.map_err(|(reason, _)| {
            self.drops.count(reason);
            reason
        })
    }

    /// Takes requests that have arrived on the link, as far as the queues have room for any. Those about packets of the host wait in the
    /// host send queue, all others in the command queue.
    ///
    /// # Errors
    /// The application is gone or broke the rules.
    pub fn take_requests<P, L>(
        &mut self,
        now: Time,
        adapter: &Adapter<P>,
        link: &mut L,
    ) -> Result<(), LinkError>
    where
        P: Payload + Inline,
        L: AdapterLink<Data = P>,
    {
        let mut taken = std::mem::take(&mut self.entry);
        let result = self.take_all(now, adapter, link, &mut taken);
        self.entry = taken;
        result
    }

    fn take_all<P, L>(
        &mut self,
        now: Time,
        adapter: &Adapter<P>,
        link: &mut L,
        taken: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError>
    where
        P: Payload + Inline,
        L: AdapterLink<Data = P>,
    {
        loop {
            let room = self
                .queues
                .host_send
                .room()
                .min(self.queues.commands.room());
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
                let of_host = adapter.is_about_packets(self.session, entry);
                self.handle_request(now, entry, of_host);
            }
        }
    }

    fn handle_request(&mut self, now: Time, entry: &[Descriptor], of_host: bool) {
        let stamp = self.next_stamp.take();
        let descriptor = entry[0];
        if of_host {
            let since = now;
            let request = HostRequest { descriptor, since };
            self.queues.host_send.push(stamp, request);
        } else {
            self.queues.commands.push(stamp, descriptor);
            if is_of_cache(&descriptor) {
                self.cache_commands.push(stamp);
            }
            for &continuation in &entry[1..] {
                self.continuations.push(continuation);
            }
        }
    }

    // --- work ---

    #[inline]
    fn heads(&self, can_answer: bool, is_over: bool) -> Heads {
        let transfer = self.begun.front().filter(|_| is_over);
        let mut heads = (self.queues.heads())
            .with(Source::Transfers, transfer.map(|begun| begun.stamp))
            .with(Source::Transmit, self.transmit)
            .with(Source::Timers, self.timers);
        if !can_answer {
            heads = heads
                .with(Source::HostSend, None)
                .with(Source::Commands, None);
        }
        match self.cache_commands.front() {
            Some(&put) => self.in_cache_order(heads, put),
            None => heads,
        }
    }

    /// Hides requests that are to be carried out after others because of the data cache, the first of whose commands arrived at `put`:
    /// what stands in a place of it depends on the order of requests, whatever the scheduler says.
    fn in_cache_order(&self, heads: Heads, put: Stamp) -> Heads {
        let (packet, command) = (heads.of(Source::HostSend), heads.of(Source::Commands));
        let is_first_packet = packet.is_some_and(|packet| packet < put);
        let first = self.queues.host_send.front();
        let is_cached =
            first.is_some_and(|request| request.descriptor.opcode() == Ok(Opcode::SendCached));
        if is_first_packet && command == Some(put) {
            heads.with(Source::Commands, None)
        } else if is_cached && !is_first_packet {
            heads.with(Source::HostSend, None)
        } else {
            heads
        }
    }

    /// The next piece of work, as the scheduler says. `can_answer`: there is [room](Adapter::room_for_requests) for the answer to a
    /// request; `is_over`: a transfer of data is; `may_send`: TCP may have something to send.
    pub fn next_piece(
        &mut self,
        can_answer: bool,
        is_over: bool,
        may_send: bool,
    ) -> Option<Piece<F>> {
        let mut heads = self.heads(can_answer, is_over);
        let mut source = self.order.next(&heads)?;
        if source == Source::Transmit && !may_send {
            self.handle_quiet();
            heads = heads.with(Source::Transmit, None);
            source = self.order.next(&heads)?;
        }
        self.current = heads.of(source)?;
        self.owner = Transferred::Connection;
        let piece = match source {
            Source::Arrivals => Piece::Lookup(self.queues.arrivals.pop()?),
            Source::HostReceive => {
                self.owner = Transferred::ToHost;
                Piece::HostReceive(self.queues.host_receive.pop()?)
            }
            Source::NicReceive => Piece::Receive(self.queues.nic_receive.pop()?),
            Source::HostSend => {
                let request = self.queues.host_send.pop()?;
                self.owner = Transferred::FromHost(request.since);
                self.entry.clear();
                self.entry.push(request.descriptor);
                Piece::HostRequest
            }
            Source::Commands => {
                let head = self.queues.commands.pop()?;
                self.entry.clear();
                self.entry.push(head);
                let continuations = self.continuations.take(head.continuations());
                self.entry.extend(continuations);
                match is_of_cache(&head) {
                    true => {
                        self.cache_commands.pop();
                        Piece::CacheCommand
                    }
                    false => Piece::Request(self.entry.len() as u32),
                }
            }
            Source::Transfers => Piece::Transfer,
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

    /// Carries out the request under way.
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

    /// Takes note of the transfer that is over; gives what it was about.
    ///
    /// # Errors
    /// The application is gone or broke the rules.
    pub fn finish_transfer<P, L>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        stack: &mut Stack<P>,
        link: &mut L,
    ) -> Result<Transferred, LinkError>
    where
        P: Payload + Inline,
        L: AdapterLink<Data = P>,
    {
        finish_transfer(now, adapter, stack, self.session, link)?;
        let begun = self.begun.pop();
        Ok(begun.map_or(Transferred::Connection, |begun| begun.owner))
    }

    /// Ends the piece under way: begins the transfers of data that it asks for, and gives the host the responses that are due.
    ///
    /// # Errors
    /// The application is gone or broke the rules.
    pub fn end_piece<P, L>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<P>,
        link: &mut L,
    ) -> Result<(), LinkError>
    where
        P: Payload + Inline,
        L: AdapterLink<Data = P>,
    {
        let (stamp, owner) = (self.current, self.owner);
        for _ in 0..begin_transfers(now, adapter, self.session, link)? {
            self.begun.push(Begun { stamp, owner });
        }
        put_responses(now, adapter, self.session, link)?;
        Ok(())
    }
}

/// Whether a request is a command of the data cache.
fn is_of_cache(request: &Descriptor) -> bool {
    request.opcode().is_ok_and(Opcode::is_of_cache)
}

#[cfg(test)]
mod tests;
