//! The process of a host with TCP of its own, next to adapters: the order in which it handles packets, moves of connections and events of
//! TCP, on a simulated host and live.

use crate::SocketId;
use crate::layer::{AdapterEnd, AdapterId, Fate, SocketLayer, StackMove};
use baton_bus::HostLink;
use baton_bus::link::Inline;
use baton_tcp::{ConnId, Event, Stack};
use baton_wire::{Flow, Payload, Time};

/// A socket of an adapter through which the host receives and sends packets.
pub type PacketSocket = (AdapterId, SocketId);

/// The layers below the sockets of a host: its TCP and IP, and the driver that passes their packets to the adapters.
pub trait Lower<P: Payload + Inline> {
    /// The links to the adapters.
    type Link: HostLink<Data = P>;

    /// Returns the host's TCP.
    fn stack(&mut self) -> &mut Stack<P>;

    /// Called before the packets that have arrived at a socket are handled.
    fn look_at(&mut self, socket: PacketSocket, end: &AdapterEnd<P, Self::Link>) {
        let _ = (socket, end);
    }

    /// Accepts a packet that has arrived at a socket. Returns false if it is dropped.
    fn accept(&mut self, socket: PacketSocket, packet: &P) -> bool {
        let _ = (socket, packet);
        true
    }

    /// Passes a packet to TCP. If `is_away` says that its connection is on an adapter, returns the packet with its flow instead.
    fn take_in(
        &mut self,
        now: Time,
        packet: P,
        is_away: impl Fn(&Flow) -> bool,
    ) -> Option<(Flow, P)>;

    /// Runs the timers of TCP and IP that are due.
    fn handle_timeouts(&mut self, now: Time);

    /// Called with each event of TCP, before the sockets handle it.
    fn handle_event(&mut self, now: Time, conn: ConnId, event: &Event) {
        let _ = (now, conn, event);
    }

    /// Called when a connection has left TCP, has come back or has ended on an adapter.
    fn moved(&mut self, now: Time, moved: StackMove) {
        let _ = (now, moved);
    }

    /// Returns whether there may be a packet to send.
    fn may_transmit(&self) -> bool {
        true
    }

    /// Returns whether a socket has space for any packet.
    fn has_room(&self, (_, socket): PacketSocket, end: &AdapterEnd<P, Self::Link>) -> bool {
        end.os.has_room_for_packet(&end.link, socket, 1)
    }

    /// Sends the next packet through one of `sockets`, each of which has space for it. Returns false if there is none.
    fn transmit(
        &mut self,
        now: Time,
        ends: &mut [AdapterEnd<P, Self::Link>],
        sockets: &[PacketSocket],
    ) -> bool;
}

/// The sockets of an application on a host with TCP of its own, and the packet sockets that this TCP uses.
///
/// Order of calls: [`HostProcess::handle_arrived`] when something has arrived or is due, then [`HostProcess::settle`]; and
/// [`HostProcess::settle`] again after calls of the application.
#[derive(Debug)]
pub struct HostProcess<P> {
    layer: SocketLayer<P>,
    packets: Vec<PacketSocket>,
}

impl<P: Payload + Inline> HostProcess<P> {
    /// Creates a process with these sockets for packets, at least one for each adapter.
    pub fn new(layer: SocketLayer<P>, packets: Vec<PacketSocket>) -> Self {
        Self { layer, packets }
    }

    /// Returns the application's sockets.
    pub fn layer(&self) -> &SocketLayer<P> {
        &self.layer
    }

    /// Returns the application's sockets, for their calls and events.
    pub fn layer_mut(&mut self) -> &mut SocketLayer<P> {
        &mut self.layer
    }

    /// Returns the sockets for packets.
    pub fn packets(&self) -> &[PacketSocket] {
        &self.packets
    }

    /// Handles received packets, due timers, and what the adapters have reported of connections.
    pub fn handle_arrived<W: Lower<P>>(
        &mut self,
        now: Time,
        ends: &mut [AdapterEnd<P, W::Link>],
        lower: &mut W,
    ) {
        for index in 0..self.packets.len() {
            let socket = self.packets[index];
            let adapter = socket.0.index();
            lower.look_at(socket, &ends[adapter]);
            while let Some(packet) = ends[adapter].os.next_packet(socket.1) {
                if lower.accept(socket, &packet) {
                    self.handle_packet(now, ends, lower, packet);
                }
            }
        }
        lower.handle_timeouts(now);
        self.handle_adapters(now, ends, lower);
    }

    /// Handles what the adapters have reported of connections, and the packets that waited for it.
    pub fn handle_adapters<W: Lower<P>>(
        &mut self,
        now: Time,
        ends: &mut [AdapterEnd<P, W::Link>],
        lower: &mut W,
    ) {
        self.layer.handle_adapters(now, lower.stack(), ends);
        self.tell_moves(now, lower);
        while let Some((adapter, packet)) = self.layer.poll_forward() {
            self.forward(now, ends, adapter, packet);
        }
        while let Some(packet) = self.layer.poll_arrived() {
            self.handle_packet(now, ends, lower, packet);
        }
    }

    /// Handles a packet for TCP, or for a connection that has left TCP.
    pub fn handle_packet<W: Lower<P>>(
        &mut self,
        now: Time,
        ends: &mut [AdapterEnd<P, W::Link>],
        lower: &mut W,
        packet: P,
    ) {
        let layer = &self.layer;
        if let Some((flow, packet)) = lower.take_in(now, packet, |flow| layer.is_away(flow))
            && let Fate::Forward(adapter, packet) = self.layer.sort(&flow, packet)
        {
            self.forward(now, ends, adapter, packet);
        }
    }

    /// Handles TCP's events, and sends its packets while all adapters have space. If the queue of an adapter has no space, the adapter
    /// wakes the host when there is space again.
    pub fn settle<W: Lower<P>>(
        &mut self,
        now: Time,
        ends: &mut [AdapterEnd<P, W::Link>],
        lower: &mut W,
    ) {
        self.tell_moves(now, lower);
        loop {
            while let Some((conn, event)) = lower.stack().poll_event() {
                lower.handle_event(now, conn, &event);
                self.layer.handle_event(lower.stack(), conn, &event);
            }
            if !lower.may_transmit() {
                return;
            }
            // The adapter for the next packet is not known until the packet is made, so all adapters must have space.
            let is_full =
                |socket: &&PacketSocket| !lower.has_room(**socket, &ends[socket.0.index()]);
            if let Some((adapter, _)) = self.packets.iter().find(is_full) {
                return ends[adapter.index()].os.unmask_lazy();
            }
            if !lower.transmit(now, ends, &self.packets) {
                return;
            }
        }
    }

    fn tell_moves<W: Lower<P>>(&mut self, now: Time, lower: &mut W) {
        while let Some(moved) = self.layer.poll_stack_move() {
            lower.moved(now, moved);
        }
    }

    /// Sends a packet back to the adapter, because it was on its way to a connection there. If the queue has no space, the packet is lost
    /// and counted, as on a wire.
    fn forward<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        ends: &mut [AdapterEnd<P, L>],
        adapter: AdapterId,
        packet: P,
    ) {
        let mut sockets = self.packets.iter();
        if let Some(&(_, socket)) = sockets.find(|(of, _)| *of == adapter) {
            let AdapterEnd { os, link } = &mut ends[adapter.index()];
            os.send_packet(now, link, socket, packet, true);
        }
    }
}
