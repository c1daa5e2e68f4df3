//! Times at which bytes were sent, acknowledged and received, for owners that ask. Other connections pay for one test a segment.

use super::Stack;
use crate::connection::Marks;
use crate::transmit_times::{TransmitTime, TransmitTimes};
use crate::types::{ConnId, Event};
use baton_wire::{ArrivalTimes, Payload, SeqNr, Stages, Time};

/// Times of one connection.
#[derive(Debug, Default)]
pub(super) struct Times {
    transmit: TransmitTimes,
    arrival: ArrivalTimes<Time>,
}

impl<P: Payload> Stack<P> {
    /// Asks when the last byte that was written reaches these stages; to be called before it may be sent. After [`Event::TransmitTimes`],
    /// [`Stack::poll_transmit_time`] has reports, which carry `key`. Returns false if too many reports are pending or not polled. Reports
    /// that are pending when the connection is exported or ends are lost.
    pub fn ask_times(&mut self, id: ConnId, key: u64, stages: Stages) -> bool {
        let conn = &mut self.connections[id.0 as usize];
        conn.marks.insert(Marks::TRANSMIT_TIMES);
        let end = conn.send_end();
        let times = self.times.entry(id.0).or_default();
        times.transmit.ask(end, key, stages)
    }

    /// Returns the next report on bytes whose times were requested.
    pub fn poll_transmit_time(&mut self, id: ConnId) -> Option<TransmitTime> {
        self.times.get_mut(&id.0)?.transmit.pop()
    }

    /// Starts or stops recording when data arrives, for [`Stack::arrival_of_last_read`].
    pub fn keep_arrival_times(&mut self, id: ConnId, keep: bool) {
        let conn = &mut self.connections[id.0 as usize];
        conn.marks.set(Marks::ARRIVAL_TIMES, keep);
        if let Some(times) = self.times.get_mut(&id.0) {
            times.arrival = ArrivalTimes::default();
        }
    }

    /// When the segment with the last byte that [`Stack::read`] returned arrived, if recorded.
    pub fn arrival_of_last_read(&mut self, id: ConnId) -> Option<Time> {
        let conn = &self.connections[id.0 as usize];
        let times = self.times.get_mut(&id.0)?;
        times.arrival.of_byte_before(conn.read_next())
    }

    /// Records times after a segment was sent or arrived; `arrived` is the range of sequence numbers of data that arrived.
    #[cold]
    #[inline(never)]
    pub(super) fn note_times(&mut self, now: Time, id: ConnId, arrived: Option<(SeqNr, SeqNr)>) {
        let conn = &self.connections[id.0 as usize];
        let times = self.times.entry(id.0).or_default();
        if let Some((start, end)) = arrived.filter(|_| conn.marks.contains(Marks::ARRIVAL_TIMES)) {
            times.arrival.note(now, start, end);
        }
        let (max, una) = conn.sent_and_acknowledged();
        let is_told =
            matches!(self.events.back(), Some((last, Event::TransmitTimes)) if *last == id);
        if times.transmit.advance(now, max, una) && !is_told {
            self.events.push_back((id, Event::TransmitTimes));
        }
    }

    /// Drops the times of a connection that is gone.
    pub(super) fn forget_times(&mut self, slot: u32, marks: Marks) {
        if marks.intersects(Marks::TIMES) {
            self.times.remove(&slot);
        }
    }
}
