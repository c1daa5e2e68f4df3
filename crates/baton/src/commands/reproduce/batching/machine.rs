//! Changes of a machine whose adapter has all of TCP.

use baton_sim::config::{Experiment, OffloadConfig, WorkloadConfig};
use baton_workload::FixedSpec;

/// Returns the configuration of both sides of the descriptors, and of the link between them.
pub fn offload(experiment: &mut Experiment) -> &mut OffloadConfig {
    &mut experiment.offload
}

/// Sets the load: clients request a file of `file_bytes`, each time on a new connection, with this many simultaneous connections.
pub fn set_load(experiment: &mut Experiment, file_bytes: u32, connections: u32) {
    let load = FixedSpec::httperf(file_bytes.into(), 1, None);
    experiment.workload = WorkloadConfig::Fixed(load);
    experiment.clients.connections = connections;
}

/// Sets the rate of new connections, per second, instead of closed loops.
pub fn set_rate(experiment: &mut Experiment, connections_per_s: u32) {
    if let WorkloadConfig::Fixed(load) = &mut experiment.workload {
        load.connections_per_s = Some(connections_per_s);
    }
}
