//! The bypass: what the host does for a connection that the NIC processes. It keeps no protocol state; requests of the
//! application become commands, events of the NIC become socket operations (handoff-policies 2).

use crate::footprint;
use crate::kernel::Kernel;
use crate::meter::Meter;
use crate::nics::NicId;
use crate::socket::{Deferred, Mode};
use crate::sockets::SocketId;
use crate::stats::DropReason;
use baton_bus::handoff::{CacheReference, Command, Control, Event, Handle, ToNic};
use baton_tcp::Segment;
use baton_wire::{Payload, Time};

/// The connection an event is about.
fn handle_of<P>(event: &Event<P>) -> Option<Handle> {
    match event {
        Event::Handoff { handle, .. }
        | Event::Restored { handle, .. }
        | Event::Receive { handle, .. }
        | Event::Acknowledged { handle, .. }
        | Event::PeerClosed { handle }
        | Event::Closed { handle, .. }
        | Event::Relief { handle } => Some(*handle),
        Event::SoftLimit(_) | Event::Memory(_) | Event::CacheReady(_) | Event::Reset => None,
    }
}

impl<P: Payload> Kernel<P> {
    /// One event of a NIC.
    pub(crate) fn handle_event<M: Meter>(
        &mut self,
        now: Time,
        nic: NicId,
        event: Event<P>,
        m: &mut M,
    ) {
        footprint::driver_event(m);
        self.stats.events += 1;
        match (handle_of(&event), event) {
            (_, Event::SoftLimit(limit)) => self.nics[nic].soft_limit = limit,
            (_, Event::Memory(connections)) => self.nics[nic].memory = connections,
            (_, Event::CacheReady(bytes)) => self.cache_ready(nic, bytes),
            (_, Event::Reset) => self.nic_was_reset(nic, m),
            (Some(handle), event) => {
                let socket = self
                    .handle_sockets
                    .get(handle.0 as usize)
                    .copied()
                    .flatten();
                let Some(id) = socket else {
                    self.stats.drop(DropReason::StaleEvent);
                    return;
                };
                footprint::bypass_event(m, handle.0);
                self.event_of(now, id, handle, event, m);
            }
            (None, _) => {}
        }
    }

    fn event_of<M: Meter>(
        &mut self,
        now: Time,
        id: SocketId,
        handle: Handle,
        event: Event<P>,
        m: &mut M,
    ) {
        match event {
            Event::Handoff { result: Ok(()), .. } => self.handoff_accepted(id, handle, m),
            Event::Handoff {
                result: Err((refusal, state)),
                ..
            } => {
                self.handoff_refused(now, id, handle, refusal, *state, m);
            }
            Event::Restored { state, .. } => self.restored(now, id, handle, *state, m),
            Event::Receive { data, .. } => self.received_by_nic(id, handle, data, m),
            Event::Acknowledged { len, .. } => self.acknowledged(id, len, m),
            Event::PeerClosed { .. } => self.peer_closed(id, m),
            Event::Closed { reason, .. } => {
                self.release_handle(id, handle);
                self.command(self.sockets[id].nic, Command::Release { handle }, m);
                self.connection_over(id, reason, m);
            }
            Event::Relief { .. } => {
                if self.config.relief && self.restore(id, m) {
                    self.stats.reliefs += 1;
                }
            }
            Event::SoftLimit(_) | Event::Memory(_) | Event::CacheReady(_) | Event::Reset => {
                unreachable!("these are about no connection")
            }
        }
    }

    /// Data that the NIC has put into posted buffers.
    fn received_by_nic<M: Meter>(&mut self, id: SocketId, handle: Handle, data: P, m: &mut M) {
        let socket = &mut self.sockets[id];
        debug_assert!(
            socket.posted as usize >= data.len(),
            "the NIC uses posted buffers only"
        );
        socket.posted = socket.posted.saturating_sub(data.len() as u32);
        if !socket.closed {
            self.append_received(id, data, true, m);
            self.wake_reader(id, m);
        }
        if self.sockets[id].posted <= self.config.post_receive_bytes / 2 {
            self.post_receive(id, handle, m);
        }
    }

