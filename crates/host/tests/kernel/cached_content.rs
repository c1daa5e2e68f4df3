//! Every byte of a file that a client receives is a byte of a revision that was current between request and delivery, and no 4 KB
//! block mixes revisions: whatever is cached where, is edited, evicted, lost, handed off or reset meanwhile.

use crate::cached::World;
use baton_host::{Bypass, NicCacheStats};
use baton_testkit::for_each_seed;
use std::collections::BTreeMap;

/// Seeds to run.
const SEEDS: u64 = if cfg!(debug_assertions) { 300 } else { 1200 };

/// How often each thing happened in all worlds.
#[derive(Debug, Default)]
struct Reached(BTreeMap<&'static str, u64>);

impl Reached {
    fn add(&mut self, what: &'static str, count: u64) {
        *self.0.entry(what).or_insert(0) += count;
    }

    fn host_caches(&mut self, stats: &NicCacheStats) {
        for (what, count) in [
            ("hits", stats.hits),
            ("inserts", stats.inserts),
            ("disjoint inserts", stats.disjoint_inserts),
            ("evictions", stats.evictions),
            ("stale blocks", stats.stale),
            ("grown blocks", stats.grown),
            ("invalidated blocks", stats.invalidated),
            ("updated blocks", stats.updated),
            ("blocks without their page", stats.excluded),
            ("delivered blocks", stats.delivered),
            ("resets noticed", stats.resets),
        ] {
            self.add(what, count);
        }
        for (reason, what) in [
            (Bypass::NotReady, "bypass: not ready"),
            (Bypass::OldRevision, "bypass: old revision"),
            (Bypass::NewerCached, "bypass: newer cached"),
            (Bypass::NotResident, "bypass: not resident"),
            (Bypass::NotAdmitted, "bypass: not admitted"),
            (Bypass::Busy, "bypass: busy"),
        ] {
            self.add(what, stats.bypassed.get(&reason).copied().unwrap_or(0));
        }
    }

    fn world(&mut self, world: &World) {
        let stats = world.kernel.stats();
        self.add("handoffs", stats.handoffs_accepted);
        self.add("restores", stats.restored);
        self.add("answered elsewhere", stats.answered_elsewhere);
        self.add("connections ended early", world.server.shrunk);
        self.add(
            "responses",
            world.clients.iter().map(|client| client.complete).sum(),
        );
        if let Some(files) = world.kernel.file_cache_stats() {
            self.add("reads of the disk", files.reads);
            self.add("pages evicted", files.evictions);
            self.add("waits for a page of memory", files.no_page);
            self.add("waits for a read", files.no_read);
        }
        for (index, nic) in world.nics.iter().enumerate() {
            let stats = nic.firmware.stats();
            self.add("bytes from the cache", stats.cache.appended_bytes);
            self.add("overwritten references", stats.cache.overwritten);
            self.add("commands lost in a reset", stats.cache.refused.no_cache);
            self.add("packets cut by a reset", stats.cache.refused.no_first);
            let faults = stats.cache.refused.total()
                - stats.cache.refused.no_cache
                - stats.cache.refused.no_first;
            assert_eq!(faults, 0, "the driver makes no faults: {:?}", stats.cache);
            let id = baton_host::NicId(index as u8);
            if let Some(stats) = world.kernel.nic_cache_stats(id) {
                self.host_caches(stats);
            }
        }
    }
}

#[test]
fn clients_get_what_was_current_and_all_of_it() {
    let mut reached = Reached::default();
    let runs = for_each_seed(SEEDS, |seed| {
        let mut world = World::new(seed);
        world.run();
        reached.world(&world);
    });
    if runs.len() >= 1000 {
        let rare: Vec<_> = reached.0.iter().filter(|(_, count)| **count < 3).collect();
        assert!(rare.is_empty(), "the runs do not reach {rare:?}");
    }
}
