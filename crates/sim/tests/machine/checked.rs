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
