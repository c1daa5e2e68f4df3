//! The host's own stack next to the adapters. Connections are established in this stack, and the connections that the selection policy
//! chooses are handed off (handoff-policies 2).

use super::super::subnets;
use super::End;
use super::answering::Answering;
use super::data::LinkData;
use super::driver::Driver;
use super::link::SimulatedLink;
use crate::config::{Experiment, Invalid};
use baton_bus::interconnect::InterconnectConfig;
use baton_host::layer::{AdapterId, LayerCalls, SocketLayer, StackMove};
use baton_host::process::{HostProcess, Lower, PacketSocket};
use baton_host::{Borrower, Selection, SocketId};
use baton_kernel::{FileSystem, Meter, NetworkMemory, footprint};
use baton_tcp::{ConnId, Event, Stack};
use baton_wire::{Flow, SeqNr, Span, Symbolic, Time};
use std::collections::VecDeque;

/// A stack, and the sockets whose connections are in the stack or on an adapter.
pub(super) struct HostStack {
    process: HostProcess<LinkData>,
    tcp: Tcp,
}

/// The stack, and what passes its packets to the adapters.
struct Tcp {
    stack: Stack<LinkData>,
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
        nics: &[Experiment],
        selection: Box<dyn Selection>,
        ends: &mut [End],
    ) -> Result<Self, Invalid> {
        let mut stack = Stack::new(experiment.tcp.clone(), experiment.run.seed ^ 0x5e17_e700);
        let interface = &experiment.offload.host.interface;
        let most = interface.most_sockets as usize;
        let mut layer = SocketLayer::new(most, Some(selection));
        let mut packets = Vec::with_capacity(ends.len());
        for (adapter, end) in (0..).zip(&mut *ends) {
            let local = subnets::server(adapter);
            let socket = end.os.packet_socket(Time::ZERO, local);
            let socket = socket.map_err(|status| {
                let path = "offload.host.interface.most_sockets";
                Invalid::new(path, format!("{status:?}"), "room for a socket for packets")
            })?;
            packets.push((AdapterId(adapter), socket));
            let listener = stack.listen(local, experiment.host.kernel.backlog as usize);
            layer.add_listener(listener, AdapterId(adapter));
        }
        let caches = ends.iter().map(|end| &end.os.config().nic_cache);
        let blocks = caches.filter(|cache| cache.enabled);
        let smallest = blocks.map(|cache| cache.block_bytes).min();
        let takes_time = nics[0].interconnect != InterconnectConfig::Ideal;
        let driver = Driver::new(experiment.tcp.mss.into(), takes_time, smallest);
        let (most, may) = (driver.most_sends(), interface.packet_sends());
        if most > may as usize {
            let path = "offload.host.interface.packet_buffers";
            let expected = format!("at least {most}, the parts of a packet");
            return Err(Invalid::new(path, may, &expected));
        }
        Ok(Self {
            tcp: Tcp {
                stack,
                driver,
                sent: vec![VecDeque::new(); packets.len()],
            },
            process: HostProcess::new(layer, packets),
        })
    }

    /// Returns when the next timer is due.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.tcp.stack.poll_timeout()
    }

    /// Handles received packets and moving connections, and runs the timers that are due.
    pub(super) fn handle_arrived<M: Meter>(
        &mut self,
        now: Time,
        ends: &mut [End],
        around: &mut Around<'_, M>,
    ) {
        let tcp = &mut self.tcp;
        self.process
            .handle_arrived(now, ends, &mut Kernel { tcp, around });
    }

    /// Handles the stack's events and sends its segments.
    pub(super) fn settle<M: Meter>(
        &mut self,
        now: Time,
        ends: &mut [End],
        around: &mut Around<'_, M>,
    ) {
        let tcp = &mut self.tcp;
        self.process.settle(now, ends, &mut Kernel { tcp, around });
    }

    /// Returns the sockets.
    pub(super) fn layer(&self) -> &SocketLayer<LinkData> {
        self.process.layer()
    }

    /// Returns the sockets, for announcements and events.
    pub(super) fn layer_mut(&mut self) -> &mut SocketLayer<LinkData> {
        self.process.layer_mut()
    }

    /// Returns the sockets for packets, one for each adapter.
    pub(super) fn packets(&self) -> &[PacketSocket] {
        self.process.packets()
    }

    /// Returns the application's socket calls.
    pub(super) fn calls<'a>(
        &'a mut self,
        now: Time,
        ends: &'a mut [End],
    ) -> LayerCalls<'a, LinkData, SimulatedLink> {
        self.process
            .layer_mut()
            .calls(now, &mut self.tcp.stack, ends)
    }

    /// Returns the counters of the stack's TCP.
    pub(super) fn tcp_stats(&self) -> &baton_tcp::Stats {
        self.tcp.stack.stats()
    }

    /// Returns the number of connections on the host.
    pub(super) fn connections(&self) -> u32 {
        self.tcp.stack.len() as u32
    }

    /// Asserts all invariants.
    pub(super) fn check(&self) {
        self.tcp.stack.check();
        self.process.layer().check(&self.tcp.stack);
    }
}

/// The stack among the other components of the kernel.
struct Kernel<'a, 'b, M> {
    tcp: &'a mut Tcp,
    around: &'a mut Around<'b, M>,
}

impl<M: Meter> Lower<LinkData> for Kernel<'_, '_, M> {
    type Link = SimulatedLink;

    fn stack(&mut self) -> &mut Stack<LinkData> {
        &mut self.tcp.stack
    }

