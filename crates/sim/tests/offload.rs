//! The machine with full offload: the published table, what it costs, and that nothing gets lost whatever the settings.

use baton_bus::BatchingPolicy;
use baton_bus::interconnect::InterconnectConfig;
use baton_sim::offload::{Experiment, PagesConfig, Results, run};
use baton_sim::results::Ended;
use proptest::prelude::*;

/// Level and timer.
type Setting = (u32, u32);

const MINIMAL: Setting = (1, 1_000);

fn machine(file_bytes: u32) -> Experiment {
    let text = include_str!("../../../profiles/batching.toml");
    let mut experiment: Experiment = toml::from_str(text).expect("the profile is sound");
    experiment.load.file_bytes = file_bytes;
    experiment.run.warmup_responses = 5;
    experiment.run.measured_responses = 40;
    experiment
}

fn with(mut experiment: Experiment, host: Setting, adapter: Setting) -> Experiment {
    let host_side = &mut experiment.host.interface.batching;
    (host_side.level, host_side.timer_us) = host;
    let adapter_side = &mut experiment.adapter.interface.batching;
    (adapter_side.level, adapter_side.timer_us) = adapter;
    experiment
}

fn results(experiment: &Experiment) -> Results {
    let results = run(experiment, "test").expect("a run that goes well");
    assert_eq!(results.ended, Ended::Complete);
    assert!(results.failed.is_empty(), "{:?}", results.failed);
    results
}

/// Response time and crossings over the baseline's.
fn ratios(experiment: &Experiment, baseline: &Results) -> (f64, f64) {
    let results = results(experiment);
    (
        results.response_time_us / baseline.response_time_us,
        results.crossings_per_response / baseline.crossings_per_response,
    )
}

