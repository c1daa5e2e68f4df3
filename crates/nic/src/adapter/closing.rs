//! CLOSE, and all other ways in which connections end.

use super::Ending;
use super::owners::Place;
use super::session::{Session, Work};
use super::socket::Phase;
use baton_bus::descriptor::{Close, Opcode, Outcome, Status};
use baton_bus::link::Inline;
use baton_tcp::{CloseReason, ConnId, ListenerId};
use baton_wire::{Payload, Span, Time};

/// Returns the status that reports why a connection has ended.
pub(super) fn status_of(reason: CloseReason) -> Status {
    match reason {
        CloseReason::Normal => Status::Ok,
        CloseReason::Reset => Status::Reset,
        CloseReason::Refused => Status::Refused,
        CloseReason::TimedOut => Status::TimedOut,
        CloseReason::Unreachable(_) => Status::Unreachable,
        CloseReason::Aborted => Status::Aborted,
    }
}

impl<P: Payload + Inline> Session<P> {
    /// Executes CLOSE. A close of the sending direction is answered when TCP has accepted all earlier data, a close of the connection when
    /// the connection has ended. A reset waits for SENDs that are being fetched, because the kernel would have sent their data before the
    /// reset.
    pub(super) fn close(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
        close: Close,
    ) -> Result<(), Status> {
        if self.sockets[slot as usize].moving.is_some() {
            return Err(Status::WrongState);
        }
        match self.sockets[slot as usize].phase {
            Phase::Packets if close == Close::Write => Err(Status::WrongState),
            Phase::Packets => {
                self.close_packets(work, slot, tag);
                Ok(())
            }
            Phase::Importing | Phase::Exported => Err(Status::WrongState),
            Phase::Idle | Phase::Listening(_) if close == Close::Write => Err(Status::WrongState),
            Phase::Reserved => Err(Status::WrongState),
            Phase::Idle => {
                self.close_idle(work.now, slot, tag);
                Ok(())
            }
            Phase::Listening(_) => {
                self.end_listening(work, slot);
                self.close_idle(work.now, slot, tag);
                Ok(())
            }
            Phase::Connecting { conn, .. } if close != Close::Write => {
                reset(work, conn);
                self.connect_failed(work.now, slot, Status::Cancelled);
                self.close_idle(work.now, slot, tag);
                Ok(())
            }
            Phase::Connecting { .. } | Phase::Connected(_) | Phase::Ending(_) => {
                self.note_close(slot, tag, close)?;
                self.feed(work, slot);
                self.abort_when_fetched(work, slot);
                Ok(())
            }
        }
    }

    /// Records the request, which is answered later.
    fn note_close(&mut self, slot: u32, tag: u32, close: Close) -> Result<(), Status> {
        let closing = &mut self.sockets[slot as usize].closing;
        let is_again = match close {
            Close::Write => closing.shut,
            Close::Both => closing.is_whole(),
            Close::Abort => closing.abort.is_some(),
        };
        if is_again {
            return Err(Status::WrongState);
        }
        match close {
            Close::Write => closing.write = Some(tag),
            Close::Both => closing.both = Some(tag),
            Close::Abort => closing.abort = Some(tag),
        }
        closing.shut = true;
        Ok(())
    }

    /// Immediately frees a socket without a connection.
    fn close_idle(&mut self, now: Time, slot: u32, tag: u32) {
        let number = self.sockets[slot as usize].number;
        self.free(slot);
        let done = Outcome::Done(Opcode::Close);
        self.respond(now, number, tag, Status::Ok, done);
    }

    /// Closes the listener, cancels pending ACCEPTs and releases the sockets that they have reserved.
    fn end_listening(&mut self, work: &mut Work<'_, P>, slot: u32) {
        self.forget_deadline(slot);
        let socket = &mut self.sockets[slot as usize];
        let Phase::Listening(mut listening) = socket.phase else {
            return;
        };
        socket.phase = Phase::Idle;
        let (number, place) = (socket.number, self.place(slot));
        end_listener(work, listening.id, place);
        while let Some(accept) = self.accepts.pop(&mut listening.accepts) {
            for reserved in accept.numbers() {
                self.release_reserved(work.now, reserved);
            }
            let outcome = Outcome::AcceptedBulk { count: 0 };
            self.respond(work.now, number, accept.tag, Status::Cancelled, outcome);
        }
    }

    /// Shuts down or closes the connection if the host has requested that and TCP has accepted all data to be sent.
    pub(super) fn close_when_sent(&mut self, work: &mut Work<'_, P>, slot: u32) {
        let socket = &mut self.sockets[slot as usize];
        let Phase::Connected(conn) = socket.phase else {
            return;
        };
        let closing = &mut socket.closing;
        if !closing.shut || !socket.sending.is_done() {
            return;
        }
        if let Some(tag) = closing.write.take() {
            work.stack.shutdown(conn);
            let (number, done) = (socket.number, Outcome::Done(Opcode::Close));
            self.settle(work.now, slot);
            self.respond(work.now, number, tag, Status::Ok, done);
        }
        let closing = &mut self.sockets[slot as usize].closing;
        if closing.both.is_some() && !closing.begun {
            closing.begun = true;
            work.stack.close(conn);
        }
    }

