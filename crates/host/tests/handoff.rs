//! Every byte arrives, once and in order, whatever the network does and whoever owns the connections at whatever moment.

mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use world::World;

/// Seeds to run: `BATON_SEED=n` runs one, `BATON_SEEDS=n` that many.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    match number("BATON_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("BATON_SEEDS").unwrap_or(3000),
    }
}

#[test]
fn every_byte_arrives_whoever_owns_the_connection() {
    let (mut accepted, mut refused, mut restored, mut forwarded) = (0, 0, 0, 0);
    for seed in seeds() {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut world = World::new(seed);
            world.run();
            world.kernel.stats().clone()
        }));
        match outcome {
            Ok(stats) => {
                accepted += stats.handoffs_accepted;
                refused += stats.handoffs_refused;
                restored += stats.restored;
                forwarded += stats.forwarded;
            }
            Err(panic) => {
                eprintln!("replay with: BATON_SEED={seed} cargo test -p baton-host --test handoff");
                resume_unwind(panic);
            }
        }
    }
    if seeds().end - seeds().start > 500 {
        let counts = [accepted, refused, restored, forwarded];
        assert!(
            counts.iter().all(|&count| count > 100),
            "the runs reach all of it: {counts:?}"
        );
    }
}
