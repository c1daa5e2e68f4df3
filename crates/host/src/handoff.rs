//! Moving connections to the NIC and back.
//!
//! A connection has one owner at any moment: the stack, the NIC, or nobody while its state is on its way. Whatever reaches
//! the host for it on the way, packets and requests alike, is kept in order and done where the state arrives.

use crate::footprint;
use crate::kernel::Kernel;
use crate::meter::Meter;
use crate::selection::{Decision, View};
use crate::socket::{Deferred, Mode};
use crate::sockets::SocketId;
use crate::stats::{DropReason, NotOffloaded};
use baton_bus::handoff::{Command, Control, Handle, Refusal};
use baton_tcp::{CloseReason, ConnId, Portable, State};
use baton_wire::{Payload, Time};

impl<P: Payload> Kernel<P> {
    // --- which and when ---

    /// Shows the policy a connection that has just been established.
    pub(crate) fn consider_established<M: Meter>(&mut self, now: Time, id: SocketId, m: &mut M) {
        if !matches!(self.sockets[id].mode, Mode::Host(_)) {
            return;
        }
        let view = self.view(now, id, 0);
        match self.selection.on_established(&view) {
            Decision::HandOff => self.attempt(now, id, m),
            Decision::Stay => self.set_not_offloaded(id, NotOffloaded::Policy),
        }
    }

    /// Shows the policy a connection to whose send buffer `enqueues` were just made. True if it is on its way now.
    pub(crate) fn consider_send<M: Meter>(
        &mut self,
        now: Time,
        id: SocketId,
        enqueues: u32,
        m: &mut M,
    ) {
        let view = self.view(now, id, enqueues);
        let socket = &self.sockets[id];
        let had_its_chance = socket.failures > 0 || socket.offloaded_once;
        if had_its_chance && !self.selection.reconsiders(&view) {
            return;
        }
        if self.selection.on_send(&view) == Decision::HandOff {
            self.attempt(now, id, m);
        }
    }

    /// Shows the policy an offloaded connection for which `enqueues` were just passed on.
    pub(crate) fn consider_restore<M: Meter>(
        &mut self,
        now: Time,
        id: SocketId,
        enqueues: u32,
        m: &mut M,
    ) {
        let view = self.view(now, id, enqueues);
        if self.selection.takes_back(&view) {
            self.restore(id, m);
        }
    }

    fn view(&self, now: Time, id: SocketId, enqueues: u32) -> View {
        let socket = &self.sockets[id];
        View {
            local: socket.flow.local,
            remote: socket.flow.remote,
            age: now.saturating_since(socket.opened_at),
            requests: socket.requests,
            enqueues_before: socket.enqueues - enqueues,
            enqueues: socket.enqueues,
            bytes_sent: socket.bytes_sent,
            bytes_in_send_buffer: socket.send_len as u32,
            failures: socket.failures,
            was_offloaded: socket.offloaded_once,
            nic_connections: self.nics[socket.nic].connections,
            nic_soft_limit: self.nics[socket.nic].soft_limit,
        }
    }

    fn attempt<M: Meter>(&mut self, now: Time, id: SocketId, m: &mut M) {
        if let Err(reason) = self.hand_off(now, id, m) {
            self.sockets[id].failures += 1;
            self.set_not_offloaded(id, reason);
        }
    }

    fn set_not_offloaded(&mut self, id: SocketId, reason: NotOffloaded) {
        let old = self.sockets[id].not_offloaded.replace(reason);
        if old != Some(reason) {
            *self.stats.not_offloaded.entry(reason).or_insert(0) += 1;
        }
    }

    // --- to the NIC ---

