//! The adapter's process: a TCP stack, and sockets by descriptors.

use super::super::nic_side::NicSide;
use super::super::subnets;
use super::data::LinkData;
use super::link::{AdapterTally, SimulatedLink};
use super::worker::Worker;
use crate::config::{Experiment, Invalid, OffloadAdapterConfig};
use baton_bus::BatchingRule;
use baton_bus::link::LinkError;
use baton_nic::offload::{Adapter, AdapterConfig, HostPacket, SessionId, SessionStats, pump};
use baton_nic::{Governor, Meter, Task};
use baton_tcp::{Segment, Stack};
use baton_wire::Time;
use std::collections::VecDeque;

/// Received frames that are handled in one piece of work, at most.
const MOST_FRAMES: usize = 64;

/// The adapter with all that is its own.
#[derive(Debug)]
pub(super) struct AdapterProcess {
    stack: Stack<LinkData>,
    adapter: Adapter<LinkData>,
    session: SessionId,
    worker: Worker,
    /// Frames that wait, each with the time of its arrival.
    received: VecDeque<(Time, Segment<LinkData>)>,
    /// What the piece of work under way sends when it is done.
    outgoing: Vec<Outgoing>,
    /// When packets arrived that the piece of work under way passes to the host.
    passed: Vec<Time>,
    /// Imports and exports that were charged.
    moved: (u64, u64),
}

/// A segment on its way to the wire.
#[derive(Debug)]
struct Outgoing {
    segment: Segment<LinkData>,
    /// For a packet of the host: when it was here.
    host_since: Option<Time>,
}

impl AdapterProcess {
    /// An adapter with one application.
    pub(super) fn new(
        experiment: &Experiment,
        config: &OffloadAdapterConfig,
        governor: Option<Box<dyn Governor>>,
    ) -> Result<Self, Invalid> {
        let interface = AdapterConfig {
            addresses: vec![subnets::server(0).addr],
            ..config.interface.clone()
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
        let seed = experiment.run.seed;
        Ok(Self {
            stack: Stack::new(experiment.tcp.clone(), seed ^ 0xada9_7e12),
            adapter,
            session,
            worker: Worker::new(config.wake_up, seed ^ 0xada9),
            received: VecDeque::new(),
            outgoing: Vec::new(),
            passed: Vec::new(),
            moved: (0, 0),
        })
    }

    /// A frame has come off the wire.
    pub(super) fn receive(&mut self, now: Time, segment: Segment<LinkData>) {
        self.received.push_back((now, segment));
        self.worker.wake(now);
    }

    pub(super) fn set_batching(&mut self, rule: Box<dyn BatchingRule>) {
        self.adapter.set_batching(self.session, rule);
    }

    /// When it is to be looked at.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.worker.poll_timeout(self.timer())
    }

    fn timer(&self) -> Option<Time> {
        match (self.stack.poll_timeout(), self.adapter.poll_timeout()) {
            (Some(stack), Some(adapter)) => Some(stack.min(adapter)),
            (stack, adapter) => stack.or(adapter),
        }
    }

    /// Ends the piece of work that ends at `now`: what goes onto the wire goes to `send`, and what goes onto the link is released.
    pub(super) fn end_work(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        nic: &mut NicSide,
        mut send: impl FnMut(Segment<LinkData>),
    ) {
        if self.worker.ends(now) {
            for Outgoing {
                segment,
                host_since,
            } in self.outgoing.drain(..)
            {
                match host_since {
                    Some(since) => nic.count_host_packet_sent(now - since),
                    None => nic.nic_packets_sent += 1,
                }
                send(segment);
            }
            for since in self.passed.drain(..) {
                nic.count_host_packet_received(now - since);
            }
            link.release_adapter(now);
            if self.is_wanted(link) {
                self.worker.go_on(now);
            }
        }
    }

    /// Whether something is there for it.
    fn is_wanted(&self, link: &SimulatedLink) -> bool {
        !self.received.is_empty() || link.is_waiting_for_adapter() || self.may_put(link)
    }

    /// Whether responses that found no room would find some now.
    fn may_put(&self, link: &SimulatedLink) -> bool {
        self.adapter.queue(self.session).is_held_up() && link.has_room_for_responses()
    }

    /// Something has happened on the link.
    pub(super) fn look_at(&mut self, now: Time, link: &SimulatedLink) {
        if link.is_waiting_for_adapter() || self.may_put(link) {
            self.worker.wake(now);
        }
    }

