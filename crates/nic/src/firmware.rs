//! The firmware: one piece of work at a time.

mod commands;
mod host_work;
mod reset;
mod upcalls;

use crate::cache::DataCache;
use crate::cache::assembly::Assembly;
use crate::cache::region::Storable;
use crate::config::{Config, Relief};
use crate::connections::Connections;
use crate::load_control::{Governor, LoadState, Step, Watermarks};
use crate::memory::Memory;
use crate::meter::{Meter, Task};
use crate::queues::{HostWork, QueueLengths, Queues, Received, Stamp};
use crate::relief::{ActivityClock, ReliefRequests};
use crate::scheduler::{Heads, Order, Schedule, Source};
use crate::stats::{Drop, Stats};
use baton_bus::Fifo;
use baton_bus::handoff::{Command, ToHost};
use baton_tcp::{Segment, Stack};
use baton_wire::{Pieces, Time};

/// Host packets that left are reported in batches of at most so many.
const SENT_BATCH: u32 = 16;

/// Host memory that a piece of work read by DMA, for the machine to make it wait. What it writes to host memory are the upcalls,
/// and descriptors are fetched before they are handed in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostRead<P> {
    /// Protocol headers, from Ethernet up, bytes.
    pub headers: u32,
    /// A connection's state, bytes.
    pub state: u32,
    /// Data.
    pub data: Pieces<P>,
}

/// A frame on its way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing<P> {
    /// What it carries.
    pub segment: Segment<P>,
    /// For a packet of the host: when its descriptor arrived at the NIC. `None` for a packet of the NIC's TCP.
    pub host_since: Option<Time>,
    /// All of it was read from host memory, headers and data. What else was read is told by [`Firmware::poll_read`].
    pub is_read: bool,
}

/// A descriptor on its way to the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Upcall<P> {
    /// What it says.
    pub item: ToHost<P>,
    /// For a received packet of the host: when its frame arrived at the MAC.
    pub host_since: Option<Time>,
}

/// Kinds of pieces of work. What a piece costs is what the [`Meter`] heard meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// Found out whose a received packet is.
    Lookup,
    /// Passed a received packet to the host.
    HostReceive,
    /// Sent a packet of the host.
    HostSend,
    /// TCP input of a received or forwarded packet.
    Receive,
    /// Sent one segment of the NIC's TCP.
    Transmit,
    /// Carried out a command other than handoff, restore and forward.
    Command,
    /// Took over a connection, or refused to.
    Handoff,
    /// Gave a connection back.
    Restore,
    /// Ran TCP timers that were due.
    Timers,
    /// Asked the host to take a connection back.
    Relief,
    /// Carried out a command of the data cache.
    Cache,
}

/// The NIC's firmware.
///
/// Calling order: hand in frames, descriptors and timeouts as they come; after each [`Firmware::poll_work`] take everything
/// that [`Firmware::poll_frame`] and [`Firmware::poll_upcall`] have before doing more work (so neither needs a queue longer than one
/// piece of work fills, and a machine whose host ring is full stops the firmware by not taking). [`Firmware::handle_timeouts`]
/// is to be called when [`Firmware::poll_timeout`]'s moment has come. Time never goes back.
#[derive(Debug)]
pub struct Firmware<P: Storable> {
    config: Config,
    stack: Stack<P>,
    connections: Connections,
    memory: Memory,
    governor: Box<dyn Governor>,
    order: Order,
    activity_clock: ActivityClock,
    relief: ReliefRequests,
    stats: Stats,
    queues: Queues<Received<P>, HostWork<P>, Command<P>>,
    next_stamp: Stamp,
    /// The TCP engine may have segments to send; stamp of the oldest arrival that may have caused them.
    transmit: Option<Stamp>,
    /// TCP timers were due when this stamp was taken.
    timers: Option<Stamp>,
    /// Host packets that left and were not yet reported.
    sent: u32,
    /// A handoff was refused for want of memory, and the host has not been told that there is some again.
    memory_short: bool,
    cache: DataCache<P>,
    /// The packet whose parts are arriving.
    assembly: Assembly<P>,
    frames: Fifo<Outgoing<P>>,
    upcalls: Fifo<Upcall<P>>,
    /// What was read of host memory; noted only for a machine that asks.
    reads: Fifo<HostRead<P>>,
    notes_reads: bool,
}

