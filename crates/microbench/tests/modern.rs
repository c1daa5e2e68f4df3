//! Checks what the book says about current NICs.

use baton_config::parts::{shipped_host as host, shipped_nic as nic};
use baton_microbench::measure::{Settings, measure};
use baton_microbench::simulated::{FLOWS, SimulatedPort};
use baton_microbench::{Port, Test};

/// Returns the rate at which `cores` processors receive 64-byte frames of `flows` flows without loss, millions per second.
fn received(name: &str, cores: u8, flows: u16) -> f64 {
    let nic = nic(name);
    let mut host = host(&nic.host);
    host.cores = cores;
    let mut port = SimulatedPort {
        flows,
        ..SimulatedPort::alike(&nic, &host)
    };
    let settings = Settings::simulated_on(port.link_rate());
    let found = measure(&mut port, Test::UdpReceive18, &settings).expect("it can be simulated");
    found.goals[0].lower.expect("there is a rate") / 1e6
}

#[test]
fn queues_and_flows_are_what_small_frames_depend_on() {
    for (name, cores, flows, expected) in [
        ("nic-e810", 1, FLOWS, 13.7),
        ("nic-e810", 4, FLOWS, 54.3),
        ("nic-e810", 16, FLOWS, 148.8),
        ("nic-e810", 16, 1, 15.0),
        ("nic-e810", 16, 4, 60.2),
        ("nic-xxv710", 16, FLOWS, 37.0),
    ] {
        let found = received(name, cores, flows);
        let ratio = found / expected;
        assert!(
            (0.98..1.02).contains(&ratio),
            "{name}, {cores} processors, {flows} flows: {found} and {expected}"
        );
    }
}
