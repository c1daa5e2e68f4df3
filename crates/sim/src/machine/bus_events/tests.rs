//! What is seen late is as if it had been seen at once.

use super::super::{Machine, NoObserver};
use crate::config::{Experiment, WorkloadConfig};
use crate::load_workload;
use baton_bus::interconnect::InterconnectConfig;
use baton_workload::FixedSpec;

fn experiment(interconnect: &str, change: impl FnOnce(&mut Experiment)) -> Experiment {
    let mut experiment = Experiment {
        workload: WorkloadConfig::Fixed(FixedSpec::httperf(5_000, 4, None)),
        interconnect: InterconnectConfig::preset(interconnect).expect("a preset"),
        ..Experiment::default()
    };
    experiment.clients.connections = 64;
    experiment.clients.start_interval_us = 5;
    experiment.nic.firmware.hard_limit = 0;
    experiment.run.warmup_packets = 4_000;
    experiment.run.measured_packets = 20_000;
    change(&mut experiment);
    experiment
}

fn results(experiment: &Experiment, sees_all: bool) -> serde_json::Value {
    let (load, _) = load_workload(experiment).expect("the load is made, not read");
    let mut machine = Machine::builder(experiment)
        .load(load)
        .build()
        .expect("the experiment is valid");
    if let Some(bus) = &mut machine.bus {
        bus.sees_all = sees_all;
    }
    let results = machine
        .run("", &mut NoObserver)
        .expect("nothing is violated");
    serde_json::to_value(&results).expect("results can be written")
}

fn cached(experiment: &mut Experiment) {
    experiment.nic.firmware.cache.kib = 4_096;
    experiment.host.kernel.nic_cache.enabled = true;
}

#[test]
fn results_do_not_depend_on_when_transfers_are_seen() {
    let experiments = [
        experiment("pci-64-66", |_| ()),
        experiment("pcie-3-x8", |_| ()),
        experiment("pcie-3-x8", cached),
        experiment("pci-x-133", |experiment| {
            experiment.nics = 2.into();
            experiment.wire.loss = 0.002;
            experiment.nic.firmware.hard_limit = 32;
        }),
        // One engine that is set up for each read, few places, a slow wire.
        experiment("pci-64-33", |experiment| {
            let dma = &mut experiment.nic.dma;
            (dma.reads_in_flight, dma.writes_in_flight) = (1, 1);
            dma.read_setup_ns = 2_000;
            (dma.packets_in_flight, dma.transmit_buffer_kib) = (8, 4);
            (dma.sent_per_event, dma.sent_delay_us) = (4, 0);
            experiment.wire.rate_mbps = 1_000;
            cached(experiment);
        }),
        experiment("pcie-1-x1", |experiment| {
            experiment.nic.dma.transmit_buffer_kib = 8;
            experiment.nic.dma.packets_in_flight = 4;
            experiment.nic.interrupt.delay_us = 0;
            experiment.wire.delay_ns = 0;
            experiment.wire.rate_mbps = 2_000;
            experiment.nic.firmware.hard_limit = 64;
        }),
    ];
    for experiment in experiments {
        assert_eq!(
            results(&experiment, false),
            results(&experiment, true),
            "{:?}",
            experiment.interconnect
        );
    }
}
