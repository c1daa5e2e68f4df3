//! Reference strings with known results.

use super::*;
use ReplacementConfig::{Fifo, Gdsf, Lfu, Lru, S3Fifo, Sieve, WTinyLfu};

/// "The string 1 2 3 4 1 2 5 1 2 3 4 5" of Belady, Nelson and Shedler, "An anomaly in space-time characteristics of certain
/// programs running in a paging machine", Communications of the ACM 1969.
const ANOMALY: [u32; 12] = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5];

#[test]
fn fifo_has_beladys_anomaly_and_lru_does_not() {
    let string = equal(ANOMALY);
    assert_eq!(
        (hits(&string, 3, Fifo).hits, hits(&string, 4, Fifo).hits),
        (3, 2)
    );
    assert_eq!(
        (hits(&string, 3, Lru).hits, hits(&string, 4, Lru).hits),
        (2, 4)
    );
}

#[test]
fn a_loop_larger_than_the_cache_defeats_lru() {
    let string = equal((0..10).flat_map(|_| 0..11));
    assert_eq!(hits(&string, 10, Lru).hits, 0);
    assert_eq!(hits(&string, 10, Fifo).hits, 0);
    assert!(hits(&string, 10, WTinyLfu).hits >= 70);
}

/// Ten popular blocks, requested three times each before and once after twenty blocks that are requested once.
fn scan() -> Vec<Reference> {
    let popular = (0..3).flat_map(|_| 0..10);
    equal(popular.chain(100..120).chain(0..10))
}

#[test]
fn a_scan_pollutes_lru_but_not_policies_that_count_or_test_blocks() {
    assert_eq!(hits(&scan(), 12, Lru).hits, 20);
    assert_eq!(hits(&scan(), 12, Fifo).hits, 20);
    for policy in [Lfu, Sieve, S3Fifo, WTinyLfu] {
        let got = hits(&scan(), 12, policy).hits;
        assert!(got >= 28, "{policy:?} has {got} hits");
    }
    // Blocks age with every victim, so that a long scan prevails in the end.
    assert_eq!(hits(&scan(), 12, Gdsf).hits, 20);
}

#[test]
fn admission_keeps_a_scan_out_of_lru() {
    let with = |admission| replay(&scan(), 12, Lru, admission).0.hits().hits;
    assert_eq!(with(AdmissionConfig::TINY_LFU), 30);
    // A block enters at its second request.
    assert_eq!(with(AdmissionConfig::SECOND_REQUEST), 20);
}

#[test]
fn the_hand_of_sieve_continues_where_it_stopped() {
    // A, B and C are cached, A and B marked. D evicts C and the hand has passed C, so that E evicts A, whose mark is cleared.
    let mut sieve = Sieve.build(3);
    for slot in 0..3 {
        sieve.inserted(slot, u64::from(slot), 1);
    }
    sieve.used(0);
    sieve.used(1);
    assert_eq!(sieve.victim(), Some(2));
    sieve.inserted(2, 3, 1);
    // The hand was at the newest block: it starts again at the oldest, whose mark has been cleared.
    assert_eq!(sieve.victim(), Some(0));
}

#[test]
fn s3_fifo_remembers_evicted_blocks() {
    let mut policy = S3Fifo.build(10);
    for slot in 0..10 {
        policy.inserted(slot, u64::from(slot), 1);
    }
    assert_eq!(policy.victim(), Some(0));
    // Key 0 is a ghost: it enters the main queue, which is not examined while the small one is long enough.
    policy.inserted(0, 0, 1);
    for slot in 1..10 {
        assert_eq!(policy.victim(), Some(slot));
    }
    assert_eq!(policy.victim(), Some(0));
    assert_eq!(policy.victim(), None);
}

#[test]
fn gdsf_weighs_content_bytes() {
    let mut policy = Gdsf.build(3);
    policy.inserted(0, 0, 1000);
    policy.inserted(1, 1, 4096);
    policy.inserted(2, 2, 1500);
    policy.used(0);
    // 2000, 4096 and 1500.
    assert_eq!(policy.victim(), Some(2));
    // Age counts: 1500 + 600 is more than 2000.
    policy.inserted(2, 3, 600);
    assert_eq!(policy.victim(), Some(0));
}

#[test]
fn a_policy_without_slots_has_no_victim() {
    for policy in ReplacementConfig::ALL {
        assert_eq!(policy.build(0).victim(), None);
        assert_eq!(hits(&equal(ANOMALY), 0, policy), Hits::default());
    }
}

#[test]
fn names_match_those_in_configurations() {
    #[derive(serde::Deserialize)]
    struct Cache {
        replacement: ReplacementConfig,
        admission: AdmissionConfig,
    }
    let admissions = [
        AdmissionConfig::All,
        AdmissionConfig::SECOND_REQUEST,
        AdmissionConfig::TINY_LFU,
    ];
    for (policy, admission) in ReplacementConfig::ALL
        .into_iter()
        .zip(admissions.into_iter().cycle())
    {
        let (name, kind) = (policy.name(), admission.name());
        let text = format!("replacement = \"{name}\"\nadmission = {{ kind = \"{kind}\" }}");
        let cache: Cache = toml::from_str(&text).expect(name);
        assert_eq!((cache.replacement, cache.admission), (policy, admission));
        assert_eq!(ReplacementConfig::from_name(name), Some(policy));
        assert_eq!(admission.validate(), Ok(()));
    }
    assert_eq!(ReplacementConfig::from_name("clock"), None);
}

#[test]
fn impossible_admissions_are_refused() {
    let none = AdmissionConfig::SecondRequest {
        remembered_percent: 0,
    };
    let invalid = none.validate().expect_err("nothing would ever be admitted");
    assert_eq!(
        invalid.to_string(),
        "remembered_percent: found 0; expected 1 to 10000"
    );
    assert!(AdmissionConfig::TinyLfu { requests: 0 }.validate().is_err());
}
