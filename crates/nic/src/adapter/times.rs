//! Reports when bytes were sent and acknowledged and when data arrived, to hosts that want to know (SO_TIMESTAMPING).

use super::session::{Session, Work};
use super::socket::Phase;
use baton_bus::descriptor::{Moment, Opcode, Outcome, Status, Times};
use baton_bus::link::Inline;
use baton_tcp::{ConnId, Stack};
use baton_wire::{Payload, Stages, Time};

/// Timestamp settings of one socket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timing {
    /// Number of the next byte to be written.
    next: u32,
    /// Whether arrival times are reported.
    tells_arrivals: bool,
}

impl Timing {
    /// Records that `len` bytes were written, and requests the times of `stages` for the last byte. Returns false if the stack cannot
    /// report them.
    pub(super) fn written<P: Payload>(
        &mut self,
        stack: &mut Stack<P>,
        conn: ConnId,
        len: u32,
        stages: Stages,
    ) -> bool {
        self.next = self.next.wrapping_add(len);
        let last = self.next.wrapping_sub(1);
        stages.is_empty() || stack.ask_times(conn, last.into(), stages)
    }

    /// Returns the arrival time of the last byte read from a connection, if arrival times are reported.
    pub(super) fn arrival<P: Payload>(&self, stack: &mut Stack<P>, conn: ConnId) -> Option<Time> {
        match self.tells_arrivals {
            true => stack.arrival_of_last_read(conn),
            false => None,
        }
    }
}

impl<P: Payload + Inline> Session<P> {
    /// Executes SETSOCKOPT of [`Times`].
    pub(super) fn set_times(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
        value: u32,
    ) -> Result<(), Status> {
        let wanted = Times::from_bits(value).ok_or(Status::BadValue)?;
        if self.epoch_ns.is_none() {
            return Err(Status::NoClock);
        }
        let socket = &self.sockets[slot as usize];
        let Phase::Connected(conn) = socket.phase else {
            return Err(Status::WrongState);
        };
        if socket.moving.is_some() {
            return Err(Status::WrongState);
        }
        let mut timing = socket.timing.as_deref().copied().unwrap_or_default();
        let is_first = socket.timing.is_none();
        if wanted.contains(Times::FROM_UNACKNOWLEDGED) {
            timing.next = work.stack.unacknowledged(conn) as u32;
        } else if is_first || wanted.contains(Times::FROM_NEXT) {
            timing.next = 0_u32.wrapping_sub(self.not_written(slot));
        }
        let keep = wanted.contains(Times::RECEIVED);
        if keep != timing.tells_arrivals {
            timing.tells_arrivals = keep;
            work.stack.keep_arrival_times(conn, keep);
        }
        let socket = &mut self.sockets[slot as usize];
        socket.timing = Some(Box::new(timing));
        let (number, done) = (socket.number, Outcome::Done(Opcode::SetOption));
        self.respond(work.now, number, tag, Status::Ok, done);
        Ok(())
    }

    /// Returns the number of bytes of SENDs that have not been written to the connection.
    fn not_written(&self, slot: u32) -> u32 {
        let sending = &self.sockets[slot as usize].sending;
        let chains = [&sending.unwritten, &sending.fetching, &sending.waiting];
        let sends = chains.into_iter().flat_map(|chain| self.sends.iter(chain));
        sends.map(|send| send.len()).sum()
    }

    /// Reports the arrival time of the data in the next answer to a RECV.
    #[inline]
    pub(super) fn tell_arrival(&mut self, now: Time, slot: u32, arrived: Option<Time>) {
        if let Some(at) = arrived {
            self.tell_time(now, slot, Moment::Arrived, at);
        }
    }

    /// Reports the transmit times that the connection has collected.
    pub(super) fn tell_transmit_times(&mut self, work: &mut Work<'_, P>, slot: u32, conn: ConnId) {
        while let Some(time) = work.stack.poll_transmit_time(conn) {
            let what = Moment::Reached {
                stage: time.stage,
                byte: time.key as u32,
            };
            self.tell_time(work.now, slot, what, time.at);
        }
    }

    fn tell_time(&mut self, now: Time, slot: u32, what: Moment, at: Time) {
        let Some(epoch_ns) = self.epoch_ns else {
            return debug_assert!(false, "nothing was asked");
        };
        let at_ns = epoch_ns + (at - Time::ZERO).as_ps() / 1000;
        let number = self.sockets[slot as usize].number;
        self.stats.times_told += 1;
        self.notify(now, number, Status::Ok, Outcome::Time { what, at_ns });
    }
}
