//! The host's own stack next to the adapters. Connections are established in this stack, and the connections that the selection policy
//! chooses are handed off (handoff-policies 2).

use super::super::subnets;
use super::End;
use super::answering::Answering;
use super::data::LinkData;
use super::driver::Driver;
use super::link::SimulatedLink;
use crate::config::{Experiment, Invalid, OffloadHostConfig};
use baton_bus::interconnect::InterconnectConfig;
use baton_host::layer::{AdapterId, Fate, LayerCalls, LayerStats, SocketLayer, SocketState};
use baton_host::{Borrower, Ready, Selection, SocketId};
use baton_kernel::{FileSystem, Meter, NetworkMemory, footprint};
use baton_tcp::{ConnId, Event, Segment, Stack};
use baton_wire::{Endpoint, Flow, SeqNr, Span, Symbolic, Time};
use std::collections::VecDeque;

/// A stack, and the sockets whose connections are in the stack or on an adapter.
pub(super) struct HostStack {
    stack: Stack<LinkData>,
    layer: SocketLayer<LinkData>,
    /// The socket of each adapter through which packets are sent and received.
    packets: Vec<SocketId>,
    driver: Driver,
    /// Packets that each adapter was given and has not released: the sequence number after each packet.
    sent: Vec<VecDeque<SeqNr>>,
}

/// Other components of the kernel that the stack uses, and the meter.
pub(super) struct Around<'a, M> {
    pub(super) files: &'a mut FileSystem<Symbolic>,
    pub(super) memory: &'a mut NetworkMemory,
    pub(super) answering: &'a mut Answering,
    pub(super) meter: &'a mut M,
}

