//! The host's own stack beside the adapters: connections are established here, and those that the selection policy chooses are handed off
//! (handoff-policies 2).

use super::super::subnets;
use super::End;
use super::data::LinkData;
use super::driver::Driver;
use super::link::SimulatedLink;
use super::stack_meter::StackMeter;
use crate::config::{Experiment, Invalid, OffloadHostConfig};
use baton_bus::interconnect::InterconnectConfig;
use baton_host::layer::{AdapterId, Fate, LayerCalls, LayerStats, SocketLayer, SocketState};
use baton_host::{Borrower, FileSystem, Meter, Op, Ready, Selection, SocketId};
use baton_tcp::{Event, Stack};
use baton_wire::{Flow, Symbolic, Time};

/// A stack, and the sockets whose connections are on it or on an adapter.
pub(super) struct HostStack {
    stack: Stack<LinkData>,
    layer: SocketLayer<LinkData>,
    /// The socket of each adapter through which packets come and go.
    packets: Vec<SocketId>,
    driver: Driver,
    meter: StackMeter,
    /// Handoffs and restores that were charged.
    charged: (u64, u64),
}

impl HostStack {
    /// A stack that listens at each adapter's address, whose packets come from there.
    pub(super) fn new(
        experiment: &Experiment,
        config: &OffloadHostConfig,
        selection: Box<dyn Selection>,
        ends: &mut [End],
    ) -> Result<Self, Invalid> {
        let mut stack = Stack::new(experiment.tcp.clone(), experiment.run.seed ^ 0x5e17_e700);
        let most = config.interface.most_sockets as usize;
        let mut layer = SocketLayer::new(most, Some(selection));
        let mut packets = Vec::with_capacity(ends.len());
        for (adapter, end) in (0..).zip(ends) {
            let local = subnets::server(adapter);
            let socket = end.os.packet_socket(Time::ZERO, local);
            packets.push(socket.map_err(|status| {
                let path = "offload.host.interface.most_sockets";
                Invalid::new(path, format!("{status:?}"), "room for a socket for packets")
            })?);
            let listener = stack.listen(local, config.backlog as usize);
            layer.add_listener(listener, AdapterId(adapter));
        }
        let cache = experiment.nic_cache();
        let cache_blocks = cache.enabled.then_some(cache.block_bytes);
        let takes_time = experiment.interconnect != InterconnectConfig::Ideal;
        Ok(Self {
            stack,
            layer,
            packets,
            driver: Driver::new(experiment.tcp.mss.into(), takes_time, cache_blocks),
            meter: StackMeter::default(),
            charged: (0, 0),
        })
    }

