//! The XDP program and the guard of a lookup on single frames. The kernel runs them without a network (BPF_PROG_TEST_RUN).

use crate::frames::{flow, flow_of, packet, segment};
use crate::wire::{NEAR, on_veth};
use baton_live::port::{AfXdp, AfXdpConfig};
use baton_live::xdp::{Lookup, LookupConfig, LookupCounters, Verdict, XdpError};
use baton_testkit::for_each_seed;
use baton_wire::Flow;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    frames_of_a_flow_are_redirected_and_others_pass,
    frames_that_are_not_whole_segments_pass,
    truncated_frames_pass,
    random_frames_are_redirected_only_if_they_belong_to_a_flow,
    the_guard_drops_only_packets_sent_on_a_flow,
    flows_are_added_and_removed_until_the_map_is_full,
    without_a_socket_frames_of_a_flow_are_dropped,
];

/// Length of the data in a [`segment`], bytes.
const DATA: usize = b"some data".len();

/// Runs `work` with a lookup of these flows, and a socket for redirected frames.
fn with_flows(flows: &[Flow], work: impl FnOnce(&Lookup) + Send) {
    on_veth(1, || {
        let lookup = Lookup::attach(NEAR, LookupConfig::default()).expect("it attaches");
        let _port = AfXdp::with_lookup(NEAR, &AfXdpConfig::default(), &lookup).expect("a socket");
        for flow in flows {
            lookup.insert(flow).expect("the map has space");
        }
        work(&lookup);
    });
}

fn received(lookup: &Lookup, frame: &[u8]) -> Verdict {
    lookup.verdict_on_received(frame).expect("a frame")
}

fn sent(lookup: &Lookup, frame: &[u8]) -> Verdict {
    lookup.verdict_on_sent(frame).expect("a frame")
}

fn ipv4() -> Flow {
    flow(("10.0.0.1", 80), ("10.0.0.2", 40_000))
}

fn ipv6() -> Flow {
    flow(("fd00::1", 80), ("fd00::2", 40_000))
}

/// Returns flows that differ from this one in one property each.
fn like(flow: &Flow) -> [Flow; 5] {
    let mut others = [*flow; 5];
    others[0].local.port += 1;
    others[1].remote.port += 1;
    others[2].local.addr = flow.remote.addr;
    others[3].remote.addr = flow.local.addr;
    others[4] = flow.reversed();
    others
}

fn frames_of_a_flow_are_redirected_and_others_pass() {
    with_flows(&[ipv4(), ipv6()], |lookup| {
        let before = lookup.counters();
        for flow in [ipv4(), ipv6()] {
            assert_eq!(received(lookup, &segment(&flow)), Verdict::Redirected);
            lookup.hold(&flow).expect("the map contains the flow");
            assert_eq!(received(lookup, &segment(&flow)), Verdict::Dropped);
            for other in like(&flow) {
                assert_eq!(
                    received(lookup, &segment(&other)),
                    Verdict::Passed,
                    "{other:?}"
                );
            }
            assert!(lookup.remove(&flow).expect("no error"));
            assert_eq!(received(lookup, &segment(&flow)), Verdict::Passed);
        }
        let expected = LookupCounters {
            redirected: before.redirected + 2,
            passed: before.passed + 12,
            guarded: before.guarded,
            discarded: before.discarded + 2,
        };
        assert_eq!(lookup.counters(), expected);
    });
}

