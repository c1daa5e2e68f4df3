//! Every byte arrives, once and in order, whatever the network does and whoever owns the connections at whatever moment.

use crate::world::World;
use baton_host::Stats;
use baton_testkit::for_each_seed;

#[test]
fn every_byte_arrives_whoever_owns_the_connection() {
    let stats = for_each_seed(3000, |seed| {
        let mut world = World::new(seed);
        world.run();
        world.kernel.stats().clone()
    });
    if stats.len() > 500 {
        let sum = |count: fn(&Stats) -> u64| stats.iter().map(count).sum::<u64>();
        let counts = [
            sum(|stats| stats.handoffs_accepted),
            sum(|stats| stats.handoffs_refused),
            sum(|stats| stats.restored),
            sum(|stats| stats.forwarded),
        ];
        assert!(
            counts.iter().all(|&count| count > 100),
            "the runs reach all of it: {counts:?}"
        );
    }
}