    /// When one of its timers is due.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.stack.poll_timeout()
    }

    /// Takes what has come: packets, and connections that move. Timers that are due run.
    pub(super) fn handle_arrived(&mut self, now: Time, ends: &mut [End], m: &mut impl Meter) {
        for adapter in 0..ends.len() {
            while let Some(packet) = ends[adapter].os.next_packet(self.packets[adapter]) {
                self.take_packet(now, ends, packet, m);
            }
        }
        if self.stack.poll_timeout().is_some_and(|due| due <= now) {
            let due = self.stack.handle_timeouts(now);
            m.run(Op::TcpTimer, due as u32);
        }
        self.layer.handle_adapters(now, &mut self.stack, ends);
        while let Some((adapter, packet)) = self.layer.poll_forward() {
            self.forward(now, ends, adapter, packet);
        }
        while let Some(packet) = self.layer.poll_arrived() {
            self.take_packet(now, ends, packet, m);
        }
    }

    /// Gives a packet back to the adapter: it was on its way to a connection there.
    fn forward(&mut self, now: Time, ends: &mut [End], adapter: AdapterId, packet: LinkData) {
        let adapter = usize::from(adapter.0);
        let End { os, link } = &mut ends[adapter];
        os.send_packet(now, link, self.packets[adapter], packet, true);
    }

    fn take_packet(&mut self, now: Time, ends: &mut [End], packet: LinkData, m: &mut impl Meter) {
        let Some(segment) = packet.into_packet() else {
            return debug_assert!(false, "packet sockets get packets");
        };
        self.meter.packet_received(&segment, m);
        let flow = segment.flow_at_receiver();
        if !self.layer.is_away(&flow) {
            let handled = self.stack.handle_segment(now, segment);
            self.meter.segment_received(handled.conn, handled.syn, m);
            return;
        }
        if let Fate::Forward(adapter, packet) = self.layer.sort(&flow, LinkData::packet(segment)) {
            self.forward(now, ends, adapter, packet);
        }
    }

    /// What the stack has to tell and to send.
    pub(super) fn settle(
        &mut self,
        now: Time,
        ends: &mut [End],
        files: &mut FileSystem<Symbolic>,
        m: &mut impl Meter,
    ) {
        loop {
            while let Some((conn, event)) = self.stack.poll_event() {
                self.meter.event(conn, &event, m);
                match event {
                    Event::Acknowledged(_) => {
                        let stack = &self.stack;
                        let borrower = Borrower::Connection(conn);
                        files.handle_done_with(borrower, |seq| stack.has_acknowledged(conn, seq));
                    }
                    Event::Closed(_) => files.handle_left(Borrower::Connection(conn)),
                    _ => {}
                }
                self.layer.handle_event(&mut self.stack, conn, &event);
            }
            // Which adapter the next segment leaves by is not known before it is made.
            let mut adapters = ends.iter_mut().zip(&self.packets);
            let full = adapters.find(|(end, socket)| !self.driver.has_room(end, **socket));
            if let Some((end, _)) = full {
                end.os.unmask_lazy();
                break;
            }
            let Some((conn, segment)) = self.stack.poll_transmit(now) else {
                break;
            };
            self.meter.segment_sent(conn, &segment, m);
            let adapter = usize::from(subnets::nic_of(segment.src.addr));
            let socket = self.packets[adapter];
            let to = (adapter, &mut *ends);
            (self.driver).send(now, to, socket, segment, files, m);
        }
        let stats = self.layer.stats();
        let moved = (stats.handoffs_attempted, stats.restored);
        m.run(Op::HandoffOut, (moved.0 - self.charged.0) as u32);
        m.run(Op::HandoffBack, (moved.1 - self.charged.1) as u32);
        self.charged = moved;
    }

    /// Where a socket's connection is.
    pub(super) fn state_of(&self, socket: SocketId) -> Option<SocketState> {
        self.layer.state_of(socket)
    }

    /// Whether a connection is in the stack.
    pub(super) fn has(&self, flow: &Flow) -> bool {
        self.stack.find(flow).is_some()
    }

    /// An adapter's socket for packets.
    pub(super) fn packets(&self, adapter: usize) -> SocketId {
        self.packets[adapter]
    }

    /// Whether the application can do something.
    pub(super) fn has_ready(&self) -> bool {
        self.layer.has_ready()
    }

    /// The next thing that the application can do.
    pub(super) fn next_ready(&mut self) -> Option<Ready> {
        self.layer.next_ready()
    }

    /// The application's sockets.
    pub(super) fn calls<'a>(
        &'a mut self,
        now: Time,
        ends: &'a mut [End],
    ) -> LayerCalls<'a, LinkData, SimulatedLink> {
        self.layer.calls(now, &mut self.stack, ends)
    }

    /// Handoffs, restores and packets between.
    pub(super) fn stats(&self) -> &LayerStats {
        self.layer.stats()
    }

    /// Totals of its TCP.
    pub(super) fn tcp_stats(&self) -> &baton_tcp::Stats {
        self.stack.stats()
    }

    /// Connections on the host.
    pub(super) fn connections(&self) -> u32 {
        self.stack.len() as u32
    }

    /// Asserts what always holds.
    pub(super) fn check(&self) {
        self.stack.check();
        self.layer.check(&self.stack);
    }
}