/// Returns frames that resemble frames of these flows but are not complete, plain TCP segments, with descriptions.
fn odd_frames() -> Vec<(&'static str, Vec<u8>)> {
    let changed = |flow: &Flow, at: usize, byte: u8| {
        let mut frame = segment(flow);
        frame[at] = byte;
        frame
    };
    let with_extension = |next: u8| {
        let tcp = &segment(&ipv6())[54..];
        packet(&ipv6(), next, &[6, 0, 0, 0, 0, 0, 0, 0], tcp)
    };
    let tagged = |kind: u8| {
        let mut frame = segment(&ipv4());
        frame.splice(12..12, [kind, if kind == 0x81 { 0x00 } else { 0xa8 }, 0, 5]);
        frame
    };
    vec![
        ("the first fragment", changed(&ipv4(), 14 + 6, 0x20)),
        ("a later fragment", changed(&ipv4(), 14 + 7, 0x10)),
        (
            "another version in an IPv4 frame",
            changed(&ipv4(), 14, 0x65),
        ),
        (
            "another version in an IPv6 frame",
            changed(&ipv6(), 14, 0x45),
        ),
        (
            "an IPv4 header without its addresses",
            changed(&ipv4(), 14, 0x44),
        ),
        ("UDP", changed(&ipv4(), 14 + 9, 17)),
        ("ICMP", changed(&ipv4(), 14 + 9, 1)),
        ("UDP over IPv6", changed(&ipv6(), 14 + 6, 17)),
        ("ICMPv6", changed(&ipv6(), 14 + 6, 58)),
        ("hop-by-hop options", with_extension(0)),
        ("a routing header", with_extension(43)),
        ("an IPv6 fragment", with_extension(44)),
        ("destination options", with_extension(60)),
        ("a VLAN", tagged(0x81)),
        ("a service VLAN", tagged(0x88)),
        ("ARP", changed(&ipv4(), 13, 0x06)),
        (
            "a length without TCP's header",
            changed(&ipv4(), 14 + 3, 39),
        ),
        (
            "an IPv6 length without TCP's header",
            changed(&ipv6(), 14 + 5, 19),
        ),
        (
            "no address that IPv6 has in common with IPv4",
            segment(&flow(("::ffff:10.0.0.1", 80), ("::ffff:10.0.0.2", 40_000))),
        ),
    ]
}

fn frames_that_are_not_whole_segments_pass() {
    with_flows(&[ipv4(), ipv6()], |lookup| {
        for (what, frame) in odd_frames() {
            assert_eq!(received(lookup, &frame), Verdict::Passed, "{what}");
        }
        // Valid segments, too: IPv4 options of every length before the TCP header, and padding after the segment.
        for words in 0..=10 {
            let tcp = &segment(&ipv4())[34..];
            let frame = packet(&ipv4(), 6, &vec![1; words * 4], tcp);
            assert_eq!(
                received(lookup, &frame),
                Verdict::Redirected,
                "{words} words"
            );
        }
        let mut padded = segment(&ipv4());
        padded.extend([0; 20]);
        assert_eq!(received(lookup, &padded), Verdict::Redirected);
    });
}

fn truncated_frames_pass() {
    with_flows(&[ipv4(), ipv6()], |lookup| {
        for flow in [ipv4(), ipv6()] {
            let frame = segment(&flow);
            // The kernel does not run programs on frames shorter than an Ethernet header.
            for len in 14..frame.len() - DATA {
                let verdict = received(lookup, &frame[..len]);
                assert_eq!(verdict, Verdict::Passed, "{flow:?}: {len} bytes");
            }
        }
    });
}

/// Returns a frame that resembles a frame of one of the flows, or random bytes.
fn any_frame(random: &mut Pcg64Mcg, flows: &[Flow]) -> Vec<u8> {
    let flow = &flows[random.random_range(..flows.len())];
    let mut frame = match random.random_range(0..20) {
        0 => (0..random.random_range(14..200))
            .map(|_| random.random())
            .collect(),
        1 => segment(&like(flow)[random.random_range(..5_usize)]),
        2 => {
            let odd = odd_frames();
            odd[random.random_range(..odd.len())].1.clone()
        }
        3..8 => {
            let options = vec![random.random(); random.random_range(0..=10) * 4];
            let tcp = segment(flow).split_off(if flow.local.addr.is_ipv4() { 34 } else { 54 });
            packet(flow, 6, &options, &tcp)
        }
        _ => segment(flow),
    };
    for _ in 0..random.random_range(0..3) {
        let at = random.random_range(..frame.len());
        frame[at] ^= 1 << random.random_range(0..8);
    }
    match random.random_range(0..4) {
        0 => frame.truncate(random.random_range(14..=frame.len())),
        1 => frame.extend(vec![random.random::<u8>(); random.random_range(0..40)]),
        _ => {}
    }
    frame
}

