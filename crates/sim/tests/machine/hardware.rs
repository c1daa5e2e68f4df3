//! Handoff on the hardware of NICs: packet memory, engines, rings, DMA and coalescing below the adapter's process.

use crate::checked::{complete, results};
use baton_config::parts::{shipped_host, shipped_nic};
use baton_config::shipped::NICS;
use baton_host::SelectionConfig;
use baton_sim::config::{EstablishedBy, Experiment, NicHardware, WorkloadConfig};
use baton_sim::hardware::nic::CoalescingRule;
use baton_sim::results::Results;
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

/// Returns the number of frames that were dropped, and those that were not.
fn counted(run: &Results) -> (u64, u64) {
    let task = |name: &str| run.nic.tasks[name].count;
    let sent = task("host_send") + task("transmit");
    // A packet that the host forwards is looked up again.
    let looked_up = task("lookup") - run.handoff.forwarded;
    (run.nic.drops.values().sum(), sent + looked_up)
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
fn each_frame_is_delivered_or_dropped_under_a_name() {
    let mut hardware = NicHardware::default();
    hardware.memory.receive_bytes = 2_048;
    (hardware.descriptors.send, hardware.memory.send_bytes) = (16, 8_192);
    hardware.processor.receive_ns = 4_000;
    let mut experiment = on(hardware);
    experiment.clients.connections = 128;
    experiment.clients.start_interval_us = 1;
    experiment.run.measured_packets = 20_000;
    let run = results(&experiment);
    assert!(run.nic.drops["receive_fifo"] > 20, "{:?}", run.nic.drops);
    let (dropped, others) = counted(&run);
    // Some wait in the hardware when the measurement begins and when it ends.
    let on_the_way = (dropped + others).abs_diff(run.packets);
    assert!(on_the_way < 64, "{dropped} + {others}: {}", run.packets);
}

#[test]
fn rings_of_two_entries_lose_packets_but_no_data() {
    let mut hardware = NicHardware::default();
    (hardware.descriptors.send, hardware.descriptors.receive) = (2, 2);
    let mut experiment = on(hardware);
    experiment.host.clock_mhz = 300;
    let run = complete(&experiment);
    assert!(run.nic.drops["no_host_buffer"] > 0, "{:?}", run.nic.drops);
    assert!(run.clients.responses > 100);
}

#[test]
fn coalescing_trades_interrupts_for_delay() {
    let with = |time_us: u32| {
        let mut experiment = on(NicHardware {
            receive_interrupts: CoalescingRule {
                time_ns: Some(1_000 * time_us),
                ..CoalescingRule::default()
            },
            ..shipped_nic("nic-intel-server")
        });
        experiment.clients.connections = 4;
        experiment.nic.firmware.hard_limit = 0;
        let run = complete(&experiment);
        let delay = run.clients.response_ms.mean.expect("there are responses");
        (run.host.interrupts, delay)
    };
    let [none, little, much] = [0, 50, 400].map(with);
    assert!(
        none.0 > little.0 && little.0 > 2 * much.0,
        "{none:?} {little:?} {much:?}"
    );
    assert!(
        none.1 < little.1 && little.1 + 0.2 < much.1,
        "{none:?} {little:?} {much:?}"
    );
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let bits = |seed| {
        let mut experiment = on(shipped_nic("nic-ace"));
        experiment.run.seed = seed;
        experiment.wire.loss = 0.01;
        format!("{:?}", results(&experiment))
    };
    assert_eq!(bits(1), bits(1));
    assert_ne!(bits(1), bits(2));
}

#[test]
fn a_slow_engine_limits_the_rate_of_frames() {
    let rate = |receive_ns: u32| {
        let mut hardware = NicHardware::default();
        hardware.processor.receive_ns = receive_ns;
        let mut experiment = on(hardware);
        experiment.run.cost_models = false;
        experiment.run.check = false;
        let run = complete(&experiment);
        run.nic.tasks["lookup"].count as f64 / run.measured_s
    };
    let (fast, slow) = (rate(0), rate(50_000));
    assert!(
        fast > 30_000.0 && (15_000.0..=20_001.0).contains(&slow),
        "{fast} {slow}"
    );
}

#[test]
fn checksums_that_the_nic_does_not_handle_cost_the_host_instructions() {
    let instructions = |handled: bool| {
        let mut hardware = NicHardware::default();
        (hardware.checksums.send, hardware.checksums.receive) = (handled, handled);
        let mut experiment = on(hardware);
        experiment.nic.firmware.hard_limit = 0;
        let run = complete(&experiment);
        run.host
            .host_packets
            .instructions
            .expect("there are packets")
    };
    let more = instructions(false) - instructions(true);
    assert!((100.0..1_000.0).contains(&more), "{more}");
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

#[test]
fn hardware_without_limits_does_not_delay_a_single_client() {
    let mean_ms = |hardware: Option<NicHardware>| {
        let mut experiment = on(NicHardware::default());
        experiment.nic.hardware = hardware.map(Box::new);
        experiment.wire.rate_mbps = 1_000;
        experiment.clients.connections = 1;
        let run = complete(&experiment);
        run.clients.response_ms.mean.expect("there are responses")
    };
    let at_once = CoalescingRule {
        frames: Some(1),
        ..CoalescingRule::default()
    };
    let with = mean_ms(Some(NicHardware {
        receive_interrupts: at_once,
        ..NicHardware::default()
    }));
    let without = mean_ms(None);
    let ratio = with / without;
    assert!((0.8..1.2).contains(&ratio), "{with} and {without} ms");
}