    /// Hands a connection off, whatever the selection policy thinks of it.
    ///
    /// # Errors
    /// Gives the reason when it is clear beforehand that it cannot be done; then nothing has changed. The NIC may still refuse.
    pub fn hand_off<M: Meter>(
        &mut self,
        now: Time,
        socket: SocketId,
        m: &mut M,
    ) -> Result<(), NotOffloaded> {
        let conn = self.may_hand_off(socket)?;
        let slot = self.handles.allocate().ok_or(NotOffloaded::Handles)?;
        let handle = Handle(slot);
        let cached = self.locate_unacknowledged(socket, m);
        let flow = self.sockets[socket].flow;
        footprint::hand_off(m, conn.0, socket.0, handle.0, self.bucket(&flow));
        self.pcbs.remove(conn.0, m);
        let state = Box::new(self.stack.export(now, conn));
        self.set_socket_of(conn, None);
        if self.handle_sockets.len() <= slot as usize {
            self.handle_sockets.resize(slot as usize + 1, None);
        }
        self.handle_sockets[slot as usize] = Some(socket);
        self.flows.insert(flow, handle);
        self.set_mode(socket, Mode::HandingOff(handle));
        self.sockets[socket].not_offloaded = None;
        self.sockets[socket].posted = 0;
        self.stats.handoffs_attempted += 1;
        let nic = self.sockets[socket].nic;
        let command = Command::Handoff {
            handle,
            state,
            cached,
        };
        self.command(nic, command, m);
        Ok(())
    }

    /// What a handoff needs, so that it can be undone, and what the host knows of the NIC.
    fn may_hand_off(&self, id: SocketId) -> Result<ConnId, NotOffloaded> {
        let socket = self.sockets.get(id).ok_or(NotOffloaded::State)?;
        let Mode::Host(conn) = socket.mode else {
            return Err(NotOffloaded::State);
        };
        if socket.closed
            || !matches!(
                self.stack.state(conn),
                State::Established | State::CloseWait
            )
        {
            return Err(NotOffloaded::State);
        }
        let nic = &self.nics[socket.nic];
        if nic.connections >= nic.soft_limit {
            return Err(NotOffloaded::SoftLimit);
        }
        if nic.memory == 0 {
            return Err(NotOffloaded::Memory);
        }
        if socket.out != socket.nic {
            return Err(NotOffloaded::Affinity);
        }
        if !self.has_room(socket.nic) {
            return Err(NotOffloaded::QueueFull);
        }
        Ok(conn)
    }

    /// The NIC has the connection: what was kept goes there, in order.
    pub(crate) fn handoff_accepted<M: Meter>(&mut self, id: SocketId, handle: Handle, m: &mut M) {
        debug_assert_eq!(
            self.sockets[id].mode,
            Mode::HandingOff(handle),
            "a handoff is answered once"
        );
        self.stats.handoffs_accepted += 1;
        self.set_mode(id, Mode::Offloaded(handle));
        let socket = &mut self.sockets[id];
        socket.offloaded_once = true;
        socket.deferred_packets = 0;
        let mut deferred = std::mem::take(&mut socket.deferred);
        let mut unsent: usize = deferred.iter().map(Deferred::send_len).sum();
        for kept in deferred.drain(..) {
            match kept {
                Deferred::Packet(segment) => self.forward(handle, segment, m),
                Deferred::Send(data) => {
                    let len = data.len();
                    self.send_kept(id, handle, unsent, data, m);
                    unsent -= len;
                }
                Deferred::Cork(cork) => self.command_control(handle, Control::Cork(cork), m),
                Deferred::Close => self.command_control(handle, Control::Close, m),
            }
        }
        self.sockets[id].deferred = deferred;
        self.post_receive(id, handle, m);
        self.command_received(id, handle, m);
        if std::mem::take(&mut self.sockets[id].restore_wanted) {
            self.restore(id, m);
        }
    }

    /// The NIC does not take the connection: the host goes on as if nothing had been tried.
    pub(crate) fn handoff_refused<M: Meter>(
        &mut self,
        now: Time,
        id: SocketId,
        handle: Handle,
        refusal: Refusal,
        state: Portable<P>,
        m: &mut M,
    ) {
        debug_assert_eq!(
            self.sockets[id].mode,
            Mode::HandingOff(handle),
            "a handoff is answered once"
        );
        self.stats.handoffs_refused += 1;
        if refusal == Refusal::Memory {
            let nic = self.sockets[id].nic;
            self.nics[nic].memory = 0;
        }
        let socket = &mut self.sockets[id];
        socket.failures += 1;
        socket.restore_wanted = false;
        self.set_not_offloaded(id, refusal.into());
        self.take_back(now, id, handle, state, m);
    }

    // --- and back ---

