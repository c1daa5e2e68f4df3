//! Times at which bytes of interest of a connection were sent and acknowledged.
//!
//! A stage is reached when all bytes up to the one of interest have reached it, whichever segments they are in.

use baton_wire::{SeqNr, Stage, Stages, Time};
use std::collections::VecDeque;

/// Maximum number of requests and untaken reports of one connection.
const MOST_FOLLOWED: usize = 1024;

/// When a byte reached a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitTime {
    /// Key of the request.
    pub key: u64,
    /// The stage.
    pub stage: Stage,
    /// The time at which the byte reached the stage.
    pub at: Time,
}

/// A byte of interest.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// The sequence number after the byte.
    end: SeqNr,
    key: u64,
    stages: Stages,
}

/// Requests of one connection and the reports about them.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransmitTimes {
    unsent: VecDeque<Request>,
    unacknowledged: VecDeque<Request>,
    reports: VecDeque<TransmitTime>,
}

impl TransmitTimes {
    /// Requests times of the byte before `end`, which is after all bytes requested before. Returns false if there are too many requests.
    pub fn ask(&mut self, end: SeqNr, key: u64, stages: Stages) -> bool {
        let followed = self.unsent.len() + self.unacknowledged.len() + self.reports.len();
        let takes = followed < MOST_FOLLOWED;
        if takes {
            self.unsent.push_back(Request { end, key, stages });
        }
        takes
    }

    /// Records that all bytes before `max` were sent and all before `una` acknowledged. Returns true if there are new reports.
    pub fn advance(&mut self, now: Time, max: SeqNr, una: SeqNr) -> bool {
        let before = self.reports.len();
        let sent = |request: &mut Request| request.end.at_or_before(max);
        while let Some(request) = self.unsent.pop_front_if(sent) {
            self.report(now, request, Stage::Scheduled);
            self.report(now, request, Stage::Sent);
            if request.stages.contains(Stages::ACKNOWLEDGED) {
                self.unacknowledged.push_back(request);
            }
        }
        let acknowledged = |request: &mut Request| request.end.at_or_before(una);
        while let Some(request) = self.unacknowledged.pop_front_if(acknowledged) {
            self.report(now, request, Stage::Acknowledged);
        }
        self.reports.len() > before
    }

    fn report(&mut self, at: Time, request: Request, stage: Stage) {
        if request.stages.contains(stage.into()) {
            let key = request.key;
            self.reports.push_back(TransmitTime { key, stage, at });
        }
    }

    /// Takes the oldest report.
    pub fn pop(&mut self) -> Option<TransmitTime> {
        self.reports.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_reaches_a_stage_when_all_earlier_bytes_have() {
        let mut times = TransmitTimes::default();
        let (start, end) = (SeqNr(u32::MAX - 99), SeqNr(900));
        assert!(times.ask(end, 7, Stages::all()));
        assert!(!times.advance(Time::ZERO, end - 1, start));
        assert!(times.advance(Time::ZERO, end + 100, end - 1));
        assert!(times.advance(Time::ZERO, end + 100, end));
        let told: Vec<_> = std::iter::from_fn(|| times.pop())
            .map(|time| (time.stage, time.key))
            .collect();
        let stages = [Stage::Scheduled, Stage::Sent, Stage::Acknowledged];
        assert_eq!(told, stages.map(|stage| (stage, 7)));
    }

    #[test]
    fn the_number_of_followed_bytes_is_limited() {
        let mut times = TransmitTimes::default();
        let ask = |times: &mut TransmitTimes, at| times.ask(SeqNr(at), 0, Stages::SENT);
        assert!((1..=MOST_FOLLOWED as u32).all(|at| ask(&mut times, at)));
        assert!(!ask(&mut times, 2000));
        times.advance(Time::ZERO, SeqNr(3000), SeqNr(0));
        assert!(!ask(&mut times, 4000) && times.pop().is_some() && ask(&mut times, 4000));
    }
}