    /// Begins a piece of work at `now`, if it is awake and has something to do.
    ///
    /// # Errors
    /// The host broke a rule, or the link is gone.
    pub(super) fn begin_work(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        nic: &mut NicSide,
    ) -> Result<(), LinkError> {
        if !self.worker.may_begin(now, self.timer()) {
            return Ok(());
        }
        if self.adapter.passes_packets() {
            self.adapter.control_load(now, self.received.len() as u32);
        }
        for _ in 0..MOST_FRAMES {
            let Some((since, segment)) = self.received.pop_front() else {
                break;
            };
            self.take_in(now, since, segment, nic);
        }
        if self.stack.poll_timeout().is_some_and(|due| due <= now) {
            self.stack.handle_timeouts(now);
        }
        self.adapter.handle_timeouts(now, &mut self.stack);
        self.handle_events(now);
        while self.pump(now, link)? | self.take_packets(now, nic) {
            self.handle_events(now);
        }
        while let Some((_, segment)) = self.stack.poll_transmit(now) {
            nic.meter.run(Task::Transmit);
            let host_since = None;
            self.outgoing.push(Outgoing {
                segment,
                host_since,
            });
        }
        let stats = self.adapter.stats_of(self.session);
        let moved = (stats.imported, stats.exported);
        nic.meter
            .run_many(Task::Handoff, (moved.0 - self.moved.0) as u32);
        nic.meter
            .run_many(Task::Restore, (moved.1 - self.moved.1) as u32);
        self.moved = moved;
        let AdapterTally {
            requests,
            responses,
            transfers,
            dmas,
        } = link.take_adapter_tally();
        nic.meter.run_many(Task::Command, requests);
        nic.meter.run_many(Task::Event, responses);
        nic.meter.run_many(Task::Transfer, transfers);
        nic.meter.run_many(Task::Dma, dmas);
        self.worker.work(nic.spend(now));
        Ok(())
    }

    /// TCP input, or on to the host if it is of no connection here (handoff-policies 2).
    fn take_in(&mut self, now: Time, since: Time, segment: Segment<LinkData>, nic: &mut NicSide) {
        if self.adapter.passes_packets() {
            nic.meter.run(Task::Lookup);
            if !self.stack.claims(now, &segment)
                && let Some(host) = self.adapter.host_for(segment.dst)
            {
                nic.meter.run(Task::HostReceive);
                self.passed.push(since);
                return self.adapter.pass(host, LinkData::packet(segment));
            }
        }
        nic.meter.run(Task::Receive);
        self.stack.handle_segment(now, segment);
    }

    /// Packets of the host go to the wire; those that it forwards are taken in. True when there was one.
    fn take_packets(&mut self, now: Time, nic: &mut NicSide) -> bool {
        let mut any = false;
        while let Some(HostPacket { packet, to_wire }) = self.adapter.poll_packet() {
            any = true;
            let Some(segment) = packet.into_packet() else {
                debug_assert!(false, "packet sockets get packets");
                continue;
            };
            if to_wire {
                nic.meter.run(Task::HostSend);
                let host_since = Some(now);
                self.outgoing.push(Outgoing {
                    segment,
                    host_since,
                });
            } else {
                self.take_in(now, now, segment, nic);
            }
        }
        any
    }

    fn pump(&mut self, now: Time, link: &mut SimulatedLink) -> Result<bool, LinkError> {
        pump(now, &mut self.adapter, &mut self.stack, self.session, link)
    }

    fn handle_events(&mut self, now: Time) {
        while let Some((conn, event)) = self.stack.poll_event() {
            let known = self
                .adapter
                .handle_event(now, &mut self.stack, conn, &event);
            debug_assert!(known, "all connections are sockets");
        }
    }

    /// Connections that TCP has.
    pub(super) fn connections(&self) -> u32 {
        self.stack.len() as u32
    }

    /// Frames that wait.
    pub(super) fn qlen(&self) -> u32 {
        self.received.len() as u32
    }

    /// Soft_Limit: the most connections that may be imported now.
    pub(super) fn soft_limit(&self) -> u32 {
        self.adapter.soft_limit()
    }

    /// Its queue of responses.
    pub(super) fn queue(&self) -> &baton_bus::DescriptorQueue {
        self.adapter.queue(self.session)
    }

    /// Totals of the host's sockets.
    pub(super) fn stats(&self) -> &SessionStats {
        self.adapter.stats_of(self.session)
    }

    /// Totals of its TCP.
    pub(super) fn tcp_stats(&self) -> &baton_tcp::Stats {
        self.stack.stats()
    }

    /// Asserts what always holds.
    pub(super) fn check(&self) {
        self.stack.check();
        self.adapter.check();
    }
}
