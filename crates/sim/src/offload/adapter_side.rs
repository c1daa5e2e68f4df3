//! The simulated adapter: a TCP stack, sockets by descriptors, and a processor that takes time.

use super::clients::SERVER;
use super::config::{AdapterCosts, Experiment};
use super::link::{SimulatedLink, Tally};
use super::worker::Worker;
use crate::config::Invalid;
use baton_bus::link::LinkError;
use baton_nic::offload::{Adapter, AdapterConfig, SessionId, pump};
use baton_tcp::{Segment, Stack, Symbolic};
use baton_wire::{Span, Time};
use std::collections::VecDeque;

/// Received frames that are handled in one piece of work, at most.
const MOST_FRAMES: usize = 64;

/// The adapter with all that is its own.
#[derive(Debug)]
pub(super) struct AdapterSide {
    stack: Stack<Symbolic>,
    adapter: Adapter<Symbolic>,
    session: SessionId,
    pub(super) worker: Worker,
    costs: AdapterCosts,
    received: VecDeque<Segment<Symbolic>>,
    /// What the piece of work under way sends when it is done.
    outgoing: Vec<Segment<Symbolic>>,
}

impl AdapterSide {
    /// An adapter with one application.
    pub(super) fn new(experiment: &Experiment) -> Result<Self, Invalid> {
        let config = &experiment.adapter;
        let interface = AdapterConfig {
            addresses: vec![SERVER.addr],
            ..config.interface.clone()
        };
        let refused = |error: &dyn std::error::Error| {
            Invalid::new("adapter.interface", error.to_string(), "one that can work")
        };
        let mut adapter = Adapter::new(interface).map_err(|error| refused(&error))?;
        let session = adapter.attach().map_err(|error| refused(&error))?;
        let seed = experiment.run.seed;
        Ok(Self {
            stack: Stack::new(experiment.tcp.clone(), seed ^ 0xada9_7e12),
            adapter,
            session,
            worker: Worker::new(
                Span::from_ns(config.costs.wake_up_ns.into()),
                config.costs.wake_up_jitter_percent,
                seed ^ 0xada9,
            ),
            costs: config.costs.clone(),
            received: VecDeque::new(),
            outgoing: Vec::new(),
        })
    }

    /// A frame has come off the wire.
    pub(super) fn receive(&mut self, now: Time, segment: Segment<Symbolic>) {
        self.received.push_back(segment);
        self.worker.wake(now);
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

    /// Ends the piece of work that ends at `now`: gives what goes onto the wire, and releases what goes onto the link.
    pub(super) fn end_work(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
    ) -> Option<std::vec::Drain<'_, Segment<Symbolic>>> {
        if !self.worker.ends(now) {
            return None;
        }
        link.release_adapter(now);
        if self.is_wanted(link) {
            self.worker.go_on(now);
        }
        Some(self.outgoing.drain(..))
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
    ) -> Result<(), LinkError> {
        if !self.worker.may_begin(now, self.timer()) {
            return Ok(());
        }
        let mut segments = 0;
        for _ in 0..MOST_FRAMES {
            let Some(segment) = self.received.pop_front() else {
                break;
            };
            self.stack.handle_segment(now, segment);
            segments += 1;
        }
        if self.stack.poll_timeout().is_some_and(|due| due <= now) {
            self.stack.handle_timeouts(now);
        }
        self.adapter.handle_timeouts(now, &mut self.stack);
        self.handle_events(now);
        while self.pump(now, link)? {
            self.handle_events(now);
        }
        while let Some((_, segment)) = self.stack.poll_transmit(now) {
            self.outgoing.push(segment);
            segments += 1;
        }
        let span = self.cost(segments, link.take_adapter_tally());
        self.worker.work(now, span);
        Ok(())
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

    fn cost(&self, segments: u32, tally: Tally) -> Span {
        let costs = &self.costs;
        let ns = u64::from(costs.segment_ns) * u64::from(segments)
            + u64::from(costs.descriptor_ns) * u64::from(tally.descriptors)
            + u64::from(costs.transfer_ns) * u64::from(tally.transfers)
            + u64::from(costs.dma_ns) * u64::from(tally.dmas);
        // No piece of work is without time, so that time goes on.
        Span::from_ns(ns.max(1))
    }

    /// Its queue of responses.
    pub(super) fn queue(&self) -> &baton_bus::DescriptorQueue {
        self.adapter.queue(self.session)
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
