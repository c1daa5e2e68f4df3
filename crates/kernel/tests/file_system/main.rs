//! Sockets of a stack and of an adapter send files that change, with less memory than they could use. Each page that arrives is from a
//! revision that was current at some time since its download began. Pages stay in memory while anything refers to them, including an adapter
//! that answers at random, and no socket gets stuck.

mod adapter;
mod files;
mod world;

use adapter::Seen;
use baton_testkit::{Random, for_each_seed};
use world::World;

#[test]
fn changing_files_arrive_whole_with_little_memory() {
    let runs = for_each_seed(200, |seed| {
        let mut random = Random::new(seed);
        let on_stack = 2 + random.below(6) as u32;
        World::new(random, on_stack).run().0
    });
    if runs.len() > 100 {
        let evictions: u64 = runs.iter().map(|stats| stats.evictions).sum();
        let waits: u64 = runs.iter().map(|stats| stats.no_page + stats.no_read).sum();
        assert!(
            evictions > 10_000 && waits > 1_000,
            "{evictions} evictions, {waits} waits"
        );
    }
}

#[test]
fn pages_stay_while_an_adapter_may_fetch_them() {
    let runs = for_each_seed(200, |seed| World::new(Random::new(seed), 0).run().1);
    if runs.len() > 100 {
        let sum = |of: fn(&Seen) -> u32| runs.iter().map(of).sum::<u32>();
        let seen = [
            sum(|seen| seen.refused),
            sum(|seen| seen.out_of_order),
            sum(|seen| seen.inserts),
            sum(|seen| seen.refused_before_insert),
            sum(|seen| seen.lost),
        ];
        assert!(seen.iter().all(|&times| times > 100), "{seen:?}");
    }
}
