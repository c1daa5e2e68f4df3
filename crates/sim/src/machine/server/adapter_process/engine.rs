//! The adapter's TCP and sockets, and the steps of a piece of work on them.

use super::super::super::nic_processor::NicProcessor;
use super::super::super::subnets;
use super::super::data::{self, LinkData, Packet};
use super::super::link::{AdapterTally, SimulatedLink};
use super::{MOST_FRAMES, Received};
use crate::config::{Experiment, Invalid};
use baton_bus::link::LinkError;
use baton_nic::adapter::{
    Adapter, AdapterConfig, HostPacket, OnBoardMemory, PacketSocket, SessionId, pump,
};
use baton_nic::{Governor, LINE_BYTES, Meter, Task, Transmit};
use baton_tcp::{ConnId, Event, Segment, Stack};
use baton_wire::{Symbolic, Time};
use std::collections::VecDeque;

/// TCP, sockets, and the output of the piece of work in progress.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) stack: Stack<LinkData>,
    pub(super) adapter: Adapter<LinkData>,
    pub(super) session: SessionId,
    /// Maximum number of data transfers in progress when a request is processed, if requests are processed one by one.
    most_dmas: usize,
    /// Maximum number of segments that one piece of work sends, if pieces are bounded.
    pub(super) burst: u32,
    /// How cached data gets from the data cache to the wire.
    transmit: Transmit,
    /// Segments that the piece of work in progress sends when it is done.
    pub(super) outgoing: Vec<Outgoing>,
    /// Arrival times of the packets that the piece of work in progress passes to the host.
    pub(super) passed: Vec<Time>,
    /// Numbers of imports and exports that were charged.
    moved: (u64, u64),
    /// Cnum when load control last ran.
    pub(super) imported: u32,
    /// Number of connections that had left for the host when the waiting packets were last sorted.
    pub(super) exported: u64,
}

