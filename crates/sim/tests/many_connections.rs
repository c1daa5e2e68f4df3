//! Memory use with a hundred thousand concurrent connections. The test has a separate program because it measures the peak of the process.

use baton_sim::config::{Experiment, WorkloadConfig};
use baton_sim::{NoObserver, run};
use baton_workload::FixedSpec;

/// Returns the peak resident memory of this process, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has this file");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("Linux reports the peak");
    let number = line.split_whitespace().nth(1).expect("a number");
    number.parse().expect("a number")
}

#[test]
fn a_hundred_thousand_connections_fit_into_two_gib() {
    let mut experiment = Experiment {
        workload: WorkloadConfig::Fixed(FixedSpec::httperf(1024, 40, None)),
        ..Experiment::default()
    };
    experiment.clients.connections = 100_000;
    experiment.clients.start_interval_us = 20;
    experiment.host.kernel.backlog = 100_000;
    experiment.nic.firmware.hard_limit = 4_096;
    experiment.run.warmup_packets = Some(0);
    experiment.run.measured_packets = 1_200_000;
    let results = run(&experiment, "test", &[], &mut NoObserver).expect("it runs");
    let most = results.series.iter().map(|sample| sample.open).max();
    assert!(most >= Some(99_000), "{most:?} connections at once");
    assert!(peak_kib() < 2 << 20, "{} KiB", peak_kib());
}
