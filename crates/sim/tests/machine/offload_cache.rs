//! The adapter's data cache below sockets on the adapter (data-caching 4): bus transfers, costs and correct data.
//!
//! The machine itself checks every byte that clients receive.

use crate::checked::{complete, run};
use baton_cache::{Fifo, ReplacementConfig};
use baton_host::{CoherenceConfig, SelectionConfig};
use baton_nic::{Scheduler, Transmit};
use baton_sim::config::{
    ApplicationConfig, EstablishedBy, Experiment, LiveConfig, OffloadConfig, Piece, WorkloadConfig,
};
use baton_sim::results::{Ended, NicCacheResults, Results};
use baton_sim::{Machine, NoObserver};
use baton_workload::{FixedSpec, RemoteFilesSpec};
use proptest::prelude::*;

/// Returns a server with all of TCP on its adapter, and a cache of this size for its content.
fn machine(cache_kib: u32) -> Experiment {
    let mut experiment = Experiment {
        workload: WorkloadConfig::Generated {
            preset: "demo".to_owned(),
            requests: 400,
            persistent_s: 15,
            pipeline_s: None,
        },
        ..Experiment::default()
    };
    let offload = offload(&mut experiment);
    offload.established_by = EstablishedBy::Adapter;
    (offload.host.piece, offload.adapter.piece) = (Piece::All, Piece::All);
    experiment.clients.connections = 20;
    experiment.run.warmup_packets = Some(4_000);
    experiment.run.measured_packets = 8_000;
    experiment.run.check = true;
    experiment.nic.firmware.cache.kib = cache_kib;
    experiment.host.kernel.nic_cache.enabled = true;
    experiment
}

fn offload(experiment: &mut Experiment) -> &mut OffloadConfig {
    &mut experiment.offload
}

fn cache(results: &Results) -> &NicCacheResults {
    let [nic] = &results.nics[..] else {
        panic!("expected one NIC with a cache");
    };
    nic.cache.as_ref().expect("a NIC with a cache")
}

fn task(results: &Results, name: &str) -> u64 {
    results.nic.tasks[name].count
}

/// Data sent by reference crosses the bus as a descriptor, and each block crosses once.
#[test]
fn content_crosses_the_bus_once() {
    let [without, with] = [0, 16 * 1024].map(|kib| complete(&machine(kib)));
    assert!(without.nics.is_empty(), "there is no cache to report");
    let cache = cache(&with);
    assert_eq!(cache.evictions, 0, "all content fits");
    let crossed = with.bus.to_nic.bytes.content;
    // Some content is in progress when measurement begins and ends.
    let asked = cache.inserted_bytes + cache.bypassed_bytes;
    assert!(crossed.abs_diff(asked) < 100_000, "{crossed} of {asked}");
    assert!(cache.hit_percent() > 70.0, "{cache:?}");
    let per_response =
        |results: &Results| results.bus.to_nic.bytes.content / results.clients.responses.max(1);
    assert!(5 * per_response(&with) < per_response(&without));
    assert!(with.crossings_per_response() < without.crossings_per_response());
}

/// The adapter is charged for the cache as the firmware is: for a command per block, and for each part of a block in a packet, copied or not.
#[test]
fn the_adapter_is_charged_as_the_firmware_is() {
    let mut experiment = machine(64);
    let [all, one] = [Piece::All, Piece::One].map(|piece| {
        offload(&mut experiment).adapter.piece = piece;
        complete(&experiment)
    });
    for results in [&all, &one] {
        let (commands, inserts) = (task(results, "cache_insert"), cache(results).inserts);
        // Some commands are in progress when measurement begins and ends.
        assert!(
            commands.abs_diff(inserts) < inserts / 10,
            "{commands} for {inserts}"
        );
        assert!(task(results, "append_cache") > task(results, "transmit") / 4);
        assert_eq!(task(results, "copy_line"), 0);
    }
    experiment.nic.firmware.cache.transmit = Transmit::Copy;
    let copied = complete(&experiment);
    assert!(task(&copied, "copy_line") > 10 * task(&copied, "append_cache"));
}

