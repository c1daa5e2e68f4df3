//! Tests all policies against simple models and against the optimum.

mod examples;
mod models;
mod optimum;

use crate::{AdmissionConfig, Hits, Reference, ReplacementConfig, Simulation};
use proptest::prelude::*;

/// Replays `string` through one cache and checks the cache after every reference.
fn replay(
    string: &[Reference],
    slots: u32,
    replacement: ReplacementConfig,
    admission: AdmissionConfig,
) -> (Simulation, Vec<bool>) {
    let blocks = string.iter().map(|r| r.block as usize + 1).max();
    let mut simulation = Simulation::new(slots, blocks.unwrap_or(0), replacement, admission);
    let hits = string.iter().map(|&reference| {
        let hit = simulation.reference(reference);
        simulation.check();
        hit
    });
    let hits = hits.collect();
    (simulation, hits)
}

fn hits(string: &[Reference], slots: u32, replacement: ReplacementConfig) -> Hits {
    replay(string, slots, replacement, AdmissionConfig::All)
        .0
        .hits()
}

/// Returns references to blocks of 100 bytes.
fn equal(blocks: impl IntoIterator<Item = u32>) -> Vec<Reference> {
    let reference = |block| Reference { block, bytes: 100 };
    blocks.into_iter().map(reference).collect()
}

/// Generates reference strings in which a few blocks are popular; a block's bytes may vary.
fn strings() -> impl Strategy<Value = Vec<Reference>> {
    let block = prop_oneof![3 => 0u32..5, 2 => 0u32..20];
    let bytes = prop_oneof![Just(4096), 1u32..4096];
    let reference = (block, bytes).prop_map(|(block, bytes)| Reference { block, bytes });
    prop::collection::vec(reference, 1..150)
}

proptest! {
    /// Inclusion (Mattson 1970): a larger LRU cache holds everything that a smaller one holds.
    #[test]
    fn lru_obeys_inclusion_and_agrees_with_stack_distances(string in strings()) {
        let mut stack = crate::StackDistance::default();
        let distances: Vec<_> = string.iter().map(|r| stack.reference(r.block)).collect();
        for slots in 0..22 {
            let (_, hits) = replay(&string, slots, ReplacementConfig::Lru, AdmissionConfig::All);
            for (hit, distance) in hits.iter().zip(&distances) {
                prop_assert_eq!(*hit, distance.is_some_and(|d| d < slots));
            }
        }
    }

    #[test]
    fn a_cache_that_holds_everything_misses_only_first_references(string in strings()) {
        let mut seen = std::collections::BTreeSet::new();
        let again = string.iter().filter(|r| !seen.insert(r.block)).count() as u64;
        for policy in ReplacementConfig::ALL {
            prop_assert_eq!(hits(&string, 20, policy).hits, again);
        }
    }

    #[test]
    fn a_second_request_is_admitted_while_the_first_is_remembered(string in strings(), slots in 1u32..8) {
        let (cache, hits) = replay(&string, slots, ReplacementConfig::Lru, AdmissionConfig::SECOND_REQUEST);
        for (i, hit) in hits.iter().enumerate() {
            let before = string[..i].iter().filter(|r| r.block == string[i].block).count();
            prop_assert!(!hit || before >= 2, "a hit needs two requests before it");
        }
        cache.check();
    }
}
