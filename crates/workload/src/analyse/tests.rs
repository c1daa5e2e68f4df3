//! Tests of each statistic on small examples, and of locality against a plain LRU cache.

use super::*;
use crate::log::ReadOptions;
use baton_cache::{AdmissionConfig, ByteBound, ReplacementConfig};
use proptest::prelude::*;
use std::fmt::Write;
use std::path::Path;

/// Creates a log from `(time, client, file, bytes)`.
fn log(requests: &[(u64, u32, u32, u64)]) -> Log {
    let mut text = String::new();
    for (time_s, client, file, bytes) in requests {
        let (minute, second) = (time_s / 60, time_s % 60);
        writeln!(
            text,
            "{client},30/Apr/1998,22:{minute:02}:{second:02},/{file},200,{bytes}"
        )
        .unwrap();
    }
    Log::from_reader(Path::new("test"), text.as_bytes(), &ReadOptions::default()).unwrap()
}

fn analyse(requests: &[(u64, u32, u32, u64)]) -> Analysis {
    Analysis::of(&log(requests), SessionRule::PAPERS)
}

#[test]
fn totals_and_popularity() {
    let a = analyse(&[
        (0, 1, 7, 100),
        (1, 1, 7, 100),
        (2, 2, 8, 50),
        (60, 1, 7, 40),
    ]);
    assert_eq!(
        (a.totals.requests, a.totals.clients, a.totals.urls),
        (4, 2, 2)
    );
    assert_eq!(
        (a.totals.content_bytes, a.totals.footprint_bytes),
        (290, 150)
    );
    assert_eq!((a.totals.duration_s(), a.totals.mean_bytes()), (60.0, 72.5));
    assert_eq!(
        a.popularity.top[0],
        TopShare {
            files: 1,
            requests: 0.75,
            bytes: 240.0 / 290.0
        }
    );
    assert_eq!(
        a.popularity.top.last(),
        Some(&TopShare {
            files: 2,
            requests: 1.0,
            bytes: 1.0
        })
    );
    assert_eq!(a.popularity.once, 1);
    assert_eq!(
        a.statuses,
        [StatusCount {
            status: 200,
            requests: 4
        }]
    );
    assert_eq!(a.connections.requests.count, 3);
}

#[test]
fn zipf_exponent_of_exact_laws() {
    for exponent in [0.6, 0.8, 1.0, 1.3] {
        let counts: Vec<u64> = (1..5000)
            .map(|k| (1e9 * f64::powf(f64::from(k), -exponent)) as u64)
            .collect();
        let got = popularity::zipf_exponent(&counts);
        assert!((got - exponent).abs() < 0.03, "{got} for {exponent}");
    }
    assert_eq!(popularity::zipf_exponent(&[5]), 0.0);
    assert_eq!(popularity::zipf_exponent(&[]), 0.0);
}

#[test]
fn percentiles_and_histogram() {
    let sizes = Sizes::of((1..=100).rev().collect());
    assert_eq!((sizes.min, sizes.max, sizes.mean), (1, 100, 50.5));
    assert_eq!(
        (
            sizes.percentile(50),
            sizes.percentile(99),
            sizes.percentile(25)
        ),
        (Some(50), Some(99), Some(25))
    );
    let bucket = |from, to, count| HistogramBucket { from, to, count };
    assert_eq!(
        Sizes::of(vec![0, 1, 2, 3, 8]).histogram,
        [
            bucket(0, 0, 1),
            bucket(1, 1, 1),
            bucket(2, 3, 2),
            bucket(4, 7, 0),
            bucket(8, 15, 1)
        ]
    );
    assert_eq!(
        Sizes::of(vec![u64::MAX]).histogram,
        [bucket(1 << 63, u64::MAX, 1)]
    );
    assert!(Sizes::of(Vec::new()).histogram.is_empty());
}

#[test]
fn packets_of_a_connection() {
    // SYN+ACK and FIN; a header alone; header and 1198 bytes fill one segment, one more byte needs a second segment.
    assert_eq!(packets_sent([0].into_iter()), 3);
    assert_eq!(packets_sent([1198, 1199].into_iter()), 2 + 1 + 2);
}