    /// Frees packets that the adapter has released.
    fn look_at(&mut self, (adapter, socket): PacketSocket, end: &End) {
        let adapter = usize::from(adapter.0);
        let sent = &mut self.tcp.sent[adapter];
        let mut done = 0;
        while (sent.pop_front_if(|behind| end.os.is_done_with(socket, *behind))).is_some() {
            done += 1;
        }
        if done > 0 {
            (self.around.memory).transmitted(adapter, done, self.around.meter);
        }
    }

    fn accept(&mut self, (adapter, _): PacketSocket, packet: &LinkData) -> bool {
        let LinkData::Packet(packet) = packet else {
            return true;
        };
        let (memory, m) = (&mut *self.around.memory, &mut *self.around.meter);
        memory.packet_received(adapter.0.into(), packet.frame_len(), m)
    }

    fn take_in(
        &mut self,
        now: Time,
        packet: LinkData,
        is_away: impl Fn(&Flow) -> bool,
    ) -> Option<(Flow, LinkData)> {
        let segment = packet.into_packet();
        let segment = segment.expect("a packet socket receives only packets");
        let flow = segment.flow_at_receiver();
        let (memory, m) = (&mut *self.around.memory, &mut *self.around.meter);
        if is_away(&flow) {
            memory.packet_forwarded();
            return Some((flow, LinkData::packet(segment)));
        }
        let handled = self.tcp.stack.handle_segment(now, segment);
        memory.segment_handled(&self.tcp.stack, &flow, &handled, m);
        memory.packet_handled(m);
        None
    }

    fn handle_timeouts(&mut self, now: Time) {
        let stack = &mut self.tcp.stack;
        if stack.poll_timeout().is_some_and(|due| due <= now) {
            let due = stack.handle_timeouts(now);
            if due > 0 {
                footprint::tcp_timers(self.around.meter, due as u32);
            }
        }
    }

    /// Updates the kernel's state for an event of the stack.
    fn handle_event(&mut self, now: Time, conn: ConnId, event: &Event) {
        let Around {
            files,
            memory,
            answering,
            meter: m,
        } = &mut *self.around;
        let stack = &self.tcp.stack;
        let borrower = Borrower::Connection(conn);
        match event {
            Event::Acknowledged(_) => {
                let is_done = |seq| stack.has_acknowledged(conn, seq);
                files.handle_done_with(borrower, is_done, memory.buffers(), *m);
                memory.acknowledged(conn, is_done, *m);
            }
            // The end of the stream is readable, too, but is reported separately.
            Event::Readable if stack.readable_len(conn) == 0 => {}
            Event::Readable | Event::PeerClosed => memory.wake(conn, *m),
            Event::Closed(_) => {
                files.handle_left(borrower, memory.buffers(), *m);
                answering.connection_left(conn);
                let end = end_of_time_wait(now, stack);
                let waits = |flow: &Flow| stack.in_time_wait(now, flow).then_some(end);
                memory.closed(conn, now, waits, *m);
            }
            Event::Acceptable(_) | Event::Connected | Event::Urgent | Event::TransmitTimes => {}
        }
    }

    /// Updates the kernel's state for a connection that has left the stack, come back or ended on an adapter.
    fn moved(&mut self, now: Time, moved: StackMove) {
        let Around {
            files,
            memory,
            answering,
            meter: m,
        } = &mut *self.around;
        let stack = &self.tcp.stack;
        let number = |on_adapter: Option<SocketId>| on_adapter.map(|id| id.0);
        match moved {
            StackMove::Left {
                conn,
                socket,
                on_adapter,
            } => {
                files.handle_left(Borrower::Connection(conn), memory.buffers(), *m);
                answering.connection_left(conn);
                memory.handed_off(conn, (socket, number(on_adapter)), *m);
            }
            StackMove::Back {
                conn,
                socket,
                on_adapter,
            } => {
                let (flow, readable) = (stack.flow(conn), stack.readable_len(conn));
                let of = (socket, number(on_adapter));
                memory.handed_back((conn, &flow), of, readable, *m);
            }
            StackMove::Ended { flow, closed_first } => {
                let until = closed_first.then(|| end_of_time_wait(now, stack));
                memory.ended_elsewhere(&flow, now, until, *m);
            }
        }
    }

    fn may_transmit(&self) -> bool {
        self.tcp.stack.may_transmit()
    }

    fn has_room(&self, (_, socket): PacketSocket, end: &End) -> bool {
        self.tcp.driver.has_room(end, socket)
    }

    fn transmit(&mut self, now: Time, ends: &mut [End], sockets: &[PacketSocket]) -> bool {
        let Some((conn, segment)) = self.tcp.stack.poll_transmit(now) else {
            return false;
        };
        let around = &mut *self.around;
        let arrival = subnets::nic_of(segment.src.addr);
        let adapter = usize::from(around.answering.nic_of(conn, arrival));
        let (_, socket) = sockets[adapter];
        let files = &*around.files;
        let pages = conn.into_iter().flat_map(|conn| files.in_send_buffer(conn));
        if (around.memory).transmit(adapter, conn, &segment, pages, around.meter) {
            let to = (adapter, &mut *ends);
            (self.tcp.driver).send(now, to, socket, segment, around.files, around.meter);
            self.tcp.sent[adapter].push_back(ends[adapter].os.given(socket));
        }
        true
    }
}

/// Returns when the TIME-WAIT of a connection that closes now ends.
fn end_of_time_wait(now: Time, stack: &Stack<LinkData>) -> Time {
    now + Span::from_ms(2 * u64::from(stack.config().msl_ms))
}
