//! Handoff on the hardware of NICs: packet memory, engines, rings, DMA and coalescing below the adapter's process.

use crate::checked::complete;
use baton_config::parts::{shipped_host, shipped_nic};
use baton_config::shipped::NICS;
use baton_host::SelectionConfig;
use baton_sim::config::{EstablishedBy, Experiment, NicHardware, WorkloadConfig};
use baton_workload::FixedSpec;

/// Returns an experiment with handoff on this hardware, whose clients check each byte.
fn on(hardware: NicHardware) -> Experiment {
    let mut experiment = Experiment {
        workload: WorkloadConfig::Fixed(FixedSpec::httperf(8 << 10, 4, None)),
        ..Experiment::default()
    };
    experiment.clients.connections = 32;
    experiment.run.check = true;
    experiment.run.warmup_packets = Some(1_000);
    experiment.run.measured_packets = 8_000;
    experiment.nic.firmware.hard_limit = 16;
    experiment.nic.mips = 2_000;
    experiment.nic.hardware = Some(Box::new(hardware));
    for tcp in [&mut experiment.tcp, &mut experiment.clients.tcp] {
        (tcp.rto_min_ms, tcp.rto_initial_ms) = (5, 20);
    }
    experiment
}

#[test]
fn data_is_correct_on_every_nic_with_every_policy() {
    for nic in NICS {
        for policy in [
            SelectionConfig::Never,
            SelectionConfig::Fcfs,
            SelectionConfig::Threshold { enqueues: 4 },
        ] {
            let mut experiment = on(shipped_nic(nic.name));
            let hands_off = policy != SelectionConfig::Never;
            experiment.host.kernel.selection = policy;
            let run = complete(&experiment);
            let handoff = run.handoff;
            assert_eq!(handoff.accepted > 0, hands_off, "{}: {handoff:?}", nic.name);
            let mut offload = on(shipped_nic(nic.name));
            offload.offload.established_by = EstablishedBy::Adapter;
            offload.nic.firmware.hard_limit = 64;
            complete(&offload);
        }
    }
}

#[test]
fn hardware_of_a_kind_of_nic_and_of_a_host_can_be_named() {
    let mut experiment = on(shipped_nic("nic-3com"));
    experiment.host = shipped_host("athlon-2600");
    let text = "[[nics]]\nhardware.processor.receive_ns = 100\n[[nics]]\nname = 'plain'\n";
    let table: toml::Table = toml::from_str(text).expect("TOML");
    experiment.nics = table["nics"].clone().try_into().expect("kinds of NICs");
    let run = complete(&experiment);
    assert!(run.nics.iter().all(|port| port.content_mbps > 1.0));
}