#[test]
fn lifetimes_rank_connections_by_packets() {
    // Ten connections: nine send 3 packets, one sends 2 + 73.
    let mut requests: Vec<_> = (0..9).map(|client| (0, client, client, 100)).collect();
    requests.push((0, 9, 9, 105_000));
    let a = analyse(&requests);
    let lifetimes = a.lifetimes.expect("has sizes");
    assert_eq!(lifetimes.packets.max, 2 + 73);
    assert_eq!(lifetimes.top_packets(10), Some(75.0 / 102.0));
    assert!((lifetimes.bottom_half_packets() - 15.0 / 102.0).abs() < 1e-12);
    assert_eq!(
        lifetimes.curve.last().map(|p| (p.packets, p.bytes)),
        Some((1.0, 1.0))
    );
}

#[test]
fn a_log_without_sizes_has_popularity_and_reuse_only() {
    let line = "1+1: Tue Aug 22 00:00:05 1995 (/a): Sent text: GET /a HTTP/1.0\n";
    let log = Log::from_reader(
        Path::new("test"),
        line.repeat(4).as_bytes(),
        &ReadOptions::default(),
    )
    .unwrap();
    let a = Analysis::of(&log, SessionRule::PAPERS);
    assert!(a.sizes.is_none() && a.lifetimes.is_none() && a.locality.caches.is_empty());
    assert_eq!(
        a.locality.files[0],
        FilePoint {
            files: 10,
            request_hits: 0.75
        }
    );
}

/// Returns the byte hits of an LRU cache of 4 KB blocks that is kept as a list.
fn naive_byte_hits(log: &Log, cache_bytes: u64) -> f64 {
    let mut cache: Vec<(u32, u64)> = Vec::new();
    let (mut hits, mut total) = (0, 0);
    for request in &log.requests {
        for block in 0..request.bytes.div_ceil(locality::BLOCK_BYTES) {
            let bytes = (request.bytes - block * locality::BLOCK_BYTES).min(locality::BLOCK_BYTES);
            total += bytes;
            if let Some(at) = cache.iter().position(|&b| b == (request.file, block)) {
                cache.remove(at);
                hits += bytes;
            }
            cache.insert(0, (request.file, block));
            cache.truncate((cache_bytes / locality::BLOCK_BYTES) as usize);
        }
    }
    ratio(hits, total)
}

proptest! {
    #[test]
    fn byte_hits_agree_with_a_plain_cache(
        requests in prop::collection::vec((0u64..3000, 0u32..4, 0u32..30, 0u64..40_000), 1..150)
    ) {
        let log = log(&requests);
        let a = Analysis::of(&log, SessionRule::PAPERS);
        for point in a.locality.caches.iter().take(5) {
            prop_assert_eq!(point.byte_hits, naive_byte_hits(&log, point.cache_bytes));
        }
    }
}

/// Responses of up to 48 MB to few requests: the sample of their blocks gives the shares of all blocks.
#[test]
fn a_sample_of_the_blocks_of_large_responses_gives_their_shares() {
    let requests: Vec<_> = (0..60)
        .map(|i| (u64::from(i), i % 9, i * i % 7, u64::from(i % 7 + 1) << 22))
        .collect();
    let mut requests: Vec<(u64, u32, u32, u64)> = requests;
    // Small files between the large ones.
    requests.extend((0..40).map(|i| (i, 9, 100 + i as u32 % 5, 9_000)));
    requests.sort_unstable();
    let log = log(&requests);
    let sessions = Sessions::new(&log.requests, SessionRule::PAPERS);
    let all = &BlockString::split(&log, &sessions, 1, 4096).unwrap()[0];
    assert!(all.references.len() > 1 << 17);
    for cache_bytes in [1 << 16, 1 << 20, 1 << 23, 1 << 25, 1 << 27] {
        let sample = Sample::of(&log, 4096, cache_bytes);
        assert!(sample != Sample::ALL);
        let some = &BlockString::sampled(&log, &sessions, 1, 4096, sample).unwrap()[0];
        assert!(some.references.len() <= 1 << 15);
        let share = |string: &BlockString, policy: Policy, step: u32| {
            let bound = ByteBound::new(&string.references);
            let slots = [(cache_bytes / 4096) as u32 / step];
            let hits = policy.hit_bytes(string, Some(&bound), &slots)[0];
            ratio(hits * u64::from(step), log.content_bytes())
        };
        let online = ReplacementConfig::ALL.map(|one| Policy::Online(one, AdmissionConfig::All));
        for policy in online.into_iter().chain([Policy::Min, Policy::Bound]) {
            let (exact, estimate) = (share(all, policy, 1), share(some, policy, sample.step()));
            // The sketch that counts frequencies differs with the size of the cache.
            let sketches = policy.name() == "w-tinylfu";
            let is_near = (exact - estimate).abs() < if sketches { 0.1 } else { 0.05 };
            assert!(
                is_near,
                "{} {cache_bytes}: {exact} {estimate}",
                policy.name()
            );
        }
    }
}