    /// Takes a connection back from the NIC, whatever it is doing. One that is still on its way there comes back as soon as
    /// it has arrived. False if the connection is not on the NIC, or is on its way back already.
    pub fn restore<M: Meter>(&mut self, socket: SocketId, m: &mut M) -> bool {
        let Some(state) = self.sockets.get(socket) else {
            return false;
        };
        match state.mode {
            Mode::Offloaded(handle) => {
                let nic = state.nic;
                self.set_mode(socket, Mode::Restoring(handle));
                self.stats.restores_attempted += 1;
                footprint::bypass_request(m, handle.0);
                self.command(nic, Command::Restore { handle }, m);
                true
            }
            Mode::HandingOff(_) => {
                self.sockets[socket].restore_wanted = true;
                true
            }
            Mode::Host(_) | Mode::Restoring(_) | Mode::Closed(_) => false,
        }
    }

    /// The connection has come back.
    pub(crate) fn restored<M: Meter>(
        &mut self,
        now: Time,
        id: SocketId,
        handle: Handle,
        state: Portable<P>,
        m: &mut M,
    ) {
        debug_assert_eq!(
            self.sockets[id].mode,
            Mode::Restoring(handle),
            "a restore is answered once"
        );
        self.stats.restored += 1;
        self.set_not_offloaded(id, NotOffloaded::Restored);
        self.take_back(now, id, handle, state, m);
    }

    /// Puts a connection's state into the stack and does there what was kept.
    fn take_back<M: Meter>(
        &mut self,
        now: Time,
        id: SocketId,
        handle: Handle,
        state: Portable<P>,
        m: &mut M,
    ) {
        self.release_handle(id, handle);
        let Ok(conn) = self.stack.import(now, state) else {
            self.stats.drop(DropReason::BadState);
            self.connection_over(id, CloseReason::Aborted, m);
            return;
        };
        let bucket = self.bucket(&self.sockets[id].flow);
        footprint::hand_back(m, conn.0, id.0, handle.0, bucket);
        self.pcbs.insert(conn.0, bucket, m);
        self.set_mode(id, Mode::Host(conn));
        self.set_socket_of(conn, Some(id));
        let unreported = std::mem::take(&mut self.sockets[id].unreported);
        if unreported > 0 {
            self.stack.consume(conn, unreported as usize);
        }
        self.do_deferred(now, id, conn, m);
        self.settle(now, m);
    }

    /// Releases what was acknowledged on the NIC but not yet reported, then does what was kept, in order.
    fn do_deferred<M: Meter>(&mut self, now: Time, id: SocketId, conn: ConnId, m: &mut M) {
        let kept_len: usize = self.sockets[id]
            .deferred
            .iter()
            .map(Deferred::send_len)
            .sum();
        let with_stack = self.sockets[id].send_len - kept_len;
        let unacknowledged = self.stack.unacknowledged(conn);
        debug_assert!(
            unacknowledged <= with_stack,
            "nothing comes back that was not given"
        );
        let acknowledged = with_stack.saturating_sub(unacknowledged);
        if acknowledged > 0 {
            self.acknowledged(id, acknowledged as u32, m);
        }
        self.catch_up(id, conn, m);
        self.sockets[id].deferred_packets = 0;
        let mut deferred = std::mem::take(&mut self.sockets[id].deferred);
        let mut kept = deferred.drain(..);
        for kept in kept.by_ref() {
            match kept {
                Deferred::Packet(segment) => self.segment_to_stack(now, segment, m),
                Deferred::Send(data) => {
                    let len = data.len();
                    let taken = self.stack.write(conn, data);
                    debug_assert_eq!(taken, Ok(len), "what the socket took fits the stack");
                }
                Deferred::Cork(cork) => self.stack.set_cork(conn, cork),
                Deferred::Close => self.stack.close(conn),
            }
            // A kept packet may have ended the connection; then the rest has nobody to go to.
            self.settle(now, m);
            if self.sockets[id].mode != Mode::Host(conn) {
                break;
            }
        }
        for _ in kept {
            self.stats.drop(DropReason::ConnectionEnded);
        }
        self.sockets[id].deferred = deferred;
    }

    /// Both owners are done with the handle.
    pub(crate) fn release_handle(&mut self, id: SocketId, handle: Handle) {
        let flow = self.sockets[id].flow;
        let removed = self.flows.remove(&flow);
        debug_assert_eq!(
            removed,
            Some(handle),
            "a connection away from the stack is known by its flow"
        );
        self.handle_sockets[handle.0 as usize] = None;
        self.handles.release(handle.0);
    }
}