    /// Brings the posted receive buffers of a connection to their full number.
    pub(crate) fn post_receive<M: Meter>(&mut self, id: SocketId, handle: Handle, m: &mut M) {
        let socket = &mut self.sockets[id];
        let len = self.config.post_receive_bytes.saturating_sub(socket.posted);
        if len > 0 && matches!(socket.mode, Mode::Offloaded(_)) {
            socket.posted += len;
            let nic = socket.nic;
            self.command(nic, Command::PostReceive { handle, len }, m);
        }
    }

    /// A packet of a connection that is not in the stack. On the way it is kept; once the NIC has the connection it goes there.
    pub(crate) fn packet_of_absent<M: Meter>(
        &mut self,
        handle: Handle,
        segment: Segment<P>,
        m: &mut M,
    ) {
        let id = self.handle_sockets[handle.0 as usize]
            .expect("a connection away from the stack has a socket");
        let socket = &mut self.sockets[id];
        if !socket.is_moving() {
            self.forward(handle, segment, m);
        } else if socket.deferred_packets < self.config.deferred_packets {
            socket.deferred_packets += 1;
            socket.deferred.push(Deferred::Packet(segment));
            self.stats.deferred_packets += 1;
        } else {
            self.stats.drop(DropReason::DeferredPackets);
        }
    }

    /// Passes a packet on to the connection's owner, the NIC.
    pub(crate) fn forward<M: Meter>(&mut self, handle: Handle, segment: Segment<P>, m: &mut M) {
        self.stats.forwarded += 1;
        footprint::bypass_request(m, handle.0);
        self.command(self.nic_of(handle), Command::Forward { handle, segment }, m);
    }

    /// Appends data to the send buffer of an offloaded connection.
    pub(crate) fn command_send<M: Meter>(
        &mut self,
        handle: Handle,
        data: P,
        cached: Option<CacheReference>,
        m: &mut M,
    ) {
        footprint::bypass_request(m, handle.0);
        let command = Command::Send {
            handle,
            data,
            cached,
        };
        self.command(self.nic_of(handle), command, m);
    }

    /// A socket request that is neither send nor receive.
    pub(crate) fn command_control<M: Meter>(
        &mut self,
        handle: Handle,
        control: Control,
        m: &mut M,
    ) {
        footprint::bypass_request(m, handle.0);
        self.command(self.nic_of(handle), Command::Control { handle, control }, m);
    }

    /// Tells the NIC how much the application has read, once that is worth a command.
    pub(crate) fn command_received<M: Meter>(&mut self, id: SocketId, handle: Handle, m: &mut M) {
        let worth = self
            .config
            .received_bytes
            .min(self.stack.config().receive_buffer / 4)
            .max(1);
        let len = self.sockets[id].unreported;
        if len >= worth {
            self.sockets[id].unreported = 0;
            footprint::bypass_request(m, handle.0);
            let nic = self.sockets[id].nic;
            self.command(nic, Command::Received { handle, len }, m);
        }
    }

    /// Gives a NIC a command.
    pub(crate) fn command<M: Meter>(&mut self, nic: NicId, command: Command<P>, m: &mut M) {
        self.stats.commands += 1;
        self.stats.commands_over_limit += u64::from(!self.has_room(nic));
        let entry = self.nics[nic].driver.command_entry();
        footprint::driver_command(m, entry);
        self.nics.post(nic, ToNic::Command(command));
    }

    /// The NIC that has the connection of a handle in use.
    fn nic_of(&self, handle: Handle) -> NicId {
        let id = self.handle_sockets[handle.0 as usize];
        self.sockets[id.expect("a handle in use has a socket")].nic
    }
}
