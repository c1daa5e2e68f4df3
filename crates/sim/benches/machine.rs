//! Simulated packets per second over connection counts, with and without cost models, interconnect and data cache.
//!
//! `cargo bench -p baton-sim --bench machine`. One element is one frame at the server's NIC. Machines are warmed up
//! before they are timed, so neither ramp-up nor cold caches count.

use baton_bus::interconnect::InterconnectConfig;
use baton_sim::config::{Experiment, WorkloadConfig};
use baton_sim::{Machine, NoObserver, load_workload};
use baton_workload::FixedSpec;
use criterion::measurement::WallTime;
use criterion::{
    BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main,
};

const PACKETS: u64 = 100_000;

fn experiment(connections: u32, offloaded: u32, cost_models: bool) -> Experiment {
    let mut experiment = Experiment {
        workload: WorkloadConfig::Fixed(FixedSpec::httperf(8192, 4, None)),
        ..Experiment::default()
    };
    experiment.clients.connections = connections;
    experiment.clients.start_interval_us = 5;
    experiment.nic.firmware.connections = offloaded;
    experiment.run.cost_models = cost_models;
    experiment
}

fn warm_machine(experiment: &Experiment) -> Machine {
    let (load, _) = load_workload(experiment).expect("the load is made, not read");
    let mut machine = Machine::new(experiment, load, &[]).expect("the experiment is valid");
    machine
        .run_until(100_000, 100_000, &mut NoObserver)
        .expect("nothing is violated");
    machine
}

fn bench_packets(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, experiment: &Experiment) {
    group.bench_function(name, |b| {
        b.iter_batched(
            || warm_machine(experiment),
            |mut machine| {
                let until = machine.packets() + PACKETS;
                machine
                    .run_until(until, until, &mut NoObserver)
                    .expect("nothing is violated");
                machine
            },
            BatchSize::PerIteration,
        );
    });
}

fn packets_per_second(c: &mut Criterion) {
    let mut group = c.benchmark_group("machine");
    group
        .throughput(Throughput::Elements(PACKETS))
        .sample_size(10);
    for (name, offloaded, cost_models) in [
        ("all-models", 0, true),
        ("all-models-offload", 1024, true),
        ("no-cost-models", 0, false),
    ] {
        for connections in [16, 1024, 8192] {
            let experiment = experiment(connections, offloaded, cost_models);
            bench_packets(&mut group, &format!("{name}/{connections}"), &experiment);
        }
    }
    group.finish();
}

/// An interconnect that takes time and data caches on the NICs, beside the same server without them.
fn interconnect_and_cache(c: &mut Criterion) {
    let mut group = c.benchmark_group("interconnect");
    group
        .throughput(Throughput::Elements(PACKETS))
        .sample_size(10);
    for (name, interconnect, cache_kib) in [
        ("ideal", "ideal", 0),
        ("pci-64-66", "pci-64-66", 0),
        ("pcie-3-x8", "pcie-3-x8", 0),
        ("ideal-cache", "ideal", 8192),
        ("pcie-3-x8-cache", "pcie-3-x8", 8192),
    ] {
        let mut experiment = experiment(1024, 0, true);
        experiment.interconnect = InterconnectConfig::preset(interconnect).expect("a preset");
        experiment.nic.firmware.cache.kib = cache_kib;
        experiment.host.kernel.nic_cache.enabled = cache_kib > 0;
        bench_packets(&mut group, name, &experiment);
    }
    group.finish();
}

criterion_group!(benches, packets_per_second, interconnect_and_cache);
criterion_main!(benches);
