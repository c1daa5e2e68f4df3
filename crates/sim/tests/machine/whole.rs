//! The whole machine with policies of the caller, and with disks. `dialogues/whole.dialogue` has more.

use crate::checked::results;
use baton_bus::interconnect::InterconnectConfig;
use baton_cache::{Lru, ReplacementConfig};
use baton_nic::{LoadControl, Scheduler, Watermarks};
use baton_sim::config::{Experiment, WorkloadConfig};
use baton_sim::{Machine, NoObserver};
use baton_workload::generate::{Distribution, Files};
use baton_workload::{FixedSpec, GeneratorSpec, Preset};

fn experiment(connections: u32, offloaded: u32) -> Experiment {
    let mut experiment = Experiment {
        workload: WorkloadConfig::Fixed(FixedSpec::httperf(8192, 4, None)),
        ..Experiment::default()
    };
    experiment.clients.connections = connections;
    // Fast enough that host packets, which have priority, leave time for handoffs.
    experiment.nic.mips = 1600;
    experiment.nic.firmware.hard_limit = offloaded;
    experiment.run.warmup_packets = Some(20_000);
    experiment.run.measured_packets = 30_000;
    experiment
}

/// The same policies give the same bits, whether configured by name or passed as objects.
#[test]
fn custom_policies_replace_the_configured_ones() {
    let mut named = Experiment {
        workload: WorkloadConfig::default(),
        ..experiment(200, 64)
    };
    named.host.kernel.nic_cache.enabled = true;
    named.nic.firmware.cache.kib = 256;
    named.nic.mips = 400;
    let mut other = named.clone();
    let load_control = LoadControl {
        enabled: true,
        high_water_packets: 32,
        low_water_packets: 4,
        ..LoadControl::default()
    };
    named.nic.firmware.scheduler = Scheduler::Fcfs;
    named.nic.firmware.load_control = load_control.clone();
    named.host.kernel.nic_cache.replacement = ReplacementConfig::Lru;
    other.nic.firmware.scheduler = Scheduler::HostFirst;
    other.host.kernel.nic_cache.replacement = ReplacementConfig::Fifo;
    let expected = results(&named);
    let without = results(&other);
    let machine = Machine::builder(&other)
        .scheduler(Scheduler::Fcfs)
        .load_control(move |hard_limit| Watermarks::new(load_control.clone(), hard_limit))
        .replacement(Lru::new)
        .build();
    let mut found = machine.unwrap().run("test", &mut NoObserver).unwrap();
    found.experiment = expected.experiment.clone();
    found.workload = expected.workload.clone();
    assert_eq!(found, expected);
    assert_ne!(without.nic, expected.nic, "the policies differ");
    assert!(expected.series.iter().any(|sample| sample.soft_limit < 64));
    assert!(
        expected
            .nics
            .iter()
            .any(|port| port.cache.as_ref().is_some_and(|c| c.evictions > 0))
    );
}

/// Returns an experiment with a file cache of a megabyte, and disks kept busy by files three times as large.
fn on_disks(blocking: bool) -> Experiment {
    let mut experiment = experiment(16, 0);
    let spec = GeneratorSpec {
        files: Files::Zipf {
            count: 300,
            exponent: 0.2,
            not_modified: 0.0,
            size: Distribution::LogNormal {
                median: 10_000.0,
                sigma: 0.5,
                max: 1e5,
            },
        },
        ..Preset::Demo.spec()
    };
    experiment.workload = WorkloadConfig::Generator {
        spec: Box::new(spec),
        requests: 5_000,
        persistent_s: 15,
        pipeline_s: Some(5),
    };
    experiment.nics = 2.into();
    experiment.interconnect = InterconnectConfig::preset("pci-64-33").expect("a bus");
    experiment.host.kernel.file_cache.kib = 1024;
    experiment.host.kernel.file_cache.blocking = blocking;
    experiment.run.check = true;
    experiment.run.warmup_packets = Some(200);
    experiment.run.measured_packets = 3_000;
    experiment
}

#[test]
fn disks_behind_a_small_file_cache_hold_the_server_back() {
    let sleeping = results(&on_disks(true));
    let disk = sleeping.disk.as_ref().expect("the server has disks");
    let cache = sleeping.file_cache.expect("the file cache has a limit");
    assert!(cache.misses > 50 && disk.reads > 50, "{cache:?} {disk:?}");
    // A process that sleeps during each read keeps only one disk busy at a time.
    let busy: f64 = disk.utilisation_percent.iter().sum();
    assert!((80.0..=100.1).contains(&busy), "{disk:?}");
    let bus = sleeping.interconnect.as_ref().expect("a bus");
    assert!(
        bus.usage.total().bytes.other >= disk.bytes,
        "data read from disks crosses the bus"
    );
    let awake = results(&on_disks(false));
    assert!(
        awake.clients.request_rate > 1.3 * sleeping.clients.request_rate,
        "several reads at a time are not faster: {} {}",
        awake.clients.request_rate,
        sleeping.clients.request_rate
    );
}
