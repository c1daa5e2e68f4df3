mod pcie;

use super::*;
use crate::port::{Resource, Use};
use crate::test::Test;
use baton_bus::interconnect::InterconnectConfig;
use baton_sim::config::DriverConfig;
use baton_sim::hardware::nic::PauseRule;

/// Returns a host that takes no time.
fn fast_host() -> HostConfig {
    HostConfig {
        name: "fast".to_owned(),
        clock_mhz: 100_000,
        instructions_per_cycle: 16,
        driver: DriverConfig {
            send: 1,
            refuse: 1,
            receive: 1,
            reclaim: 1,
            interrupt: 1,
            poll: 1,
            segment: 1,
            refill_batch: 16,
            route: 1,
        },
        ..HostConfig::default()
    }
}

fn trial_on(port: &mut SimulatedPort<'_>, test: Test, load: Load) -> Trial {
    let request = Request {
        test,
        load,
        warm_up: Span::from_ms(5),
        duration: Span::from_ms(20),
    };
    port.trial(&request).expect("it can be simulated")
}

/// Runs a trial at line rate with equal NICs on hosts that take no time.
fn trial(nic: &NicHardware, test: Test) -> Trial {
    let load = match test.has_connections() {
        true => Load::Connections(8),
        false => Load::Rate(test.line_rate(LinkRate::GIGABIT)),
    };
    trial_on(&mut SimulatedPort::alike(nic, &fast_host()), test, load)
}

fn on_bus(name: &str) -> NicHardware {
    NicHardware {
        bus: InterconnectConfig::preset(name).expect("a bus"),
        ..NicHardware::default()
    }
}

fn is_full(trial: &Trial, machine: Role, resource: Resource) -> bool {
    let full = trial.full();
    full.iter()
        .any(|one| (one.machine, one.resource) == (machine, resource))
}

#[test]
fn an_ideal_nic_on_an_ideal_bus_reaches_each_limit() {
    for test in Test::ALL {
        let trial = trial(&NicHardware::default(), test);
        let (result, limit) = (trial.result(), test.limit(LinkRate::GIGABIT) as f64);
        assert!(
            (limit * 0.999..limit * 1.004).contains(&result),
            "{test:?}: {result} of {limit}"
        );
        assert!(trial.loss_ratio() == 0.0, "{trial:?}");
        let sender = match test {
            Test::UdpReceive1472 | Test::UdpReceive18 | Test::TcpReceive | Test::Accept => {
                Role::Partner
            }
            _ => Role::UnderTest,
        };
        assert!(is_full(&trial, sender, Resource::Wire), "{trial:?}");
    }
}

#[test]
fn the_narrow_bus_alone_limits_large_frames_both_ways() {
    let test = Test::UdpThreeWay1472;
    let narrow = trial(&on_bus("pci-32-66"), test);
    assert!(
        (1_700.0..1_900.0).contains(&narrow.result()),
        "{}",
        narrow.result()
    );
    assert!(is_full(&narrow, Role::UnderTest, Resource::Bus));
    let one_way = trial(&on_bus("pci-32-66"), Test::UdpSend1472);
    assert!(one_way.result() > 956.0, "{}", one_way.result());
    let wide = trial(&on_bus("pci-64-66"), test);
    assert!(wide.result() > 1_912.0, "{}", wide.result());
    assert!(!is_full(&wide, Role::UnderTest, Resource::Bus));
}

#[test]
fn one_processor_handles_as_many_frames_both_ways_as_one_way() {
    let mut nic = NicHardware::default();
    (nic.processor.send_ns, nic.processor.receive_ns) = (5_000, 5_000);
    let host = fast_host();
    let ideal = NicHardware::default();
    let result = |nic: &NicHardware, test, rate| {
        let mut port = SimulatedPort::with_partner(nic, &ideal, &host);
        trial_on(&mut port, test, Load::Rate(rate)).result()
    };
    nic.processor.engines = 1;
    let one_way = result(&nic, Test::UdpSend18, 250_000.0);
    let both = result(&nic, Test::UdpThreeWay18, 150_000.0);
    assert!((both / one_way - 1.0).abs() < 0.005, "{both} and {one_way}");
    nic.processor.engines = 2;
    let both = result(&nic, Test::UdpThreeWay18, 250_000.0);
    assert!(
        (both / one_way / 2.0 - 1.0).abs() < 0.005,
        "{both} and {one_way}"
    );
}

#[test]
fn packet_memory_takes_each_bit_in_and_out() {
    let mut nic = NicHardware::default();
    nic.memory.bandwidth_mbps = Some(1_000);
    let trial = trial(&nic, Test::UdpSend1472);
    // Half of the bandwidth, since each bit is written and read; 1472 of 1514 bytes are data.
    let expected = 500.0 * 1_472.0 / 1_514.0;
    assert!(
        (trial.result() / expected - 1.0).abs() < 0.005,
        "{}",
        trial.result()
    );
    assert!(is_full(&trial, Role::UnderTest, Resource::NicMemory));
}