impl<P: Storable> Firmware<P> {
    /// Firmware without connections. `tcp` and `secret` are for the TCP engine; connections bring their own parameters.
    pub fn new(config: Config, tcp: baton_tcp::Config, secret: u64) -> Self {
        Self {
            stack: Stack::new(tcp, secret),
            connections: Connections::default(),
            memory: Memory::new(config.memory_kib, config.cache.kib),
            governor: Box::new(Watermarks::new(
                config.load_control.clone(),
                config.hard_limit,
            )),
            order: Order::new(config.scheduler),
            activity_clock: ActivityClock::default(),
            relief: ReliefRequests::default(),
            stats: Stats::default(),
            queues: Queues::new(&config),
            next_stamp: Stamp::default(),
            transmit: None,
            timers: None,
            sent: 0,
            memory_short: false,
            cache: DataCache::new(config.cache.clone()),
            assembly: Assembly::Between,
            frames: Fifo::new(),
            upcalls: Fifo::new(),
            reads: Fifo::new(),
            notes_reads: false,
            config,
        }
    }

    // --- getters ---

    /// Its parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Totals.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Totals of its TCP engine.
    pub fn tcp_stats(&self) -> &baton_tcp::Stats {
        self.stack.stats()
    }

    /// Cnum: active connections on the NIC. Connections that are over and not yet released are not among them.
    pub fn connections(&self) -> u32 {
        self.connections.active()
    }

    /// Soft_Limit: the most connections that may be on the NIC now.
    pub fn soft_limit(&self) -> u32 {
        self.governor.soft_limit().min(self.config.hard_limit)
    }

    /// Qlen: NIC packets that wait on the receive queue. Under FCFS, where lookup waits too, all packets that wait there.
    pub fn qlen(&self) -> u32 {
        self.queues.qlen(self.order.looks_up_first())
    }

    /// State of load control.
    pub fn load_state(&self) -> LoadState {
        self.governor.state()
    }

    /// Lengths of all queues.
    pub fn queue_lengths(&self) -> QueueLengths {
        self.queues.lengths()
    }

    /// On-board memory that is free, bytes.
    pub fn memory_free(&self) -> u64 {
        self.memory.free()
    }

    /// Whether there may be work to do. After `true`, [`Firmware::poll_work`] may still find that there is none
    /// (TCP had nothing to send after all); after `false` it never finds any.
    pub fn has_work(&self) -> bool {
        self.order.next(&self.heads()).is_some()
    }

    /// Asserts every invariant of the firmware and of the TCP engine in it.
    pub fn check(&self) {
        self.stack.check();
        self.connections.check();
        self.queues.check();
        self.governor.check();
        self.cache.check();
        assert_eq!(
            self.stack.len(),
            self.connections.active() as usize,
            "every connection of the engine has a handle"
        );
        assert!(
            self.connections.active() <= self.config.hard_limit,
            "Cnum is at most Hard_Limit"
        );
        let connection_bytes =
            u64::from(self.connections.held()) * u64::from(self.config.connection_bytes);
        let received = self.queues.received();
        let packet_bytes = received.map(|packet| u64::from(packet.bytes)).sum();
        self.memory.check(connection_bytes, packet_bytes);
        for (handle, offloaded) in self.connections.iter_active() {
            let least = self.config.acknowledge_bytes.max(1);
            assert!(
                offloaded.acknowledged < least,
                "{handle:?}: acknowledged bytes are reported in time"
            );
        }
        assert!(
            self.sent < SENT_BATCH,
            "host packets that left are reported in time"
        );
    }

    // --- events in ---

    /// A frame arrived from the wire. It waits for lookup in on-board memory.
    ///
    /// # Errors
    /// The packet was dropped (and counted) for the reason given.
    pub fn handle_frame(&mut self, now: Time, segment: Segment<P>) -> Result<(), Drop> {
        self.stats.frames_received += 1;
        if self.queues.arrivals.is_full() {
            return Err(self.drop_packet(Drop::ArrivalQueue));
        }
        let bytes = segment.frame_len() as u32;
        if !self.memory.reserve_packet(bytes) {
            self.relieve_memory();
            return Err(self.drop_packet(Drop::Memory));
        }
        let packet = Received {
            segment,
            since: now,
            bytes,
        };
        self.queues.arrivals.push(self.next_stamp.take(), packet);
        Ok(())
    }

    /// Makes TCP timers that are due pending work.
    pub fn handle_timeouts(&mut self, now: Time) {
        let due = self.stack.poll_timeout().is_some_and(|at| at <= now);
        if due && self.timers.is_none() {
            self.timers = Some(self.next_stamp.take());
        }
    }

    // --- mutators ---

    /// A scheduler and load control of the caller's own in place of those that its parameters name, before there is any work.
    pub fn set_policies(
        &mut self,
        schedule: Option<Box<dyn Schedule>>,
        governor: Option<Box<dyn Governor>>,
    ) {
        self.order.set_own(schedule);
        if let Some(governor) = governor {
            self.governor = governor;
        }
    }

