//! The whole machine: determinism, the cache effect of many connections, and end-to-end data under faults.
//!
//! The machine itself checks every byte that clients receive; a run that returns results has passed that check.

use crate::checked::{self, check, results};
use baton_bus::interconnect::InterconnectConfig;
use baton_cache::{Lru, ReplacementConfig};
use baton_nic::{LoadControl, Relief, Scheduler, Watermarks};
use baton_sim::config::{Experiment, WorkloadConfig};
use baton_sim::results::Ended;
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

fn faulty(seed: u64) -> Experiment {
    let mut experiment = checked::faulty(experiment(40, 20), seed);
    check(&mut experiment);
    experiment.run.warmup_packets = Some(500);
    experiment.run.measured_packets = 3_000;
    experiment
}

#[test]
fn equal_experiments_give_equal_bits() {
    let experiment = experiment(100, 50);
    let one = format!("{:?}", results(&experiment));
    let other = std::thread::spawn(move || format!("{:?}", results(&experiment)));
    assert_eq!(one, other.join().expect("the thread ran"));
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

#[test]
fn another_seed_gives_another_run_under_loss() {
    let one = results(&faulty(1));
    let other = results(&faulty(2));
    assert_ne!(one.clients, other.clients);
}

#[test]
fn misses_per_packet_rise_with_connections() {
    let misses: Vec<f64> = [16, 256, 2048]
        .map(|connections| {
            results(&experiment(connections, 0))
                .host
                .host_packets
                .l2_misses
                .expect("packets")
        })
        .into();
    assert!(misses[0] < misses[1] && misses[1] < misses[2], "{misses:?}");
    assert!(misses[0] * 1.5 < misses[2], "{misses:?}");
}

#[test]
fn every_byte_is_right_under_faults_with_handoff() {
    for seed in 0..40 {
        let mut experiment = faulty(seed);
        experiment.nic.firmware.scheduler = if seed % 2 == 0 {
            Scheduler::Fcfs
        } else {
            Scheduler::HostFirst
        };
        let run = results(&experiment);
        assert!(
            run.clients.responses > 0 && run.handoff.accepted > 0,
            "seed {seed}: too little happened"
        );
    }
}

#[test]
fn every_byte_is_right_under_active_relief() {
    for seed in 0..40 {
        let mut experiment = faulty(seed);
        experiment.clients.connections = 200;
        experiment.run.warmup_packets = Some(0);
        experiment.nic.mips = 300;
        experiment.nic.firmware.scheduler = Scheduler::Fcfs;
        experiment.nic.firmware.arrival_queue_packets = 64;
        experiment.nic.firmware.hard_limit = 150;
        experiment.nic.firmware.receive_queue_packets = 64;
        experiment.nic.firmware.load_control = LoadControl {
            enabled: true,
            high_water_packets: 16,
            low_water_packets: 4,
            relief: Relief::Active,
            ..LoadControl::default()
        };
        let run = results(&experiment);
        assert!(
            run.clients.responses > 0,
            "seed {seed}: too little happened"
        );
        assert!(
            run.handoff.restored > 0,
            "seed {seed}: overload did not lead to restores: {:?} {:?}",
            run.nic,
            run.handoff
        );
    }
}

#[test]
fn without_cost_models_processors_take_no_time() {
    let mut experiment = experiment(64, 32);
    experiment.run.cost_models = false;
    let run = results(&experiment);
    assert_eq!(run.ended, Ended::Complete);
    // Each piece of work still takes one cycle, so that time advances.
    assert!(run.host.idle_percent > 99.0 && run.nic.idle_percent > 99.0);
}

#[test]
fn packets_are_accounted_to_host_or_nic() {
    let run = results(&experiment(100, 50));
    let dropped: u64 = run.nic.drops.values().sum();
    let known = run.host.host_packets.packets + run.host.nic_packets.packets + dropped;
    // The only difference is frames that wait on the NIC when measurement begins or ends.
    assert!(
        known.abs_diff(run.packets) < 3_000,
        "{known} of {}",
        run.packets
    );
    assert!(run.host.nic_packets.packets > 0 && run.host.host_packets.packets > 0);
}

#[test]
fn a_wait_for_descriptors_never_loses_them() {
    // The smallest possible queues: everything stalls all the time, but everything arrives.
    let mut experiment = experiment(30, 15);
    experiment.run.check = true;
    experiment.run.warmup_packets = Some(0);
    experiment.run.measured_packets = 5_000;
    experiment.nic.firmware.descriptor_queue_entries = 1;
    let interface = &mut experiment.offload.host.interface;
    (interface.ring_depth, interface.packet_buffers) = (2, 2);
    experiment.offload.adapter.interface.ring_depth = 2;
    let run = results(&experiment);
    assert_eq!(run.ended, Ended::Complete);
    assert!(run.handoff.accepted > 0);
}

#[test]
fn two_nics_carry_twice_what_one_wire_can() {
    let with = |nics: u32| {
        let mut experiment = experiment(64, 0);
        experiment.run.cost_models = false;
        experiment.run.check = true;
        experiment.run.warmup_packets = Some(2_000);
        experiment.run.measured_packets = 8_000;
        experiment.wire.rate_mbps = 1_000;
        experiment.nics = nics.into();
        experiment.clients.replayers = 4;
        results(&experiment)
    };
    let (one, two) = (with(1), with(2));
    let ratio = two.clients.content_mbps / one.clients.content_mbps;
    assert!(
        one.clients.content_mbps > 800.0 && (1.9..2.1).contains(&ratio),
        "{ratio}"
    );
}

/// Returns an experiment with two gigabit NICs on one PCI bus, and large files.
fn on_pci() -> Experiment {
    let mut experiment = experiment(64, 0);
    experiment.workload = WorkloadConfig::Fixed(FixedSpec::httperf(100_000, 10, None));
    experiment.interconnect = InterconnectConfig::preset("pci-64-33").expect("a bus");
    experiment.nics = 2.into();
    experiment.clients.replayers = 4;
    experiment.wire.rate_mbps = 1_000;
    experiment.run.cost_models = false;
    experiment.run.warmup_packets = Some(5_000);
    experiment.run.measured_packets = 20_000;
    experiment
}

/// Checks everything after every event, which takes far longer than the event. The packets are just enough to fill queues and windows.
#[test]
fn invariants_hold_on_a_saturated_bus() {
    let mut experiment = on_pci();
    experiment.run.check = true;
    (
        experiment.run.warmup_packets,
        experiment.run.measured_packets,
    ) = (Some(1_000), 3_000);
    let run = results(&experiment);
    let bus = run.interconnect.expect("a bus that takes time");
    assert!(bus.utilisation_percent > 95.0, "{bus:?}");
}

#[test]
fn a_saturated_bus_holds_the_server_back() {
    let run = results(&on_pci());
    let bus = run.interconnect.expect("a bus that takes time");
    assert!(bus.utilisation_percent > 99.0, "{bus:?}");
    // Less than both wires could carry, but more than one.
    assert!(
        (1_000.0..1_600.0).contains(&run.clients.content_mbps),
        "{:?}",
        run.clients
    );
    // Content received by clients has crossed the bus; content that crosses when measurement begins and ends makes the difference.
    let got = run.clients.content_mbps * run.measured_s / 8e-6;
    let crossed = bus.usage.total().bytes.content as f64;
    assert!((crossed / got - 1.0).abs() < 0.05, "{crossed} of {got}");
}

#[test]
fn a_faster_bus_is_not_the_bottleneck() {
    let mut experiment = on_pci();
    experiment.interconnect = InterconnectConfig::preset("pcie-4-x16").expect("a link");
    let run = results(&experiment);
    assert!(run.clients.content_mbps > 1_750.0, "{:?}", run.clients);
    let link = run.interconnect.expect("a link that takes time");
    assert!(link.utilisation_percent < 5.0, "{link:?}");
}

#[test]
fn every_byte_is_right_over_a_bus_with_handoff_and_losses() {
    for seed in 0..10 {
        let mut experiment = faulty(seed);
        experiment.interconnect = InterconnectConfig::preset("pci-32-33").expect("a bus");
        experiment.nics = 2.into();
        experiment.nic.dma.reads_in_flight = 1;
        experiment.nic.dma.packets_in_flight = 2;
        let run = results(&experiment);
        assert!(
            run.clients.responses > 0 && run.handoff.accepted > 0,
            "seed {seed}: too little happened"
        );
    }
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

#[test]
fn caches_on_the_nics_keep_content_off_the_bus() {
    let with = |kib| {
        let mut experiment = on_pci();
        experiment.host.kernel.nic_cache.enabled = true;
        experiment.nic.firmware.cache.kib = kib;
        experiment.run.check = false;
        results(&experiment)
    };
    let (none, some) = (with(0), with(1024));
    assert!(none.nics.iter().all(|port| port.cache.is_none()));
    assert!(none.content_kept_off_bus_percent.expect("content").abs() < 5.0);
    // The workload requests one file, which fits.
    assert!(
        some.content_kept_off_bus_percent > Some(95.0),
        "{:?}",
        some.nics
    );
    assert_eq!(some.nics.len(), 2);
    for port in &some.nics {
        let cache = port.cache.as_ref().expect("each has a cache");
        assert!(cache.hit_percent() > 95.0, "{cache:?}");
    }
    assert!(some.clients.content_mbps > 1.2 * none.clients.content_mbps);
}

/// With one client, everything else takes the same time, so the request rate reveals how long the client waits per connection.
#[test]
fn a_client_takes_its_time_for_each_thing_that_it_does() {
    const REQUESTS: f64 = 4.0;
    let of_connection = |latency_us| {
        let mut experiment = experiment(1, 0);
        experiment.clients.latency_us = latency_us;
        experiment.run.measured_packets = 10_000;
        REQUESTS / results(&experiment).clients.request_rate * 1e6
    };
    let longer = of_connection(1_000) - of_connection(0);
    // The client's latency applies to each request, to the close after the last answer, and to the next start.
    let waits = REQUESTS + 2.0;
    assert!(
        (longer / (waits * 1_000.0) - 1.0).abs() < 0.01,
        "{longer} us"
    );
}
