//! The adapter's data cache below sockets on the adapter (data-caching 4): policies of the caller, and any settings.
//! `dialogues/offload_cache.dialogue` has more. The machine itself checks every byte that clients receive.

use crate::checked::{complete, run};
use baton_cache::{Fifo, ReplacementConfig};
use baton_host::SelectionConfig;
use baton_nic::{Scheduler, Transmit};
use baton_sim::config::{EstablishedBy, Experiment, OffloadConfig, Piece, WorkloadConfig};
use baton_sim::results::{Ended, NicCacheResults, Results};
use baton_sim::{Machine, NoObserver};
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