    /// From now on every read of host memory is told by [`Firmware::poll_read`].
    pub fn note_reads(&mut self) {
        self.notes_reads = true;
    }

    /// The memory of the data cache, for a machine that watches it.
    pub fn cache_region_mut(&mut self) -> &mut P::Region {
        self.cache.region_mut()
    }

    // --- work ---

    /// Takes one piece of work, as the scheduler says, and does it. `None`: there is none.
    pub fn poll_work(&mut self, now: Time, meter: &mut impl Meter) -> Option<Work> {
        debug_assert!(
            self.frames.is_empty() && self.upcalls.is_empty() && self.reads.is_empty(),
            "outputs are taken before more work is done"
        );
        // A source that turns out to hold nothing is no longer picked, so this ends.
        let work = loop {
            let source = self.order.next(&self.heads())?;
            if let Some(work) = self.work_on(source, now, meter) {
                break work;
            }
        };
        self.report_memory(meter);
        Some(work)
    }

    fn heads(&self) -> Heads {
        (self.queues.heads())
            .with(Source::Transmit, self.transmit)
            .with(Source::Timers, self.timers)
            .with(Source::Relief, self.relief.head())
    }

    /// One piece of work of `source`; `None` when there was nothing to it.
    #[inline]
    fn work_on(&mut self, source: Source, now: Time, meter: &mut impl Meter) -> Option<Work> {
        match source {
            Source::Arrivals => self.look_up(now, meter),
            Source::HostReceive => {
                let packet = self.queues.host_receive.pop()?;
                self.memory.free_packet(packet.bytes);
                self.pass_to_host(packet.segment, Some(packet.since), meter);
                Some(Work::HostReceive)
            }
            Source::HostSend => self.work_for_host(meter),
            Source::NicReceive => {
                let stamp = self.queues.nic_receive.head()?;
                let packet = self.queues.nic_receive.pop()?;
                Some(self.receive(stamp, now, packet, meter))
            }
            Source::Commands => {
                let stamp = self.queues.commands.head()?;
                let command = self.queues.commands.pop()?;
                Some(self.carry_out(stamp, now, command, meter))
            }
            Source::Transmit => self.transmit(now, meter),
            Source::Timers => self.run_timers(now, meter),
            Source::Relief => self.ask_for_relief(meter),
            // It hears of none: what it reads is there at once, or its machine keeps it back.
            Source::Transfers => None,
        }
    }

    /// Decides whose the oldest arrival is, and queues it there.
    fn look_up(&mut self, now: Time, meter: &mut impl Meter) -> Option<Work> {
        let stamp = self.queues.arrivals.head()?;
        let packet = self.queues.arrivals.pop()?;
        self.charge(Task::Lookup, meter);
        let ours = self.is_ours(now, &packet.segment);
        if let Err((reason, packet)) = self.queues.sort(stamp, packet, ours) {
            self.memory.free_packet(packet.bytes);
            self.drop_packet(reason);
        }
        self.control_load(meter);
        Some(Work::Lookup)
    }

    /// Whether the NIC's TCP should have this packet: its connection is here, or waits here in TIME-WAIT.
    /// A SYN that opens the next incarnation ends that wait.
    fn is_ours(&mut self, now: Time, segment: &Segment<P>) -> bool {
        let flow = segment.flow_at_receiver();
        if self.stack.find(&flow).is_some() {
            return true;
        }
        // Only the host has listeners for the next incarnation.
        self.stack.in_time_wait(now, &flow) && !self.stack.reopens_time_wait(now, segment)
    }

    fn pass_to_host(&mut self, segment: Segment<P>, since: Option<Time>, meter: &mut impl Meter) {
        self.charge(Task::HostReceive, meter);
        self.stats.host_packets_received += 1;
        self.upcalls.push(Upcall {
            item: ToHost::Packet(segment),
            host_since: since,
        });
    }

    /// TCP input of a packet that lookup found to be the NIC's. If its connection has left since, it goes on to the host.
    fn receive(
        &mut self,
        stamp: Stamp,
        now: Time,
        packet: Received<P>,
        meter: &mut impl Meter,
    ) -> Work {
        self.memory.free_packet(packet.bytes);
        if self.is_ours(now, &packet.segment) {
            self.tcp_input(stamp, now, packet.segment, meter)
        } else {
            self.stats.passed_on += 1;
            self.pass_to_host(packet.segment, Some(packet.since), meter);
            Work::HostReceive
        }
    }

    fn tcp_input(
        &mut self,
        stamp: Stamp,
        now: Time,
        segment: Segment<P>,
        meter: &mut impl Meter,
    ) -> Work {
        self.charge(Task::Receive, meter);
        self.stats.nic_packets_received += 1;
        let handled = self.stack.handle_segment(now, segment);
        if let Some(handle) = handled.conn.and_then(|conn| self.connections.handle(conn))
            && let Some(offloaded) = self.connections.get_mut(handle)
        {
            self.activity_clock.count(&mut offloaded.activity);
        }
        self.after_tcp(stamp, meter);
        Work::Receive
    }