/// Data that is evicted from main memory is also evicted from the cache, because main memory includes the cache (data-caching 4.2).
#[test]
fn blocks_are_removed_together_with_their_pages() {
    let mut experiment = machine(16 * 1024);
    assert_eq!(
        cache(&complete(&experiment)).excluded,
        0,
        "all content fits in memory"
    );
    let pages = 128;
    experiment.host.kernel.file_cache.kib = pages * 4;
    let results = complete(&experiment);
    let cache = cache(&results);
    assert!(cache.excluded > 100, "{cache:?}");
    assert!(cache.blocks.0 <= pages, "{cache:?}");
}

/// The host maintains the directory. It copies no file data, with a cache or without, so system calls take about the same time.
#[test]
fn the_host_looks_blocks_up_and_copies_nothing() {
    let [without, with] = [0, 16 * 1024].map(|kib| complete(&machine(kib)));
    let mut free = machine(16 * 1024);
    let instructions = &mut free.host.instructions;
    (instructions.cache_lookup, instructions.cache_insert) = (0, 0);
    let free = complete(&free);
    let cycles = |results: &Results, layer: &str| {
        let of_layer = results.host.layers[layer].execute;
        of_layer / results.clients.responses.max(1)
    };
    assert!(cycles(&with, "driver") > cycles(&free, "driver"));
    let [with, without] = [&with, &without].map(|results| cycles(results, "syscall"));
    assert!(
        with.abs_diff(without) * 20 < without,
        "{with} and {without} cycles"
    );
}

/// Connections that are handed off use the cache, and packets of other connections are assembled from it.
#[test]
fn connections_on_the_host_send_from_the_cache_too() {
    let mut experiment = machine(16 * 1024);
    offload(&mut experiment).established_by = EstablishedBy::Host;
    let handed_off = complete(&experiment);
    assert!(handed_off.handoff.accepted > 0);
    assert!(cache(&handed_off).hits > 0);
    let kept = handed_off.content_kept_off_bus_percent.expect("content");
    assert!(kept > 50.0, "{kept}");
    experiment.host.kernel.selection = SelectionConfig::Never;
    let none = complete(&experiment);
    assert_eq!(none.handoff.accepted, 0);
    assert!(cache(&none).hits > 0);
    let kept = none.content_kept_off_bus_percent.expect("content");
    assert!(kept > 50.0, "{kept}");
}

/// A custom policy replaces the configured one.
#[test]
fn a_custom_replacement_policy_replaces_the_configured_one() {
    let (lru, mut fifo) = (machine(64), machine(64));
    fifo.host.kernel.nic_cache.replacement = ReplacementConfig::Fifo;
    let expected = complete(&fifo);
    let built = Machine::builder(&lru).replacement(Fifo::new).build();
    let found = built.unwrap().run("test", &mut NoObserver).unwrap();
    assert!(cache(&expected).evictions > 0);
    assert_eq!(cache(&found), cache(&expected));
    assert_ne!(
        cache(&complete(&lru)),
        cache(&expected),
        "the policies differ"
    );
}

/// Returns an experiment with files that clients write, over a wire that loses and reorders frames.
fn remote_files(coherence: CoherenceConfig) -> Experiment {
    let mut experiment = machine(1024);
    experiment.workload = WorkloadConfig::RemoteFiles(RemoteFilesSpec {
        ranges: 50,
        bytes: 32 * 1024,
        write_percent: 20,
        operations: 40,
    });
    experiment.application = ApplicationConfig::RemoteFiles;
    experiment.host.kernel.nic_cache.coherence = coherence;
    experiment.wire.loss = 0.01;
    experiment.wire.reorder = 0.02;
    experiment
}

