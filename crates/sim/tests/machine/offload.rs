//! The machine with full offload: load control, policies of the caller, and any settings. `dialogues/offload.dialogue` has more.

use crate::checked::{complete, run};
use baton_apps::web;
use baton_bus::{BatchingPolicy, BatchingRule, Urgency};
use baton_host::SelectionConfig;
use baton_nic::{LoadMeasure, Relief, Scheduler};
use baton_sim::config::{
    ApplicationConfig, EstablishedBy, Experiment, OffloadConfig, Piece, WorkloadConfig,
};
use baton_sim::results::{Ended, Sample};
use baton_sim::{Machine, NoObserver};
use baton_wire::{Span, Time};
use baton_workload::FixedSpec;
use proptest::prelude::*;

/// Level and timer of batching.
type Setting = (u32, u32);

const MINIMAL: Setting = (1, 1_000);

fn machine(file_bytes: u32) -> Experiment {
    let mut experiment = baton_config::profile("batching").expect("the profile is valid");
    load(&mut experiment).bytes = file_bytes.into();
    experiment.run.warmup_responses = Some(5);
    experiment.run.measured_responses = Some(40);
    experiment
}

fn load(experiment: &mut Experiment) -> &mut FixedSpec {
    match &mut experiment.workload {
        WorkloadConfig::Fixed(load) => load,
        other => panic!("{other:?} is not the load of the profile"),
    }
}

fn offload(experiment: &mut Experiment) -> &mut OffloadConfig {
    &mut experiment.offload
}

fn with(mut experiment: Experiment, host: Setting, adapter: Setting) -> Experiment {
    let offload = offload(&mut experiment);
    let host_side = &mut offload.host.interface.batching;
    (host_side.level, host_side.timer_us) = host;
    let adapter_side = &mut offload.adapter.interface.batching;
    (adapter_side.level, adapter_side.timer_us) = adapter;
    experiment
}

/// Lets host and adapter do one piece of work at a time. The scheduler chooses the queue from which the adapter takes it.
fn one_by_one(experiment: &mut Experiment, scheduler: Scheduler) {
    offload(experiment).adapter.piece = Piece::One;
    offload(experiment).host.piece = Piece::One;
    experiment.nic.firmware.scheduler = scheduler;
}

/// Returns an experiment with more connections on a slow NIC than it can serve, and others on the host.
fn overloaded(scheduler: Scheduler) -> Experiment {
    let mut experiment = machine(8 << 10);
    one_by_one(&mut experiment, scheduler);
    experiment.run.check = true;
    experiment.run.measured_responses = Some(400);
    experiment.clients.connections = 80;
    experiment.nic.mips = 40;
    let config = offload(&mut experiment);
    config.established_by = EstablishedBy::Host;
    experiment.nic.firmware.hard_limit = 60;
    experiment
}

/// Load control observes the queue of the NIC's TCP, and keeps it below Hiwat on average by reducing Soft_Limit (handoff-policies 3.2).
#[test]
fn load_control_sees_the_receive_queue() {
    let later_half = |enabled| {
        let mut experiment = overloaded(Scheduler::HostFirst);
        experiment.run.check = false;
        experiment.run.measured_responses = Some(3_000);
        let load_control = &mut experiment.nic.firmware.load_control;
        load_control.enabled = enabled;
        (
            load_control.high_water_packets,
            load_control.low_water_packets,
        ) = (16, 4);
        let series = complete(&experiment).series;
        let later = &series[series.len() / 2..];
        let mean = |value: fn(&Sample) -> u32| {
            let sum: u64 = later.iter().map(|sample| u64::from(value(sample))).sum();
            sum as f64 / later.len() as f64
        };
        [mean(|sample| sample.qlen), mean(|sample| sample.soft_limit)]
    };
    let ([longer, all], [shorter, fewer]) = (later_half(false), later_half(true));
    assert!(shorter < 0.7 * longer, "Qlen {shorter} of {longer}");
    assert!(fewer < 0.7 * all, "Soft_Limit {fewer} of {all}");
}

