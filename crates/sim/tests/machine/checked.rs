//! Runs that check after each event, on a network that loses.

use baton_sim::config::Experiment;
use baton_sim::results::Results;
use baton_sim::{NoObserver, run};

pub fn results(experiment: &Experiment) -> Results {
    run(experiment, "test", &[], &mut NoObserver).unwrap_or_else(|error| panic!("{error}"))
}

/// All is checked after each event. That walks all buffers that are posted for packets, so there are few.
pub fn check(experiment: &mut Experiment) {
    experiment.run.check = true;
    experiment.offload.host.interface.packet_buffers = 64;
}

/// Loses, repeats and delays frames.
pub fn faulty(mut experiment: Experiment, seed: u64) -> Experiment {
    experiment.run.seed = seed;
    experiment.wire.loss = 0.02;
    experiment.wire.reorder = 0.03;
    experiment.wire.duplicate = 0.01;
    experiment.wire.reorder_delay_us = 200;
    for tcp in [&mut experiment.tcp, &mut experiment.clients.tcp] {
        (tcp.rto_min_ms, tcp.rto_initial_ms) = (5, 20);
    }
    experiment
}
