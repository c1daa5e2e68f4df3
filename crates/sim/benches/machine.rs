//! Simulated packets per second over connection counts, with and without cost models, interconnect and data cache.
//!
//! `cargo bench -p baton-sim --bench machine`. One element is one frame at the server's NIC. Machines are warmed up
//! before they are timed, so neither ramp-up nor cold caches count.

use baton_bus::interconnect::InterconnectConfig;
use baton_sim::config::{Experiment, Length, WorkloadConfig};
use baton_sim::{Machine, NoObserver, load_workload};
use baton_workload::FixedSpec;
use baton_workload::log::Logs;
use criterion::measurement::WallTime;
use criterion::{
    BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main,
};
use std::time::{Duration, Instant};

const PACKETS: u64 = 100_000;
/// Packets in one timed piece of [`shares`]. There are few, because only the fastest of many pieces counts.
const SLICE: u64 = 20_000;
/// Timed pieces of each machine in [`shares`].
const ROUNDS: u32 = 100;

fn experiment(connections: u32, offloaded: u32, cost_models: bool) -> Experiment {
    let mut experiment = Experiment {
        workload: WorkloadConfig::Fixed(FixedSpec::httperf(8192, 4, None)),
        ..Experiment::default()
    };
    experiment.clients.connections = connections;
    experiment.clients.start_interval_us = 5;
    experiment.nic.firmware.hard_limit = offloaded;
    experiment.run.cost_models = cost_models;
    experiment
}

fn warm_machine(experiment: &Experiment) -> Machine {
    let (load, _) = load_workload(experiment, &Logs::new(), &|| false)
        .expect("the load is generated, not read from a file");
    let mut machine = Machine::builder(experiment)
        .load(load)
        .build()
        .expect("the experiment is valid");
    machine
        .run_until(Length::Packets(100_000), &mut NoObserver)
        .expect("no invariant is violated");
    machine
}

fn bench_packets(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, experiment: &Experiment) {
    group.bench_function(name, |b| {
        b.iter_batched(
            || warm_machine(experiment),
            |mut machine| {
                let until = Length::Packets(machine.packets() + PACKETS);
                machine
                    .run_until(until, &mut NoObserver)
                    .expect("no invariant is violated");
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

/// A machine with its name. In a list of them, the first one has an ideal interconnect and no data cache, and the others are compared with it.
type Compared = (&'static str, Experiment);

/// Returns machines with one NIC and the load of [`packets_per_second`].
fn one_nic() -> Vec<Compared> {
    [
        ("ideal", "ideal", 0),
        ("pci-64-66", "pci-64-66", 0),
        ("pcie-3-x8", "pcie-3-x8", 0),
        ("ideal-cache", "ideal", 8192),
        ("pcie-3-x8-cache", "pcie-3-x8", 8192),
    ]
    .map(|(name, interconnect, cache_kib)| {
        let mut experiment = experiment(1024, 0, true);
        experiment.interconnect = InterconnectConfig::preset(interconnect).expect("a preset");
        experiment.nic.firmware.cache.kib = cache_kib;
        experiment.host.kernel.nic_cache.enabled = cache_kib > 0;
        (name, experiment)
    })
    .into()
}

/// Returns variants of the server of the data-caching paper with a log like NASA's: two NICs read piece by piece over a saturated PCI bus.
fn two_nics() -> Vec<Compared> {
    [
        ("dcache-2002 on an ideal bus", true, 0),
        ("dcache-2002", false, 0),
        ("dcache-2002-cache", false, 16_384),
    ]
    .map(|(name, ideal, cache_kib)| {
        let profile = include_str!("../../../profiles/dcache-2002.toml");
        let mut experiment: Experiment = toml::from_str(profile).expect("a profile");
        experiment.workload = WorkloadConfig::Generated {
            preset: "nasa".to_owned(),
            requests: 200_000,
            persistent_s: 15,
            pipeline_s: Some(5),
        };
        if ideal {
            experiment.interconnect = InterconnectConfig::Ideal;
        }
        experiment.nic.firmware.cache.kib = cache_kib;
        (name, experiment)
    })
    .into()
}

/// Measures the cost of simulating an interconnect that takes time, and data caches on the NICs.
fn interconnect_and_cache(c: &mut Criterion) {
    let mut group = c.benchmark_group("interconnect");
    group
        .throughput(Throughput::Elements(PACKETS))
        .sample_size(10);
    for (name, experiment) in one_nic() {
        bench_packets(&mut group, name, &experiment);
    }
    group.finish();
}

/// Prints the share of its speed that the simulator keeps with an interconnect and a cache. It times the machines in turn and uses the fastest piece
/// of each, so that other programs hardly affect the shares.
fn shares(_: &mut Criterion) {
    for compared in [one_nic(), two_nics()] {
        let mut machines: Vec<_> = compared
            .iter()
            .map(|(_, experiment)| (warm_machine(experiment), Duration::MAX))
            .collect();
        for _ in 0..ROUNDS {
            for (machine, best) in &mut machines {
                let until = Length::Packets(machine.packets() + SLICE);
                let started = Instant::now();
                machine
                    .run_until(until, &mut NoObserver)
                    .expect("no invariant is violated");
                *best = started.elapsed().min(*best);
            }
        }
        let alone = machines[0].1.as_secs_f64();
        for ((name, _), (_, time)) in compared.iter().zip(&machines) {
            let share = 100.0 * alone / time.as_secs_f64();
            println!("{name}: {share:.1} % of the speed on an ideal interconnect without a cache");
        }
    }
}

criterion_group!(benches, packets_per_second, interconnect_and_cache, shares);
criterion_main!(benches);