/// A segment on its way to the wire.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) segment: Segment<Symbolic>,
    /// Arrival time at the adapter, for a packet of the host.
    pub(super) host_since: Option<Time>,
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
                "one that can work",
            )
        };
        let mut adapter = Adapter::new(interface).map_err(|error| refused(&error))?;
        if let Some(governor) = governor {
            adapter.set_governor(governor);
        }
        let session = adapter.attach().map_err(|error| refused(&error))?;
        let seed = experiment.run.nic_seed(number);
        Ok(Self {
            stack: Stack::new(experiment.tcp.clone(), seed ^ 0xada9_7e12),
            adapter,
            session,
            most_dmas: experiment.nic.dma.packets_in_flight as usize,
            burst: firmware.transmit_burst_segments,
            transmit: firmware.cache.transmit,
            outgoing: Vec::new(),
            passed: Vec::new(),
            moved: (0, 0),
            imported: 0,
            exported: 0,
        })
    }

    /// Returns when the next timer is due.
    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match (self.stack.poll_timeout(), self.adapter.poll_timeout()) {
            (Some(stack), Some(adapter)) => Some(stack.min(adapter)),
            (stack, adapter) => stack.or(adapter),
        }
    }

    /// Reports whether the ring now has space for responses that were held up.
    pub(super) fn may_put(&self, link: &SimulatedLink) -> bool {
        link.has_room_for_responses(self.adapter.queue(self.session))
    }

    /// Reports whether there is space for the answer to a request.
    pub(super) fn may_answer(&self) -> bool {
        self.adapter.room_for_requests(self.session) > 0
    }

    /// Returns the number of requests that can be processed: there is space for their answers, and for the data transfers of the first.
    pub(super) fn room_for_requests(&self, link: &SimulatedLink) -> usize {
        match link.dmas() < self.most_dmas {
            true => self.adapter.room_for_requests(self.session),
            false => 0,
        }
    }

    /// Does all pending work, with a limit on the number of frames.
    pub(super) fn do_all(
        &mut self,
        now: Time,
        received: &mut VecDeque<Received>,
        link: &mut SimulatedLink,
        nic: &mut NicProcessor,
    ) -> Result<(), LinkError> {
        if self.adapter.passes_packets() {
            let qlen = received.len() as u32;
            self.adapter.control_load(now, qlen, Some(nic.busy(now)));
        }
        for _ in 0..MOST_FRAMES {
            let Some((since, packet)) = received.pop_front() else {
                break;
            };
            self.free_packet(now, &packet);
            self.take_in(now, since, packet, nic);
        }
        self.run_timers(now);
        self.handle_events(now);
        while self.pump(now, link)? | self.take_packets(now, None, nic) {
            self.handle_events(now);
        }
        while self.transmit(now, nic) {}
        charge_link(link.take_adapter_tally(), nic);
        Ok(())
    }

    /// Runs the timers that are due. Returns the number of TCP timers that ran.
    pub(super) fn run_timers(&mut self, now: Time) -> usize {
        let is_due = self.stack.poll_timeout().is_some_and(|due| due <= now);
        let ran = match is_due {
            true => self.stack.handle_timeouts(now),
            false => 0,
        };
        self.adapter.handle_timeouts(now, &mut self.stack);
        ran
    }

    /// Frees the memory of a packet that no longer waits.
    pub(super) fn free_packet(&mut self, now: Time, packet: &Packet) {
        self.adapter.free_packet(packet.frame_len() as u32);
        self.adapter.settle_memory(now, &mut self.stack);
    }

    /// Returns the socket of the host to which a packet belongs, or `None` if the adapter's TCP takes the packet (handoff-policies 2).
    pub(super) fn host_of(
        &mut self,
        now: Time,
        segment: &Segment<LinkData>,
    ) -> Option<PacketSocket> {
        if !self.adapter.passes_packets() || self.stack.claims(now, segment) {
            return None;
        }
        self.adapter.host_for(segment.dst)
    }

    /// Passes a packet to TCP, or on to the host if it belongs to no connection here.
    pub(super) fn take_in(
        &mut self,
        now: Time,
        since: Time,
        packet: Packet,
        nic: &mut NicProcessor,
    ) {
        if self.adapter.passes_packets() {
            nic.meter.run(Task::Lookup);
        }
        let host = self.host_of(now, &packet);
        self.hand_on(now, since, packet, host, nic);
    }

    /// Passes a packet to the host, or to TCP if `host` is `None`.
    pub(super) fn hand_on(
        &mut self,
        now: Time,
        since: Time,
        packet: Packet,
        host: Option<PacketSocket>,
        nic: &mut NicProcessor,
    ) {
        if let Some(host) = host {
            nic.meter.run(Task::HostReceive);
            self.passed.push(since);
            return self.adapter.pass(host, LinkData::Packet(packet));
        }
        nic.meter.run(Task::Receive);
        self.stack.handle_segment(now, packet.into_segment());
    }

    /// Sends packets of the host, which arrived at `since` or just now; packets that the host forwards go to TCP. Returns true if there was
    /// a packet.
    pub(super) fn take_packets(
        &mut self,
        now: Time,
        since: Option<Time>,
        nic: &mut NicProcessor,
    ) -> bool {
        let mut any = false;
        while let Some(HostPacket { parts, to_wire }) = self.adapter.poll_packet() {
            any = true;
            let mut parts = parts.into_iter();
            let Some(LinkData::Packet(packet)) = parts.next() else {
                debug_assert!(false, "a packet socket receives only packets");
                continue;
            };
            if to_wire {
                nic.meter.run(Task::HostSend);
                let mut segment = data::to_wire(&packet);
                for part in parts {
                    self.charge_part(&part, nic);
                    segment.payload.extend(part.content());
                }
                self.outgoing.push(Outgoing {
                    segment,
                    host_since: Some(since.unwrap_or(now)),
                });
            } else {
                self.take_in(now, now, packet, nic);
            }
        }
        any
    }

    /// Sends a segment of TCP. Returns false if there is none.
    pub(super) fn transmit(&mut self, now: Time, nic: &mut NicProcessor) -> bool {
        let Some((_, segment)) = self.stack.poll_transmit(now) else {
            return false;
        };
        nic.meter.run(Task::Transmit);
        for part in &segment.payload {
            if let LinkData::Cached(content) = part {
                self.charge_cached(content, nic);
            }
        }
        self.outgoing.push(Outgoing {
            segment: data::to_wire(&segment),
            host_since: None,
        });
        true
    }

    /// Charges content that is gathered or copied from the data cache (data-caching 4.3).
    fn charge_cached(&self, content: &Symbolic, nic: &mut NicProcessor) {
        nic.meter.run(Task::AppendCache);
        if self.transmit == Transmit::Copy {
            let lines = content.len.div_ceil(LINE_BYTES);
            nic.meter.run_many(Task::CopyLine, lines);
        }
    }

    /// Charges a part of a packet of the host, other than its head.
    fn charge_part(&self, part: &LinkData, nic: &mut NicProcessor) {
        match part {
            LinkData::Cached(content) => self.charge_cached(content, nic),
            _ => nic.meter.run(Task::AppendMemory),
        }
    }

    fn pump(&mut self, now: Time, link: &mut SimulatedLink) -> Result<bool, LinkError> {
        pump(now, &mut self.adapter, &mut self.stack, self.session, link)
    }

    #[inline]
    pub(super) fn handle_events(&mut self, now: Time) {
        while let Some((conn, event)) = self.stack.poll_event() {
            self.handle_event(now, conn, &event);
        }
    }

    #[inline(never)]
    fn handle_event(&mut self, now: Time, conn: ConnId, event: &Event) {
        let (adapter, stack) = (&mut self.adapter, &mut self.stack);
        let known = adapter.handle_event(now, stack, conn, event);
        debug_assert!(known, "all connections are sockets");
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
pub(super) fn charge_link(tally: AdapterTally, nic: &mut NicProcessor) {
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
