//! The machine with full offload: published tables, costs, and complete replies with any settings.

use crate::checked::{complete, run};
use baton_apps::web;
use baton_bus::interconnect::InterconnectConfig;
use baton_bus::{BatchingPolicy, BatchingRule, Urgency};
use baton_host::{AffinityConfig, SelectionConfig};
use baton_nic::{Config, LoadMeasure, Relief, Scheduler};
use baton_sim::config::{
    ApplicationConfig, EstablishedBy, Experiment, OffloadConfig, PagesConfig, Piece, WorkloadConfig,
};
use baton_sim::results::{Ended, Results, Sample};
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

/// Returns the mean time to the first byte of a reply, in microseconds.
fn response_us(results: &Results) -> f64 {
    1e3 * results.clients.first_byte_ms.mean.expect("responses")
}

/// Returns response time and crossings as ratios to the baseline's.
fn ratios(experiment: &Experiment, baseline: &Results) -> (f64, f64) {
    let results = complete(experiment);
    (
        response_us(&results) / response_us(baseline),
        results.crossings_per_response() / baseline.crossings_per_response(),
    )
}

/// Tables 1 and 2 for one connection: crossings within 0.05; response times within 30 per cent with maximal batching, and within 0.1 with
/// the adapter's tuned batching.
#[test]
fn one_connection_matches_the_published_numbers() {
    /// File size, response times with batching on host, adapter and both, and crossings with batching on the adapter or both.
    struct Published(u32, [f64; 3], f64);
    for Published(file_bytes, response, crossings) in [
        Published(1 << 10, [10.6, 8.17, 17.8], 0.77),
        Published(64 << 10, [5.7, 8.21, 12.93], 0.94),
        Published(512 << 10, [5.7, 8.03, 12.07], 1.0),
    ] {
        let machine = machine(file_bytes);
        let baseline = complete(&with(machine.clone(), MINIMAL, MINIMAL));
        let maximal = (128, (response_us(&baseline) / 2.0) as u32);
        let settings = [(maximal, MINIMAL), (MINIMAL, maximal), (maximal, maximal)];
        for (index, (host, adapter)) in settings.into_iter().enumerate() {
            let (time, xing) = ratios(&with(machine.clone(), host, adapter), &baseline);
            let wanted = if index == 0 { 1.0 } else { crossings };
            assert!(
                (xing - wanted).abs() <= 0.05,
                "{file_bytes} B, {index}: {xing}"
            );
            let error = time / response[index] - 1.0;
            assert!(error.abs() <= 0.30, "{file_bytes} B, {index}: {time}");
        }
    }
    let machine = machine(1 << 10);
    let baseline = complete(&with(machine.clone(), MINIMAL, MINIMAL));
    let (time, xing) = ratios(&with(machine, MINIMAL, (4, 1_000)), &baseline);
    assert!(
        (xing - 0.77).abs() <= 0.05 && (time - 1.05).abs() <= 0.1,
        "{xing}, {time}"
    );
}

/// Crossings of the bus for one reply, counted by hand.
#[test]
fn crossings_of_one_reply_are_those_of_the_protocol() {
    let small = complete(&machine(1 << 10));
    // Requests: ACCEPT and RECV together, two SENDs and CLOSE together. Responses: ACCEPT, RECV, two SENDs together, CLOSE.
    // Data: the request, header and content.
    assert_eq!(small.crossings_per_response(), (2 + 4 + 3) as f64);
    let large = complete(&machine(64 << 10));
    assert_eq!(large.crossings_per_response(), (2 + 4 + 1 + 1 + 16) as f64);
    assert_eq!(large.bus.to_nic.bytes.content, 40 * (64 << 10));
    assert_eq!(large.clients.transfer_ms.count, 40);
}

#[test]
fn equal_experiments_give_equal_bits() {
    let mut experiment = machine(64 << 10);
    experiment.clients.connections = 5;
    let bits = |experiment: &Experiment| format!("{:?}", complete(experiment));
    assert_eq!(bits(&experiment), bits(&experiment));
    let mut other = experiment.clone();
    other.run.seed += 1;
    assert_ne!(bits(&experiment), bits(&other), "the seed matters");
}

#[test]
fn an_interconnect_takes_time_and_changes_no_count() {
    let mut experiment = machine(1 << 10);
    experiment.run.check = true;
    offload(&mut experiment).host.wake_up.jitter_percent = 0;
    offload(&mut experiment).adapter.wake_up.jitter_percent = 0;
    let ideal = complete(&experiment);
    for name in ["pci-64-33", "pcie-3-x8"] {
        experiment.interconnect = InterconnectConfig::preset(name).unwrap();
        let results = complete(&experiment);
        let (time, ideal_time) = (response_us(&results), response_us(&ideal));
        assert!(time > ideal_time, "{name}: {time} us");
        assert!(results.interconnect.is_some() && ideal.interconnect.is_none());
        assert_eq!(results.bus, ideal.bus, "{name}");
    }
}

