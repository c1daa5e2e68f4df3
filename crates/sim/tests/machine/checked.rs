//! Helpers that run machines, with a check after each event or on a faulty network.

use baton_sim::config::Experiment;
use baton_sim::results::{Ended, Results};
use baton_sim::{NoObserver, RunError};

pub fn run(experiment: &Experiment) -> Result<Results, RunError> {
    baton_sim::run(experiment, "test", &[], &mut NoObserver)
}

pub fn results(experiment: &Experiment) -> Results {
    run(experiment).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the results of a run that must complete without a client failing.
pub fn complete(experiment: &Experiment) -> Results {
    let results = results(experiment);
    assert_eq!(results.ended, Ended::Complete);
    let failed = &results.clients.failed;
    assert!(failed.values().all(|count| *count == 0), "{failed:?}");
    results
}

/// Makes a run check everything after each event. Reduces the number of packet buffers, because each check visits all of them.
pub fn check(experiment: &mut Experiment) {
    experiment.run.check = true;
    experiment.offload.host.interface.packet_buffers = 64;
}

/// Makes the network lose, duplicate and delay frames.
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
