//! Requests that arrived in an open loop, and their response times.

use super::super::delay::Delays;
use super::measured::Answered;
use super::sections::Sections;
use crate::results::OpenLoopResults;

/// Requests that arrived in an open loop, and their response times.
#[derive(Debug, Default)]
pub(in crate::machine) struct Arrived {
    /// Requests of connections that were due.
    requests: u64,
    /// The number of these requests that will not be answered, because their connections failed or were never opened.
    lost: u64,
    /// Requests in progress, measured or earlier: the first request of a connection from when it was due, others from when they were sent.
    pub(in crate::machine) unanswered: u64,
    /// Time from when a request was due until it was sent.
    wait: Delays,
    /// Time from when a request was due until the last byte of its response.
    response: Delays,
    /// Response times in sections over the run.
    pub(in crate::machine) sections: Sections,
}

impl Arrived {
    /// Returns counters for a measurement that starts now.
    pub(super) fn restarted(&self) -> Self {
        Self {
            unanswered: self.unanswered,
            ..Self::default()
        }
    }

    /// Counts a connection with this number of requests that is due.
    pub(super) fn came(&mut self, requests: usize) {
        self.requests += requests as u64;
        self.unanswered += 1;
    }

    /// Counts a request that was sent and is not the first of its connection.
    pub(super) fn went_on(&mut self) {
        self.unanswered += 1;
    }

    /// Counts `requests` requests that will not be answered, `under_way` of which were in progress.
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

    /// Returns the share of requests that will not be answered.
    pub(in crate::machine) fn lost_share(&self) -> f64 {
        self.lost as f64 / self.requests.max(1) as f64
    }

    /// Returns the number of requests that arrived.
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
