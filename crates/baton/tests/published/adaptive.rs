//! Adaptive batching compared with none, for small files. The book has the numbers, but `baton reproduce` takes too long to print them in a test.

use crate::found::Found;
use baton_bus::BatchingPolicy;
use baton_config::profile;
use baton_sim::config::WorkloadConfig;
use baton_sim::{NoObserver, run};
use baton_workload::FixedSpec;

/// Number of seeds.
const SEEDS: u64 = 60;
/// Number of replies before measurement, and of measured ones, for each seed.
const REPLIES: (u64, u64) = (100, 500);

/// Returns response time and crossings as ratios to those without batching, for one and for five connections.
pub fn beside_none() -> Vec<Found> {
    let of = |connections| {
        let (time, crossings) = sums(connections, BatchingPolicy::Adaptive);
        let (baseline_time, baseline_crossings) = sums(connections, BatchingPolicy::Fixed);
        let found = |metric: &str, value| Found {
            config: format!("1 KB, connections {connections}"),
            metric: metric.to_owned(),
            value,
        };
        [
            found("response_time_ratio", time / baseline_time),
            found("crossings_ratio", crossings / baseline_crossings),
        ]
    };
    [1, 5].into_iter().flat_map(of).collect()
}

/// Returns the mean response time and the mean crossings per reply, each summed over all seeds.
fn sums(connections: u32, policy: BatchingPolicy) -> (f64, f64) {
    let (mut time, mut crossings) = (0.0, 0.0);
    for seed in 1..=SEEDS {
        let mut experiment = profile("batching").expect("the profile is valid");
        experiment.run.warmup_responses = Some(REPLIES.0);
        experiment.run.measured_responses = Some(REPLIES.1);
        experiment.run.seed = seed;
        experiment.workload = WorkloadConfig::Fixed(FixedSpec::httperf(1024, 1, None));
        experiment.clients.connections = connections;
        let offload = &mut experiment.offload;
        offload.host.interface.batching.policy = policy;
        offload.adapter.interface.batching.policy = policy;
        let results = run(&experiment, "", &[], &mut NoObserver).expect("the run succeeds");
        time += results.clients.first_byte_ms.mean.expect("responses");
        crossings += results.crossings_per_response();
    }
    (time, crossings)
}