/// A custom scheduler replaces the configured one.
#[test]
fn a_custom_scheduler_replaces_the_configured_one() {
    let (fcfs, host_first) = (
        overloaded(Scheduler::Fcfs),
        overloaded(Scheduler::HostFirst),
    );
    let built = Machine::builder(&fcfs)
        .scheduler(Scheduler::HostFirst)
        .build();
    let mut found = built.unwrap().run("test", &mut NoObserver).unwrap();
    let expected = complete(&host_first);
    found.experiment = expected.experiment.clone();
    found.workload = expected.workload.clone();
    assert_eq!(found, expected);
    assert_ne!(complete(&fcfs).nic, expected.nic, "the policies differ");
}

/// A custom rule replaces level and timer, on both sides.
#[test]
fn custom_batching_replaces_the_configured_one() {
    #[derive(Debug)]
    struct EachAlone;
    impl BatchingRule for EachAlone {
        fn queued(&mut self, now: Time, _flow: u32, _urgency: Urgency) -> Time {
            now + Span::from_ms(1)
        }
        fn most_waiting(&self) -> u32 {
            1
        }
        fn taken(&mut self, _now: Time) {}
        fn clear(&mut self) {}
    }
    let named = with(machine(64 << 10), MINIMAL, MINIMAL);
    let other = with(machine(64 << 10), (16, 1_000), (16, 1_000));
    let (expected, without) = (complete(&named), complete(&other));
    let built = Machine::builder(&other)
        .batching(|_depth| EachAlone)
        .build();
    let mut found = built.unwrap().run("test", &mut NoObserver).unwrap();
    found.experiment = expected.experiment.clone();
    found.workload = expected.workload.clone();
    assert_eq!(found, expected);
    assert_ne!(without.offload, expected.offload, "the policies differ");
}

