//! The adapter's TCP and sockets, and the steps of a piece of work on them.

use super::super::super::capture::Taps;
use super::super::super::nic_processor::NicProcessor;
use super::super::super::subnets;
use super::super::data::{self, LinkData, Packet};
use super::super::link::{AdapterTally, SimulatedLink};
use super::Received;
use crate::config::{Experiment, Invalid};
use baton_bus::link::LinkError;
use baton_nic::adapter::{
    Adapter, AdapterConfig, HostPacket, OnBoardMemory, PacketSocket, Ready, SessionId,
};
use baton_nic::{
    Drop, Governor, LINE_BYTES, Links, Lower, Meter, Owner, Process, Task, Transmit, Work,
};
use baton_tcp::{Segment, Stack};
use baton_wire::{Span, Symbolic, Time};

/// The adapter's sockets, and what is below them.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) tcp: Tcp,
    pub(super) adapter: Adapter<LinkData>,
    pub(super) session: SessionId,
    /// Maximum number of data transfers in progress when a request is processed, if requests are processed one by one.
    most_dmas: usize,
    /// Numbers of imports and exports that were charged.
    moved: (u64, u64),
}

/// TCP, and the output of the piece of work in progress.
#[derive(Debug)]
pub(super) struct Tcp {
    pub(super) stack: Stack<LinkData>,
    /// How cached data gets from the data cache to the wire.
    transmit: Transmit,
    /// Segments that the piece of work in progress sends when it is done.
    pub(super) outgoing: Vec<Outgoing>,
    /// Arrival times of the packets that the piece of work in progress passes to the host.
    pub(super) passed: Vec<Time>,
}

/// A segment on its way to the wire.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) segment: Segment<Symbolic>,
    /// Arrival time at the adapter, for a packet of the host.
    pub(super) host_since: Option<Time>,
}

/// TCP on the processor that runs it.
struct Running<'a> {
    tcp: &'a mut Tcp,
    nic: &'a mut NicProcessor,
    taps: &'a mut Taps,
}

/// The link of the only application.
struct OnlyLink<'a> {
    link: &'a mut SimulatedLink,
    most_dmas: usize,
}

impl Links<LinkData> for OnlyLink<'_> {
    type Link = SimulatedLink;

    #[inline]
    fn link(&mut self, _session: SessionId) -> Option<&mut SimulatedLink> {
        Some(self.link)
    }

    /// There must be space for the data transfers of the first request, too.
    #[inline]
    fn ready(&self, _session: SessionId, answers: usize) -> Ready {
        Ready {
            requests: if self.link.dmas() < self.most_dmas {
                answers
            } else {
                0
            },
            is_over: self.link.has_moved_data(),
        }
    }

    fn has_requests(&self, _session: SessionId) -> bool {
        self.link.has_requests()
    }
}

impl Lower for Running<'_> {
    type Data = LinkData;
    type Packet = Received;

    #[inline]
    fn stack(&mut self) -> &mut Stack<LinkData> {
        &mut self.tcp.stack
    }

    fn packet_bytes((_, packet): &Received) -> u32 {
        packet.frame_len() as u32
    }

    fn look_up(&mut self, now: Time, adapter: &Adapter<LinkData>, (_, packet): &Received) -> Owner {
        let host = self.host_of(now, adapter, packet);
        self.search(host);
        match host {
            Some(_) => Owner::Host,
            None => Owner::Adapter,
        }
    }

    fn take_in(&mut self, now: Time, adapter: &mut Adapter<LinkData>, (since, packet): Received) {
        let host = self.host_of(now, adapter, &packet);
        self.hand_on(now, adapter, since, packet, host);
    }

    fn pass(&mut self, now: Time, adapter: &mut Adapter<LinkData>, (since, packet): Received) {
        let host = adapter.host_for(packet.dst);
        self.hand_on(now, adapter, since, packet, host);
    }

    fn dropped(&mut self, now: Time, reason: Drop, (_, packet): &Received) {
        self.taps.lost(now, packet.src, reason.name());
    }

    fn take_packets(
        &mut self,
        now: Time,
        adapter: &mut Adapter<LinkData>,
        since: Option<Time>,
    ) -> bool {
        let mut any = false;
        while let Some(HostPacket { parts, to_wire }) = adapter.poll_packet() {
            any = true;
            let mut parts = parts.into_iter();
            let Some(LinkData::Packet(packet)) = parts.next() else {
                debug_assert!(false, "a packet socket receives only packets");
                continue;
            };
            if to_wire {
                self.nic.meter.run(Task::HostSend);
                let mut segment = data::to_wire(&packet);
                for part in parts {
                    self.charge_part(&part);
                    segment.payload.extend(part.content());
                }
                self.tcp.outgoing.push(Outgoing {
                    segment,
                    host_since: Some(since.unwrap_or(now)),
                });
            } else {
                self.sort_out(now, adapter, (now, packet));
            }
        }
        any
    }

    fn transmit(&mut self, now: Time, most: usize) -> usize {
        (0..most).take_while(|_| self.transmit_one(now)).count()
    }

    #[inline]
    fn poll_timeout(&mut self) -> Option<Time> {
        self.tcp.stack.poll_timeout()
    }

    fn handle_timeouts(&mut self, now: Time) -> u32 {
        self.tcp.stack.handle_timeouts(now) as u32
    }

    fn busy(&self, now: Time) -> Option<Span> {
        Some(self.nic.busy(now))
    }

    fn ran(&mut self, task: Task, count: u32) {
        self.nic.meter.run_many(task, count);
    }
}

