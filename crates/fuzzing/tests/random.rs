//! Passes random inputs to every target, which makes the targets random tests of the code that they use.

use baton_fuzzing::TARGETS;
use baton_testkit::{Random, for_each_seed};

/// Number of inputs for each target.
const INPUTS: u64 = 2000;
/// Maximum length of an input.
const MOST_BYTES: u64 = 16_000;

#[test]
fn random_inputs_pass() {
    // `crates/host/tests/cluster.rs` runs clusters for many seeds.
    for (name, target) in TARGETS.iter().filter(|(name, _)| *name != "cluster") {
        println!("{name}");
        for_each_seed(INPUTS, |seed| {
            let mut random = Random::new(seed);
            let len = random.below(MOST_BYTES);
            let input: Vec<u8> = (0..len).map(|_| random.draw() as u8).collect();
            target(&input);
        });
    }
}
