//! Random inputs go through every target, which are so the random tests of what they drive.

use baton_fuzzing::TARGETS;
use baton_testkit::{Random, for_each_seed};

/// Inputs of each target, and the longest, bytes.
const INPUTS: u64 = 2000;
const MOST_BYTES: u64 = 16_000;

#[test]
fn random_inputs_pass() {
    for (name, target) in TARGETS {
        println!("{name}");
        for_each_seed(INPUTS, |seed| {
            let mut random = Random::new(seed);
            let len = random.below(MOST_BYTES);
            let input: Vec<u8> = (0..len).map(|_| random.draw() as u8).collect();
            target(&input);
        });
    }
}