impl Running<'_> {
    /// Returns the socket of the host to which a packet belongs, or `None` if the adapter's TCP takes the packet (handoff-policies 2).
    fn host_of(
        &mut self,
        now: Time,
        adapter: &Adapter<LinkData>,
        segment: &Segment<LinkData>,
    ) -> Option<PacketSocket> {
        if !adapter.passes_packets() || self.tcp.stack.claims(now, segment) {
            return None;
        }
        adapter.host_for(segment.dst)
    }

    /// Looks up the owner of a packet that has not been sorted, and passes the packet to it.
    fn sort_out(&mut self, now: Time, adapter: &mut Adapter<LinkData>, received: Received) {
        let (since, packet) = received;
        let host = self.host_of(now, adapter, &packet);
        if adapter.passes_packets() {
            self.nic.meter.run(Task::Lookup);
            self.search(host);
        }
        self.hand_on(now, adapter, since, packet, host);
    }

    /// Charges the search for the connection of a packet, which belongs to `host` or is one of the adapter's TCP. Connections in TIME-WAIT
    /// are in the table, too.
    fn search(&mut self, host: Option<PacketSocket>) {
        let stack = &self.tcp.stack;
        let connections = stack.len() + stack.time_wait_len();
        self.nic.meter.search(connections, host.is_none());
    }

    /// Passes a packet to the host, or to TCP if `host` is `None`.
    fn hand_on(
        &mut self,
        now: Time,
        adapter: &mut Adapter<LinkData>,
        since: Time,
        packet: Packet,
        host: Option<PacketSocket>,
    ) {
        if let Some(host) = host {
            self.nic.meter.run(Task::HostReceive);
            self.tcp.passed.push(since);
            return adapter.pass(host, LinkData::Packet(packet));
        }
        self.nic.meter.run(Task::Receive);
        self.tcp.stack.handle_segment(now, packet.into_segment());
    }

    /// Sends a segment of TCP. Returns false if there is none.
    fn transmit_one(&mut self, now: Time) -> bool {
        let Some((_, segment)) = self.tcp.stack.poll_transmit(now) else {
            return false;
        };
        self.nic.meter.run(Task::Transmit);
        for part in &segment.payload {
            if let LinkData::Cached(content) = part {
                self.charge_cached(content);
            }
        }
        self.tcp.outgoing.push(Outgoing {
            segment: data::to_wire(&segment),
            host_since: None,
        });
        true
    }

    /// Charges content that is gathered or copied from the data cache (data-caching 4.3).
    fn charge_cached(&mut self, content: &Symbolic) {
        self.nic.meter.run(Task::AppendCache);
        if self.tcp.transmit == Transmit::Copy {
            let lines = content.len.div_ceil(LINE_BYTES);
            self.nic.meter.run_many(Task::CopyLine, lines);
        }
    }

    /// Charges a part of a packet of the host, other than its head.
    fn charge_part(&mut self, part: &LinkData) {
        match part {
            LinkData::Cached(content) => self.charge_cached(content),
            _ => self.nic.meter.run(Task::AppendMemory),
        }
    }
}

