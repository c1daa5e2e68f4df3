//! The host's commands.

use super::{Firmware, HostRead, Work};
use crate::cache::references::References;
use crate::cache::region::Storable;
use crate::connections::HANDLES;
use crate::meter::{Meter, Task};
use crate::queues::Stamp;
use crate::stats::Ignored;
use baton_bus::handoff::CacheReference;
use baton_bus::handoff::{CachedRun, Command, Control, Event, Handle, Refusal};
use baton_tcp::{ConnId, Portable, State};
use baton_wire::{Pieces, Time};

impl<P: Storable> Firmware<P> {
    /// Carries out one command.
    pub(super) fn carry_out(
        &mut self,
        stamp: Stamp,
        now: Time,
        command: Command<P>,
        meter: &mut impl Meter,
    ) -> Work {
        match command {
            Command::Handoff {
                handle,
                state,
                cached,
            } => {
                self.charge(Task::Handoff, meter);
                self.hand_off(stamp, now, handle, (state, cached), meter);
                Work::Handoff
            }
            Command::Restore { handle } => {
                self.charge(Task::Restore, meter);
                self.restore(now, handle, meter);
                Work::Restore
            }
            Command::Forward { handle, segment } => {
                self.stats.forwarded += 1;
                // A connection that is over but not yet released is nobody else's: given back to the host, its packets
                // would come here again, and so on until the release.
                if self.connections.get(handle).is_some() || self.is_ours(now, &segment) {
                    return self.tcp_input(stamp, now, segment, meter);
                }
                self.stats.given_back += 1;
                self.pass_to_host(segment, None, meter);
                Work::HostReceive
            }
            Command::Release { handle } => {
                self.charge(Task::Command, meter);
                self.release(handle);
                Work::Command
            }
            Command::Send { .. }
            | Command::PostReceive { .. }
            | Command::Received { .. }
            | Command::Control { .. } => {
                self.charge(Task::Command, meter);
                self.call_tcp(command, meter);
                self.after_tcp(stamp, meter);
                Work::Command
            }
        }
    }

    /// The connection of a handle, or why a command for it must be ignored.
    fn conn_of(&self, handle: Handle) -> Result<ConnId, Ignored> {
        self.connections
            .get(handle)
            .ok_or(Ignored::NoConnection)?
            .conn
            .ok_or(Ignored::Ended)
    }

    /// Socket calls that the host's bypass passed on.
    fn call_tcp(&mut self, command: Command<P>, meter: &mut impl Meter) {
        let done = match command {
            Command::Send {
                handle,
                data,
                cached,
            } => self
                .conn_of(handle)
                .and_then(|conn| self.write(handle, conn, data, cached)),
            Command::PostReceive { handle, len } => self.conn_of(handle).map(|conn| {
                if let Some(offloaded) = self.connections.get_mut(handle) {
                    offloaded.posted = offloaded.posted.saturating_add(len);
                }
                self.deliver(handle, conn, meter);
            }),
            Command::Received { handle, len } => self
                .conn_of(handle)
                .map(|conn| self.stack.consume(conn, len as usize)),
            Command::Control { handle, control } => {
                self.conn_of(handle).map(|conn| self.control(conn, control))
            }
            Command::Handoff { .. }
            | Command::Restore { .. }
            | Command::Forward { .. }
            | Command::Release { .. } => {
                unreachable!("commands that are no socket calls go elsewhere")
            }
        };
        if let Err(reason) = done {
            self.stats.ignored.count(reason);
        }
    }

    fn write(
        &mut self,
        handle: Handle,
        conn: ConnId,
        data: P,
        cached: Option<CacheReference>,
    ) -> Result<(), Ignored> {
        let len = data.len();
        let taken = self
            .stack
            .write(conn, data)
            .map_err(|_| Ignored::ClosedForWriting)?;
        if taken < len {
            self.stack.abort(conn);
            return Err(Ignored::BeyondSendBuffer);
        }
        if let Some(offloaded) = self.connections.get_mut(handle) {
            offloaded.references.written(len, cached);
        }
        Ok(())
    }

