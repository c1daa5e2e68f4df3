//! Connections opened by Fast Open deliver every byte once and in order, and can move like all others.

use crate::common::{Moves, Scenario, run};
use baton_testkit::for_each_seed;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn every_byte_arrives_once_whatever_happens_to_the_syns() {
    let (sent, taken) = (AtomicU32::new(0), AtomicU32::new(0));
    for_each_seed(1500, |seed| {
        let trace = run(&Scenario::opened_fast(seed, Moves::Never));
        let (was_sent, was_taken) = trace.syn_data_was_taken();
        assert!(was_sent || !was_taken);
        sent.fetch_add(was_sent.into(), Ordering::Relaxed);
        taken.fetch_add(was_taken.into(), Ordering::Relaxed);
    });
    let counts = (sent.into_inner(), taken.into_inner());
    assert!(std::env::var_os("BATON_SEED").is_some() || counts.0 > counts.1 && counts.1 > 0);
}

#[test]
fn moves_are_invisible_with_fast_open() {
    for (moves, count) in [
        (Moves::InPlace, 300),
        (Moves::Across, 300),
        (Moves::Sometimes, 500),
    ] {
        for_each_seed(count, |seed| {
            let still = run(&Scenario::opened_fast(seed, Moves::Never));
            let moved = run(&Scenario::opened_fast(seed, moves));
            crate::moving::assert_same(&still, &moved);
        });
    }
}