impl Engine {
    /// Creates an engine with one application.
    pub(super) fn new(
        experiment: &Experiment,
        number: u8,
        interface: &AdapterConfig,
        governor: Option<Box<dyn Governor>>,
    ) -> Result<Self, Invalid> {
        let firmware = &experiment.nic.firmware;
        let interface = AdapterConfig {
            addresses: vec![subnets::server(number).addr],
            hard_limit: firmware.hard_limit,
            load_control: firmware.load_control.clone(),
            cache_bytes: firmware.cache.bytes(),
            memory: Some(OnBoardMemory {
                kib: firmware.memory_kib.saturating_sub(firmware.cache.kib),
                connection_bytes: firmware.connection_bytes,
            }),
            ..interface.clone()
        };
        let refused = |error: &dyn std::error::Error| {
            Invalid::new(
                "offload.adapter.interface",
                error.to_string(),
                "a valid interface",
            )
        };
        let mut adapter = Adapter::new(interface).map_err(|error| refused(&error))?;
        if let Some(governor) = governor {
            adapter.set_governor(governor);
        }
        let session = adapter.attach().map_err(|error| refused(&error))?;
        let seed = experiment.run.nic_seed(number);
        Ok(Self {
            tcp: Tcp {
                stack: Stack::new(experiment.tcp.clone(), seed ^ 0xada9_7e12),
                transmit: firmware.cache.transmit,
                outgoing: Vec::new(),
                passed: Vec::new(),
            },
            adapter,
            session,
            most_dmas: experiment.nic.dma.packets_in_flight as usize,
            moved: (0, 0),
        })
    }

    /// Returns when the next timer is due.
    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match (self.tcp.stack.poll_timeout(), self.adapter.poll_timeout()) {
            (Some(stack), Some(adapter)) => Some(stack.min(adapter)),
            (stack, adapter) => stack.or(adapter),
        }
    }

    /// Reports whether the ring now has space for responses that were held up.
    pub(super) fn may_put(&self, link: &SimulatedLink) -> bool {
        link.has_room_for_responses(self.adapter.queue(self.session))
    }

    /// Returns whether there may be a piece of work.
    #[inline]
    pub(super) fn has_work(&self, process: &Process<Received>, link: &mut SimulatedLink) -> bool {
        let most_dmas = self.most_dmas;
        process.has_work(&self.adapter, &OnlyLink { link, most_dmas })
    }

    /// Does a piece of work. Returns false if there is none.
    pub(super) fn do_piece(
        &mut self,
        now: Time,
        process: &mut Process<Received>,
        link: &mut SimulatedLink,
        nic: &mut NicProcessor,
        taps: &mut Taps,
    ) -> Result<bool, LinkError> {
        if self.poll_timeout().is_some_and(|due| due <= now) || self.may_put(link) {
            process.handle_timers();
        }
        let tcp = &mut self.tcp;
        let mut running = Running { tcp, nic, taps };
        let most_dmas = self.most_dmas;
        let mut links = OnlyLink { link, most_dmas };
        let done = process.do_piece(now, &mut self.adapter, &mut running, &mut links);
        let Some(work) = done.map_err(|(_, error)| error)? else {
            return Ok(false);
        };
        // Packets of the host cost what they cost the firmware of the papers, including descriptors and transfers, so nothing else is
        // charged for a piece of work on them.
        let mut tally = link.take_adapter_tally();
        (tally.requests, tally.cache_commands) = match work {
            Work::Connections { requests } => (requests, 0),
            Work::Cache => (0, 1),
            Work::HostPacket | Work::Timers => (0, 0),
            Work::All => (tally.requests, tally.cache_commands),
        };
        if work == Work::HostPacket {
            tally.dmas = 0;
        }
        charge_link(tally, nic);
        Ok(true)
    }

    /// Charges the imports and exports since the last call.
    pub(super) fn charge_moves(&mut self, nic: &mut NicProcessor) {
        let stats = self.adapter.stats_of(self.session);
        let moved = (stats.imported, stats.exported);
        if moved == self.moved {
            return;
        }
        let (imports, exports) = (moved.0 - self.moved.0, moved.1 - self.moved.1);
        nic.meter.run_many(Task::Handoff, imports as u32);
        nic.meter.run_many(Task::Restore, exports as u32);
        self.moved = moved;
    }
}

/// Charges the operations on the link.
fn charge_link(tally: AdapterTally, nic: &mut NicProcessor) {
    if tally == AdapterTally::default() {
        return;
    }
    let AdapterTally {
        requests,
        cache_commands,
        responses,
        transfers,
        dmas,
    } = tally;
    nic.meter.run_many(Task::Command, requests);
    nic.meter.run_many(Task::CacheInsert, cache_commands);
    nic.meter.run_many(Task::Event, responses);
    nic.meter.run_many(Task::Transfer, transfers);
    nic.meter.run_many(Task::Dma, dmas);
}
