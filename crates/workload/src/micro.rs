//! Microloads, in which all connections are the same: fixed sizes like `httperf`, bulk transfer, ping-pong, churn.

use crate::source::{Content, Demand, FileSet, RequestSpec, SECOND_PS, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Connections that all request the same file `requests` times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fixed {
    script: Vec<RequestSpec>,
    files: FileSet,
    demand: Demand,
}

/// The parameters of [`Fixed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixedSpec {
    /// Content bytes of every response.
    #[schemars(range(max = Self::MOST_BYTES))]
    pub bytes: u64,
    /// Requests on each connection, at least 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = Self::MOST_REQUESTS))]
    pub requests: u32,
    /// Responses are produced by a program and copied, not sent from the file cache.
    #[serde(default)]
    pub dynamic: bool,
    /// Requests of a connection are sent without waiting for responses.
    #[serde(default)]
    pub pipelined: bool,
    /// Connections opened a second by all clients together, evenly spaced, whether earlier ones are done or not; absent for infinite demand.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub connections_per_s: Option<u32>,
}

const fn one() -> u32 {
    1
}

impl FixedSpec {
    /// Maximum number of requests on a connection.
    pub const MOST_REQUESTS: u32 = 1_000_000;
    /// Largest content of a response, bytes.
    pub const MOST_BYTES: u64 = (1 << 31) - 1;

    /// `httperf --num-calls requests`: connections with `requests` requests for `bytes` bytes each.
    pub const fn httperf(bytes: u64, requests: u32, connections_per_s: Option<u32>) -> Self {
        Self {
            bytes,
            requests,
            dynamic: false,
            pipelined: false,
            connections_per_s,
        }
    }

    /// One big file per connection.
    pub const fn bulk(bytes: u64) -> Self {
        Self::httperf(bytes, 1, None)
    }

    /// Small messages in both directions on a long connection; the application produces the responses instead of reading files.
    pub const fn ping_pong(bytes: u64, exchanges: u32) -> Self {
        Self {
            bytes,
            requests: exchanges,
            dynamic: true,
            pipelined: false,
            connections_per_s: None,
        }
    }

    /// Connection churn: one tiny request per connection.
    pub const fn churn() -> Self {
        Self::httperf(64, 1, None)
    }
}

impl Fixed {
    /// Creates the load.
    ///
    /// # Panics
    /// If `requests` is 0.
    pub fn new(spec: FixedSpec) -> Self {
        assert!(spec.requests > 0, "a connection has at least one request");
        let content = match spec.dynamic {
            true => Content::Produced,
            false => Content::Static,
        };
        let first = RequestSpec {
            content,
            ..RequestSpec::fixed(0, spec.bytes)
        };
        let mut script = vec![
            RequestSpec {
                pipelined: spec.pipelined,
                ..first
            };
            spec.requests as usize
        ];
        script[0] = first;
        let mut demand = Demand::Closed;
        if let Some(connections_per_s) = spec.connections_per_s {
            demand = Demand::PartlyOpen;
            script[0].wait_ps = SECOND_PS / u64::from(connections_per_s.max(1));
        }
        Self {
            script,
            files: FileSet::new(vec![spec.bytes]),
            demand,
        }
    }
}

impl Workload for Fixed {
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>) {
        script.clear();
        script.extend_from_slice(&self.script);
    }

    fn files(&self) -> &FileSet {
        &self.files
    }

    fn requests_per_connection(&self) -> f64 {
        self.script.len() as f64
    }

    fn demand(&self) -> Demand {
        self.demand
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_match_their_parameters() {
        let mut script = Vec::new();
        Fixed::new(FixedSpec::churn()).next_connection(&mut script);
        assert_eq!(script, [RequestSpec::fixed(0, 64)]);

        Fixed::new(FixedSpec::bulk(1 << 33)).next_connection(&mut script);
        assert_eq!(script, [RequestSpec::fixed(0, 1 << 33)]);

        Fixed::new(FixedSpec::ping_pong(1, 100)).next_connection(&mut script);
        assert_eq!(script.len(), 100);
        assert!(
            script
                .iter()
                .all(|r| r.content == Content::Produced && !r.pipelined)
        );

        let spec = FixedSpec {
            pipelined: true,
            ..FixedSpec::httperf(10, 3, Some(500))
        };
        let mut load = Fixed::new(spec);
        load.next_connection(&mut script);
        assert_eq!(
            script.iter().map(|r| r.pipelined).collect::<Vec<_>>(),
            [false, true, true]
        );
        assert_eq!(load.demand(), Demand::PartlyOpen);
        assert_eq!(
            script.iter().map(|r| r.wait_ps).collect::<Vec<_>>(),
            [2_000_000_000, 0, 0]
        );
    }
}
