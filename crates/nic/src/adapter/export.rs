//! EXPORT: hands connections back to the host (handoff-policies 2).

use super::dma::Job;
use super::session::{Session, Work};
use super::socket::{Moving, Phase};
use baton_bus::descriptor::{Opcode, Outcome, Status};
use baton_bus::link::Inline;
use baton_tcp::ConnId;
use baton_tcp::Moved;
use baton_wire::{Payload, Time};
use bytes::Bytes;
use std::collections::VecDeque;

/// A connection that is being exported to the host.
#[derive(Debug, Default)]
pub(super) struct Exporting {
    /// Buffers for the state, oldest first.
    buffers: VecDeque<Place>,
    /// The part of the state that has not been written yet.
    state: Bytes,
    /// Bytes of the whole state. All of its memory is freed with the last part.
    pub(super) state_bytes: u32,
    /// Buffer and length of the part that is being written.
    writing: Option<(Place, u32)>,
    /// Deadline of a connection that settles before it is exported.
    until: Option<Time>,
}

impl Exporting {
    /// Returns the number of parts that are being written.
    pub(super) fn transfers(&self) -> usize {
        usize::from(self.writing.is_some())
    }
}

/// The buffer of an EXPORT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) tag: u32,
    pub(super) address: u64,
    pub(super) len: u32,
}

/// Maximum number of pending EXPORTs of one socket.
const MOST_EXPORTS: usize = 64;

impl<P: Payload + Inline> Session<P> {
    /// Executes EXPORT. The first EXPORT of a socket starts the export.
    pub(super) fn export(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        place: Place,
    ) -> Result<(), Status> {
        let socket = &mut self.sockets[slot as usize];
        if place.len == 0 {
            return Err(Status::BadValue);
        }
        if P::of_bytes(Vec::new()).is_none() {
            // A payload type that only simulates bytes cannot carry a state.
            return Err(Status::BadState);
        }
        match (socket.phase, &socket.moving) {
            (Phase::Connected(conn), None) if !socket.closing.is_whole() => {
                socket.moving = Some(Box::new(Moving::Export(Exporting::default())));
                self.begin_settling(work, slot, conn);
            }
            (_, Some(moving)) if matches!(**moving, Moving::Export(_)) => {}
            _ => return Err(Status::WrongState),
        }
        let moving = &mut self.sockets[slot as usize].moving;
        let Some(Moving::Export(exporting)) = moving.as_deref_mut() else {
            return Err(Status::WrongState);
        };
        if exporting.buffers.len() >= MOST_EXPORTS {
            return Err(Status::TooManyRequests);
        }
        exporting.buffers.push_back(place);
        // Fetches all data of earlier requests now, even beyond the send buffer: this data becomes part of the state.
        self.feed(work, slot);
        self.leave_when_quiet(work, slot);
        Ok(())
    }

    /// Stops the connection from sending new data, if exports wait for connections to settle.
    fn begin_settling(&mut self, work: &mut Work<'_, P>, slot: u32, conn: ConnId) {
        let Some(longest) = work.shared.config.settle else {
            return;
        };
        if self.settling.len() > 2 * self.sockets.len() {
            // Most of these connections have already left.
            let mut settling = std::mem::take(&mut self.settling);
            settling.retain(|&entry| self.settles(entry));
            self.settling = settling;
        }
        work.stack.set_settling(conn, true);
        let until = work.now + longest;
        let socket = &mut self.sockets[slot as usize];
        if let Some(Moving::Export(exporting)) = socket.moving.as_deref_mut() {
            exporting.until = Some(until);
        }
        self.settling.push_back((until, slot, socket.number));
    }

    /// Returns whether the connection of this entry has not left yet.
    fn settles(&self, (until, slot, number): (Time, u32, u32)) -> bool {
        let socket = self.sockets.get(slot as usize);
        socket.is_some_and(|socket| {
            let is_its = |exporting: &Exporting| exporting.until == Some(until);
            socket.number == number
                && matches!(socket.phase, Phase::Connected(_))
                && matches!(socket.moving.as_deref(), Some(Moving::Export(it)) if is_its(it))
        })
    }

    /// Exports connections that did not settle in time.
    pub(super) fn end_settling(&mut self, work: &mut Work<'_, P>) {
        while let Some(&entry) = self.settling.front() {
            let (until, slot, _) = entry;
            let settles = self.settles(entry);
            if settles && until > work.now {
                return;
            }
            self.settling.pop_front();
            if settles {
                self.leave_when_quiet(work, slot);
            }
        }
    }