#[test]
fn an_offered_rate_is_served_up_to_saturation() {
    let mut experiment = machine(1 << 10);
    load(&mut experiment).connections_per_s = Some(200);
    experiment.clients.connections = 100;
    let kept = complete(&experiment);
    let rate = kept.clients.request_rate;
    assert!((rate - 200.0).abs() < 10.0, "{rate}");
    load(&mut experiment).connections_per_s = Some(20_000);
    experiment.clients.connections = 10;
    let over = run(&experiment).unwrap();
    let open_loop = over.clients.open_loop.expect("an open loop");
    assert!((open_loop.offered_rate - 20_000.0).abs() < 1_000.0);
    assert!(
        over.clients.request_rate < 15_000.0
            && over.clients.failed.values().all(|count| *count == 0)
    );
}

#[test]
fn pages_written_behind_a_cork_fill_transfers() {
    let mut experiment = machine(16 << 10);
    experiment.application = ApplicationConfig::Pages(PagesConfig {
        piece_bytes: 512,
        interval_us: 100,
    });
    let crossings = |cork_timer_us| {
        let mut experiment = experiment.clone();
        offload(&mut experiment).host.interface.cork_timer_us = cork_timer_us;
        complete(&experiment).crossings_per_response()
    };
    let (short, long) = (crossings(10), crossings(10_000));
    assert!(long < 0.5 * short, "{long} of {short}");
}

/// The host establishes connections and hands them off according to the policy, with the same descriptors.
#[test]
fn connections_are_handed_off_as_the_policy_says() {
    let mut experiment = machine(8 << 10);
    experiment.clients.connections = 20;
    experiment.run.check = true;
    offload(&mut experiment).established_by = EstablishedBy::Host;
    let all = complete(&experiment);
    let handoff = &all.handoff;
    // Some handoffs are in progress when the run ends.
    assert!(handoff.attempted >= all.clients.connections, "{handoff:?}");
    assert!(
        handoff.not_offloaded.values().all(|count| *count == 0),
        "{handoff:?}"
    );
    assert!(handoff.accepted > 0 && handoff.offloaded_packets_percent > 50.0);
    let states = all.bus.to_nic.bytes.descriptor;
    experiment.host.kernel.selection = SelectionConfig::Never;
    let none = complete(&experiment);
    assert_eq!(none.handoff.attempted, 0);
    assert_eq!(none.handoff.offloaded_packets_percent, 0.0);
    assert!(none.host.host_packets.packets > 0 && none.host.nic_packets.packets == 0);
    assert!(
        none.bus.to_nic.bytes.protocol_header > 0,
        "packets cross with their headers"
    );
    assert!(
        states > none.bus.to_nic.bytes.descriptor / 2,
        "states cross as descriptors do"
    );
}

