//! What came in an open loop, and how long it took.

use super::super::delay::Delays;
use super::measured::Answered;
use super::sections::Sections;
use crate::results::OpenLoopResults;

/// What came in an open loop, and how long it took.
#[derive(Debug, Default)]
pub(in crate::machine) struct Arrived {
    /// Requests of connections that were due.
    requests: u64,
    /// Of these, requests that nobody will answer: their connections failed, or never came to be.
    lost: u64,
    /// Requests under way, measured or before: the first of a connection from when it was due, others from when they were sent.
    pub(in crate::machine) unanswered: u64,
    /// From when a request was due to when it was sent.
    wait: Delays,
    /// From when a request was due to its last byte.
    response: Delays,
    /// The same, over the run.
    pub(in crate::machine) sections: Sections,
}

impl Arrived {
    /// Measured from now on.
    pub(super) fn restarted(&self) -> Self {
        Self {
            unanswered: self.unanswered,
            ..Self::default()
        }
    }

    /// A connection of so many requests is due.
    pub(super) fn came(&mut self, requests: usize) {
        self.requests += requests as u64;
        self.unanswered += 1;
    }

    /// A request that is not the first of its connection was sent.
    pub(super) fn went_on(&mut self) {
        self.unanswered += 1;
    }

    /// So many requests will not be answered, of which some were under way.
    pub(super) fn lost(&mut self, requests: u64, under_way: u64) {
        self.lost += requests;
        self.unanswered -= under_way;
    }

    pub(super) fn answered(&mut self, response: &Answered) {
        self.unanswered -= 1;
        self.wait.record(response.sent - response.due);
        let time = response.done - response.due;
        self.response.record(time);
        self.sections.record(time);
    }

    /// Share of the requests that nobody will answer.
    pub(in crate::machine) fn lost_share(&self) -> f64 {
        self.lost as f64 / self.requests.max(1) as f64
    }

    /// Requests that came.
    pub(in crate::machine) fn requests(&self) -> u64 {
        self.requests
    }

    pub(super) fn results(&self, seconds: f64) -> OpenLoopResults {
        OpenLoopResults {
            offered_rate: self.requests as f64 / seconds,
            lost: self.lost,
            unanswered: self.unanswered,
            response_ms: self.response.distribution(1e6),
            wait_ms: self.wait.distribution(1e6),
        }
    }
}
