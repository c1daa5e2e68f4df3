//! What clients measure.

use crate::machine::Delays;
use baton_wire::Span;
use std::collections::BTreeMap;

/// Times of responses, in distributions and, for exact means, in sums.
#[derive(Debug)]
pub(super) struct Measured {
    responses: u64,
    pub(super) response: Delays,
    pub(super) transfer: Delays,
    response_sum: Span,
    transfer_sum: Span,
    failed: BTreeMap<&'static str, u64>,
}

impl Measured {
    pub(super) fn new() -> Self {
        Self {
            responses: 0,
            response: Delays::new(),
            transfer: Delays::new(),
            response_sum: Span::ZERO,
            transfer_sum: Span::ZERO,
            failed: BTreeMap::new(),
        }
    }

    /// A reply is complete: its first byte came `response` after the first byte of the request was sent, its last `transfer` later.
    pub(super) fn response(&mut self, response: Span, transfer: Span) {
        self.responses += 1;
        self.response.record(response);
        self.transfer.record(transfer);
        self.response_sum += response;
        self.transfer_sum += transfer;
    }

    /// A connection was not opened, or has failed.
    pub(super) fn fail(&mut self, reason: &'static str) {
        *self.failed.entry(reason).or_default() += 1;
    }

    /// Complete replies.
    pub(super) fn responses(&self) -> u64 {
        self.responses
    }

    /// Mean response time and mean transfer time, microseconds.
    pub(super) fn means_us(&self) -> (f64, f64) {
        let mean = |sum: Span| sum.as_us_f64() / self.responses.max(1) as f64;
        (mean(self.response_sum), mean(self.transfer_sum))
    }

    /// Failures by reason.
    pub(super) fn failed(&self) -> BTreeMap<String, u64> {
        let named = |(&reason, &count): (&&str, &u64)| (reason.to_owned(), count);
        self.failed.iter().map(named).collect()
    }
}
