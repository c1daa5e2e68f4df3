//! Servers other than the paper's web server: live stream, video on demand, and remote files that clients write (data-caching 6.4).
//!
//! The machine itself checks every byte that clients receive: it must be from a revision that was current while they waited.

use crate::checked::{check, faulty, results, run};
use baton_apps::web;
use baton_bus::interconnect::InterconnectConfig;
use baton_host::{AffinityConfig, CoherenceConfig};
use baton_sim::config::{ApplicationConfig, Experiment, LiveConfig, WorkloadConfig};
use baton_sim::results::{NicCacheResults, Results};
use baton_workload::{FixedSpec, OnDemandSpec, RemoteFilesSpec, TitleClass};

/// Returns an experiment with few packets of few clients, and every check after every event.
fn small(workload: WorkloadConfig, application: ApplicationConfig) -> Experiment {
    let mut experiment = Experiment {
        workload,
        application,
        ..Experiment::default()
    };
    experiment.clients.connections = 20;
    experiment.nic.mips = 1600;
    experiment.nic.firmware.hard_limit = 0;
    experiment.run.warmup_packets = Some(2_000);
    experiment.run.measured_packets = 10_000;
    check(&mut experiment);
    experiment
}

const BLOCK: LiveConfig = LiveConfig {
    block_bytes: 20_000,
    interval_us: 5_000,
    evict_delivered: true,
};

