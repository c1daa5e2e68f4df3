//! Servers with several NICs of one or several kinds, with the kernel's sockets and with sockets on adapters.

use crate::checked::complete;
use baton_bus::interconnect::InterconnectConfig;
use baton_host::SelectionConfig;
use baton_sim::config::{EstablishedBy, Experiment, NicsConfig, Piece, WorkloadConfig};
use baton_sim::results::Results;
use baton_workload::FixedSpec;

/// Returns an experiment with files of 8 KiB, and connections that send four requests each.
fn experiment(connections: u32) -> Experiment {
    let mut experiment = Experiment {
        workload: WorkloadConfig::Fixed(FixedSpec::httperf(8 << 10, 4, None)),
        ..Experiment::default()
    };
    experiment.clients.connections = connections;
    experiment.run.check = true;
    experiment.run.warmup_packets = Some(1_000);
    experiment.run.measured_packets = 8_000;
    experiment
}

/// Returns the same experiment with sockets on adapters.
fn on_adapters(connections: u32, established_by: EstablishedBy) -> Experiment {
    let mut experiment = experiment(connections);
    experiment.offload.established_by = established_by;
    experiment
}

const BOTH: [EstablishedBy; 2] = [EstablishedBy::Adapter, EstablishedBy::Host];

fn kinds(text: &str) -> NicsConfig {
    let table: toml::Table = toml::from_str(text).expect("TOML");
    table["nics"].clone().try_into().expect("kinds of NICs")
}

#[test]
fn each_adapter_serves_the_clients_of_its_subnet() {
    for established_by in BOTH {
        let mut experiment = on_adapters(24, established_by);
        experiment.nics = 3.into();
        let results = complete(&experiment);
        assert_eq!(results.nics.len(), 3);
        let sum: f64 = results.nics.iter().map(|port| port.content_mbps).sum();
        assert!((sum / results.clients.content_mbps - 1.0).abs() < 1e-9);
        let received = |port: &baton_sim::results::PortResults| port.nic.tasks["receive"].count;
        let all: u64 = results.nics.iter().map(received).sum();
        assert_eq!(all, results.nic.tasks["receive"].count);
        for port in &results.nics {
            let share = port.content_mbps / sum;
            assert!((0.25..0.42).contains(&share), "{established_by:?}: {share}");
            assert!(port.nic.connections_mean > 0.0 && received(port) > 0);
        }
        if established_by == EstablishedBy::Host {
            assert!(results.handoff.accepted > 0);
        }
    }
}

#[test]
fn equal_experiments_with_several_adapters_give_equal_bits() {
    for established_by in BOTH {
        for piece in [Piece::All, Piece::One] {
            let mut experiment = on_adapters(20, established_by);
            experiment.nics = 2.into();
            experiment.interconnect = InterconnectConfig::preset("pci-64-33").unwrap();
            let offload = &mut experiment.offload;
            (offload.host.piece, offload.adapter.piece) = (piece, piece);
            let bits = |experiment: &Experiment| format!("{:?}", complete(experiment));
            assert_eq!(bits(&experiment), bits(&experiment));
        }
    }
}

#[test]
fn adapters_wait_for_each_other_on_a_shared_bus() {
    let rate = |nics: u32, bus: &str| {
        let mut experiment = on_adapters(32, EstablishedBy::Adapter);
        experiment.run.cost_models = false;
        experiment.nics = nics.into();
        experiment.workload = WorkloadConfig::Fixed(FixedSpec::httperf(100_000, 4, None));
        experiment.wire.rate_mbps = 1_000;
        experiment.interconnect = InterconnectConfig::preset(bus).unwrap();
        let results = complete(&experiment);
        let used = results.interconnect.map(|used| used.utilisation_percent);
        (results.clients.content_mbps, used.unwrap_or_default())
    };
    let (one, _) = rate(1, "pcie-3-x8");
    let (two, _) = rate(2, "pcie-3-x8");
    let (shared, used) = rate(2, "pci-64-33");
    assert!(two > 1.5 * one, "{two} Mb/s of twice {one}");
    assert!(
        shared < 0.95 * two && used > 90.0,
        "{shared} Mb/s of {two}, {used} %"
    );
}

