//! Connections move between a host's stack and its one to three adapters at any moment, over a network that loses, delays and duplicates,
//! and over slow links. No byte is lost, duplicated or reordered, no connection is lost, and none gets stuck.

mod adapter;
mod conversation;
mod machine;
#[path = "../common/patient.rs"]
mod patient;
mod peers;
mod server;

use baton_host::NotOffloaded;
use baton_host::layer::LayerStats;
use baton_testkit::for_each_seed;
use machine::Machine;

#[test]
fn conversations_survive_any_handoff_and_restore() {
    let runs = for_each_seed(200, |seed| {
        let mut machine = Machine::new(seed);
        machine.run();
        let totals = machine.totals();
        for (why, count) in totals.not_offloaded.iter() {
            let by_limit = [
                NotOffloaded::RefusedSoftLimit,
                NotOffloaded::RefusedHardLimit,
            ];
            assert!(
                !by_limit.contains(&why),
                "{count} {why:?}, although the host knows the limit"
            );
        }
        (totals, machine.cached_sends())
    });
    if runs.len() > 100 {
        let sum =
            |count: fn(&LayerStats) -> u64| runs.iter().map(|(run, _)| count(run)).sum::<u64>();
        let cached: u64 = runs.iter().map(|(_, cached)| cached).sum();
        assert!(cached > 500, "{cached} sends from the cache");
        let handed_off = sum(|run| run.handoffs_accepted);
        let (restored, kept) = (sum(|run| run.restored), sum(|run| run.packets_kept));
        let refused = |why| {
            let reasons = runs.iter().flat_map(|(run, _)| run.not_offloaded.iter());
            let counts = reasons.filter_map(|(reason, count)| (reason == why).then_some(count));
            counts.sum::<u64>()
        };
        // An adapter that has refused a connection reports a Soft_Limit of 0, and the host hands off no others until there is memory again.
        let by_adapter = refused(NotOffloaded::RefusedMemory);
        let by_host = refused(NotOffloaded::Memory);
        assert!(
            by_adapter > 50 && by_host > 50,
            "{by_adapter} refused for lack of memory, {by_host} not tried"
        );
        assert!(
            handed_off > 2_000 && restored > 1_000 && kept > 100,
            "{handed_off} handoffs, {restored} restores, {kept} packets kept"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut machine = Machine::new(seed);
        machine.run();
        (machine.totals(), machine.now)
    };
    for seed in 0..5 {
        assert_eq!(run(seed), run(seed));
    }
}

#[test]
fn connections_of_a_lost_adapter_end_with_a_reason_and_others_continue() {
    let runs = for_each_seed(80, |seed| {
        let mut machine = Machine::new(seed);
        machine.lose_adapter_after(300 + seed % 20 * 20);
        machine.run();
        let (lost, left) = machine.lost();
        assert_eq!(lost, 1);
        (left, machine.totals())
    });
    if runs.len() > 30 {
        let beside_others = runs.iter().filter(|(left, _)| *left > 0);
        let connections: u64 = beside_others.map(|(_, run)| run.lost_with_adapter).sum();
        assert!(connections > 20, "{connections} connections lost");
    }
}