/// A client that requests a file gets one consistent revision, whatever the coherence protocol.
#[test]
fn files_that_change_never_mix_revisions() {
    for established_by in [EstablishedBy::Adapter, EstablishedBy::Host] {
        let [lazy, eager, update] = CoherenceConfig::ALL.map(|coherence| {
            let mut experiment = remote_files(coherence);
            offload(&mut experiment).established_by = established_by;
            let results = complete(&experiment);
            assert!(results.bus.to_host.bytes.content > 0, "clients wrote");
            cache(&results).clone()
        });
        assert!([&lazy, &eager, &update].iter().all(|cache| cache.hits > 0));
        assert!(
            lazy.stale > 0 && lazy.invalidated + lazy.updated == 0,
            "{lazy:?}"
        );
        assert!(
            eager.invalidated > 0 && eager.stale + eager.updated == 0,
            "{eager:?}"
        );
        assert!(update.updated > 0 && update.stale == 0, "{update:?}");
    }
}

/// Each block of a live stream crosses the bus for one viewer; all others get it from the cache.
#[test]
fn viewers_of_a_live_stream_share_its_blocks() {
    let block = LiveConfig {
        block_bytes: 20_000,
        interval_us: 5_000,
        evict_delivered: false,
    };
    let mut experiment = machine(1024);
    experiment.application = ApplicationConfig::Live(block);
    let viewer = FixedSpec::httperf(block.block_bytes.into(), 1_000, None);
    experiment.workload = WorkloadConfig::Fixed(viewer);
    let results = complete(&experiment);
    assert!(results.content_kept_off_bus_percent > Some(85.0));
    assert!(cache(&results).stale > 0, "a block is a revision");
}

/// Returns an experiment with a live stream, few of whose viewers request a block late.
fn live(established_by: EstablishedBy, viewers: u32, evict_delivered: bool) -> Experiment {
    let block = LiveConfig {
        block_bytes: 20_000,
        interval_us: 5_000,
        evict_delivered,
    };
    let mut experiment = machine(256);
    offload(&mut experiment).established_by = established_by;
    experiment.application = ApplicationConfig::Live(block);
    let viewer = FixedSpec::httperf(block.block_bytes.into(), 1_000, None);
    experiment.workload = WorkloadConfig::Fixed(viewer);
    experiment.clients.connections = viewers;
    // Fast enough to serve all viewers before the next block.
    experiment.nic.mips = 1_600;
    experiment
}

fn content_crossed_per_delivered(results: &Results) -> f64 {
    let delivered = results.clients.content_mbps * results.measured_s * 1e6 / 8.0;
    results.bus.to_nic.bytes.content as f64 / delivered
}

/// A block of a live stream is evicted when all viewers that waited for it have received it, and not before: like a block that stays, it
/// crosses the bus once (data-caching 4.2).
#[test]
fn blocks_of_a_live_stream_are_removed_after_delivery() {
    for (established_by, nics) in [
        (EstablishedBy::Adapter, 1),
        (EstablishedBy::Host, 1),
        (EstablishedBy::Host, 2),
    ] {
        for selection in [SelectionConfig::Never, SelectionConfig::default()] {
            let [evicted, kept] = [true, false].map(|evict_delivered| {
                let mut experiment = live(established_by, 20, evict_delivered);
                experiment.host.kernel.selection = selection.clone();
                experiment.nics = nics.into();
                complete(&experiment)
            });
            // Blocks of 4 KB are transferred as a whole, and a stream's block is not a multiple of that.
            let once = f64::from(nics) / 20.0 * (5.0 * 4_096.0) / 20_000.0;
            for results in [&evicted, &kept] {
                let ratio = content_crossed_per_delivered(results) / once;
                let what = format!("{established_by:?}, {nics}, {selection:?}");
                assert!((0.9..1.2).contains(&ratio), "{what}: {ratio} times once");
            }
            for nic in &evicted.nics {
                let cache = nic.cache.as_ref().expect("a NIC with a cache");
                assert!(cache.delivered > 0, "delivered blocks are evicted");
                assert!(cache.blocks.0 <= 5, "at most one block of the stream");
                assert_eq!((cache.evictions, cache.stale), (0, 0), "{cache:?}");
            }
            let caches = kept.nics.iter().filter_map(|nic| nic.cache.as_ref());
            assert_eq!(caches.map(|cache| cache.delivered).sum::<u64>(), 0);
        }
    }
}

