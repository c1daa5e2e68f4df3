//! Load like that of SPECweb99: a file set that grows with the load, directories with Zipf popularity, partly dynamic content, and
//! throttled clients.
//!
//! This is not the SPEC benchmark and its results are not SPEC results. The properties of the load, with their sources:
//!
//! - Classes: under 1 KB 35 %, 1-10 KB 50 %, 10-100 KB 14 %, 100 KB-1 MB 1 % (SPECweb96 workload page; Ruan and Pai, USENIX 2006, section
//!   5, give the same for SPECweb99).
//! - Files: 9 per class, multiples of 102.4 B times 1, 10, 100, 1000; 36 files, 5 MB per directory (the same sources).
//! - Directories: Zipf, exponent 1 (Ruan and Pai).
//! - Dynamic content: 30 %: standard GET 12.45, GET by CGI 0.15, custom advertisement 12.60, POST 4.80 (handoff policies paper, section
//!   4.2; SPECweb99's white paper, 6.0).
//! - A dynamic page: the file and 300 bytes around it (run rules, 2.3.2: an HTML head, six lines about server and request, a foot; their
//!   length is an estimate).
//! - Throttle: 320 to 400 kb/s per client, which reads a segment at a time (handoff policies paper, section 4.2; white paper, 4.2).
//! - Popularity within a class: Zipf over 9, most popular file in the middle (*not verified*; gives the mean of 14 KB that Ruan and Pai
//!   state).
//! - Number of directories: 25 + 0.66 per client (*not verified*).
//! - Persistent connections: 70 % of requests, 5 to 15 requests each; the rest one request per connection (*not verified*; the handoff
//!   policies paper says "a fraction of all requests").
//! - Who closes first: the server closes a connection that is not persistent (RFC 1945, 1.3), the client closes a persistent one
//!   (*assumed*).
//!
//! The server models the cost of each kind of dynamic content. It learns only that a request is a POST: the body is part of the request's
//! length.

use crate::source::{Content, FileSet, RequestSpec, Throttle, Workload};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, weighted::WeightedAliasIndex};
use rand_pcg::Pcg64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Share of each class in all requests, percent.
const CLASS_PERCENT: [u32; 4] = [35, 50, 14, 1];
const FILES_PER_CLASS: usize = 9;
const FILES_PER_DIRECTORY: u32 = (CLASS_PERCENT.len() * FILES_PER_CLASS) as u32;
/// The files of a class by popularity, the most popular first, as multiples of the class's unit.
const BY_POPULARITY: [u32; FILES_PER_CLASS] = [5, 4, 6, 3, 7, 2, 8, 9, 1];
/// Dynamic content by kind, in hundredths of a per cent of all requests of the full mix.
const DYNAMIC: [(Content, u32); 4] = [
    (Content::Get, 1245),
    (Content::CgiGet, 15),
    (Content::AdRotation, 1260),
    (Content::Post, 480),
];
/// Bytes that a program adds around a file.
const PAGE_FRAME_BYTES: u64 = 300;
/// Number of requests on a persistent connection.
const PERSISTENT_REQUESTS: RangeInclusive<u32> = 5..=15;

/// The parameters of [`SpecWeb`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpecWebSpec {
    /// Concurrent clients ("simultaneous connections"): the file set grows with them.
    #[schemars(range(min = 1, max = Self::MOST_CLIENTS))]
    pub clients: u32,
    /// Percent of requests for dynamic content, 0 to 100.
    #[schemars(range(max = 100))]
    pub dynamic_percent: u32,
    /// Percent of requests on persistent connections, 0 to 100.
    #[schemars(range(max = 100))]
    pub persistent_percent: u32,
    /// Limits on each client's bit rate; `None` for infinite demand.
    pub throttle: Option<Throttle>,
}

impl SpecWebSpec {
    /// Maximum number of clients; the file set grows with them.
    pub const MOST_CLIENTS: u32 = 1_000_000;

    /// Returns the full mix for this many clients.
    pub fn full(clients: u32) -> Self {
        Self {
            clients,
            dynamic_percent: 30,
            persistent_percent: 70,
            throttle: Some(Throttle::default()),
        }
    }

    /// Returns a load with static content only.
    pub fn only_static(clients: u32) -> Self {
        Self {
            dynamic_percent: 0,
            ..Self::full(clients)
        }
    }

    /// Returns the number of directories.
    pub const fn directories(&self) -> u32 {
        25 + (self.clients as u64 * 66 / 100) as u32
    }
}

