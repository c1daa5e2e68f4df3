//! Servers other than the paper's web server: a live stream, titles on demand, remote files that clients write (data-caching 6.4).
//!
//! The machine itself checks that every byte that clients receive is the right one, of a revision that was current while they waited.

use baton_sim::config::{ApplicationConfig, Experiment, LiveConfig, WorkloadConfig};
use baton_sim::results::Results;
use baton_sim::{NoObserver, run};
use baton_workload::{FixedSpec, OnDemandSpec, RemoteFilesSpec, TitleClass};

fn results(experiment: &Experiment) -> Results {
    run(experiment, "test", &[], &mut NoObserver).unwrap_or_else(|error| panic!("{error}"))
}

/// Few packets of few clients, with every check after every event.
fn small(workload: WorkloadConfig, application: ApplicationConfig) -> Experiment {
    let mut experiment = Experiment {
        workload,
        application,
        ..Experiment::default()
    };
    experiment.clients.connections = 20;
    experiment.nic.mips = 1600;
    experiment.nic.firmware.connections = 0;
    experiment.run.warmup_packets = 2_000;
    experiment.run.measured_packets = 10_000;
    experiment.run.check = true;
    experiment
}

/// Loses, repeats and delays frames.
fn faulty(mut experiment: Experiment, seed: u64) -> Experiment {
    experiment.run.seed = seed;
    experiment.wire.loss = 0.02;
    experiment.wire.reorder = 0.03;
    experiment.wire.duplicate = 0.01;
    experiment.wire.reorder_delay_us = 200;
    for tcp in [&mut experiment.tcp, &mut experiment.clients.tcp] {
        (tcp.rto_min_ms, tcp.rto_initial_ms) = (5, 20);
    }
    experiment
}

fn live(clients: u32) -> Experiment {
    let block = LiveConfig {
        block_bytes: 20_000,
        interval_us: 5_000,
        evict_delivered: true,
    };
    let viewer = FixedSpec::httperf(block.block_bytes.into(), 1_000, None);
    let mut experiment = small(
        WorkloadConfig::Fixed(viewer),
        ApplicationConfig::Live(block),
    );
    experiment.clients.connections = clients;
    experiment
}

fn remote_files(write_percent: u32) -> Experiment {
    let load = RemoteFilesSpec {
        ranges: 50,
        bytes: 32 * 1024,
        write_percent,
        operations: 40,
    };
    let workload = WorkloadConfig::RemoteFiles(load);
    small(workload, ApplicationConfig::RemoteFiles)
}

fn on_demand(rate_kbps: u32) -> Experiment {
    let class = |titles, bytes| TitleClass {
        viewers: 1,
        titles,
        bytes,
    };
    let load = OnDemandSpec {
        classes: vec![class(4, 400_000), class(2, 3_000_000)],
        rate_kbps,
        chunk_bytes: 65_536,
    };
    small(WorkloadConfig::OnDemand(load), ApplicationConfig::Web)
}

#[test]
fn every_viewer_gets_every_block_of_a_live_stream() {
    let run = results(&live(20));
    let blocks = run.measured_s / 0.005;
    let expected = blocks * 20.0;
    let got = run.clients.responses as f64;
    assert!((got / expected - 1.0).abs() < 0.1, "{got} of {expected}");
    let rate = run.clients.content_mbps;
    let expected = 20.0 * 20_000.0 * 8.0 / 5_000.0;
    assert!(
        (rate / expected - 1.0).abs() < 0.1,
        "{rate} of {expected} Mb/s"
    );
    assert_eq!(run.clients.connections, 0, "nobody has had enough");
}

#[test]
fn a_live_stream_is_right_under_faults_and_handoff() {
    for seed in 0..5 {
        let mut experiment = faulty(live(20), seed);
        experiment.nic.firmware.connections = 10;
        let run = results(&experiment);
        assert!(run.clients.responses > 100, "seed {seed}");
        assert!(run.clients.retransmissions + run.host.retransmissions > 0);
    }
}

#[test]
fn reads_are_current_while_others_write() {
    for (seed, write_percent) in [(1, 0), (2, 10), (3, 50), (4, 100)] {
        let mut experiment = faulty(remote_files(write_percent), seed);
        experiment.nic.firmware.connections = if seed % 2 == 0 { 10 } else { 0 };
        let run = results(&experiment);
        assert!(run.clients.responses > 100, "{write_percent} % of writes");
        let (read, written) = (run.bus.to_nic.bytes.content, run.bus.to_host.bytes.content);
        assert_eq!(read == 0, write_percent == 100, "{read} bytes read");
        assert_eq!(written == 0, write_percent == 0, "{written} bytes written");
    }
}

#[test]
fn titles_are_played_at_their_rate() {
    let run = results(&on_demand(8_000));
    let expected = 20.0 * 8.0;
    let rate = run.clients.content_mbps;
    assert!(
        (rate / expected - 1.0).abs() < 0.2,
        "{rate} of {expected} Mb/s"
    );
}

#[test]
fn clients_that_ask_for_something_else_are_refused() {
    let refused = |experiment: &Experiment| {
        let error = run(experiment, "test", &[], &mut NoObserver).expect_err("it cannot be");
        error.to_string()
    };
    let mut experiment = live(2);
    experiment.workload = WorkloadConfig::Fixed(FixedSpec::httperf(7, 1, None));
    assert_eq!(
        refused(&experiment),
        "workload.bytes: 7; expected 20000, what application.block_bytes says"
    );
    let mut experiment = remote_files(10);
    experiment.application = ApplicationConfig::Web;
    assert_eq!(
        refused(&experiment),
        "application.kind: web; expected remote-files, for this workload"
    );
}
