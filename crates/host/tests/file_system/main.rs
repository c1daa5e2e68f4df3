//! Sockets of a stack and of an adapter send files that change, from less memory than they would take: what arrives is, page by page, of
//! a revision that was current while it was asked for; pages are in memory as long as somebody refers to them; nobody is stuck.

#[path = "../kernel/cached/files.rs"]
mod files;
mod world;

use baton_testkit::{Random, for_each_seed};
use world::World;

#[test]
fn files_that_change_arrive_whole_from_little_memory() {
    let runs = for_each_seed(200, |seed| {
        let mut world = World::new(seed);
        world.run();
        world.stats()
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