fn random_frames_are_redirected_only_if_they_belong_to_a_flow() {
    let flows = [
        ipv4(),
        ipv6(),
        flow(("192.168.7.9", 443), ("172.16.3.4", 1025)),
    ];
    with_flows(&flows, |lookup| {
        let mine: BTreeSet<Flow> = flows.into();
        let redirected = for_each_seed(8, |seed| {
            let mut random = Pcg64Mcg::seed_from_u64(seed);
            let mut redirected = 0;
            for _ in 0..5_000 {
                let frame = any_frame(&mut random, &flows);
                let is_mine = flow_of(&frame).is_some_and(|flow| mine.contains(&flow));
                let expected = match is_mine {
                    true => Verdict::Redirected,
                    false => Verdict::Passed,
                };
                assert_eq!(received(lookup, &frame), expected, "{frame:02x?}");
                redirected += u32::from(is_mine);
            }
            redirected
        });
        // Both verdicts are frequent.
        for share in redirected {
            assert!((1_000..4_000).contains(&share), "{share} of 5,000");
        }
    });
}

fn the_guard_drops_only_packets_sent_on_a_flow() {
    with_flows(&[ipv4(), ipv6()], |lookup| {
        let before = lookup.counters().guarded;
        for flow in [ipv4(), ipv6()] {
            // A segment that this end sends is a segment that the other end receives.
            let frame = segment(&flow.reversed());
            assert_eq!(sent(lookup, &frame), Verdict::Dropped);
            for other in like(&flow.reversed()) {
                assert_eq!(sent(lookup, &segment(&other)), Verdict::Passed, "{other:?}");
            }
            for len in 14..frame.len() - DATA {
                match lookup.verdict_on_sent(&frame[..len]) {
                    Ok(verdict) => assert_eq!(verdict, Verdict::Passed, "{len} bytes"),
                    Err(error) => assert!(len < 54, "{len} bytes: {error}"),
                }
            }
        }
        assert_eq!(lookup.counters().guarded, before + 2);
    });
}

fn flows_are_added_and_removed_until_the_map_is_full() {
    on_veth(1, || {
        let config = LookupConfig {
            capacity: 8,
            ..LookupConfig::default()
        };
        let lookup = Lookup::attach(NEAR, config).expect("it attaches");
        assert_eq!(lookup.capacity(), 8);
        let number = |port| flow(("fd00::1", 80), ("fd00::2", port));
        for port in 0..8 {
            lookup.insert(&number(port)).expect("the map has space");
        }
        let full = lookup.insert(&number(8)).expect_err("the map is full");
        assert!(matches!(full, XdpError::MapFull { capacity: 8 }), "{full}");
        lookup
            .insert(&number(3))
            .expect("the map already contains the flow");
        assert!(lookup.remove(&number(3)).expect("no error"));
        assert!(
            !lookup.remove(&number(3)).expect("no error"),
            "the flow was removed"
        );
        lookup.insert(&number(8)).expect("the map has space again");
    });
}

fn without_a_socket_frames_of_a_flow_are_dropped() {
    on_veth(1, || {
        let lookup = Lookup::attach(NEAR, LookupConfig::default()).expect("it attaches");
        lookup.insert(&ipv4()).expect("the map has space");
        assert_eq!(received(&lookup, &segment(&ipv4())), Verdict::Dropped);
        let port = AfXdp::with_lookup(NEAR, &AfXdpConfig::default(), &lookup).expect("a socket");
        assert_eq!(received(&lookup, &segment(&ipv4())), Verdict::Redirected);
        drop(port);
        // Concurrent tests may be starting processes, which have duplicates of the socket until they call exec.
        while received(&lookup, &segment(&ipv4())) != Verdict::Dropped {
            std::thread::yield_now();
        }
    });
}