    /// Takes the connection out of the stack once no data transfer is in progress and, if it must settle, it has settled or its deadline
    /// has passed.
    pub(super) fn leave_when_quiet(&mut self, work: &mut Work<'_, P>, slot: u32) {
        let socket = &mut self.sockets[slot as usize];
        let Some(Moving::Export(exporting)) = socket.moving.as_deref() else {
            return;
        };
        let (sending, receiving) = (&socket.sending, &socket.receiving);
        let is_quiet = sending.waiting.is_empty()
            && sending.fetching.is_empty()
            && receiving.filling.is_empty();
        match socket.phase {
            Phase::Connected(conn) if is_quiet && work.stack.ended(conn).is_some() => {
                self.stay(work, slot);
            }
            Phase::Connected(conn) if is_quiet => {
                let at_rest = work.stack.is_at_rest(conn);
                match exporting.until {
                    Some(until) if !at_rest && work.now < until => return,
                    Some(_) if at_rest => self.stats.exported_at_rest += 1,
                    Some(_) => self.stats.exported_not_at_rest += 1,
                    None => {}
                }
                self.take_out(work, slot, conn);
            }
            Phase::Exported if exporting.writing.is_none() => self.write_next(slot),
            _ => {}
        }
    }

    /// Cancels the export of a connection that ended before it could leave, and delivers the rest of its received data.
    fn stay(&mut self, work: &mut Work<'_, P>, slot: u32) {
        self.answer_exports(work.now, slot, Status::WrongState);
        self.sockets[slot as usize].moving = None;
        self.deliver(work, slot);
        self.feed(work, slot);
    }

    fn take_out(&mut self, work: &mut Work<'_, P>, slot: u32, conn: ConnId) {
        self.settle(work.now, slot);
        self.answer_receives(work.now, slot, Status::Cancelled);
        let unsent = self.take_unwritten(slot);
        let socket = &mut self.sockets[slot as usize];
        let (number, imported) = (socket.number, socket.imported);
        let was_asked = socket.relief_asked;
        socket.phase = Phase::Exported;
        let shut = socket.closing.write.take();
        work.shared.forget(conn);
        work.shared.exported += 1;
        if imported {
            work.shared.limits.left(was_asked);
        }
        let state = work.stack.export(work.now, conn);
        let moved = Moved {
            state: match &mut work.shared.custody {
                Some(custody) => custody.release(state),
                None => state,
            },
            unsent,
            shut: shut.is_some(),
        };
        if let Some(tag) = shut {
            let done = Outcome::Done(Opcode::Close);
            self.respond(work.now, number, tag, Status::Ok, done);
        }
        if let Some(Moving::Export(exporting)) = self.sockets[slot as usize].moving.as_deref_mut() {
            exporting.state = moved.to_bytes().into();
            exporting.state_bytes = exporting.state.len() as u32;
            self.states += exporting.state_bytes;
        }
        self.stats.exported += 1;
        self.write_next(slot);
    }

    /// Starts to write the next part of the state, if there is a buffer for it.
    fn write_next(&mut self, slot: u32) {
        let Some(Moving::Export(exporting)) = self.sockets[slot as usize].moving.as_deref_mut()
        else {
            return;
        };
        let Some(place) = exporting.buffers.pop_front() else {
            return;
        };
        let len = exporting.state.len().min(place.len as usize);
        let part = exporting.state.split_to(len);
        exporting.writing = Some((place, len as u32));
        if let Some(part) = P::of_bytes(part.to_vec()) {
            self.ask_write(Job::WriteState { slot }, place.address, part);
        }
    }

    /// Handles the completed write of a part of the state.
    pub(super) fn state_written(&mut self, now: Time, slot: u32) {
        let socket = &mut self.sockets[slot as usize];
        let number = socket.number;
        let Some(Moving::Export(exporting)) = socket.moving.as_deref_mut() else {
            return debug_assert!(false, "it is being exported");
        };
        let Some((place, len)) = exporting.writing.take() else {
            return debug_assert!(false, "a part is being written");
        };
        let more = !exporting.state.is_empty();
        let outcome = exported(place, len, more);
        if more {
            self.respond(now, number, place.tag, Status::Ok, outcome);
            self.write_next(slot);
        } else {
            self.answer_exports(now, slot, Status::Cancelled);
            self.respond(now, number, place.tag, Status::Ok, outcome);
            self.free(slot);
        }
    }

    /// Answers EXPORTs whose buffers remained unused.
    pub(super) fn answer_exports(&mut self, now: Time, slot: u32, status: Status) {
        let socket = &mut self.sockets[slot as usize];
        let number = socket.number;
        let Some(Moving::Export(exporting)) = socket.moving.as_deref_mut() else {
            return;
        };
        for place in std::mem::take(&mut exporting.buffers) {
            self.respond(now, number, place.tag, status, exported(place, 0, false));
        }
    }
}

/// Returns the outcome of an EXPORT into `place`.
pub(super) fn exported(place: Place, len: u32, more: bool) -> Outcome {
    let address = place.address;
    Outcome::Exported { address, len, more }
}