impl Default for SpecWebSpec {
    fn default() -> Self {
        Self::full(2048)
    }
}

/// SPECweb99-like load. The same parameters and seed give the same load.
#[derive(Clone, Debug)]
pub struct SpecWeb {
    spec: SpecWebSpec,
    files: FileSet,
    directory: WeightedAliasIndex<f64>,
    class: WeightedAliasIndex<u32>,
    rank_in_class: WeightedAliasIndex<f64>,
    dynamic: WeightedAliasIndex<u32>,
    /// Probability that a connection is persistent, in parts per million.
    persistent_ppm: u32,
    random: Pcg64,
}

impl SpecWeb {
    /// Creates the load.
    ///
    /// # Panics
    /// If a percentage is over 100.
    pub fn new(spec: SpecWebSpec, seed: u64) -> Self {
        assert!(
            spec.dynamic_percent <= 100 && spec.persistent_percent <= 100,
            "a percentage over 100"
        );
        let weights = "the weights are not empty and positive";
        Self {
            spec,
            files: file_set(spec.directories()),
            directory: WeightedAliasIndex::new(zipf(spec.directories())).expect(weights),
            class: WeightedAliasIndex::new(CLASS_PERCENT.to_vec()).expect(weights),
            rank_in_class: WeightedAliasIndex::new(zipf(FILES_PER_CLASS as u32)).expect(weights),
            dynamic: WeightedAliasIndex::new(DYNAMIC.map(|(_, weight)| weight).to_vec())
                .expect(weights),
            persistent_ppm: persistent_ppm(spec.persistent_percent),
            random: Pcg64::seed_from_u64(seed),
        }
    }

    fn request(&mut self) -> RequestSpec {
        let directory = self.directory.sample(&mut self.random) as u32;
        let class = self.class.sample(&mut self.random);
        let rank = self.rank_in_class.sample(&mut self.random);
        let file = directory * FILES_PER_DIRECTORY
            + (class * FILES_PER_CLASS) as u32
            + (BY_POPULARITY[rank] - 1);
        let bytes = self.files.size(file);
        if !self.random.random_ratio(self.spec.dynamic_percent, 100) {
            return RequestSpec::fixed(file, bytes);
        }
        let (content, _) = DYNAMIC[self.dynamic.sample(&mut self.random)];
        RequestSpec {
            content,
            ..RequestSpec::fixed(file, bytes + PAGE_FRAME_BYTES)
        }
    }
}

impl Workload for SpecWeb {
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>) {
        let persistent = self.random.random_ratio(self.persistent_ppm, 1_000_000);
        let requests = if persistent {
            self.random.random_range(PERSISTENT_REQUESTS)
        } else {
            1
        };
        script.clear();
        for _ in 0..requests {
            let request = self.request();
            script.push(RequestSpec {
                last: !persistent,
                ..request
            });
        }
    }

    fn files(&self) -> &FileSet {
        &self.files
    }

    fn requests_per_connection(&self) -> f64 {
        let persistent = f64::from(self.persistent_ppm) / 1e6;
        1.0 + persistent * (mean_persistent_requests() - 1) as f64
    }

    fn throttle(&self) -> Option<Throttle> {
        self.spec.throttle
    }
}

/// Returns Zipf weights with exponent 1.
fn zipf(count: u32) -> Vec<f64> {
    (1..=count).map(|rank| 1.0 / f64::from(rank)).collect()
}

/// Returns the files. The file with number `(directory * 4 + class) * 9 + i` has `i + 1` units of its class.
fn file_set(directories: u32) -> FileSet {
    let units = [1u64, 10, 100, 1000];
    let one = units
        .into_iter()
        .flat_map(|unit| (1..=FILES_PER_CLASS as u64).map(move |n| n * unit * 1024 / 10));
    let one: Vec<u64> = one.collect();
    FileSet::new(one.repeat(directories as usize))
}

fn mean_persistent_requests() -> u64 {
    u64::from(PERSISTENT_REQUESTS.start() + PERSISTENT_REQUESTS.end()) / 2
}

