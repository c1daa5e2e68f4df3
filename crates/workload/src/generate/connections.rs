//! Times, clients and connections of requests.

use super::{Distribution, SpecError};
use rand::RngExt;
use rand_pcg::Pcg64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Limit of pauses within a connection: below the papers' 15 seconds by more than the rounding to seconds can add.
const LONGEST_PAUSE_US: u64 = 13_000_000;
/// Minimum time between two connections of a client: above the 15 seconds by the same margin.
const SILENCE_US: u64 = 17_000_000;

/// Connections of a generated log.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSpec {
    /// Requests per connection.
    pub requests: Distribution,
    /// Seconds between requests of a connection, cut at 13.
    pub pause_s: Distribution,
    /// Mean connections per client.
    #[schemars(range(min = 1.0))]
    pub per_client: f64,
    /// Mean requests per second of the whole log.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub requests_per_s: f64,
}

impl ConnectionSpec {
    /// Returns connections with log-normally distributed numbers of requests. Pauses and rate only determine how many clients are active at
    /// a time in the log; a replay does not use them.
    pub const fn log_normal(median: f64, sigma: f64) -> Self {
        Self {
            requests: Distribution::LogNormal {
                median,
                sigma,
                max: 500.0,
            },
            pause_s: Distribution::LogNormal {
                median: 1.0,
                sigma: 1.2,
                max: 13.0,
            },
            per_client: 2.0,
            requests_per_s: 50.0,
        }
    }
}

impl ConnectionSpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        self.requests.check("connections.requests")?;
        self.pause_s.check("connections.pause_s")?;
        let per_client = self.per_client;
        let ok = per_client.is_finite() && per_client >= 1.0;
        SpecError::unless(
            ok,
            || "connections.per_client".into(),
            per_client,
            "a number of at least 1",
        )?;
        let rate = self.requests_per_s;
        let ok = rate.is_finite() && rate > 0.0;
        SpecError::unless(
            ok,
            || "connections.requests_per_s".into(),
            rate,
            "a number above 0",
        )
    }
}

/// Time and client of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    /// Microseconds since the start of the log.
    pub time_us: u64,
    pub client: u32,
}

/// Returns the slots of `count` requests, in order of time.
pub(super) fn slots(spec: &ConnectionSpec, count: u32, random: &mut Pcg64) -> Vec<Slot> {
    let lengths = lengths(spec, count, random);
    let end_us = (f64::from(count) / spec.requests_per_s * 1e6) as u64;
    let mut starts: Vec<u64> = lengths
        .iter()
        .map(|_| random.random_range(0..=end_us))
        .collect();
    starts.sort_unstable();

    let returning = 1.0 - 1.0 / spec.per_client;
    let mut idle = BinaryHeap::new();
    let mut clients = 0;
    let mut slots = Vec::with_capacity(count as usize);
    for (start_us, length) in starts.into_iter().zip(lengths) {
        let client = match idle.peek() {
            Some(&Reverse((since_us, client)))
                if since_us + SILENCE_US <= start_us && random.random_bool(returning) =>
            {
                idle.pop();
                client
            }
            _ => {
                clients += 1;
                clients - 1
            }
        };
        let mut time_us = start_us;
        for request in 0..length {
            if request > 0 {
                let pause_s = spec.pause_s.quantile(random.random());
                time_us += ((pause_s * 1e6) as u64).min(LONGEST_PAUSE_US);
            }
            slots.push(Slot { time_us, client });
        }
        idle.push(Reverse((time_us, client)));
    }
    slots.sort_unstable();
    slots
}

/// Returns numbers of requests of connections, which add up to `count`.
fn lengths(spec: &ConnectionSpec, count: u32, random: &mut Pcg64) -> Vec<u32> {
    let mut lengths = Vec::new();
    let mut left = count;
    while left > 0 {
        let length = libm::round(spec.requests.quantile(random.random())) as u32;
        let length = length.clamp(1, left);
        lengths.push(length);
        left -= length;
    }
    lengths
}
