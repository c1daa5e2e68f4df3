//! Every byte arrives once and in order, whatever the network does, and both ends close.

mod common;

use common::{Moves, Scenario, run, seeds};

#[test]
fn every_byte_arrives_in_order_over_any_network() {
    for seed in seeds(2000) {
        run(Scenario::random(seed, Moves::Never));
    }
}