#[test]
fn short_dma_costs_its_start_each_time() {
    let mut nic = NicHardware::default();
    nic.dma.start_ns = 2_000;
    nic.dma.receive_limit_bytes = Some(200);
    let received = trial(&nic, Test::UdpReceive1472);
    // Eight pieces of 1514 bytes.
    let expected = 1_472.0 * 8.0 / 16.0;
    assert!(
        (received.result() / expected - 1.0).abs() < 0.005,
        "{}",
        received.result()
    );
    assert!(is_full(&received, Role::UnderTest, Resource::NicDma));
    assert!(
        trial(&nic, Test::UdpSend1472).result() > 956.0,
        "sent frames are not affected"
    );
}

#[test]
fn sending_and_receiving_have_separate_costs() {
    let near = |trial: &Trial, frames_per_second: f64| {
        let found = trial.forwarding_rate();
        assert!((found / frames_per_second - 1.0).abs() < 0.005, "{found}");
    };
    let mut nic = NicHardware::default();
    nic.dma.start_ns = 2_000;
    nic.dma.send_limit_bytes = Some(200);
    nic.dma.receive_start_ns = Some(4_000);
    near(&trial(&nic, Test::UdpSend1472), 1e9 / 16_000.0);
    near(&trial(&nic, Test::UdpSend18), 1e9 / 2_000.0);
    let mut partner = NicHardware::default();
    let host = fast_host();
    let mut port = SimulatedPort::with_partner(&nic, &partner, &host);
    let line = Load::Rate(Test::UdpReceive18.line_rate(LinkRate::GIGABIT));
    let received = trial_on(&mut port, Test::UdpReceive18, line);
    near(&received, 1e9 / 4_000.0);
    // A small frame has one buffer, and a large one has two.
    partner.processor.send_ns = 3_000;
    partner.processor.second_buffer_ns = 20_000;
    near(&trial(&partner, Test::UdpSend18), 1e9 / 3_000.0);
    near(&trial(&partner, Test::UdpSend1472), 1e9 / 23_000.0);
}

/// Returns a NIC that receives more slowly than another sends.
fn slow_receiver(sends_pauses: bool) -> NicHardware {
    let mut nic = NicHardware::default();
    nic.processor.receive_ns = 20_000;
    nic.memory.receive_bytes = 32_768;
    nic.pause = PauseRule {
        sends: sends_pauses,
        honours: true,
        high_percent: 60,
        low_percent: 30,
    };
    nic
}

#[test]
fn frames_that_arrive_too_fast_overrun_the_receive_fifo() {
    let trial = trial(&slow_receiver(false), Test::UdpReceive1472);
    let lost = trial.received.losses;
    assert!(lost.at(Place::ReceiveFifo) > 0);
    assert_eq!(lost.total(), lost.at(Place::ReceiveFifo));
    assert!(is_full(&trial, Role::UnderTest, Resource::NicProcessor));
    assert!(
        (trial.forwarding_rate() - 50_000.0).abs() < 100.0,
        "{}",
        trial.forwarding_rate()
    );
}

#[test]
fn a_paused_sender_loses_no_frames_on_the_way() {
    let nic = slow_receiver(true);
    let trial = trial(&nic, Test::UdpReceive1472);
    assert!(
        trial
            .received
            .losses
            .iter()
            .all(|(place, _)| place.is_at_sender()),
        "{trial:?}"
    );
    assert!(
        (trial.forwarding_rate() - 50_000.0).abs() < 500.0,
        "{}",
        trial.forwarding_rate()
    );
    let mut deaf = nic.clone();
    deaf.pause.honours = false;
    let (host, test) = (fast_host(), Test::UdpReceive1472);
    let mut port = SimulatedPort::with_partner(&nic, &deaf, &host);
    let trial = trial_on(
        &mut port,
        test,
        Load::Rate(test.line_rate(LinkRate::GIGABIT)),
    );
    assert!(
        trial.received.losses.at(Place::ReceiveFifo) > 0,
        "a sender that ignores pauses continues"
    );
}

#[test]
fn a_host_that_is_too_slow_leaves_the_nic_without_descriptors() {
    let mut host = fast_host();
    (host.clock_mhz, host.instructions_per_cycle) = (1_000, 1);
    host.driver.receive = 50_000;
    let (mut nic, fast, test) = (
        NicHardware::default(),
        NicHardware::default(),
        Test::UdpReceive18,
    );
    nic.memory.receive_bytes = 8_192;
    let mut port = SimulatedPort::with_partner(&nic, &fast, &host);
    let trial = trial_on(&mut port, test, Load::Rate(200_000.0));
    assert!(
        trial.received.losses.at(Place::NoDescriptor) > 0,
        "{trial:?}"
    );
    assert_eq!(trial.received.losses.at(Place::ReceiveFifo), 0);
    assert!(is_full(&trial, Role::UnderTest, Resource::Host));
}