    fn control(&mut self, conn: ConnId, control: Control) {
        match control {
            Control::Shutdown => self.stack.shutdown(conn),
            Control::Close => self.stack.close(conn),
            Control::Abort => self.stack.abort(conn),
            Control::NoDelay(on) => self.stack.set_nodelay(conn, on),
            Control::Cork(on) => self.stack.set_cork(conn, on),
        }
    }

    fn hand_off(
        &mut self,
        stamp: Stamp,
        now: Time,
        handle: Handle,
        (state, cached): (Box<Portable<P>>, Vec<CachedRun>),
        meter: &mut impl Meter,
    ) {
        match self.take_over(now, handle, state, &cached) {
            Ok(conn) => {
                self.stats.handoffs += 1;
                self.post(
                    Event::Handoff {
                        handle,
                        result: Ok(()),
                    },
                    meter,
                );
                self.after_tcp(stamp, meter);
                self.deliver(handle, conn, meter);
                self.control_load(meter);
            }
            Err((reason, state)) => {
                self.stats.refused.count(reason);
                let result = Err((reason, state));
                self.post(Event::Handoff { handle, result }, meter);
                if reason == Refusal::Memory {
                    self.report_memory_short(meter);
                }
            }
        }
    }

    /// Reserves and imports, or gives the state back with the reason.
    fn take_over(
        &mut self,
        now: Time,
        handle: Handle,
        state: Box<Portable<P>>,
        cached: &[CachedRun],
    ) -> Result<ConnId, (Refusal, Box<Portable<P>>)> {
        if let Err(reason) = self.admit(handle, &state) {
            return Err((reason, state));
        }
        if !self.memory.reserve_connection(self.config.connection_bytes) {
            return Err((Refusal::Memory, state));
        }
        let peer_closed = matches!(
            state.state,
            State::CloseWait | State::Closing | State::LastAck
        );
        if self.notes_reads {
            self.reads.push(HostRead {
                headers: 0,
                state: state.memory_len() as u32,
                data: Pieces::new(),
            });
        }
        match self.stack.import(now, *state) {
            Ok(conn) => {
                let brought = self.stack.unacknowledged(conn);
                let references = References::new(brought, cached);
                self.connections
                    .insert(handle, conn, peer_closed, references);
                Ok(conn)
            }
            Err(state) => {
                self.memory.free_connection(self.config.connection_bytes);
                Err((Refusal::State, state))
            }
        }
    }

    /// Whether the NIC should take this connection, memory aside.
    fn admit(&self, handle: Handle, state: &Portable<P>) -> Result<(), Refusal> {
        if self.connections.get(handle).is_some() || self.stack.find(&state.flow).is_some() {
            return Err(Refusal::Duplicate);
        }
        // Connections are established by the host, and TIME-WAIT is not worth a handoff.
        if matches!(
            state.state,
            State::SynSent | State::SynReceived | State::TimeWait
        ) {
            return Err(Refusal::State);
        }
        let active = self.connections.active();
        if active >= self.config.hard_limit {
            return Err(Refusal::HardLimit);
        }
        if active >= self.soft_limit() {
            return Err(Refusal::SoftLimit);
        }
        if handle.0 >= HANDLES {
            return Err(Refusal::Memory);
        }
        Ok(())
    }

    fn restore(&mut self, now: Time, handle: Handle, meter: &mut impl Meter) {
        if let Ok(conn) = self.conn_of(handle) {
            self.deliver(handle, conn, meter);
            // Reading the last of it may have been all that kept it from its end.
            self.tell_events(meter);
            self.flush_acknowledged(handle, meter);
        }
        let conn = match self.conn_of(handle) {
            Ok(conn) => conn,
            Err(reason) => {
                self.stats.ignored.count(reason);
                return;
            }
        };
        let state = Box::new(self.stack.export(now, conn));
        self.connections.remove(handle);
        self.memory.free_connection(self.config.connection_bytes);
        self.stats.restores += 1;
        self.post(Event::Restored { handle, state }, meter);
        self.control_load(meter);
    }

    fn release(&mut self, handle: Handle) {
        match self.conn_of(handle) {
            Err(Ignored::Ended) => {
                self.connections.remove(handle);
                self.memory.free_connection(self.config.connection_bytes);
                self.stats.released += 1;
            }
            Ok(_) => self.stats.ignored.count(Ignored::NotEnded),
            Err(reason) => self.stats.ignored.count(reason),
        }
    }
}
