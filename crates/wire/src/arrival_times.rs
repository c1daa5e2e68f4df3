//! Arrival times of received data, for one connection.

use crate::SeqNr;
use std::collections::VecDeque;

/// Maximum number of runs with a time of their own. Data that arrives when there are that many counts as part of the last run.
const MOST_RUNS: usize = 1024;

/// Data that arrived at one point in time.
#[derive(Clone, Copy, Debug)]
struct Run<T> {
    start: SeqNr,
    end: SeqNr,
    at: T,
}

/// Arrival times of data that has not been read yet, ordered by the ends of the runs. The caller chooses the type of time.
#[derive(Clone, Debug, Default)]
pub struct ArrivalTimes<T> {
    runs: VecDeque<Run<T>>,
}

impl<T: Copy + PartialEq> ArrivalTimes<T> {
    /// Records that data from `start` to `end` arrived at `at`. Data that had arrived before keeps its time.
    pub fn note(&mut self, at: T, start: SeqNr, mut end: SeqNr) {
        let place = loop {
            let place = self.runs.partition_point(|run| run.end.before(end));
            match self.runs.get(place) {
                Some(known) if known.start.at_or_before(start) => return,
                Some(known) if known.start.before(end) => end = known.start,
                _ => break place,
            }
        };
        let is_full = self.runs.len() >= MOST_RUNS;
        match self.runs.back_mut() {
            Some(last) if last.end == start && (last.at == at || is_full) => last.end = end,
            _ if is_full => {}
            _ => self.runs.insert(place, Run { start, end, at }),
        }
    }

    /// Returns the arrival time of the byte before `next`, which is the next byte to be read, if it was recorded. Forgets the times of
    /// earlier data.
    pub fn of_byte_before(&mut self, next: SeqNr) -> Option<T> {
        while self.runs.pop_front_if(|run| run.end.before(next)).is_some() {}
        let run = self.runs.front()?;
        run.start.before(next).then_some(run.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Span, Time};

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn bytes_have_the_arrival_time_of_their_segment() {
        let mut times = ArrivalTimes::default();
        times.note(at(1), SeqNr(100), SeqNr(200));
        // Out of order, then the missing data, then all of it again.
        times.note(at(2), SeqNr(300), SeqNr(400));
        times.note(at(3), SeqNr(200), SeqNr(300));
        times.note(at(4), SeqNr(100), SeqNr(200));
        times.note(at(4), SeqNr(150), SeqNr(400));
        assert_eq!(times.of_byte_before(SeqNr(100)), None);
        for (next, ms) in [(101, 1), (200, 1), (201, 3), (300, 3), (301, 2), (400, 2)] {
            assert_eq!(times.of_byte_before(SeqNr(next)), Some(at(ms)), "{next}");
        }
        assert_eq!(times.of_byte_before(SeqNr(401)), None);
        assert!(times.runs.is_empty());
    }

    #[test]
    fn bytes_that_arrive_together_or_find_no_space_share_one_time() {
        let mut times = ArrivalTimes::default();
        for start in 0..10 {
            times.note(at(1), SeqNr(start), SeqNr(start + 1));
        }
        assert_eq!(times.runs.len(), 1);
        for start in 10..3000 {
            times.note(at(start.into()), SeqNr(start), SeqNr(start + 1));
        }
        assert_eq!(times.runs.len(), MOST_RUNS);
        assert_eq!(times.of_byte_before(SeqNr(3000)), Some(at(1032)));
    }
}