    /// Sends a burst of segments of the NIC's TCP, as far as it has any.
    fn transmit(&mut self, now: Time, meter: &mut impl Meter) -> Option<Work> {
        for sent in 0..self.config.transmit_burst_segments {
            let Some((conn, mut segment)) = self.stack.poll_transmit(now) else {
                self.transmit = None;
                return (sent > 0).then_some(Work::Transmit);
            };
            self.charge(Task::Transmit, meter);
            self.fetch_data(conn, &mut segment, meter);
            self.stats.nic_packets_sent += 1;
            self.frames.push(Outgoing {
                segment,
                host_since: None,
                is_read: false,
            });
        }
        Some(Work::Transmit)
    }

    fn run_timers(&mut self, now: Time, meter: &mut impl Meter) -> Option<Work> {
        let stamp = self.timers.take()?;
        let ran = self.stack.handle_timeouts(now);
        for _ in 0..ran {
            self.charge(Task::Timer, meter);
        }
        self.after_tcp(stamp, meter);
        (ran > 0).then_some(Work::Timers)
    }

    /// What must follow everything that the TCP engine was told: its events go up, its segments become pending work.
    fn after_tcp(&mut self, stamp: Stamp, meter: &mut impl Meter) {
        self.tell_events(meter);
        self.transmit = Some(self.transmit.map_or(stamp, |oldest| oldest.min(stamp)));
    }

    fn charge(&mut self, task: Task, meter: &mut impl Meter) {
        self.stats.tasks[task as usize] += 1;
        meter.run(task);
    }

    fn charge_many(&mut self, task: Task, count: u32, meter: &mut impl Meter) {
        self.stats.tasks[task as usize] += u64::from(count);
        meter.run_many(task, count);
    }

    fn drop_packet(&mut self, reason: Drop) -> Drop {
        self.stats.dropped.count(reason);
        reason
    }

    // --- load ---

    /// Runs load control: after a packet's arrival, a handoff, or the end of a connection (handoff-policies 3.2).
    fn control_load(&mut self, meter: &mut impl Meter) {
        let before = self.governor.state();
        let step = self.governor.run(self.qlen(), self.connections.active());
        match step {
            Step::None => {}
            Step::Lowered => self.stats.soft_limit_lowered += 1,
            Step::Raised => self.stats.soft_limit_raised += 1,
        }
        if step != Step::None {
            self.post_soft_limit(meter);
        }
        if self.config.load_control.relief == Relief::Active {
            let after = self.governor.state();
            if after == LoadState::Decrease && before != LoadState::Decrease {
                let surplus = self.governor.surplus(self.connections.active());
                self.request_relief(surplus);
            } else if after != LoadState::Decrease && before == LoadState::Decrease {
                self.relief.withdraw(&mut self.connections);
            }
        }
    }

    /// Connections and packets share the memory: when packets find none, the busiest connection should go.
    fn relieve_memory(&mut self) {
        if self.config.load_control.enabled && self.config.load_control.relief == Relief::Active {
            self.request_relief(1);
        }
    }

    fn request_relief(&mut self, connections: u32) {
        let stamp = self.next_stamp.take();
        self.relief.request(
            connections,
            &mut self.connections,
            &self.activity_clock,
            stamp,
        );
    }

    // --- effects out ---

    /// Whether there is something to take of what the last piece of work did.
    pub fn has_output(&self) -> bool {
        !self.frames.is_empty() || !self.upcalls.is_empty() || !self.reads.is_empty()
    }

    /// The next frame to put on the wire.
    pub fn poll_frame(&mut self) -> Option<Outgoing<P>> {
        self.frames.pop()
    }

    /// The next descriptor for the host.
    pub fn poll_upcall(&mut self) -> Option<Upcall<P>> {
        self.upcalls.pop()
    }

    /// The next read of host memory that the last piece of work did, other than for a frame that [is read](Outgoing::is_read) whole; none are noted unless [`Firmware::note_reads`] was called.
    /// To be taken like frames and upcalls, which are not to be seen before these reads are over.
    pub fn poll_read(&mut self) -> Option<HostRead<P>> {
        self.reads.pop()
    }

    /// When [`Firmware::handle_timeouts`] must next be called, if ever. May be early, never late.
    pub fn poll_timeout(&self) -> Option<Time> {
        // Timers already pending are work, not a date.
        if self.timers.is_some() {
            None
        } else {
            self.stack.poll_timeout()
        }
    }
}