/// Reading pages from disks does not change what is sent.
#[test]
fn pages_that_have_left_memory_are_still_sent() {
    let mut experiment = machine(256);
    experiment.host.kernel.file_cache.kib = 1024;
    experiment.wire.loss = 0.01;
    let results = complete(&experiment);
    let disk = results.disk.as_ref().expect("the server has a disk");
    assert!(disk.reads > 0 && cache(&results).hits > 0);
}

#[test]
fn impossible_configurations_are_refused() {
    let refused = |change: fn(&mut Experiment)| {
        let mut experiment = machine(1024);
        change(&mut experiment);
        run(&experiment).unwrap_err().to_string()
    };
    let too_long = refused(|e| e.host.kernel.nic_cache.block_bytes = 8192);
    assert_eq!(
        too_long,
        "host.kernel.nic_cache.block_bytes: 8192; expected at most 4096, the largest transfer"
    );
    let too_much = refused(|e| e.nic.firmware.cache.kib = 1 << 20);
    assert!(
        too_much.starts_with("nic.firmware.cache.kib: "),
        "{too_much}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// With any cache size, losses and moves, every byte is correct, and every invariant holds after every event.
    #[test]
    fn any_cache_serves_every_request(
        cache_kib in 1_u32..200,
        block_shift in 9_u32..13,
        replacement in prop::sample::select(ReplacementConfig::ALL.to_vec()),
        connections in 1_u32..40,
        pieces in any::<(bool, bool)>(),
        host_first in any::<bool>(),
        copies in any::<bool>(),
        adaptive in any::<bool>(),
        buffers in 64_u32..512,
        most_inserts in 1_u32..64,
        loss in prop_oneof![Just(0.0), 0.0_f64..0.05],
        enqueues in prop::option::of(0_u32..4),
        seed in any::<u64>(),
    ) {
        let mut experiment = machine(cache_kib);
        experiment.run.seed = seed;
        experiment.run.warmup_packets = Some(0);
        experiment.run.measured_packets = 1_500;
        experiment.clients.connections = connections;
        experiment.wire.loss = loss;
        let host = &mut experiment.host.kernel;
        host.nic_cache.block_bytes = 1 << block_shift;
        host.nic_cache.replacement = replacement;
        let firmware = &mut experiment.nic.firmware;
        firmware.scheduler = if host_first { Scheduler::HostFirst } else { Scheduler::Fcfs };
        firmware.cache.transmit = if copies { Transmit::Copy } else { Transmit::Gather };
        let piece = |one| if one { Piece::One } else { Piece::All };
        let config = offload(&mut experiment);
        (config.host.piece, config.adapter.piece) = (piece(pieces.0), piece(pieces.1));
        config.link.buffers = buffers;
        config.adapter.interface.most_inserts = most_inserts;
        if adaptive {
            let policy = baton_bus::BatchingPolicy::Adaptive;
            config.host.interface.batching.policy = policy;
            config.adapter.interface.batching.policy = policy;
        }
        if let Some(enqueues) = enqueues {
            config.established_by = EstablishedBy::Host;
            config.host.interface.packet_buffers = 16;
            experiment.host.kernel.selection = match enqueues {
                0 => SelectionConfig::Fcfs,
                enqueues => SelectionConfig::Alternate { enqueues },
            };
        }
        let results = run(&experiment).expect("the run succeeds");
        prop_assert_eq!(results.ended, Ended::Complete);
    }
}
