//! Ends of writes: the segment that holds one carries PSH (RFC 9293 3.9.1.2), and a segment ends where a record ends.

use crate::config::apart;
use baton_wire::SeqNr;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Unsent writes count as one write up to this many bytes, as if they shared a socket buffer of Linux.
const LONGEST_RUN: u32 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Boundary {
    /// The number after the last byte.
    end: SeqNr,
    push: bool,
    record: bool,
}

/// Ends of unacknowledged writes, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Boundaries {
    ends: VecDeque<Boundary>,
    /// Number of ends that are ends of records. Mostly zero, which saves the search for them.
    records: u32,
    /// The number after the last byte written as urgent, while that byte is not acknowledged.
    #[serde(with = "apart")]
    pub(crate) urgent_end: SeqNr,
}

impl Boundaries {
    /// Records the end of a write; everything before `sent` was sent.
    pub(super) fn written(&mut self, sent: SeqNr, end: SeqNr, push: bool, record: bool) {
        let before_last = self
            .ends
            .len()
            .checked_sub(2)
            .map(|index| self.ends[index].end);
        let run_start = before_last.map_or(sent, |before| before.latest(sent));
        if let Some(last) = self.ends.back_mut()
            && last.end.after(sent)
            && !last.record
            && end - run_start <= LONGEST_RUN
        {
            last.end = end;
            last.push |= push;
            last.record = record;
        } else if push || record {
            self.ends.push_back(Boundary { end, push, record });
        } else {
            return;
        }
        self.records += u32::from(record);
    }

    /// Drops the ends up to `una`, which are acknowledged.
    pub(super) fn release(&mut self, una: SeqNr) {
        while let Some(first) = self.ends.front()
            && first.end.at_or_before(una)
        {
            self.records -= u32::from(first.record);
            self.ends.pop_front();
        }
    }

    /// Reports whether a write that is to be pushed ends after `start` and no later than `end`.
    pub(super) fn push_within(&self, start: SeqNr, end: SeqNr) -> bool {
        self.after(start)
            .take_while(|boundary| boundary.end.at_or_before(end))
            .any(|boundary| boundary.push)
    }

    /// The end of the first write after `seq` that is to be pushed.
    pub(super) fn next_push(&self, seq: SeqNr) -> Option<SeqNr> {
        self.after(seq)
            .find(|boundary| boundary.push)
            .map(|boundary| boundary.end)
    }

    /// The end of the record that `seq` lies in, if its end is known.
    pub(super) fn record_end(&self, seq: SeqNr) -> Option<SeqNr> {
        if self.records == 0 {
            return None;
        }
        self.after(seq)
            .find(|boundary| boundary.record)
            .map(|boundary| boundary.end)
    }

    #[inline(always)]
    fn after(&self, seq: SeqNr) -> impl Iterator<Item = &Boundary> {
        // Usually `seq` lies in the first unacknowledged write.
        let first = match self.ends.front() {
            Some(first) if first.end.at_or_before(seq) => self
                .ends
                .partition_point(|boundary| boundary.end.at_or_before(seq)),
            _ => 0,
        };
        self.ends.range(first..)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the invariant that is violated, if any.
    pub(super) fn verify(&self, una: SeqNr, data_end: SeqNr) -> Result<(), &'static str> {
        let mut previous = una;
        for boundary in &self.ends {
            if !boundary.end.after(previous) || boundary.end.after(data_end) {
                return Err("ends of writes are in order within what is not acknowledged");
            }
            previous = boundary.end;
        }
        let records = self.ends.iter().filter(|boundary| boundary.record).count();
        if records != self.records as usize {
            return Err("ends of records are counted");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_wait_are_pushed_as_one() {
        let mut ends = Boundaries::default();
        ends.written(SeqNr(1), SeqNr(101), true, false);
        ends.written(SeqNr(1), SeqNr(201), true, false);
        assert!(!ends.push_within(SeqNr(1), SeqNr(101)));
        assert!(ends.push_within(SeqNr(101), SeqNr(201)));
        ends.written(SeqNr(201), SeqNr(301), true, false);
        assert!(
            ends.push_within(SeqNr(101), SeqNr(201)) && ends.push_within(SeqNr(201), SeqNr(301))
        );
        assert_eq!(ends.verify(SeqNr(1), SeqNr(301)), Ok(()));
        ends.release(SeqNr(201));
        assert_eq!(ends.ends.len(), 1);
    }

    #[test]
    fn records_end_at_their_marks() {
        let mut ends = Boundaries::default();
        ends.written(SeqNr(1), SeqNr(101), true, true);
        ends.written(SeqNr(1), SeqNr(201), true, false);
        assert_eq!(ends.record_end(SeqNr(1)), Some(SeqNr(101)));
        assert_eq!(ends.record_end(SeqNr(101)), None);
    }

    #[test]
    fn a_long_run_is_pushed_in_between() {
        let mut ends = Boundaries::default();
        for write in 1..=9 {
            ends.written(SeqNr(0), SeqNr(write * 10_000), true, false);
        }
        assert!(ends.push_within(SeqNr(50_000), SeqNr(60_000)));
        assert!(!ends.push_within(SeqNr(70_000), SeqNr(80_000)));
        assert!(ends.push_within(SeqNr(80_000), SeqNr(90_000)));
    }
}
