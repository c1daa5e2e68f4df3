//! The host's half with real adapters, over links and networks with faults: sockets of an adapter, and connections that move between a
//! host's TCP and its adapters at any moment. No byte is lost, duplicated or reordered, no connection is lost, and none gets stuck.

use baton_cluster::{Cluster, Place, Summary};
use baton_host::NotOffloaded;
use baton_testkit::{Random, for_each_seed};

fn run(seed: u64, place: Place) -> Summary {
    Cluster::new(Random::new(seed), place).run()
}

/// An event that must happen more often than this, in all runs together, and its count in one run.
type Goal = (&'static str, u64, fn(&Summary) -> u64);

/// Checks that the runs reach their goals, so that they test what they are meant to test.
fn reached(runs: &[Summary], goals: &[Goal]) {
    for (name, least, count) in goals {
        let times: u64 = runs.iter().map(count).sum();
        println!("{name}: {times}");
        // The user may have asked for fewer seeds.
        assert!(
            times > *least || runs.len() < 200,
            "the runs reach {name} too rarely: {times} times"
        );
    }
}

#[test]
fn every_byte_arrives_on_sockets_of_an_adapter() {
    let runs = for_each_seed(400, |seed| run(seed, Place::Adapter));
    reached(
        &runs,
        &[
            ("accepts", 20, |run| run.adapters[0].accepted),
            ("connects", 20, |run| run.adapters[0].connected),
            ("data in descriptors", 20, |run| {
                run.adapters[0].inline_sends
            }),
            ("cumulative completion", 20, |run| {
                run.adapters[0].completed_by_later
            }),
            ("sends from the cache", 20, |run| {
                run.adapters[0].cached_sends
            }),
            ("corks that fire", 20, |run| run.adapters[0].corks_fired),
            ("full rings", 20, |run| run.adapters[0].no_room.ring),
            ("few buffers", 20, |run| run.adapters[0].no_room.buffers),
            ("many sends", 20, |run| run.adapters[0].no_room.sends),
            ("times", 20, |run| run.adapters[0].times_told),
            ("lost links", 20, |run| run.adapters[0].links_lost),
            ("abnormal ends", 20, |run| run.adapters[0].ended_abnormally),
            ("responses of the web server", 200, |run| run.responses),
        ],
    );
}

#[test]
fn every_byte_arrives_on_connections_that_move() {
    let runs = for_each_seed(200, |seed| run(seed, Place::Both));
    for run in &runs {
        for why in [
            NotOffloaded::RefusedSoftLimit,
            NotOffloaded::RefusedHardLimit,
        ] {
            assert_eq!(refused(run, why), 0, "the host knows the limit: {why:?}");
        }
    }
    reached(
        &runs,
        &[
            ("handoffs", 2_000, |run| run.layer.handoffs_accepted),
            ("restores", 1_000, |run| run.layer.restored),
            ("packets kept", 100, |run| run.layer.packets_kept),
            ("sends from the cache", 500, |run| {
                run.adapters.iter().map(|os| os.cached_sends).sum()
            }),
            // An adapter that has refused a connection reports a Soft_Limit of 0, and the host hands off no others until there is memory.
            ("refusals for lack of memory", 50, |run| {
                refused(run, NotOffloaded::RefusedMemory)
            }),
            ("handoffs not tried", 50, |run| {
                refused(run, NotOffloaded::Memory)
            }),
            ("responses of the web server", 200, |run| run.responses),
        ],
    );
}

fn refused(run: &Summary, why: NotOffloaded) -> u64 {
    let counts = run
        .layer
        .not_offloaded
        .iter()
        .filter(|(reason, _)| *reason == why);
    counts.map(|(_, count)| count).sum()
}

#[test]
fn connections_of_a_lost_adapter_end_with_a_reason_and_others_continue() {
    let runs = for_each_seed(120, |seed| {
        let cluster = Cluster::new(Random::new(seed), Place::Both);
        cluster.run_and_lose(Some(300 + seed as u32 % 20 * 20))
    });
    let beside_others = |run: &Summary| run.lost == 1 && run.adapters.len() > 1;
    let (mut times, mut connections) = (0, 0);
    for run in runs.iter().filter(|run| beside_others(run)) {
        times += 1;
        connections += run.layer.lost_with_adapter;
    }
    println!("{times} adapters with {connections} connections lost");
    assert!(connections > 20 || runs.len() < 120);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..10 {
        for place in [Place::Adapter, Place::Both] {
            assert_eq!(run(seed, place), run(seed, place), "seed {seed}");
        }
    }
}