#[test]
fn a_log_of_small_responses_is_not_sampled() {
    let log = crate::Preset::Demo.spec().generate(5, 4000).unwrap();
    assert_eq!(Sample::of(&log, 4096, 1 << 16), Sample::ALL);
}

/// Runs every policy on a generated log, with one cache and with two.
#[test]
fn curves_of_policies_are_within_the_optimum() {
    let log = crate::Preset::Demo.spec().generate(5, 4000).unwrap();
    let sessions = Sessions::new(&log.requests, SessionRule::PAPERS);
    let slots = [16, 64, 256, 1024];
    for caches in [1, 2] {
        let strings = BlockString::split(&log, &sessions, caches, 4096).unwrap();
        assert_eq!(strings.len(), caches);
        let bytes: u64 = strings.iter().map(|string| string.bytes).sum();
        assert_eq!(bytes, log.content_bytes());
        for string in &strings {
            assert!(string.bytes > log.content_bytes() / 3, "split evenly");
            let bound = ByteBound::new(&string.references);
            let in_one_pass = lru_hit_bytes(string, &slots);
            for (&slots, lru) in slots.iter().zip(in_one_pass) {
                let most = most_hit_bytes(string, &bound, slots);
                let min = min_hit_bytes(string, &bound, slots);
                assert!(min <= most && most <= string.again_bytes);
                for policy in ReplacementConfig::ALL {
                    let hits = hit_bytes(string, slots, policy, AdmissionConfig::All);
                    assert!(hits <= most, "{policy:?} hits {hits} of {most}");
                    assert!(policy != ReplacementConfig::Lru || hits == lru);
                }
            }
        }
    }
}

#[test]
fn the_curve_of_one_cache_agrees_with_the_quick_table() {
    let log = crate::Preset::Demo.spec().generate(5, 4000).unwrap();
    let sessions = Sessions::new(&log.requests, SessionRule::PAPERS);
    let string = &BlockString::split(&log, &sessions, 1, 4096).unwrap()[0];
    for point in Locality::of(&log).caches {
        let slots = (point.cache_bytes / 4096) as u32;
        let hits = lru_hit_bytes(string, &[slots])[0];
        assert_eq!(point.byte_hits, ratio(hits, string.bytes));
    }
}

#[test]
fn impossible_block_sizes_are_refused() {
    assert_eq!(
        Blocks::new(&[1], 4000).unwrap_err(),
        BlocksError::BlockBytes(4000)
    );
    assert_eq!(
        Blocks::new(&[1], 256).unwrap_err(),
        BlocksError::BlockBytes(256)
    );
    let huge = Blocks::new(&[u64::MAX, u64::MAX], 4096).unwrap_err();
    assert!(matches!(huge, BlocksError::TooManyBlocks(_)), "{huge}");
    let blocks = Blocks::new(&[5000, 0, 4096], 4096).unwrap();
    assert_eq!(blocks.count(), 3);
    let of = |file, bytes| -> Vec<_> {
        let references = blocks.of_request(file, bytes);
        references.map(|r| (r.block, r.bytes)).collect()
    };
    assert_eq!(of(0, 5000), [(0, 4096), (1, 904)]);
    assert_eq!(of(0, 100), [(0, 100)]);
    assert_eq!((of(1, 0), of(2, 4096)), (vec![], vec![(2, 4096)]));
}