#[test]
fn a_sender_that_is_out_of_time_is_reported() {
    let mut host = fast_host();
    (host.clock_mhz, host.instructions_per_cycle) = (1_000, 1);
    host.driver.send = 10_000;
    let nic = NicHardware::default();
    let trial = trial_on(
        &mut SimulatedPort::alike(&nic, &host),
        Test::UdpSend18,
        Load::Rate(200_000.0),
    );
    assert!(trial.sent.losses.at(Place::Sender) > 0, "{trial:?}");
    assert!(
        (0.4..0.6).contains(&trial.loss_ratio()),
        "{}",
        trial.loss_ratio()
    );
}

#[test]
fn no_frame_of_a_burst_disappears() {
    let host = crate::profile::host("athlon-2000");
    for name in baton_config::shipped::NICS.iter().map(|nic| nic.name) {
        let nic = crate::profile::nic(name);
        for test in [Test::UdpSend18, Test::UdpReceive1472, Test::UdpThreeWay18] {
            let trial = trial_on(
                &mut SimulatedPort::alike(&nic, &host),
                test,
                Load::Burst(3_000),
            );
            for stream in [trial.sent, trial.received] {
                let places = stream.losses.iter();
                let at_sender: u64 = places
                    .filter(|(place, _)| place.is_at_sender())
                    .map(|(_, frames)| frames)
                    .sum();
                assert_eq!(
                    stream.offered,
                    stream.sent + at_sender,
                    "{name}, {test:?}: {stream:?}"
                );
                assert_eq!(
                    stream.offered,
                    stream.delivered + stream.losses.total(),
                    "{name}, {test:?}: {stream:?}"
                );
            }
        }
    }
}

#[test]
fn software_checksums_cost_the_host() {
    let host = crate::profile::host("athlon-2000");
    let load = Load::Connections(8);
    let share = |nic: &NicHardware, test| {
        let trial = trial_on(&mut SimulatedPort::alike(nic, &host), test, load);
        assert!(trial.result() > 940.0, "{}", trial.result());
        1.0 - trial.host_idle().expect("it is known")
    };
    let hardware = NicHardware::default();
    let mut software = hardware.clone();
    (software.checksums.send, software.checksums.receive) = (false, false);
    for test in [Test::TcpSend, Test::TcpReceive] {
        let (with, without) = (share(&hardware, test), share(&software, test));
        // Each of 81,000 frames touches 24 cache lines, and its checksum costs 24 instructions for each of them.
        assert!(without > with + 0.04, "{test:?}: {with} and {without}");
    }
}

#[test]
fn the_same_trial_gives_the_same_bits() {
    let host = crate::profile::host("athlon-2000");
    let nic = crate::profile::nic("nic-ace");
    let again = |test, load| trial_on(&mut SimulatedPort::alike(&nic, &host), test, load);
    for (test, load) in [
        (Test::UdpThreeWay1472, Load::Rate(50_000.0)),
        (Test::TcpSend, Load::Connections(3)),
        (Test::Accept, Load::Rate(15_000.0)),
    ] {
        assert_eq!(again(test, load), again(test, load));
    }
}

#[test]
fn an_ideal_adapter_changes_nothing_and_a_slow_one_is_named() {
    let host = crate::profile::host("athlon-2000");
    let mut nic = crate::profile::nic("nic-intel-server");
    nic.pause.sends = false;
    let with = |adapter: Option<&NicConfig>, test: Test| {
        let mut port = SimulatedPort {
            adapter,
            ..SimulatedPort::alike(&nic, &host)
        };
        let load = match test.has_connections() {
            true => Load::Connections(8),
            false => Load::Rate(test.line_rate(LinkRate::GIGABIT)),
        };
        trial_on(&mut port, test, load)
    };
    let mut adapter = NicConfig::default();
    (adapter.scale.host, adapter.mips) = (0, 1_000_000);
    for test in [Test::UdpReceive18, Test::UdpSend18, Test::TcpReceive] {
        let [plain, ideal] = [None, Some(&adapter)].map(|adapter| {
            let trial = with(adapter, test);
            trial.sent.delivered + trial.received.delivered + trial.goodput_bytes
        });
        let ratio = ideal as f64 / plain as f64;
        assert!(
            (0.99..1.01).contains(&ratio),
            "{test:?}: {ideal} and {plain}"
        );
    }
    // 600 instructions for each received frame, 600 for each frame to send.
    (adapter.scale.host, adapter.mips) = (100, 60);
    for test in [Test::UdpReceive18, Test::UdpSend18, Test::UdpThreeWay18] {
        let trial = with(Some(&adapter), test);
        let frames = trial.received.delivered + trial.sent.sent;
        let rate = frames as f64 / trial.seconds;
        assert!((95_000.0..101_000.0).contains(&rate), "{test:?}: {rate}");
        let share =
            |one: &&Use| (one.machine, one.resource) == (Role::UnderTest, Resource::NicProcessor);
        let firmware = trial.uses.iter().find(share).expect("it is measured");
        assert!(firmware.is_full(), "{test:?}: {firmware:?}");
    }
    adapter.firmware.receive_queue_packets = 64;
    let trial = with(Some(&adapter), Test::UdpReceive18);
    let mut losses = trial.received.losses.iter();
    assert!(losses.any(|(place, frames)| place == Place::AdapterQueue && frames > 0));
}