/// Each adapter has its own Soft_Limit, which the host respects.
#[test]
fn each_adapter_keeps_its_own_limit() {
    let mut experiment = on_adapters(40, EstablishedBy::Host);
    experiment.host.kernel.selection = SelectionConfig::Fcfs;
    experiment.nics = kinds(
        "[[nics]]\nname = 'small'\nfirmware.hard_limit = 2\n\
         [[nics]]\nname = 'large'\nfirmware.hard_limit = 30",
    );
    let results = complete(&experiment);
    let names: Vec<_> = results.nics.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["small", "large"]);
    let refused = |reason| results.handoff.not_offloaded.get(reason).copied();
    assert!(refused("soft_limit") > Some(0), "{:?}", results.handoff);
    assert_eq!(
        refused("refused_soft_limit"),
        Some(0),
        "the host knows the limit"
    );
    let handed_off: Vec<_> = results
        .nics
        .iter()
        .map(|port| port.nic.tasks["handoff"].count)
        .collect();
    assert!(
        handed_off[0] > 0 && handed_off[1] > 2 * handed_off[0],
        "{handed_off:?}"
    );
    let most = results.series.iter().map(|sample| sample.soft_limit).max();
    assert_eq!(most, Some(32));
}

/// A slow NIC has less idle time than a fast one.
#[test]
fn nics_of_different_speed_are_busy_for_different_times() {
    let fast_and_slow =
        "[[nics]]\nname = 'fast'\nmips = 20000\n[[nics]]\nname = 'slow'\nmips = 200";
    for established_by in BOTH {
        let mut experiment = on_adapters(8, established_by);
        experiment.nics = kinds(fast_and_slow);
        let results = complete(&experiment);
        let idle: Vec<_> = results
            .nics
            .iter()
            .map(|port| port.nic.idle_percent)
            .collect();
        assert!(idle[1] + 5.0 < idle[0], "{established_by:?}: {idle:?}");
        assert_eq!(results.nics[1].name, "slow");
    }
}

/// The host uses the cache of the NIC that has one, and sends normally through the other NIC.
#[test]
fn one_nic_may_have_a_cache_and_another_none() {
    let by_descriptors = BOTH.map(|by| on_adapters(8, by));
    for mut experiment in [experiment(8)].into_iter().chain(by_descriptors) {
        experiment.host.kernel.nic_cache.enabled = true;
        experiment.nics = kinds("[[nics]]\nfirmware.cache.kib = 1024\n[[nics]]");
        one_caches(&complete(&experiment));
    }
}

fn one_caches(results: &Results) {
    let caches: Vec<_> = results
        .nics
        .iter()
        .map(|port| port.cache.as_ref())
        .collect();
    assert!(caches[0].is_some_and(|cache| cache.hits > 0), "{caches:?}");
    assert_eq!(caches[1], None);
    assert!(results.nics[1].content_mbps > 0.0);
}

/// The instructions of a task are those configured for each NIC.
#[test]
fn each_kind_of_nic_has_its_own_task_costs() {
    let mut experiment = experiment(8);
    experiment.nics = kinds("[[nics]]\n[[nics]]\ninstructions.lookup = 1000");
    let results = complete(&experiment);
    let of = |nic: usize| results.nics[nic].nic.tasks["lookup"];
    let per_lookup = |nic: usize| of(nic).instructions / of(nic).count;
    assert_eq!((per_lookup(0), per_lookup(1)), (100, 1000));
    let all = results.nic.tasks["lookup"];
    assert_eq!(all.instructions, of(0).instructions + of(1).instructions);
}