impl HostStack {
    /// Creates a stack that listens at each adapter's address and receives packets from the adapters.
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
        for (adapter, end) in (0..).zip(&mut *ends) {
            let local = subnets::server(adapter);
            let socket = end.os.packet_socket(Time::ZERO, local);
            packets.push(socket.map_err(|status| {
                let path = "offload.host.interface.most_sockets";
                Invalid::new(path, format!("{status:?}"), "room for a socket for packets")
            })?);
            let listener = stack.listen(local, experiment.host.kernel.backlog as usize);
            layer.add_listener(listener, AdapterId(adapter));
        }
        let caches = ends.iter().map(|end| &end.os.config().nic_cache);
        let blocks = caches.filter(|cache| cache.enabled);
        let smallest = blocks.map(|cache| cache.block_bytes).min();
        let takes_time = experiment.interconnect != InterconnectConfig::Ideal;
        let driver = Driver::new(experiment.tcp.mss.into(), takes_time, smallest);
        let (most, may) = (driver.most_sends(), config.interface.packet_buffers);
        if most > may as usize {
            let path = "offload.host.interface.packet_buffers";
            let expected = format!("at least {most}, the parts of a packet");
            return Err(Invalid::new(path, may, &expected));
        }
        Ok(Self {
            stack,
            layer,
            sent: vec![VecDeque::new(); packets.len()],
            packets,
            driver,
        })
    }

    /// Returns when the next timer is due.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.stack.poll_timeout()
    }

    /// Handles received packets and moving connections, and runs the timers that are due.
    pub(super) fn handle_arrived<M: Meter>(
        &mut self,
        now: Time,
        ends: &mut [End],
        around: &mut Around<'_, M>,
    ) {
        for adapter in 0..ends.len() {
            self.free_sent(&ends[adapter], adapter, around);
            while let Some(packet) = ends[adapter].os.next_packet(self.packets[adapter]) {
                let segment = packet_of(packet);
                let (memory, m) = (&mut *around.memory, &mut *around.meter);
                if memory.packet_received(adapter, segment.frame_len(), m) {
                    self.take_packet(now, ends, segment, around);
                }
            }
        }
        if self.stack.poll_timeout().is_some_and(|due| due <= now) {
            let due = self.stack.handle_timeouts(now);
            if due > 0 {
                footprint::tcp_timers(around.meter, due as u32);
            }
        }
        self.layer.handle_adapters(now, &mut self.stack, ends);
        self.take_moves(around);
        while let Some((adapter, packet)) = self.layer.poll_forward() {
            self.forward(now, ends, adapter, packet);
        }
        while let Some(packet) = self.layer.poll_arrived() {
            self.take_packet(now, ends, packet_of(packet), around);
        }
    }

    /// Frees packets that an adapter has released.
    fn free_sent<M: Meter>(&mut self, end: &End, adapter: usize, around: &mut Around<'_, M>) {
        let (socket, sent) = (self.packets[adapter], &mut self.sent[adapter]);
        let mut done = 0;
        while (sent.pop_front_if(|behind| end.os.is_done_with(socket, *behind))).is_some() {
            done += 1;
        }
        if done > 0 {
            around.memory.transmitted(adapter, done, around.meter);
        }
    }

    /// Updates the kernel's state for connections that have left the stack or come back.
    fn take_moves<M: Meter>(&mut self, around: &mut Around<'_, M>) {
        let Around {
            files,
            memory,
            answering,
            meter: m,
        } = around;
        while let Some(moved) = self.layer.poll_stack_move() {
            let (conn, socket) = (moved.conn, moved.socket);
            let handle = moved.on_adapter.map(|on_adapter| on_adapter.0);
            if moved.is_back {
                let flow = self.stack.flow(conn);
                let readable = self.stack.readable_len(conn);
                memory.handed_back((conn, &flow), (socket, handle), readable, *m);
            } else {
                files.handle_left(Borrower::Connection(conn), memory.buffers(), *m);
                answering.connection_left(conn);
                memory.handed_off(conn, (socket, handle), *m);
            }
        }
    }

    /// Sends a packet back to the adapter, because it was on its way to a connection there.
    fn forward(&mut self, now: Time, ends: &mut [End], adapter: AdapterId, packet: LinkData) {
        let adapter = usize::from(adapter.0);
        let End { os, link } = &mut ends[adapter];
        os.send_packet(now, link, self.packets[adapter], packet, true);
    }

    /// Handles a packet for the stack, or for a connection that was in the stack.
    fn take_packet<M: Meter>(
        &mut self,
        now: Time,
        ends: &mut [End],
        segment: Segment<LinkData>,
        around: &mut Around<'_, M>,
    ) {
        let flow = segment.flow_at_receiver();
        if !self.layer.is_away(&flow) {
            let handled = self.stack.handle_segment(now, segment);
            let (memory, m) = (&mut *around.memory, &mut *around.meter);
            memory.segment_handled(&self.stack, &flow, &handled, m);
            return memory.packet_handled(m);
        }
        around.memory.packet_forwarded();
        if let Fate::Forward(adapter, packet) = self.layer.sort(&flow, LinkData::packet(segment)) {
            self.forward(now, ends, adapter, packet);
        }
    }

    /// Handles the stack's events and sends its segments.
    pub(super) fn settle<M: Meter>(
        &mut self,
        now: Time,
        ends: &mut [End],
        around: &mut Around<'_, M>,
    ) {
        self.take_moves(around);
        loop {
            while let Some((conn, event)) = self.stack.poll_event() {
                self.take_event(now, (conn, &event), around);
                self.layer.handle_event(&mut self.stack, conn, &event);
            }
            if !self.stack.may_transmit() {
                break;
            }
            // The adapter for the next segment is not known until the segment is made, so all adapters must have space.
            let mut adapters = ends.iter_mut().zip(&self.packets);
            let full = adapters.find(|(end, socket)| !self.driver.has_room(end, **socket));
            if let Some((end, _)) = full {
                end.os.unmask_lazy();
                break;
            }
            let Some((conn, segment)) = self.stack.poll_transmit(now) else {
                break;
            };
            let arrival = subnets::nic_of(segment.src.addr);
            let adapter = usize::from(around.answering.nic_of(conn, arrival));
            let socket = self.packets[adapter];
            let files = &*around.files;
            let pages = conn.into_iter().flat_map(|conn| files.in_send_buffer(conn));
            if (around.memory).transmit(adapter, conn, &segment, pages, around.meter) {
                let to = (adapter, &mut *ends);
                (self.driver).send(now, to, socket, segment, around.files, around.meter);
                self.sent[adapter].push_back(ends[adapter].os.given(socket));
            }
        }
    }

    /// Updates the kernel's state for an event of the stack.
    fn take_event<M: Meter>(
        &mut self,
        now: Time,
        (conn, event): (ConnId, &Event),
        around: &mut Around<'_, M>,
    ) {
        let Around {
            files,
            memory,
            answering,
            meter: m,
        } = around;
        let borrower = Borrower::Connection(conn);
        match event {
            Event::Acknowledged(_) => {
                let stack = &self.stack;
                let is_done = |seq| stack.has_acknowledged(conn, seq);
                files.handle_done_with(borrower, is_done, memory.buffers(), *m);
                memory.acknowledged(conn, is_done, *m);
            }
            // The end of the stream is readable, too, but is reported separately.
            Event::Readable if self.stack.readable_len(conn) == 0 => {}
            Event::Readable | Event::PeerClosed => memory.wake(conn, *m),
            Event::Closed(_) => {
                files.handle_left(borrower, memory.buffers(), *m);
                answering.connection_left(conn);
                let stack = &self.stack;
                let end = now + Span::from_ms(2 * u64::from(stack.config().msl_ms));
                let waits = |flow: &Flow| stack.in_time_wait(now, flow).then_some(end);
                memory.closed(conn, now, waits, *m);
            }
            Event::Acceptable(_) | Event::Connected | Event::Urgent | Event::TransmitTimes => {}
        }
    }

    /// Announces a connection from this endpoint, with the expected number of enqueues to its send buffer.
    pub(super) fn foresee(&mut self, from: Endpoint, enqueues: u32) {
        self.layer.foresee(from, enqueues);
    }

    /// Returns the location and state of a socket's connection.
    pub(super) fn state_of(&self, socket: SocketId) -> Option<SocketState> {
        self.layer.state_of(socket)
    }

    /// Returns the sockets.
    pub(super) fn layer_mut(&mut self) -> &mut SocketLayer<LinkData> {
        &mut self.layer
    }

    /// Returns an adapter's socket for packets.
    pub(super) fn packets(&self, adapter: usize) -> SocketId {
        self.packets[adapter]
    }

    /// Reports whether there is a readiness event for the application.
    pub(super) fn has_ready(&self) -> bool {
        self.layer.has_ready()
    }

    /// Returns the next readiness event for the application.
    pub(super) fn next_ready(&mut self) -> Option<Ready> {
        self.layer.next_ready()
    }

    /// Returns the application's socket calls.
    pub(super) fn calls<'a>(
        &'a mut self,
        now: Time,
        ends: &'a mut [End],
    ) -> LayerCalls<'a, LinkData, SimulatedLink> {
        self.layer.calls(now, &mut self.stack, ends)
    }

    /// Returns counters of handoffs, restores and packets between them.
    pub(super) fn stats(&self) -> &LayerStats {
        self.layer.stats()
    }

    /// Returns the counters of the stack's TCP.
    pub(super) fn tcp_stats(&self) -> &baton_tcp::Stats {
        self.stack.stats()
    }

    /// Returns the number of connections on the host.
    pub(super) fn connections(&self) -> u32 {
        self.stack.len() as u32
    }

    /// Asserts all invariants.
    pub(super) fn check(&self) {
        self.stack.check();
        self.layer.check(&self.stack);
    }
}

fn packet_of(data: LinkData) -> Segment<LinkData> {
    data.into_packet()
        .expect("a packet socket receives only packets")
}
