//! Whatever bytes come in: nothing panics, everything refused is counted, invariants hold.

mod common;

use baton_inet::{Arrived, Host, InterfaceConfig};
use baton_tcp::Config;
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;
use common::MACS;
use proptest::prelude::*;

fn host() -> Host {
    let addresses = ["10.0.0.2/24", "fd00::2/64"].map(|text| text.parse().expect("a network"));
    let interface = InterfaceConfig {
        verify_checksums: false,
        router_discovery: true,
        ..InterfaceConfig::new(MACS[1], addresses.to_vec())
    };
    let mut host = Host::new(interface, Config::default(), 1).expect("right parameters");
    for addr in ["0.0.0.0", "::"] {
        let local = Endpoint::new(addr.parse().expect("an address"), 80);
        host.stack_mut().listen(local, 5);
    }
    host
}

/// Frames that are right, to be spoiled.
fn right_frames() -> Vec<Vec<u8>> {
    let lines = include_str!("formats.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let frame = |line: &str| {
        let (_, hex) = line.split_once(' ').expect("a name and bytes");
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
        (0..hex.len()).step_by(2).map(byte).collect()
    };
    lines.map(frame).collect()
}

/// Hands frames to a host, with time passing in between.
fn feed(frames: &[Vec<u8>]) {
    let mut host = host();
    let mut out = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let now = Time::ZERO + Span::from_ms(700) * at as u64;
        host.handle_timeouts(now);
        let before = host.interface().stats().refused.total();
        let arrived = host.handle_frame(now, Bytes::copy_from_slice(frame));
        let refused = host.interface().stats().refused.total() - before;
        assert_eq!(
            matches!(arrived, Arrived::Refused(_)),
            refused == 1,
            "{arrived:?}"
        );
        while host.poll_frame(now, &mut out) {
            out.clear();
        }
        host.check();
    }
}

fn spoiled() -> impl Strategy<Value = Vec<u8>> {
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (
        prop::sample::select(right_frames()),
        changes,
        any::<prop::sample::Index>(),
        any::<bool>(),
    )
        .prop_map(|(mut frame, changes, cut, is_cut)| {
            for (at, value) in changes {
                let at = at.index(frame.len());
                // Most changes spare the Ethernet header, which would end it all.
                if at >= 12 {
                    frame[at] = value;
                }
            }
            frame[..6].copy_from_slice(&MACS[1]);
            if is_cut {
                frame.truncate(cut.index(frame.len()));
            }
            frame
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn noise(frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 1..5)) {
        feed(&frames);
    }

    #[test]
    fn spoiled_frames(frames in proptest::collection::vec(spoiled(), 1..12)) {
        feed(&frames);
    }
}

#[test]
fn a_flood_of_neighbours_is_limited() {
    let mut host = host();
    let mut frame = right_frames().swap_remove(0);
    for number in 0..5000u16 {
        let [high, low] = number.to_be_bytes();
        // ARP requests for this host, from 10.0.0.x; IPv6 has more addresses to fake, by the same path.
        frame[30..32].copy_from_slice(&[high, low]);
        host.handle_frame(Time::ZERO, Bytes::copy_from_slice(&frame));
        host.check();
    }
    assert!(host.interface().neighbours().count() <= 1024);
}
