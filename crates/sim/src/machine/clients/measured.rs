//! Measurements of the clients.

use super::super::delay::Delays;
use super::arrived::Arrived;
use crate::results::ClientResults;
use baton_tcp::Stats;
use baton_wire::{Span, Time};
use std::collections::BTreeMap;

/// Measurements of the clients.
#[derive(Debug)]
pub(in crate::machine) struct Measured {
    pub(in crate::machine) responses: u64,
    /// Content bytes of complete responses.
    pub(in crate::machine) served_bytes: u64,
    /// Connections that were started.
    pub(in crate::machine) opened: u64,
    /// Content bytes of all responses, by NIC.
    content_bytes: Vec<u64>,
    pub(super) connections: u64,
    failed: BTreeMap<&'static str, u64>,
    response: Delays,
    first_byte: Delays,
    transfer: Delays,
    retransmissions_before: u64,
    timeouts_before: u64,
    /// Arrivals and response times of an open loop.
    pub(in crate::machine) arrived: Option<Box<Arrived>>,
}

/// A complete response: when its request was due, when it was sent, and when the first and the last byte arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) due: Time,
    pub(super) sent: Time,
    pub(super) first_byte: Time,
    pub(super) done: Time,
    /// Content bytes.
    pub(super) bytes: u64,
}

impl Measured {
    /// Creates measurements without any values.
    pub(super) fn new(nics: u32, is_open: bool) -> Self {
        Self {
            responses: 0,
            served_bytes: 0,
            opened: 0,
            content_bytes: vec![0; nics as usize],
            connections: 0,
            failed: BTreeMap::new(),
            response: Delays::new(),
            first_byte: Delays::new(),
            transfer: Delays::new(),
            retransmissions_before: 0,
            timeouts_before: 0,
            arrived: is_open.then(Box::default),
        }
    }

    /// Resets all measurements. `tcp` has the counters of the clients' TCP until now.
    pub(super) fn restart(&mut self, tcp: &Stats) {
        let arrived = self.arrived.take().map(|arrived| arrived.restarted());
        *self = Self {
            retransmissions_before: tcp.retransmissions,
            timeouts_before: tcp.timeouts,
            arrived: arrived.map(Box::new),
            ..Self::new(self.content_bytes.len() as u32, false)
        };
    }

    /// Returns the number of connections that ended, for any reason.
    pub(in crate::machine) fn ended(&self) -> u64 {
        self.connections + self.failed.values().sum::<u64>()
    }

    /// Returns the content bytes of all responses, complete or not.
    pub(in crate::machine) fn content_bytes(&self) -> u64 {
        self.content_bytes.iter().sum()
    }

    /// Returns the content that the clients of one NIC received per second, Mb/s.
    pub(super) fn content_mbps(&self, nic: u8, measured: Span) -> f64 {
        self.content_bytes[usize::from(nic)] as f64 * 8e-6 / seconds(measured)
    }

    /// Counts content received through a NIC.
    #[inline]
    pub(super) fn received(&mut self, nic: u8, bytes: u64) {
        self.content_bytes[usize::from(nic)] += bytes;
    }

    /// Counts a complete response.
    #[inline]
    pub(super) fn answered(&mut self, response: &Answered) {
        let &Answered {
            sent,
            first_byte,
            done,
            ..
        } = response;
        self.responses += 1;
        self.served_bytes += response.bytes;
        self.response.record(done - sent);
        self.first_byte.record(first_byte - sent);
        self.transfer.record(done - first_byte);
        if let Some(arrived) = &mut self.arrived {
            arrived.answered(response);
        }
    }

    /// Counts a connection that failed, or was never opened.
    pub(super) fn failed(&mut self, reason: &'static str) {
        *self.failed.entry(reason).or_default() += 1;
    }

    pub(super) fn results(&self, tcp: &Stats, measured: Span) -> ClientResults {
        let seconds = seconds(measured);
        let failed = self.failed.iter();
        ClientResults {
            responses: self.responses,
            request_rate: self.responses as f64 / seconds,
            content_mbps: self.content_bytes() as f64 * 8e-6 / seconds,
            connections: self.connections,
            failed: failed
                .map(|(name, &count)| ((*name).to_owned(), count))
                .collect(),
            response_ms: self.response.distribution(1e6),
            first_byte_ms: self.first_byte.distribution(1e6),
            transfer_ms: self.transfer.distribution(1e6),
            retransmissions: tcp.retransmissions - self.retransmissions_before,
            timeouts: tcp.timeouts - self.timeouts_before,
            open_loop: self
                .arrived
                .as_ref()
                .map(|arrived| arrived.results(seconds)),
        }
    }
}

fn seconds(measured: Span) -> f64 {
    measured.as_secs_f64().max(f64::MIN_POSITIVE)
}