/// Tables 1 and 2 for one connection: crossings within 0.05, response times within 30 per cent where batching is maximal, and within 0.1
/// where the adapter's is tuned.
#[test]
fn one_connection_is_as_published() {
    /// Response time with batching on host, adapter and both, crossings with batching on the adapter or both.
    struct Published(u32, [f64; 3], f64);
    for Published(file_bytes, response, crossings) in [
        Published(1 << 10, [10.6, 8.17, 17.8], 0.77),
        Published(64 << 10, [5.7, 8.21, 12.93], 0.94),
        Published(512 << 10, [5.7, 8.03, 12.07], 1.0),
    ] {
        let machine = machine(file_bytes);
        let baseline = results(&with(machine.clone(), MINIMAL, MINIMAL));
        let maximal = (128, (baseline.response_time_us / 2.0) as u32);
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
    let baseline = results(&with(machine.clone(), MINIMAL, MINIMAL));
    let (time, xing) = ratios(&with(machine, MINIMAL, (4, 1_000)), &baseline);
    assert!(
        (xing - 0.77).abs() <= 0.05 && (time - 1.05).abs() <= 0.1,
        "{xing}, {time}"
    );
}

/// What crosses for one reply, counted by hand.
#[test]
fn crossings_of_one_reply_are_those_of_the_protocol() {
    let small = results(&machine(1 << 10));
    // Requests: ACCEPT and RECV together, two SENDs and CLOSE together. Responses: ACCEPT, RECV, two SENDs together, CLOSE.
    // Data: the request, header and content.
    assert_eq!(small.crossings_per_response, (2 + 4 + 3) as f64);
    let large = results(&machine(64 << 10));
    assert_eq!(large.crossings_per_response, (2 + 4 + 1 + 1 + 16) as f64);
    assert_eq!(large.bus.to_nic.bytes.content, 40 * (64 << 10));
    assert_eq!(large.transfer_ms.count, 40);
}

#[test]
fn equal_experiments_give_equal_bits() {
    let mut experiment = machine(64 << 10);
    experiment.load.connections = 5;
    let json = |experiment: &Experiment| serde_json::to_string(&results(experiment)).unwrap();
    assert_eq!(json(&experiment), json(&experiment));
    let mut other = experiment.clone();
    other.run.seed += 1;
    assert_ne!(json(&experiment), json(&other), "the seed has a say");
}

/// The numbers of one short run, to the last bit. Where a change of the model is meant, so is a change here.
#[test]
fn a_short_run_is_as_recorded() {
    let mut experiment = with(machine(64 << 10), MINIMAL, (4, 1_000));
    experiment.load.connections = 3;
    let results = results(&experiment);
    let recorded = format!(
        "{} {} {} {:?} {:?}",
        results.response_time_us,
        results.transfer_time_us,
        results.bus.crossings(),
        &results.host_transfers.buckets[..8],
        &results.adapter_transfers.buckets[..8],
    );
    assert_eq!(recorded, GOLDEN);
}

const GOLDEN: &str =
    "3636.236630375 13397.604000000001 794 [0, 0, 13, 0, 0, 13, 13, 0] [0, 0, 27, 0, 0, 13, 13, 0]";

#[test]
fn an_interconnect_takes_time_and_changes_no_count() {
    let mut experiment = machine(1 << 10);
    experiment.run.check = true;
    experiment.host.costs.wake_up_jitter_percent = 0;
    experiment.adapter.costs.wake_up_jitter_percent = 0;
    let ideal = results(&experiment);
    for name in ["pci-64-33", "pcie-3-x8"] {
        experiment.link.interconnect = InterconnectConfig::preset(name).unwrap();
        let results = results(&experiment);
        assert!(
            results.response_time_us > ideal.response_time_us,
            "{name}: {} us",
            results.response_time_us
        );
        assert_eq!(results.bus, ideal.bus, "{name}");
    }
}

#[test]
fn a_rate_is_kept_until_there_are_too_many_connections() {
    let mut experiment = machine(1 << 10);
    experiment.load.rate_per_s = 200;
    experiment.load.connections = 100;
    let kept = results(&experiment);
    assert!(
        (kept.responses_per_s - 200.0).abs() < 10.0,
        "{}",
        kept.responses_per_s
    );
    experiment.load.rate_per_s = 20_000;
    experiment.load.connections = 10;
    let refused = run(&experiment, "").unwrap();
    assert!(refused.failed["no_free_connection"] > 0);
}

#[test]
fn pages_written_behind_a_cork_fill_transfers() {
    let mut experiment = machine(16 << 10);
    experiment.host.pages = Some(PagesConfig {
        piece_bytes: 512,
        interval_us: 100,
    });
    let crossings = |cork_timer_us| {
        let mut experiment = experiment.clone();
        experiment.host.interface.cork_timer_us = cork_timer_us;
        results(&experiment).crossings_per_response
    };
    let (short, long) = (crossings(10), crossings(10_000));
    assert!(long < 0.5 * short, "{long} of {short}");
}

/// What the adaptive policy is for: at 1 KB, with one and with five connections.
#[test]
fn adaptive_batching_saves_crossings_at_hardly_any_cost() {
    for connections in [1, 5] {
        let (mut times, mut crossings) = ([0.0; 2], [0.0; 2]);
        for seed in 1..=6 {
            let mut experiment = machine(1 << 10);
            experiment.run.seed = seed;
            experiment.load.connections = connections;
            experiment.run.warmup_responses = 100;
            experiment.run.measured_responses = 500;
            for policy in [BatchingPolicy::Fixed, BatchingPolicy::Adaptive] {
                experiment.host.interface.batching.policy = policy;
                experiment.adapter.interface.batching.policy = policy;
                let results = results(&experiment);
                times[policy as usize] += results.response_time_us;
                crossings[policy as usize] += results.crossings_per_response;
            }
        }
        let (time, xing) = (times[1] / times[0], crossings[1] / crossings[0]);
        assert!(
            time <= 1.05 && xing <= 0.80,
            "{connections}: {time}, {xing}"
        );
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |change: fn(&mut Experiment)| {
        let mut experiment = machine(1 << 10);
        change(&mut experiment);
        run(&experiment, "").unwrap_err().to_string()
    };
    assert!(refused(|e| e.load.connections = 0).starts_with("load.connections: 0"));
    assert!(refused(|e| e.wire.rate_mbps = 0).starts_with("wire.rate_mbps"));
    assert!(refused(|e| e.adapter.interface.batching.level = 129).starts_with("adapter.interface"));
    assert!(refused(|e| e.host.interface.most_sends = 0).starts_with("host.interface"));
    assert!(refused(|e| e.host.costs.wake_up_jitter_percent = 101).contains("at most 100"));
    let unknown = toml::from_str::<Experiment>("[load]\nfiles = 3").unwrap_err();
    assert!(unknown.to_string().contains("unknown field `files`"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the settings: every byte of every reply is right, every invariant holds after every event.
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
        seed in any::<u64>(),
    ) {
        let mut experiment = with(
            machine(file_bytes),
            (1 << levels.0, timers_us.0),
            (1 << levels.1, timers_us.1),
        );
        experiment.run.seed = seed;
        experiment.run.check = true;
        experiment.run.measured_responses = 15;
        experiment.load.connections = connections;
        experiment.wire.loss = loss;
        let (host, adapter) = (&mut experiment.host.interface, &mut experiment.adapter.interface);
        let policy = |on| if on { BatchingPolicy::Adaptive } else { BatchingPolicy::Fixed };
        (host.batching.policy, adapter.batching.policy) = (policy(adaptive.0), policy(adaptive.1));
        host.bulk_accept = bulk_accept;
        host.accept_patience_us = 2_000;
        (host.most_inline, adapter.most_inline) = (inline.0, inline.0);
        adapter.cumulative_sends = inline.1;
        host.batching.max_transfer_bytes = 1 << transfer_bytes;
        adapter.batching.max_transfer_bytes = 1 << transfer_bytes;
        let results = run(&experiment, "").expect("nothing goes wrong");
        prop_assert_eq!(results.ended, Ended::Complete);
        prop_assert!(results.failed.is_empty());
    }
}
