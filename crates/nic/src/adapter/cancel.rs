//! CANCEL.

use super::closing::reset;
use super::sending::not_sent;
use super::session::{Session, Work};
use super::socket::Phase;
use baton_bus::descriptor::{Opcode, Outcome, Status};
use baton_bus::link::Inline;
use baton_wire::Payload;

impl<P: Payload + Inline> Session<P> {
    /// Executes CANCEL: withdraws the ACCEPT, CONNECT, SEND or RECV with tag `target`. A request whose data is being transferred can no
    /// longer be cancelled and is treated as not found.
    pub(super) fn cancel(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
        target: u32,
    ) -> Result<(), Status> {
        let number = self.sockets[slot as usize].number;
        let is_cancelled = match self.sockets[slot as usize].phase {
            Phase::Listening(_) => self.cancel_accept(work, slot, target),
            Phase::Connecting { conn, tag } if tag == target => {
                reset(work, conn);
                self.connect_failed(work.now, slot, Status::Cancelled);
                true
            }
            Phase::Reserved | Phase::Connecting { .. } | Phase::Connected(_) | Phase::Packets => {
                self.cancel_transfer(work, slot, target)
            }
            Phase::Idle | Phase::Ending(_) | Phase::Importing | Phase::Exported => false,
        };
        if !is_cancelled {
            return Err(Status::NoSuchRequest);
        }
        let done = Outcome::Done(Opcode::Cancel);
        self.respond(work.now, number, tag, Status::Ok, done);
        Ok(())
    }

    fn cancel_accept(&mut self, work: &mut Work<'_, P>, slot: u32, target: u32) -> bool {
        let socket = &mut self.sockets[slot as usize];
        let number = socket.number;
        let Phase::Listening(listening) = &mut socket.phase else {
            return false;
        };
        let first = self.accepts.front(&listening.accepts);
        let is_first = first.is_some_and(|accept| accept.tag == target);
        let accepts = &mut listening.accepts;
        let Some(accept) = self.accepts.take(accepts, |accept| accept.tag == target) else {
            return false;
        };
        for reserved in accept.numbers() {
            self.release_reserved(work.now, reserved);
        }
        let outcome = Outcome::AcceptedBulk { count: 0 };
        self.respond(work.now, number, target, Status::Cancelled, outcome);
        if is_first {
            // The next ACCEPT may want fewer connections.
            self.forget_deadline(slot);
            self.serve_accepts(work, slot);
        }
        true
    }

    /// Cancels a pending SEND or RECV.
    fn cancel_transfer(&mut self, work: &mut Work<'_, P>, slot: u32, target: u32) -> bool {
        let socket = &mut self.sockets[slot as usize];
        let number = socket.number;
        let posted = &mut socket.receiving.posted;
        let outcome = if let Some(receive) = self.receives.take(posted, |one| one.tag == target) {
            Outcome::nothing_received(receive.address)
        } else {
            let waiting = &mut socket.sending.waiting;
            match self.sends.take(waiting, |one| one.tag == target) {
                Some(send) => not_sent(&send),
                None => return false,
            }
        };
        self.respond(work.now, number, target, Status::Cancelled, outcome);
        // Requests behind the cancelled one may proceed now.
        self.feed(work, slot);
        true
    }
}