fn live(clients: u32) -> Experiment {
    let viewer = FixedSpec::httperf(BLOCK.block_bytes.into(), 1_000, None);
    let mut experiment = small(
        WorkloadConfig::Fixed(viewer),
        ApplicationConfig::Live(BLOCK),
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
    small(WorkloadConfig::OnDemand(load), ApplicationConfig::default())
}

/// Adds a data cache of `kib` to each NIC, and a bus that is fast enough.
fn cached(mut experiment: Experiment, kib: u32) -> Experiment {
    experiment.interconnect = InterconnectConfig::preset("pci-x-133").expect("a preset");
    experiment.host.kernel.nic_cache.enabled = true;
    experiment.nic.firmware.memory_kib = 64 * 1024;
    experiment.nic.firmware.cache.kib = kib;
    experiment
}

/// Returns the bytes of content that crossed the bus to the NICs for each byte that clients received.
fn bus_bytes_per_delivered(run: &Results) -> f64 {
    let delivered = run.clients.content_mbps * run.measured_s * 1e6 / 8.0;
    run.bus.to_nic.bytes.content as f64 / delivered
}

/// Returns the results of the caches of all NICs.
fn caches(run: &Results) -> Vec<&NicCacheResults> {
    let ports = run.nics.iter();
    ports.filter_map(|port| port.cache.as_ref()).collect()
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
    assert_eq!(run.clients.connections, 0, "all clients stay connected");
}

#[test]
fn a_live_stream_is_right_under_faults_and_handoff() {
    for seed in 0..5 {
        let mut experiment = faulty(live(20), seed);
        experiment.nic.firmware.hard_limit = 10;
        let run = results(&experiment);
        assert!(run.clients.responses > 100, "seed {seed}");
        assert!(run.clients.retransmissions + run.host.retransmissions > 0);
    }
}

#[test]
fn reads_are_current_while_others_write() {
    for (seed, write_percent) in [(1, 0), (2, 10), (3, 50), (4, 100)] {
        let mut experiment = faulty(remote_files(write_percent), seed);
        experiment.nic.firmware.hard_limit = if seed % 2 == 0 { 10 } else { 0 };
        let run = results(&experiment);
        assert!(run.clients.responses > 100, "{write_percent} % of writes");
        let (read, written) = (run.bus.to_nic.bytes.content, run.bus.to_host.bytes.content);
        assert_eq!(read == 0, write_percent == 100, "{read} bytes read");
        assert_eq!(written == 0, write_percent == 0, "{written} bytes written");
    }
}

#[test]
fn connections_take_turns() {
    let taking = |turn_bytes| {
        let file = FixedSpec::httperf(200_000, 100, None);
        let server = web::Config {
            turn_bytes,
            ..web::Config::default()
        };
        small(WorkloadConfig::Fixed(file), ApplicationConfig::Web(server))
    };
    let first_byte = |turn_bytes| {
        let run = results(&taking(turn_bytes));
        run.clients.first_byte_ms.mean.expect("responses")
    };
    let (at_once, in_turns) = (first_byte(None), first_byte(Some(4096)));
    assert!(in_turns < at_once / 2.0, "{in_turns} and {at_once} ms");
    for seed in 0..2 {
        let mut experiment = faulty(taking(Some(4096)), seed);
        experiment.nic.firmware.hard_limit = 10;
        assert!(results(&experiment).handoff.offloaded_packets_percent > 0.0);
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
fn a_block_of_a_live_stream_crosses_the_bus_once_for_each_nic() {
    for (nics, clients) in [(1, 20), (2, 20), (1, 40)] {
        let mut experiment = live(clients);
        (experiment.nics, experiment.run.measured_packets) = (nics.into(), 5_000);
        // Only the machine with two NICs checks everything.
        experiment.run.check = nics == 2;
        let without = bus_bytes_per_delivered(&results(&cached(experiment.clone(), 0)));
        assert!((without - 1.0).abs() < 0.05, "without a cache {without}");
        // Blocks of 4 KB are transferred as a whole, and a stream's block is not a multiple of that.
        let once = f64::from(nics) / f64::from(clients) * (5.0 * 4_096.0) / 20_000.0;
        let evicted = results(&cached(experiment.clone(), 256));
        experiment.application = ApplicationConfig::Live(LiveConfig {
            evict_delivered: false,
            ..BLOCK
        });
        let kept = results(&cached(experiment, 256));
        let ratio = bus_bytes_per_delivered(&kept) / once;
        assert!((ratio - 1.0).abs() < 0.2, "{nics} NICs: {ratio} times once");
        // A block is evicted when all viewers that waited for it were served; a late viewer does not find it.
        let ratio = bus_bytes_per_delivered(&evicted) / once;
        assert!(
            (0.9..1.2).contains(&ratio),
            "{nics} NICs: {ratio} times once"
        );
        for cache in caches(&evicted) {
            assert!(cache.delivered > 0, "delivered blocks are evicted");
            assert!(cache.blocks.0 <= 5, "at most one block of the stream");
            assert_eq!((cache.evictions, cache.stale), (0, 0), "{cache:?}");
        }
        assert!(caches(&kept).iter().all(|cache| cache.delivered == 0));
    }
}

#[test]
fn the_cache_pays_for_short_titles() {
    let ratio = |titles, bytes| {
        let mut experiment = on_demand(50_000);
        experiment.workload = WorkloadConfig::OnDemand(OnDemandSpec {
            classes: vec![TitleClass {
                viewers: 1,
                titles,
                bytes,
            }],
            rate_kbps: 50_000,
            chunk_bytes: 65_536,
        });
        (experiment.run.warmup_packets, experiment.run.check) = (Some(20_000), false);
        bus_bytes_per_delivered(&results(&cached(experiment, 4_096)))
    };
    let (short, medium, long) = (
        ratio(10, 500_000),
        ratio(10, 4_000_000),
        ratio(10, 200_000_000),
    );
    assert!(short < 0.4, "{short} bytes on the bus per delivered byte");
    assert!(short < medium && medium < long, "{short} {medium} {long}");
    assert!(long > 0.9, "{long} bytes on the bus per delivered byte");
}

/// Returns the content on the bus to the NIC for each byte read, when `write_percent` of the operations are writes.
fn coherent(coherence: CoherenceConfig, write_percent: u32) -> (f64, Results) {
    let mut experiment = cached(remote_files(write_percent), 8 * 1024);
    experiment.host.kernel.nic_cache.coherence = coherence;
    experiment.run.warmup_packets = Some(10_000);
    experiment.run.check = false;
    let run = results(&experiment);
    (bus_bytes_per_delivered(&run), run)
}

#[test]
fn coherence_costs_bus_bytes_as_files_are_written() {
    for coherence in CoherenceConfig::ALL {
        let (read_only, _) = coherent(coherence, 0);
        let (some, _) = coherent(coherence, 10);
        let (half, run) = coherent(coherence, 50);
        assert!(
            read_only < 0.05,
            "{coherence:?}: {read_only}, although all files are cached"
        );
        assert!(
            read_only < some && some < half,
            "{coherence:?}: {read_only} {some} {half}"
        );
        let cache = caches(&run)[0];
        let (stale, removed, updated) = (cache.stale > 0, cache.invalidated > 0, cache.updated > 0);
        let expected = match coherence {
            CoherenceConfig::Lazy => (true, false, false),
            CoherenceConfig::Eager => (false, true, false),
            CoherenceConfig::Update => (false, false, true),
        };
        assert_eq!((stale, removed, updated), expected, "{cache:?}");
    }
    // With `Update`, data is copied to the NIC even if it is overwritten before it is read.
    let (lazy, _) = coherent(CoherenceConfig::Lazy, 50);
    let (update, _) = coherent(CoherenceConfig::Update, 50);
    assert!(update > 1.2 * lazy, "{update} {lazy}");
}

#[test]
fn cached_reads_are_current_under_faults_and_handoff() {
    for (seed, coherence) in (0..).zip(CoherenceConfig::ALL) {
        for handoff in [false, true] {
            // Smaller than all ranges together, so that blocks are evicted, too.
            let mut experiment = faulty(cached(remote_files(30), 512), seed);
            experiment.host.kernel.nic_cache.coherence = coherence;
            experiment.nic.firmware.hard_limit = if handoff { 10 } else { 0 };
            experiment.nics = (1 + seed as u32 % 2).into();
            let run = results(&experiment);
            assert!(run.clients.responses > 50, "{coherence:?}, seed {seed}");
            assert!(caches(&run).iter().all(|cache| cache.hits > 0));
        }
    }
}

#[test]
fn affinity_makes_one_cache_of_two() {
    let content = |affinity| {
        // One chunk per title: a connection requests one file.
        let load = OnDemandSpec {
            classes: vec![TitleClass {
                viewers: 1,
                titles: 120,
                bytes: 32_768,
            }],
            rate_kbps: 1_000_000,
            chunk_bytes: 32_768,
        };
        let mut experiment = small(WorkloadConfig::OnDemand(load), ApplicationConfig::default());
        experiment.nics = 2.into();
        experiment.host.kernel.affinity = affinity;
        (
            experiment.run.warmup_packets,
            experiment.run.measured_packets,
        ) = (Some(20_000), 30_000);
        experiment.run.check = false;
        bus_bytes_per_delivered(&results(&cached(experiment, 2_048)))
    };
    let arrival = content(AffinityConfig::Arrival);
    let by_file = content(AffinityConfig::ByFile);
    let most_cached = content(AffinityConfig::MostCached);
    assert!(
        by_file < 0.6 * arrival,
        "{by_file} by file, {arrival} by arrival"
    );
    assert!(
        most_cached < 0.8 * arrival,
        "{most_cached}, {arrival} by arrival"
    );
}

#[test]
fn workloads_that_do_not_fit_the_application_are_refused() {
    let refused = |experiment: &Experiment| {
        let error = run(experiment).expect_err("the workload does not fit");
        error.to_string()
    };
    let mut experiment = live(2);
    experiment.workload = WorkloadConfig::Fixed(FixedSpec::httperf(7, 1, None));
    assert_eq!(
        refused(&experiment),
        "workload.bytes: 7; expected 20000, the value of application.block_bytes"
    );
    let mut experiment = remote_files(10);
    experiment.application = ApplicationConfig::default();
    assert_eq!(
        refused(&experiment),
        "application.kind: \"web\"; expected \"remote-files\", because workload.kind is \"remote-files\""
    );
}
