//! What is changed about a machine whose adapter has all of TCP.

use baton_sim::config::{Experiment, OffloadConfig, WorkloadConfig};
use baton_workload::FixedSpec;

/// Both sides of the descriptors, and what lies between.
pub fn offload(experiment: &mut Experiment) -> &mut OffloadConfig {
    &mut experiment.offload
}

/// Clients ask for a file of so many bytes, each time on a connection of its own; so many at the same time.
pub fn set_load(experiment: &mut Experiment, file_bytes: u32, connections: u32) {
    let load = FixedSpec::httperf(file_bytes.into(), 1, None);
    experiment.workload = WorkloadConfig::Fixed(load);
    experiment.clients.connections = connections;
}

/// New connections in a second, in place of one after the other.
pub fn set_rate(experiment: &mut Experiment, connections_per_s: u32) {
    if let WorkloadConfig::Fixed(load) = &mut experiment.workload {
        load.connections_per_s = Some(connections_per_s);
    }
}
