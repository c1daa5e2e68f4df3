//! CONNECT.

use super::session::{Session, Work};
use super::socket::Phase;
use baton_bus::descriptor::{Opcode, Outcome, Status};
use baton_bus::link::Inline;
use baton_wire::{Endpoint, Payload, Time};
use std::net::IpAddr;

impl<P: Payload + Inline> Session<P> {
    /// Executes CONNECT, which is answered when the connection is established or has failed. SENDs and RECVs may follow immediately.
    pub(super) fn connect(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
        remote: Endpoint,
    ) -> Result<(), Status> {
        let place = self.place(slot);
        let socket = &mut self.sockets[slot as usize];
        if !matches!(socket.phase, Phase::Idle) {
            return Err(Status::WrongState);
        }
        if !is_host(remote) {
            return Err(Status::BadValue);
        }
        if work.shared.on_board.room() == 0 || !work.stack.has_memory_for(self.user, 0) {
            return Err(Status::Memory);
        }
        let ports = &mut work.shared.ports;
        let flow = ports.flow(work.now, work.stack, socket.local, remote)?;
        let conn = match socket.options.as_deref() {
            None => work.stack.connect(work.now, flow),
            Some(options) => {
                let config = options.applied_to(work.stack.config());
                match options.fast_open() {
                    None => work.stack.connect_with(work.now, flow, config),
                    Some(how) => work.stack.connect_fast_open(work.now, flow, &config, how),
                }
            }
        };
        // The four-tuple is free, so the stack refused because too many different configurations are in use.
        let conn = conn.ok_or(Status::BadValue)?;
        if let Some(options) = socket.options.as_deref() {
            options.apply_marks_to(work.stack, conn);
        }
        if let Some(user) = self.user {
            work.stack.set_user(conn, user);
        }
        let taken = work.shared.on_board.take_connection();
        debug_assert_eq!(taken, Ok(()), "there was room");
        work.shared.owners.give(conn, place);
        socket.phase = Phase::Connecting { conn, tag };
        Ok(())
    }

    /// Answers the CONNECT whose connection is now established.
    pub(super) fn connected(&mut self, work: &mut Work<'_, P>, slot: u32) {
        let socket = &mut self.sockets[slot as usize];
        let Phase::Connecting { conn, tag } = socket.phase else {
            return;
        };
        socket.phase = Phase::Connected(conn);
        let number = socket.number;
        self.stats.connected += 1;
        let done = Outcome::Done(Opcode::Connect);
        self.respond(work.now, number, tag, Status::Ok, done);
        self.feed(work, slot);
    }

    /// Handles a CONNECT that failed or was cancelled: answers the requests that waited for the connection, then the CONNECT. The socket
    /// returns to its earlier state.
    pub(super) fn connect_failed(&mut self, now: Time, slot: u32, status: Status) {
        let socket = &mut self.sockets[slot as usize];
        let Phase::Connecting { tag, .. } = socket.phase else {
            return;
        };
        socket.phase = Phase::Idle;
        let number = socket.number;
        self.answer_sends(now, slot, status);
        self.answer_receives(now, slot, status);
        let closing = std::mem::take(&mut self.sockets[slot as usize].closing);
        if let Some(tag) = closing.write {
            self.respond(now, number, tag, status, Outcome::Done(Opcode::Close));
        }
        let done = Outcome::Done(Opcode::Connect);
        self.respond(now, number, tag, status, done);
    }
}

/// Returns whether a connection may be opened to `remote` (RFC 1122 4.2.3.10: not to a group; RFC 4291 2.5.2).
fn is_host(remote: Endpoint) -> bool {
    let is_broadcast = matches!(remote.addr, IpAddr::V4(addr) if addr.is_broadcast());
    remote.port != 0
        && !remote.addr.is_unspecified()
        && !remote.addr.is_multicast()
        && !is_broadcast
}