    /// Resets the connection if the host has requested that and no SEND is being fetched. SENDs that still wait had no space in the send
    /// buffer. Returns whether the connection was reset.
    pub(super) fn abort_when_fetched(&mut self, work: &mut Work<'_, P>, slot: u32) -> bool {
        let socket = &self.sockets[slot as usize];
        let Phase::Connected(conn) = socket.phase else {
            return false;
        };
        if socket.closing.abort.is_none() || !socket.sending.fetching.is_empty() {
            return false;
        }
        work.shared.owners.abandon(work.now, conn);
        work.stack.abort_after_output(conn);
        self.over(work, slot, Status::Aborted);
        true
    }

    /// Handles the end of a socket's connection. Data transfers in progress complete first, because they use the host's buffers.
    pub(super) fn over(&mut self, work: &mut Work<'_, P>, slot: u32, status: Status) {
        let socket = &mut self.sockets[slot as usize];
        if let Phase::Connecting { .. } = socket.phase {
            self.connect_failed(work.now, slot, status);
            return;
        }
        if socket.imported && matches!(socket.phase, Phase::Connected(_)) {
            work.shared.limits.left(socket.relief_asked);
        }
        socket.phase = Phase::Ending(status);
        self.sends.clear(&mut socket.sending.unwritten);
        self.finish_if_quiet(work.now, slot);
    }

    /// If the connection has ended and no transfer is in progress, answers all pending requests and frees the socket. The host is notified,
    /// unless it has requested this by a CLOSE, which is then answered.
    pub(super) fn finish_if_quiet(&mut self, now: Time, slot: u32) {
        let socket = &mut self.sockets[slot as usize];
        let Phase::Ending(status) = socket.phase else {
            return;
        };
        let is_moving = !socket.sending.fetching.is_empty() || socket.forwarding > 0;
        if is_moving || !socket.receiving.filling.is_empty() {
            return;
        }
        let (number, closing) = (socket.number, std::mem::take(&mut socket.closing));
        self.answer_exports(now, slot, Status::WrongState);
        self.sockets[slot as usize].moving = None;
        let (of_sends, of_receives) = match status {
            Status::Ok if closing.is_whole() => (Status::Cancelled, Status::Cancelled),
            Status::Ok => (Status::Shut, Status::EndOfStream),
            status => (status, status),
        };
        self.answer_sends(now, slot, of_sends);
        self.answer_receives(now, slot, of_receives);
        let done = Outcome::Done(Opcode::Close);
        for tag in [closing.write, closing.both].into_iter().flatten() {
            self.respond(now, number, tag, status, done);
        }
        if let Some(tag) = closing.abort {
            self.respond(now, number, tag, Status::Ok, done);
        }
        if !closing.is_whole() {
            self.notify(now, number, status, Outcome::Over);
        }
        self.free(slot);
    }

    /// Ends the session of an application that has gone: its connections end as `ending` specifies, its listeners immediately.
    pub(super) fn leave(mut self, work: &mut Work<'_, P>, ending: Ending) {
        self.states = 0;
        self.count_states(work);
        let until = work.now + Span::from_ms(work.shared.config.drain_ms.into());
        for (slot, socket) in &self.sockets {
            match socket.phase {
                Phase::Listening(listening) => {
                    end_listener(work, listening.id, self.place(slot as u32));
                }
                Phase::Connecting { conn, .. } => reset(work, conn),
                Phase::Connected(conn) => {
                    if socket.imported {
                        work.shared.limits.left(socket.relief_asked);
                    }
                    // An orderly close would falsely report that everything had been sent.
                    let is_whole = socket.sending.is_done();
                    let may_drain = socket.closing.begun || ending == Ending::Drain;
                    if is_whole && may_drain && work.shared.owners.drain(conn, until) {
                        work.stack.set_settling(conn, false);
                        work.stack.close(conn);
                    } else {
                        reset(work, conn);
                    }
                }
                Phase::Idle
                | Phase::Reserved
                | Phase::Ending(_)
                | Phase::Importing
                | Phase::Exported
                | Phase::Packets => {}
            }
        }
        let id = self.id;
        work.shared
            .wanted
            .retain(|wanted| wanted.place.session != id);
    }
}

/// Removes a socket from a listener. The listener ends with its last socket.
fn end_listener<P: Payload>(work: &mut Work<'_, P>, listener: ListenerId, place: Place) {
    if work.shared.owners.leave_listener(listener, place) {
        let local = work.stack.listening_at(listener);
        work.shared.ports.unlisten(local);
        work.stack.unlisten(work.now, listener);
    }
}

/// Resets a connection without notifying any application.
pub(super) fn reset<P: Payload>(work: &mut Work<'_, P>, conn: ConnId) {
    work.shared.owners.abandon(work.now, conn);
    work.stack.abort(conn);
}
