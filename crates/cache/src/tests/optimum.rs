//! Tests the optimum against Belady's own rule and against exhaustive search.

use super::*;
use crate::ByteBound;

/// Belady's MIN with bypass: evicts the block, of the cached ones and the new one, whose next use is the latest.
fn belady(blocks: &[u32], slots: usize) -> u64 {
    let mut cached: Vec<u32> = Vec::new();
    let mut hits = 0;
    for (now, block) in blocks.iter().enumerate() {
        if cached.contains(block) {
            hits += 1;
        } else {
            cached.push(*block);
        }
        if cached.len() > slots {
            let next = |block: &u32| blocks[now + 1..].iter().position(|b| b == block);
            let last = cached.iter().enumerate();
            let last = last.max_by_key(|(_, block)| next(block).unwrap_or(usize::MAX));
            let (last, _) = last.expect("there is one");
            cached.remove(last);
        }
    }
    hits
}

/// Returns the maximum number of bytes that can be hit, by trying every choice. Exponential.
fn most_bytes(string: &[Reference], slots: usize, cached: &mut Vec<u32>) -> u64 {
    let Some((first, rest)) = string.split_first() else {
        return 0;
    };
    if cached.contains(&first.block) {
        return u64::from(first.bytes) + most_bytes(rest, slots, cached);
    }
    // Bypass the cache, take an empty slot, or take that of another block.
    let mut best = most_bytes(rest, slots, &mut cached.clone());
    if cached.len() < slots {
        cached.push(first.block);
        best = best.max(most_bytes(rest, slots, &mut cached.clone()));
    } else {
        for i in 0..slots {
            let mut other = cached.clone();
            other[i] = first.block;
            best = best.max(most_bytes(rest, slots, &mut other));
        }
    }
    best
}

#[test]
fn the_optimum_of_a_known_string() {
    // Mattson et al. give a miss rate of 7 in 12 for this string, with three slots and every block admitted. No block is worth bypassing.
    let string = equal([1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5]);
    assert_eq!(ByteBound::new(&string).hit_bytes(3), 500);
    // A loop: all but one of the blocks stay.
    let string = equal((0..10).flat_map(|_| 0..11));
    assert_eq!(ByteBound::new(&string).hit_bytes(10), 9 * 10 * 100);
}

proptest! {
    #[test]
    fn the_bound_of_equal_blocks_is_beladys_min(string in strings(), slots in 0u32..12) {
        let blocks: Vec<u32> = string.iter().map(|r| r.block).collect();
        let bound = ByteBound::new(&equal(blocks.iter().copied()));
        let wanted = 100 * belady(&blocks, slots as usize);
        prop_assert_eq!(bound.hit_bytes(slots), wanted);
        prop_assert_eq!(bound.hits_of_optimum(slots), wanted);
    }

    #[test]
    fn no_policy_beats_the_bound(string in strings(), slots in 0u32..12) {
        let bound = ByteBound::new(&string);
        let most = bound.hit_bytes(slots);
        prop_assert!(bound.hits_of_optimum(slots) <= most);
        let admissions = [AdmissionConfig::All, AdmissionConfig::SECOND_REQUEST, AdmissionConfig::TINY_LFU];
        for replacement in ReplacementConfig::ALL {
            for admission in admissions {
                let got = replay(&string, slots, replacement, admission).0.hits().bytes;
                prop_assert!(got <= most, "{:?}, {:?}: {} of {}", replacement, admission, got, most);
            }
        }
    }

    #[test]
    fn the_best_choice_of_all_is_within_the_bounds(
        string in prop::collection::vec((0u32..5, 1u32..50), 1..12),
        slots in 0usize..4,
    ) {
        let string: Vec<Reference> =
            string.into_iter().map(|(block, bytes)| Reference { block, bytes }).collect();
        let bound = ByteBound::new(&string);
        let best = most_bytes(&string, slots, &mut Vec::new());
        prop_assert!(best <= bound.hit_bytes(slots as u32));
        prop_assert!(best >= bound.hits_of_optimum(slots as u32));
    }

    #[test]
    fn the_bound_grows_with_the_cache(string in strings()) {
        let bound = ByteBound::new(&string);
        let bounds: Vec<u64> = (0..22).map(|slots| bound.hit_bytes(slots)).collect();
        prop_assert!(bounds.is_sorted());
    }
}