/// Requests and responses with inline data take several descriptors, and the ring may have space for fewer. A host that retried immediately
/// without cost would never let time pass.
#[test]
fn a_request_waits_until_all_of_it_fits() {
    let mut experiment = with(machine(82_079), (8, 44), (2, 2_020));
    experiment.run.seed = 13_810_200_011_376_041_718;
    experiment.run.measured_responses = Some(15);
    experiment.clients.connections = 8;
    let offload = offload(&mut experiment);
    offload.host.piece = Piece::One;
    let (host, adapter) = (&mut offload.host.interface, &mut offload.adapter.interface);
    host.batching.policy = BatchingPolicy::Adaptive;
    (host.bulk_accept, host.accept_timeout_us) = (1, 2_000);
    (host.most_inline, adapter.most_inline) = (221, 221);
    adapter.cumulative_sends = false;
    host.batching.max_transfer_bytes = 1 << 10;
    adapter.batching.max_transfer_bytes = 1 << 10;
    complete(&experiment);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With any settings, every byte of every reply is correct, and every invariant holds after every event.
    #[test]
    fn any_settings_serve_every_request(
        levels in (0_u32..8, 0_u32..8),
        timers_us in (1_u32..3_000, 1_u32..3_000),
        adaptive in any::<(bool, bool)>(),
        file_bytes in prop_oneof![0_u32..3_000, 3_000_u32..100_000],
        connections in 1_u32..12,
        bulk_accept in 1_u16..5,
        inline in (0_u32..240, any::<bool>()),
        transfer_bytes in 9_u32..14,
        loss in prop_oneof![Just(0.0), 0.0_f64..0.05],
        handoff in prop::option::of((0_u32..11, 1_u32..20)),
        load in 0_u32..5,
        queues in prop::option::of((any::<bool>(), 2_u32..40, 2_u32..40, 1_u32..64, 1_u32..9)),
        small_host_pieces in any::<bool>(),
        nics in prop_oneof![2 => Just(1_u32), 1 => 2_u32..5],
        seed in any::<u64>(),
    ) {
        let mut experiment = with(
            machine(file_bytes),
            (1 << levels.0, timers_us.0),
            (1 << levels.1, timers_us.1),
        );
        experiment.nics = nics.into();
        experiment.run.seed = seed;
        experiment.run.check = true;
        experiment.run.measured_responses = Some(15);
        experiment.clients.connections = connections;
        experiment.wire.loss = loss;
        let offload = offload(&mut experiment);
        let (host, adapter) = (&mut offload.host.interface, &mut offload.adapter.interface);
        let policy = |on| if on { BatchingPolicy::Adaptive } else { BatchingPolicy::Fixed };
        (host.batching.policy, adapter.batching.policy) = (policy(adaptive.0), policy(adaptive.1));
        host.bulk_accept = bulk_accept;
        host.accept_timeout_us = 2_000;
        (host.most_inline, adapter.most_inline) = (inline.0, inline.0);
        adapter.cumulative_sends = inline.1;
        // Packets of the host's own stack are transferred as a whole.
        let transfer_bytes = transfer_bytes.max(if handoff.is_some() { 11 } else { 0 });
        host.batching.max_transfer_bytes = 1 << transfer_bytes;
        adapter.batching.max_transfer_bytes = 1 << transfer_bytes;
        if let Some((policy, hard_limit)) = handoff {
            offload.established_by = EstablishedBy::Host;
            experiment.nic.firmware.hard_limit = hard_limit;
            experiment.host.kernel.selection = match policy {
                0 => SelectionConfig::Fcfs,
                1 => SelectionConfig::Alternate { enqueues: 1 },
                2 => SelectionConfig::Alternate { enqueues: 2 },
                3 => SelectionConfig::Threshold { enqueues: 3 },
                4 => SelectionConfig::AtReceive { receives: 1 },
                5 => SelectionConfig::Rate { percent: 90 },
                6 => SelectionConfig::Benefit { enqueues: 2 },
                7 => SelectionConfig::Oracle { enqueues: 2 },
                8 => SelectionConfig::Learned,
                9 => SelectionConfig::Bulk { bytes: 4096, selection: Box::default() },
                _ => SelectionConfig::Retry { selection: Box::default() },
            };
            let control = &mut experiment.nic.firmware.load_control;
            control.enabled = load > 0;
            (control.high_water_packets, control.low_water_packets) = (2, 1);
            control.measure_us = 100;
            control.relief = if load > 1 { Relief::Active } else { Relief::Passive };
            control.measure = match load {
                3 => LoadMeasure::Busy { high_percent: 40, low_percent: 10 },
                4 => LoadMeasure::PacketRate {
                    high_per_s: 20_000,
                    low_per_s: 5_000,
                    host_weight: 1,
                    nic_weight: 4,
                },
                _ => LoadMeasure::Queue,
            };
        }
        if small_host_pieces {
            self::offload(&mut experiment).host.piece = Piece::One;
        }
        if let Some((host_first, arrivals, received, descriptors, burst)) = queues {
            self::offload(&mut experiment).adapter.piece = Piece::One;
            let firmware = &mut experiment.nic.firmware;
            firmware.scheduler = if host_first { Scheduler::HostFirst } else { Scheduler::Fcfs };
            firmware.arrival_queue_packets = arrivals;
            firmware.receive_queue_packets = received.max(3);
            firmware.descriptor_queue_entries = descriptors;
            firmware.transmit_burst_segments = burst;
        }
        let results = run(&experiment).expect("the run succeeds");
        prop_assert_eq!(results.ended, Ended::Complete);
        prop_assert!(results.clients.failed.values().all(|count| *count == 0));
    }
}

/// Returns a machine whose host stack serves the requests of a log.
fn from_a_log(application: web::Config) -> Experiment {
    let mut experiment = machine(8 << 10);
    offload(&mut experiment).established_by = EstablishedBy::Host;
    experiment.host.kernel.selection = SelectionConfig::Never;
    experiment.application = ApplicationConfig::Web(application);
    experiment.workload = WorkloadConfig::Generated {
        preset: "rice".to_owned(),
        requests: 2_000,
        persistent_s: 15,
        pipeline_s: Some(5),
    };
    experiment.clients.connections = 16;
    experiment.run.measured_responses = Some(1_000);
    experiment.run.limit_s = 100;
    experiment
}

/// Requests that share a connection in the log use several if the server closes each connection after a response.
#[test]
fn a_server_that_closes_has_a_connection_for_each_request() {
    let experiment = from_a_log(web::Config {
        keep_alive: false,
        ..web::Config::default()
    });
    let results = complete(&experiment);
    let ended = results
        .clients
        .responses
        .abs_diff(results.clients.connections);
    assert!(ended <= 16, "{ended}");
}
