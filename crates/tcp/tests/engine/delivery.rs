//! Every byte arrives once and in order, whatever the network does, and both ends close.

use crate::common::{Moves, Scenario, run, run_settling};
use baton_testkit::for_each_seed;

#[test]
fn every_byte_arrives_when_another_tcp_takes_over() {
    for_each_seed(2000, |seed| {
        run(&Scenario::random(seed, Moves::ByEssentials));
    });
}

#[test]
fn every_byte_arrives_in_order_over_any_network() {
    for_each_seed(2000, |seed| {
        run(&Scenario::random(seed, Moves::Never));
    });
}

#[test]
fn connections_settle_and_move_when_idle_and_every_byte_arrives() {
    let rests = for_each_seed(2000, |seed| {
        run_settling(&Scenario::random(seed, Moves::AtRest)).1
    });
    // A single replayed seed may have none.
    assert!(rests.len() == 1 || rests.iter().any(|&count| count > 0));
}
