//! The persistent-connection rule, which determines the requests of a log that share a connection.
//!
//! Connection handoff policies paper, section 4.2: "The replayer uses a persistent connection for the requests from
//! the same client that arrive within a fifteen second period in the given trace."

use crate::log::Request;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How the requests of one client are divided into connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionRule {
    /// A request at most this many seconds after the client's previous one uses the same connection.
    pub persistent_s: u32,
    /// A request less than this many seconds after the previous one of its connection is pipelined with it. `None` means no pipelining.
    pub pipeline_s: Option<u32>,
}

impl SessionRule {
    /// The rule of the papers: 15 seconds, no pipelining.
    pub const PAPERS: Self = Self {
        persistent_s: 15,
        pipeline_s: None,
    };
    /// The rule of the data-caching paper, whose replayers pipeline: 15 seconds and 5 seconds.
    pub const PIPELINED: Self = Self {
        persistent_s: 15,
        pipeline_s: Some(5),
    };
}

impl Default for SessionRule {
    fn default() -> Self {
        Self::PAPERS
    }
}

/// The requests of a log, grouped into connections, in order of each connection's first request.
///
/// Stored flat: connection `c` is `order[starts[c]..starts[c + 1]]`, indices into the log's requests in time order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sessions {
    order: Vec<u32>,
    starts: Vec<u32>,
}

impl Sessions {
    /// Groups `requests`, which must be sorted by time.
    ///
    /// # Panics
    /// If there are 2^32 requests or more.
    pub fn new(requests: &[Request], rule: SessionRule) -> Self {
        assert!(
            u32::try_from(requests.len()).is_ok(),
            "2^32 requests or more"
        );
        debug_assert!(requests.is_sorted_by_key(|r| r.time_us));
        let (connection_of, connections) = assign(requests, rule);
        let mut starts = vec![0u32; connections + 1];
        for &c in &connection_of {
            starts[c as usize + 1] += 1;
        }
        for c in 0..connections {
            starts[c + 1] += starts[c];
        }
        let mut next = starts.clone();
        let mut order = vec![0u32; requests.len()];
        for (index, &c) in (0u32..).zip(&connection_of) {
            let slot = &mut next[c as usize];
            order[*slot as usize] = index;
            *slot += 1;
        }
        Self { order, starts }
    }

    /// Returns the number of connections.
    pub const fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns whether there are no connections.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of each request's connection, in the order of the log.
    pub fn connections(&self) -> Vec<u32> {
        let mut connections = vec![0; self.order.len()];
        for (connection, requests) in (0..).zip(self.iter()) {
            for &request in requests {
                connections[request as usize] = connection;
            }
        }
        connections
    }

    /// Returns the requests of connection `c`: indices into the log's requests, in time order, at least one.
    pub fn requests(&self, c: usize) -> &[u32] {
        &self.order[self.range(c)]
    }

    /// Returns the range of connection `c` in [`Self::order`].
    pub fn range(&self, c: usize) -> Range<usize> {
        self.starts[c] as usize..self.starts[c + 1] as usize
    }

    /// Returns all requests (indices into the log's requests), connection by connection.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Iterates over every connection's requests, in order of first request.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.starts
            .windows(2)
            .map(|w| &self.order[w[0] as usize..w[1] as usize])
    }
}

/// Assigns each request to a connection; returns the connections' numbers, and how many there are.
fn assign(requests: &[Request], rule: SessionRule) -> (Vec<u32>, usize) {
    const NONE: u32 = u32::MAX;
    let clients = requests
        .iter()
        .map(|r| r.client as usize + 1)
        .max()
        .unwrap_or(0);
    // Per client: the time of its latest request and the connection that carried it.
    let mut latest = vec![(0u64, NONE); clients];
    let persistent_us = u64::from(rule.persistent_s) * 1_000_000;
    let mut connections = 0u32;
    let connection_of = requests
        .iter()
        .map(|r| {
            let (last_us, connection) = &mut latest[r.client as usize];
            if *connection == NONE || r.time_us - *last_us > persistent_us {
                *connection = connections;
                connections += 1;
            }
            *last_us = r.time_us;
            *connection
        })
        .collect();
    (connection_of, connections as usize)
}

#[cfg(test)]
mod tests;