/// Returns the share of connections that must be persistent so that this percentage of requests is on persistent connections.
fn persistent_ppm(percent_of_requests: u32) -> u32 {
    let mean = mean_persistent_requests();
    let (persistent, single) = (
        u64::from(percent_of_requests),
        u64::from(100 - percent_of_requests),
    );
    (persistent * 1_000_000 / (persistent + single * mean)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all requests of `connections` connections.
    fn sample(spec: SpecWebSpec, seed: u64, connections: usize) -> Vec<Vec<RequestSpec>> {
        let mut load = SpecWeb::new(spec, seed);
        let mut script = Vec::new();
        let mut next = || {
            load.next_connection(&mut script);
            script.clone()
        };
        (0..connections).map(|_| next()).collect()
    }

    fn share(requests: &[RequestSpec], which: impl Fn(&RequestSpec) -> bool) -> f64 {
        requests.iter().filter(|r| which(r)).count() as f64 / requests.len() as f64
    }

    #[test]
    fn the_file_set_is_that_of_the_description() {
        let spec = SpecWebSpec::full(2048);
        let files = file_set(spec.directories());
        assert_eq!(files.len(), 36 * spec.directories() as usize);
        assert_eq!(files.sizes()[..3], [102, 204, 307]);
        assert_eq!(files.sizes()[8], 921);
        assert_eq!(files.sizes()[27..36].first(), Some(&102_400));
        assert_eq!(files.sizes()[35], 921_600);
        let directory_mb = files.sizes()[..36].iter().sum::<u64>() as f64 / 1e6;
        assert!(
            (4.9..5.2).contains(&directory_mb),
            "{directory_mb} MB a directory"
        );
    }

    #[test]
    fn the_mix_is_that_of_the_description() {
        let requests = sample(SpecWebSpec::full(2048), 7, 100_000).concat();
        let class = |r: &RequestSpec| r.file % 36 / 9;
        for (number, percent) in (0..).zip(CLASS_PERCENT) {
            let got = share(&requests, |r| class(r) == number);
            assert!(
                (got - f64::from(percent) / 100.0).abs() < 0.005,
                "class {number}: {got}"
            );
        }
        for (content, share_of_10_000) in DYNAMIC {
            let got = share(&requests, |r| r.content == content);
            assert!(
                (got - f64::from(share_of_10_000) / 10_000.0).abs() < 0.002,
                "{content:?}: {got}"
            );
        }
        let mean = requests.iter().map(|r| r.bytes).sum::<u64>() as f64 / requests.len() as f64;
        assert!(
            (14_000.0..15_500.0).contains(&mean),
            "mean response {mean} bytes"
        );
        // Zipf with exponent 1 over 1376 directories: the first has 1 / H(1376) of the requests.
        let first = share(&requests, |r| r.file < 36);
        assert!(
            (first - 0.1279).abs() < 0.005,
            "{first} of the requests in the first directory"
        );
    }

    #[test]
    fn connections_are_persistent_for_the_share_asked_for() {
        let connections = sample(SpecWebSpec::full(2048), 7, 50_000);
        let requests: usize = connections.iter().map(Vec::len).sum();
        let persistent: usize = connections.iter().map(Vec::len).filter(|&n| n > 1).sum();
        let got = persistent as f64 / requests as f64;
        assert!(
            (got - 0.70).abs() < 0.01,
            "{got} of the requests on persistent connections"
        );
        assert!(
            connections
                .iter()
                .all(|c| c.len() == 1 || (5..=15).contains(&c.len()))
        );
        let server_closes = |c: &Vec<RequestSpec>| c.iter().any(|r| r.last);
        assert!(
            connections
                .iter()
                .all(|c| server_closes(c) == (c.len() == 1)),
            "the server closes connections that are not persistent"
        );
        let single = SpecWebSpec {
            persistent_percent: 0,
            ..SpecWebSpec::full(16)
        };
        assert!(sample(single, 1, 1000).iter().all(|c| c.len() == 1));
        let long = SpecWebSpec {
            persistent_percent: 100,
            ..SpecWebSpec::full(16)
        };
        assert!(sample(long, 1, 1000).iter().all(|c| c.len() >= 5));
    }

    #[test]
    fn a_static_mix_has_no_dynamic_requests() {
        assert!(
            sample(SpecWebSpec::only_static(64), 3, 2000)
                .concat()
                .iter()
                .all(|r| r.content == Content::Static)
        );
    }

    #[test]
    fn the_seed_determines_everything() {
        let spec = SpecWebSpec::full(256);
        assert_eq!(sample(spec, 1, 500), sample(spec, 1, 500));
        assert_ne!(sample(spec, 1, 500), sample(spec, 2, 500));
    }
}