/// A connection may be handed off between two sends that a cork joins: data that is in TCP's buffer by then must not get stuck there.
#[test]
fn corked_data_is_sent_after_a_handoff() {
    for enqueues in 1..=4 {
        let mut experiment = machine(100);
        experiment.clients.connections = 4;
        experiment.application = ApplicationConfig::default();
        experiment.tcp.cork_limit_ms = 0;
        load(&mut experiment).requests = 4;
        offload(&mut experiment).established_by = EstablishedBy::Host;
        experiment.host.kernel.selection = SelectionConfig::Threshold { enqueues };
        let results = complete(&experiment);
        assert!(results.handoff.accepted > 0, "after {enqueues}");
    }
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

/// With first come, first served, packets of the host wait with all others; host first takes them out of turn (handoff-policies 4.2).
#[test]
fn host_first_shortens_the_wait_of_host_packets() {
    let [fcfs, host_first] =
        [Scheduler::Fcfs, Scheduler::HostFirst].map(|scheduler| complete(&overloaded(scheduler)));
    for (fcfs, host_first) in [
        (&fcfs.nic.receive_delay_us, &host_first.nic.receive_delay_us),
        (&fcfs.nic.send_delay_us, &host_first.nic.send_delay_us),
    ] {
        let [waits, spared] = [fcfs, host_first].map(|delay| delay.p50.expect("packets"));
        assert!(spared < 0.5 * waits, "{spared} us of {waits}");
    }
}

/// Queues are finite; packets that find a queue full are dropped, counted by queue, and retransmitted.
#[test]
fn drops_of_full_queues_are_counted_by_name() {
    let dropped = |scheduler, change: fn(&mut Config)| {
        let mut experiment = overloaded(scheduler);
        change(&mut experiment.nic.firmware);
        complete(&experiment).nic.drops
    };
    let arrivals = dropped(Scheduler::Fcfs, |queues| queues.arrival_queue_packets = 8);
    assert!(arrivals["arrival_queue"] > 0, "{arrivals:?}");
    let received = dropped(Scheduler::HostFirst, |queues| {
        queues.receive_queue_packets = 8
    });
    assert!(received["nic_receive_queue"] > 0, "{received:?}");
    let plenty = dropped(Scheduler::HostFirst, |_| ());
    assert!(plenty.values().all(|count| *count == 0), "{plenty:?}");
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

/// Hard_Limit and load control work as on every other machine.
#[test]
fn limits_keep_connections_on_the_host() {
    let mut experiment = machine(8 << 10);
    experiment.clients.connections = 20;
    offload(&mut experiment).established_by = EstablishedBy::Host;
    experiment.nic.firmware.hard_limit = 3;
    let results = complete(&experiment);
    assert!(results.handoff.accepted > 0);
    assert!(
        results.handoff.not_offloaded["soft_limit"] > 0,
        "{:?}",
        results.handoff
    );
    assert!(results.series.iter().all(|sample| sample.soft_limit <= 3));
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

/// Checks the purpose of the adaptive policy with 1 KB files, for one and for five connections.
#[test]
fn adaptive_batching_saves_crossings_at_hardly_any_cost() {
    for connections in [1, 5] {
        let (mut times, mut crossings) = ([0.0; 2], [0.0; 2]);
        for seed in 1..=60 {
            let mut experiment = machine(1 << 10);
            experiment.run.seed = seed;
            experiment.clients.connections = connections;
            experiment.run.warmup_responses = Some(100);
            experiment.run.measured_responses = Some(500);
            for policy in [BatchingPolicy::Fixed, BatchingPolicy::Adaptive] {
                let offload = offload(&mut experiment);
                offload.host.interface.batching.policy = policy;
                offload.adapter.interface.batching.policy = policy;
                let results = complete(&experiment);
                times[policy as usize] += response_us(&results);
                crossings[policy as usize] += results.crossings_per_response();
            }
        }
        let (time, xing) = (times[1] / times[0], crossings[1] / crossings[0]);
        assert!(
            time <= 1.05 && xing <= 0.85,
            "{connections}: {time}, {xing}"
        );
    }
}

#[test]
fn impossible_configurations_are_refused() {
    let refused = |change: fn(&mut Experiment)| {
        let mut experiment = machine(1 << 10);
        change(&mut experiment);
        run(&experiment).unwrap_err().to_string()
    };
    assert!(refused(|e| e.clients.connections = 0).starts_with("clients.connections: 0"));
    assert!(refused(|e| e.wire.rate_mbps = 0).starts_with("wire.rate_mbps"));
    assert!(
        refused(|e| offload(e).adapter.interface.batching.level = 129)
            .starts_with("offload.adapter.interface")
    );
    assert!(
        refused(|e| offload(e).host.interface.most_sends = 0).starts_with("offload.host.interface")
    );
    assert!(refused(|e| offload(e).host.wake_up.jitter_percent = 101).contains("at most 100"));
    assert!(
        refused(|e| {
            offload(e).established_by = EstablishedBy::Host;
            offload(e).host.interface.batching.max_transfer_bytes = 1024;
        })
        .starts_with(
            "offload.host.interface.batching.max_transfer_bytes: 1024; expected at least 1560"
        )
    );
    let parts = refused(|e| {
        offload(e).established_by = EstablishedBy::Host;
        e.interconnect = InterconnectConfig::preset("pci-64-66").unwrap();
        offload(e).host.interface.packet_buffers = 4;
    });
    let expected = "offload.host.interface.packet_buffers: 4; expected at least 5, the parts";
    assert!(parts.starts_with(expected), "{parts}");
    let affinity = refused(|e| e.host.kernel.affinity = AffinityConfig::ByFile);
    assert!(
        affinity.starts_with("host.kernel.affinity: by-file; expected arrival, because adapters"),
        "{affinity}"
    );
}

/// Requests and responses with inline data take several descriptors, and the ring may have space for fewer. A host that retried at once
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
        handoff in prop::option::of((0_u32..9, 1_u32..20)),
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

/// With pipelined requests, there may be space for part of a header only; the rest is sent later.
#[test]
fn headers_are_sent_even_if_space_is_short() {
    let mut experiment = from_a_log(web::Config::default());
    experiment.tcp.send_buffer = 4_000;
    let results = complete(&experiment);
    assert!(results.clients.connections < results.clients.responses);
}

/// Requests that a log has on one connection use several if the server closes each connection after a response.
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
