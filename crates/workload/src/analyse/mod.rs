//! Statistics of a log: for `baton trace`, and for comparing a generated log with its model.

mod blocks;
mod curves;
mod lifetimes;
mod locality;
mod popularity;
mod sizes;

pub use blocks::{BlockString, Blocks, BlocksError, Sample};
pub use curves::{Policy, hit_bytes, lru_hit_bytes, min_hit_bytes, most_hit_bytes};
pub use lifetimes::{Connections, LifetimePoint, Lifetimes, packets_sent};
pub(crate) use locality::{BLOCK_BYTES, byte_hits};
pub use locality::{CachePoint, FilePoint, Locality};
pub(crate) use popularity::zipf_exponent;
pub use popularity::{Popularity, TopShare};
pub use sizes::{HistogramBucket, Percentile, Sizes};

use crate::log::{Format, Log, Method, Request, Skipped};
use crate::session::{SessionRule, Sessions};
use serde::Serialize;
use std::collections::BTreeMap;

/// All statistics that `baton trace` prints about a log.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// Format as which the log was read.
    pub format: Format,
    /// Totals.
    pub totals: Totals,
    /// Reasons to doubt these statistics, in sentences.
    pub warnings: Vec<String>,
    /// Lines that could not be parsed.
    pub skipped: Skipped,
    /// Requests by status, in ascending order; status 0 means that the log has none.
    pub statuses: Vec<StatusCount>,
    /// Requests by method.
    pub methods: Vec<MethodCount>,
    /// Distribution of requests over files.
    pub popularity: Popularity,
    /// Sizes of responses and files; absent if the log has no sizes.
    pub sizes: Option<SizePair>,
    /// Hits of LRU caches.
    pub locality: Locality,
    /// Grouping of requests into connections.
    pub connections: Connections,
    /// Distribution of packets and bytes over connections; absent if the log has no sizes.
    pub lifetimes: Option<Lifetimes>,
}

/// Totals of a log.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Totals {
    /// Parsed requests.
    pub requests: u64,
    /// Distinct clients.
    pub clients: u64,
    /// Distinct URLs.
    pub urls: u64,
    /// Content bytes of all responses.
    pub content_bytes: u64,
    /// Sum over all files of the largest content seen.
    pub footprint_bytes: u64,
    /// Requests whose size was logged as `-`.
    pub dashes: u64,
    /// Bytes logged for responses without a body (to HEAD, 304, 204, 1xx); they count as 0.
    pub bodiless_bytes: u64,
    /// Requests in lines to which syslog, a container runtime or a log service has added text.
    pub unwrapped: u64,
    /// Requests whose client is the first address of X-Forwarded-For.
    pub forwarded: u64,
    /// Time of the first request, microseconds since 1970.
    pub first_us: u64,
    /// Time of the last request, microseconds since 1970.
    pub last_us: u64,
    /// Largest number of requests within a second of the log's clock; 0 if all requests have the same time.
    pub busiest_second: u64,
    /// Whether the lines were out of order.
    pub resorted: bool,
}

/// Returns the largest number of requests within a second of the clock, or 0 if all have the same time.
fn busiest_second(requests: &[Request]) -> u64 {
    let second = |request: &Request| request.time_us / 1_000_000;
    let is_timed = requests.first().map(second) != requests.last().map(second);
    let seconds = requests.chunk_by(|one, next| second(one) == second(next));
    let most = seconds.map(|requests| requests.len() as u64).max();
    most.filter(|_| is_timed).unwrap_or(0)
}

impl Totals {
    fn of(log: &Log) -> Self {
        let (first_us, last_us) = log.time_range_us().unwrap_or_default();
        Self {
            requests: log.requests.len() as u64,
            clients: log.clients.len() as u64,
            urls: log.urls.len() as u64,
            content_bytes: log.content_bytes(),
            footprint_bytes: log.files.footprint(),
            dashes: log.dashes,
            bodiless_bytes: log.bodiless_bytes,
            unwrapped: log.unwrapped,
            forwarded: log.forwarded,
            first_us,
            last_us,
            busiest_second: busiest_second(&log.requests),
            resorted: log.resorted,
        }
    }

    /// Returns the mean content bytes of a response.
    pub fn mean_bytes(&self) -> f64 {
        ratio(self.content_bytes, self.requests)
    }

    /// Returns the time from the first to the last request in seconds.
    pub fn duration_s(&self) -> f64 {
        (self.last_us - self.first_us) as f64 / 1e6
    }

    /// Returns the mean number of requests per second over that time.
    pub fn requests_per_s(&self) -> f64 {
        let duration_s = self.duration_s();
        if duration_s > 0.0 {
            self.requests as f64 / duration_s
        } else {
            0.0
        }
    }
}

/// Number of requests with a status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct StatusCount {
    /// HTTP status.
    pub status: u16,
    /// Requests.
    pub requests: u64,
}

/// Number of requests with a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MethodCount {
    /// HTTP method.
    pub method: Method,
    /// Requests.
    pub requests: u64,
}

/// Sizes of responses and of files.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SizePair {
    /// Content bytes per response, responses without content included.
    pub responses: Sizes,
    /// Bytes per file.
    pub files: Sizes,
}

impl Analysis {
    /// Analyses `log`; `rule` determines which requests share a connection.
    pub fn of(log: &Log, rule: SessionRule) -> Self {
        let sessions = Sessions::new(&log.requests, rule);
        let sizes = log.has_sizes.then(|| SizePair {
            responses: Sizes::of(log.requests.iter().map(|r| r.bytes).collect()),
            files: Sizes::of(log.files.sizes().to_vec()),
        });
        let statuses = count_by(log.requests.iter().map(|r| r.status));
        let methods = count_by(log.requests.iter().map(|r| r.method));
        Self {
            format: log.format,
            totals: Totals::of(log),
            warnings: log.warnings(),
            skipped: log.skipped.clone(),
            statuses: statuses
                .map(|(status, requests)| StatusCount { status, requests })
                .collect(),
            methods: methods
                .map(|(method, requests)| MethodCount { method, requests })
                .collect(),
            popularity: Popularity::of(log),
            sizes,
            locality: Locality::of(log),
            connections: Connections::of(&sessions, rule),
            lifetimes: log.has_sizes.then(|| Lifetimes::of(log, &sessions)),
        }
    }
}

fn count_by<K: Ord>(keys: impl Iterator<Item = K>) -> impl Iterator<Item = (K, u64)> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_insert(0) += 1;
    }
    counts.into_iter()
}

/// Returns `part / whole`, or 0 if `whole` is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests;
