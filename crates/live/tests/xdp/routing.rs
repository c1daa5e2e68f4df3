//! A router's fast path: that it forwards as the router does, and leaves to it what it must.

use crate::wire::{FAR, NEAR, on_veth, run};
use baton_inet::{Cidr, InterfaceConfig, Route, Router, Verdict};
use baton_live::port::{Batch, PacketConfig, PacketSocket, Port, RingKind};
use baton_live::xdp::{FastPath, FastPathConfig, FastPathKind, Mode, XdpError};
use baton_live::{Clock, Forwarding};
use baton_testkit::for_each_seed;
use baton_wire::{Span, Time};
use bytes::Bytes;
use etherparse::icmpv6::NeighborAdvertisementHeader;
use etherparse::{Icmpv6Type, Ipv4Header, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub const ALL: &[(&str, fn())] = &[
    (
        "the_fast_path_does_what_the_router_does",
        the_fast_path_does_what_the_router_does,
    ),
    (
        "packets_go_past_the_router_and_what_it_must_see_does_not",
        packets_go_past_the_router_and_what_it_must_see_does_not,
    ),
    (
        "super_frames_of_tcp_go_past_the_router_whole",
        super_frames_of_tcp_go_past_the_router_whole,
    ),
    (
        "senders_are_told_of_what_goes_no_further",
        senders_are_told_of_what_goes_no_further,
    ),
    (
        "neighbours_in_use_are_asked_whether_they_are_there",
        neighbours_in_use_are_asked_whether_they_are_there,
    ),
    (
        "a_link_that_is_down_is_the_routers_business",
        a_link_that_is_down_is_the_routers_business,
    ),
    (
        "drivers_are_asked_whether_they_send",
        drivers_are_asked_whether_they_send,
    ),
];

/// The router's second interface, and the other end of its cable.
const OUT: &str = "wa";
const BEYOND: &str = "wb";
const NAMES: [&str; 2] = [NEAR, OUT];
/// Ethernet addresses of the hosts at the other ends.
const HOST: [[u8; 6]; 2] = [[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 1, 2]];
const OWN: [[&str; 2]; 2] = [["10.1.0.1", "fd00:1::1"], ["10.2.0.1", "fd00:2::1"]];
const NEIGHBOUR: [[&str; 2]; 2] = [["10.1.0.9", "fd00:1::9"], ["10.2.0.9", "fd00:2::9"]];
/// Behind the second neighbour.
const FURTHER: [&str; 2] = ["192.0.2.0/24", "2001:db8::/32"];
/// Kinds of fast paths.
const XDP: FastPathConfig = FastPathConfig {
    kind: Some(FastPathKind::Xdp),
    mode: Some(Mode::Generic),
    verify_checksums: true,
    capacity: 1_000,
};
const NATIVE: FastPathConfig = FastPathConfig {
    mode: Some(Mode::Native),
    ..XDP
};
const TC: FastPathConfig = FastPathConfig {
    kind: Some(FastPathKind::TrafficControl),
    mode: None,
    ..XDP
};
const PATIENCE: Duration = Duration::from_secs(60);

fn on_two_links(work: impl FnOnce() + Send) {
    on_veth(1, || {
        let pair = ["link", "add", OUT, "type", "veth", "peer", "name", BEYOND];
        run("ip", &pair);
        for name in [OUT, BEYOND] {
            run("ip", &["link", "set", name, "up"]);
        }
        work();
    });
}

fn mac_of(name: &str) -> [u8; 6] {
    let shown = run("ip", &["-o", "link", "show", "dev", name]);
    let words: Vec<&str> = shown.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "link/ether");
    let text = words[at.expect("an Ethernet interface") + 1];
    let mut mac = [0; 6];
    for (byte, digits) in mac.iter_mut().zip(text.split(':')) {
        *byte = u8::from_str_radix(digits, 16).expect("two digits");
    }
    mac
}

/// The second link takes packets of `mtu` bytes.
fn router(mtu: u16) -> Router {
    let configs = [0, 1].map(|at| {
        let lengths = ["/24", "/64"];
        let addresses = OWN[at].iter().zip(lengths);
        let parse = |(addr, len): (&&str, &str)| format!("{addr}{len}").parse().expect("one");
        let route = |by: usize| Route {
            destination: FURTHER[by].parse().expect("a network"),
            gateway: Some(NEIGHBOUR[1][by].parse().expect("an address")),
        };
        InterfaceConfig {
            mtu: if at == 0 { 1_500 } else { mtu },
            announce: false,
            routes: if at == 0 {
                Vec::new()
            } else {
                vec![route(0), route(1)]
            },
            ..InterfaceConfig::new(
                mac_of(NAMES[at]),
                addresses.map(parse).collect::<Vec<Cidr>>(),
            )
        }
    });
    Router::new(configs.to_vec()).expect("right parameters")
}

/// What the host at `at` says of itself when it asks for the router.
fn introductions(at: usize) -> [Vec<u8>; 2] {
    let octets = |text: &str| match text.parse().expect("an address") {
        IpAddr::V4(addr) => addr.octets().to_vec(),
        IpAddr::V6(addr) => addr.octets().to_vec(),
    };
    let mut arp = [[0xff; 6], HOST[at]].concat();
    arp.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    arp.extend(HOST[at]);
    arp.extend(octets(NEIGHBOUR[at][0]));
    arp.extend([0; 6]);
    arp.extend(octets(OWN[at][0]));
    let target = octets(OWN[at][1]);
    let content = [&target[..], &[1, 1], &HOST[at]].concat();
    let ends = [NEIGHBOUR[at][1], OWN[at][1]].map(|text| match text.parse() {
        Ok(IpAddr::V6(addr)) => addr.octets(),
        _ => panic!("IPv6"),
    });
    let mut solicitation = Vec::new();
    PacketBuilder::ethernet2(HOST[at], mac_of(NAMES[at]))
        .ipv6(ends[0], ends[1], 255)
        .icmpv6(Icmpv6Type::NeighborSolicitation)
        .write(&mut solicitation, &content)
        .expect("memory");
    [arp, solicitation]
}

/// What the host at `at` says when the router asks whether it is there.
fn answer_of(at: usize, frame: &[u8]) -> Option<Vec<u8>> {
    let router = frame.get(6..12)?.try_into().expect("six bytes");
    if frame[12..14] == [8, 6] && frame.get(20..22)? == [0, 1] {
        let (target, asker) = (&frame[38..42], &frame[22..32]);
        let head = &frame[14..20];
        let parts = [
            frame.get(6..12)?,
            &HOST[at],
            &[8, 6],
            head,
            &[0, 2],
            &HOST[at],
            target,
            asker,
        ];
        return Some(parts.concat());
    }
    let is_solicitation = frame[12..14] == [0x86, 0xdd] && frame.get(54) == Some(&135);
    let target: [u8; 16] = frame.get(62..78)?.try_into().expect("sixteen bytes");
    if !is_solicitation || NEIGHBOUR[at][1].parse() != Ok(std::net::Ipv6Addr::from(target)) {
        return None;
    }
    let asker = frame[22..38].try_into().expect("sixteen bytes");
    let advertised = NeighborAdvertisementHeader {
        router: false,
        solicited: true,
        r#override: true,
    };
    let mut answer = Vec::new();
    PacketBuilder::ethernet2(HOST[at], router)
        .ipv6(target, asker, 255)
        .icmpv6(Icmpv6Type::NeighborAdvertisement(advertised))
        .write(&mut answer, &[&target[..], &[2, 1], &HOST[at]].concat())
        .expect("memory");
    Some(answer)
}

/// A datagram from the host on the first link.
fn datagram(to: [u8; 6], src: &str, dst: &str, hops: u8, data: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(HOST[0], to);
    let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
    let builder = match (parse(src), parse(dst)) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => builder.ipv4(src.octets(), dst.octets(), hops),
        (IpAddr::V6(src), IpAddr::V6(dst)) => builder.ipv6(src.octets(), dst.octets(), hops),
        _ => panic!("one version"),
    };
    let mut frame = Vec::new();
    builder.udp(7, 9).write(&mut frame, data).expect("memory");
    frame
}

fn drain(router: &mut Router, now: Time) -> [usize; 2] {
    let mut counts = [0; 2];
    for (at, count) in counts.iter_mut().enumerate() {
        while router.poll_frame(now, at, &mut Vec::new()) {
            *count += 1;
        }
    }
    counts
}

/// A router that knows both hosts, and its fast path.
fn introduced(config: FastPathConfig) -> (Router, FastPath) {
    let mut router = router(1_500);
    for at in [0, 1] {
        for mut frame in introductions(at) {
            let verdict = router.handle_frame(Time::ZERO, at, &mut frame);
            assert_eq!(verdict, Verdict::Consumed);
        }
    }
    assert_eq!(drain(&mut router, Time::ZERO), [2, 2], "all are answered");
    let mut fast_path = FastPath::attach(&NAMES, config).expect("it attaches");
    fast_path.update(Time::ZERO, &mut router).expect("memory");
    (router, fast_path)
}

/// A frame that may be forwarded, or has one of many reasons not to be.
fn random_frame(random: &mut Pcg64Mcg, own: [u8; 6]) -> Vec<u8> {
    const ENDS: [(&[&str], &[&str]); 2] = [
        (
            &[
                "10.1.0.9",
                "10.1.0.9",
                "203.0.113.7",
                "127.0.0.1",
                "0.0.0.0",
                "224.0.0.1",
            ],
            &[
                "10.2.0.9",
                "192.0.2.77",
                "10.1.0.9",
                "10.2.0.8",
                "10.2.0.1",
                "10.2.0.255",
                "198.51.100.1",
                "127.0.0.1",
                "239.1.1.1",
                "255.255.255.255",
                "0.0.0.1",
            ],
        ),
        (
            &[
                "fd00:1::9",
                "fd00:1::9",
                "2001:db8:9::1",
                "fe80::9",
                "::1",
                "::",
                "ff02::1",
                "::ffff:10.1.0.9",
            ],
            &[
                "fd00:2::9",
                "2001:db8::5",
                "fd00:1::9",
                "fd00:2::8",
                "fd00:2::1",
                "2001:db9::1",
                "fe80::1",
                "ff02::1",
                "::1",
            ],
        ),
    ];
    let (sources, destinations) = ENDS.choose(random).expect("some");
    let pick = |random: &mut Pcg64Mcg, all: &[&'static str]| match random.random_bool(0.5) {
        true => all[0],
        false => all.choose(random).expect("some"),
    };
    let (src, dst) = (pick(random, sources), pick(random, destinations));
    let hops = *[64, 64, 64, 255, 2, 1, 0].choose(random).expect("some");
    let len = *[0, 1, 18, 300, 1_472, 1_473].choose(random).expect("some");
    let data: Vec<u8> = (0..len).map(|_| random.random()).collect();
    let mut frame = datagram(own, src, dst, hops, &data);
    match random.random_range(0..10) {
        0 => frame.truncate(random.random_range(15..=frame.len())),
        1 => frame.resize(frame.len() + random.random_range(0..60), 0),
        2 | 3 => {
            let at = random.random_range(0..frame.len().min(60));
            frame[at] ^= 1_u8 << random.random_range(0..8);
        }
        // Some other identification, type of service or fragment, its checksum right.
        4 if frame[12..14] == [8, 0] => {
            let (mut header, _) = Ipv4Header::from_slice(&frame[14..]).expect("a header");
            header.identification = random.random();
            header.more_fragments = random.random();
            header.header_checksum = header.calc_header_checksum();
            frame[14..34].copy_from_slice(&header.to_bytes());
        }
        _ => {}
    }
    frame
}

fn the_fast_path_does_what_the_router_does() {
    const FRAMES: usize = 3_000;
    on_two_links(|| {
        for_each_seed(2, |seed| {
            let mut random = Pcg64Mcg::seed_from_u64(seed);
            let config = if seed % 2 == 0 { XDP } else { TC };
            let (mut router, mut fast_path) = introduced(config);
            let own = mac_of(NEAR);
            let (mut both, mut router_alone) = (0, 0);
            for number in 0..FRAMES {
                let frame = random_frame(&mut random, own);
                fast_path.update(Time::ZERO, &mut router).expect("memory");
                let fast = match fast_path.run(0, &frame) {
                    // The kernel tries no frame on a program of traffic control that has no whole header.
                    Err(_) if frame.len() < 14 + 40 && config == TC => continue,
                    run => run.expect("a frame"),
                };
                let mut slow = frame.clone();
                let verdict = router.handle_frame(Time::ZERO, 0, &mut slow);
                drain(&mut router, Time::ZERO);
                match (fast, verdict) {
                    (Some(fast), Verdict::Forward { len, .. }) => {
                        assert_eq!(fast[..len], slow[..len], "number {number}: {frame:?}");
                        both += 1;
                    }
                    (Some(_), verdict) => panic!("number {number}, {verdict:?}: {frame:?}"),
                    (None, Verdict::Forward { .. }) => router_alone += 1,
                    (None, _) => {}
                }
            }
            // What was changed into a header with options, or has much behind the packet.
            assert!(both > FRAMES / 6, "{both} forwarded");
            assert!(
                router_alone < FRAMES / 100,
                "{router_alone} by the router alone"
            );
        });
    });
}

/// A router that works, and the other ends of its cables.
struct Site {
    ports: [PacketSocket; 2],
    mac: [u8; 6],
}

impl Site {
    fn send(&mut self, at: usize, frame: &[u8]) {
        let mut batch = Batch::default();
        batch.push(frame);
        let port = &mut self.ports[at];
        port.send(Time::ZERO, &mut batch).expect("it is there");
        assert!(batch.is_empty(), "there is room for one");
    }

    /// The next frame at one of the ends that `is_it`.
    fn expect(&mut self, at: usize, what: &str, is_it: impl Fn(&[u8]) -> bool) -> Bytes {
        let start = Instant::now();
        let mut frames = Vec::new();
        loop {
            self.ports[at]
                .receive(Time::ZERO, &mut frames)
                .expect("it is there");
            let answers: Vec<_> = frames.iter().filter_map(|one| answer_of(at, one)).collect();
            answers.iter().for_each(|answer| self.send(at, answer));
            if let Some(frame) = frames.drain(..).find(|frame| is_it(frame)) {
                return frame;
            }
            assert!(start.elapsed() < PATIENCE, "{what} does not come");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends a frame at the first end until it arrives at the second one.
    fn cross(&mut self, frame: &[u8], is_it: impl Fn(&[u8]) -> bool) -> Bytes {
        self.send(0, frame);
        self.expect(1, "what is forwarded", is_it)
    }
}

fn packet_socket(name: &str, after_classifiers: bool) -> PacketSocket {
    let config = PacketConfig {
        ring: RingKind::Slots,
        promiscuous: !after_classifiers,
        after_classifiers,
        ..PacketConfig::default()
    };
    PacketSocket::open(name, &config).expect("it opens")
}

/// Lets a router with a fast path work; gives what it has counted in the end.
fn with_site(
    mtu: u16,
    config: FastPathConfig,
    work: impl FnOnce(&mut Site),
) -> BTreeMap<String, u64> {
    if config == NATIVE {
        for name in [FAR, BEYOND] {
            run("ethtool", &["-K", name, "gro", "on"]);
        }
    }
    run("ip", &["link", "set", OUT, "mtu", &mtu.to_string()]);
    let fast_path = FastPath::attach(&NAMES, config).expect("it attaches");
    assert_eq!(
        (Some(fast_path.kind()), fast_path.mode()),
        (config.kind, config.mode)
    );
    let ports = NAMES.map(|name| packet_socket(name, config == TC));
    let forwarding = Forwarding::new(router(mtu), ports.into(), Clock::start());
    let mut forwarding = forwarding.with_fast_path(Some(fast_path));
    let mut site = Site {
        ports: [FAR, BEYOND].map(|name| packet_socket(name, false)),
        mac: mac_of(NEAR),
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            forwarding
                .run(|| stop.load(Ordering::Relaxed))
                .expect("links are there");
            let mut counters = BTreeMap::new();
            forwarding.counters(&mut |name: &str, value| {
                counters.insert(name.to_owned(), value);
            });
            counters
        });
        for at in [0, 1] {
            for frame in introductions(at) {
                site.send(at, &frame);
                let answers = |frame: &[u8]| frame[..6] == HOST[at];
                site.expect(at, "an answer", answers);
            }
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&mut site)));
        stop.store(true, Ordering::Relaxed);
        let counters = worker.join().expect("it ends in order");
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        counters
    })
}

const PAIRS: [(&str, &str); 4] = [
    ("10.1.0.9", "10.2.0.9"),
    ("10.1.0.9", "192.0.2.77"),
    ("fd00:1::9", "fd00:2::9"),
    ("fd00:1::9", "2001:db8::5"),
];

fn packets_go_past_the_router_and_what_it_must_see_does_not() {
    for config in [TC, XDP, NATIVE] {
        on_two_links(|| {
            const EACH: u8 = 50;
            let counters = with_site(1_500, config, |site| {
                // The kernel has been told of neighbours when the router has nothing to do.
                std::thread::sleep(Duration::from_millis(200));
                for (src, dst) in PAIRS {
                    for number in 0..EACH {
                        let data = [number; 900];
                        let frame = datagram(site.mac, src, dst, 64, &data);
                        let arrived = site.cross(&frame, |frame| frame.ends_with(&data));
                        let mut expected = frame.clone();
                        expected[..6].copy_from_slice(&HOST[1]);
                        expected[6..12].copy_from_slice(&mac_of(OUT));
                        if src.contains(':') {
                            expected[21] = 63;
                        } else {
                            let (mut header, _) =
                                Ipv4Header::from_slice(&frame[14..]).expect("a header");
                            header.time_to_live = 63;
                            header.header_checksum = header.calc_header_checksum();
                            expected[14..34].copy_from_slice(&header.to_bytes());
                        }
                        assert_eq!(arrived, expected, "{dst}");
                    }
                }
                // To the router itself.
                let echo = echo_request(site.mac, OWN[1][0]);
                site.send(0, &echo);
                site.expect(0, "an answer to echo", |frame| {
                    icmp_kind(frame) == Some((0, 0))
                });
            });
            let past = counters["0.fast_path.received.frames"];
            let sent = u64::from(EACH) * PAIRS.len() as u64;
            assert!(
                past > sent - 8 && past <= sent,
                "{config:?}: {past} of {sent}"
            );
            assert_eq!(counters["1.fast_path.sent.frames"], past);
            assert_eq!(counters["router.forwarded"], sent, "{counters:?}");
            assert_eq!(counters["0.fast_path.dropped.no_device"], 0);
            assert!(counters["0.fast_path.passed"] >= 3, "{counters:?}");
        });
    }
}

/// Segments of `size` bytes, one behind the other, from the host on the first link.
fn segments(to: [u8; 6], src: &str, dst: &str, size: usize) -> Vec<Vec<u8>> {
    let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
    let segment = |number: u8| {
        let builder = PacketBuilder::ethernet2(HOST[0], to);
        let builder = match (parse(src), parse(dst)) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => builder.ipv4(src.octets(), dst.octets(), 64),
            (IpAddr::V6(src), IpAddr::V6(dst)) => builder.ipv6(src.octets(), dst.octets(), 64),
            _ => panic!("one version"),
        };
        let mut frame = Vec::new();
        let seq = u32::from(number) * size as u32;
        builder
            .tcp(7, 9, seq, 500)
            .ack(1)
            .write(&mut frame, &vec![number; size])
            .expect("memory");
        frame
    };
    (0..SEGMENTS).map(segment).collect()
}

const SEGMENTS: u8 = 8;

/// It is this one of [`segments`], a hop further, with right checksums.
fn check_segment(frame: &[u8], number: u8, size: usize) {
    let sliced = SlicedPacket::from_ethernet(frame).expect("a frame");
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
        panic!("TCP");
    };
    let (header, payload) = (tcp.to_header(), tcp.payload());
    assert_eq!(payload, vec![number; size]);
    assert_eq!(header.sequence_number, u32::from(number) * size as u32);
    let checksum = match sliced.net.expect("IP") {
        NetSlice::Ipv4(ip) => {
            let ip = ip.header().to_header();
            assert_eq!(ip.time_to_live, 63);
            assert_eq!(ip.calc_header_checksum(), ip.header_checksum);
            header.calc_checksum_ipv4_raw(ip.source, ip.destination, payload)
        }
        NetSlice::Ipv6(ip) => {
            let ip = ip.header().to_header();
            assert_eq!(ip.hop_limit, 63);
            header.calc_checksum_ipv6_raw(ip.source, ip.destination, payload)
        }
        NetSlice::Arp(_) => panic!("IP"),
    };
    assert_eq!(checksum.expect("a short segment"), header.checksum);
}

/// Sends a super-frame to each destination, and gives what was counted. What arrives whole no port here takes; where the second interface
/// does not cut, it arrives whole.
fn with_super_frames(mtu: u16, size: usize, cuts: bool) -> BTreeMap<String, u64> {
    with_site(mtu, TC, |site| {
        std::thread::sleep(Duration::from_millis(200));
        for (src, dst) in PAIRS {
            let frames = segments(site.mac, src, dst, size);
            let mut batch = Batch::default();
            frames.iter().for_each(|frame| batch.push(frame));
            let port = &mut site.ports[0];
            port.send(Time::ZERO, &mut batch).expect("it is there");
            assert!(batch.is_empty(), "there is room for it");
            if !cuts {
                continue;
            }
            let mut arrived = Vec::new();
            let start = Instant::now();
            while arrived.len() < usize::from(SEGMENTS) {
                let mut frames = Vec::new();
                let received = site.ports[1].receive(Time::ZERO, &mut frames);
                received.expect("it is there");
                arrived.extend(frames.into_iter().filter(|frame| frame.len() > size));
                assert!(start.elapsed() < PATIENCE, "segments do not come");
                std::thread::sleep(Duration::from_millis(1));
            }
            for (number, frame) in (0..).zip(&arrived) {
                check_segment(frame, number, size);
            }
        }
        if !cuts {
            std::thread::sleep(Duration::from_millis(200));
        }
    })
}

fn super_frames_of_tcp_go_past_the_router_whole() {
    for cuts in ["on", "off"] {
        on_two_links(|| {
            run("ethtool", &["-K", OUT, "tx", cuts]);
            let counters = with_super_frames(1_500, 1_440, cuts == "off");
            let past = counters["0.fast_path.received.frames"];
            assert_eq!(past, PAIRS.len() as u64, "each is one frame: {counters:?}");
            let data = u64::from(SEGMENTS) * 1_440 * past;
            let bytes = counters["0.fast_path.received.bytes"];
            assert!((data..data + 100 * past).contains(&bytes), "{counters:?}");
            assert_eq!(counters["0.port.dropped.super_frame"], 0);
        });
    }
    // Their segments are too long for the second link.
    on_two_links(|| {
        let counters = with_super_frames(1_400, 1_440, false);
        assert_eq!(counters["0.fast_path.received.frames"], 0, "{counters:?}");
        let left = counters["0.port.dropped.super_frame"];
        assert_eq!(left, PAIRS.len() as u64, "{counters:?}");
    });
}

fn echo_request(to: [u8; 6], dst: &str) -> Vec<u8> {
    let Ok(IpAddr::V4(dst)) = dst.parse() else {
        panic!("IPv4");
    };
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(HOST[0], to)
        .ipv4([10, 1, 0, 9], dst.octets(), 64)
        .icmpv4_echo_request(1, 2)
        .write(&mut frame, b"hello")
        .expect("memory");
    frame
}

/// Type and code of an ICMP message, of either version.
fn icmp_kind(frame: &[u8]) -> Option<(u8, u8)> {
    match SlicedPacket::from_ethernet(frame).ok()?.transport? {
        TransportSlice::Icmpv4(icmp) => Some((icmp.type_u8(), icmp.code_u8())),
        TransportSlice::Icmpv6(icmp) => Some((icmp.type_u8(), icmp.code_u8())),
        _ => None,
    }
}

fn senders_are_told_of_what_goes_no_further() {
    for config in [TC, XDP] {
        tell_senders(config);
    }
}

fn tell_senders(config: FastPathConfig) {
    on_two_links(|| {
        let counters = with_site(1_400, config, |site| {
            std::thread::sleep(Duration::from_millis(200));
            let long = [7; 1_390];
            let short = [7; 100];
            // Don't fragment is set by the builder.
            for (src, dst, hops, data, expected) in [
                ("10.1.0.9", "10.2.0.9", 1, &short[..], (11, 0)),
                ("fd00:1::9", "fd00:2::9", 1, &short[..], (3, 0)),
                ("10.1.0.9", "198.51.100.1", 64, &short[..], (3, 0)),
                ("fd00:1::9", "2001:db9::1", 64, &short[..], (1, 0)),
                ("10.1.0.9", "10.2.0.9", 64, &long[..], (3, 4)),
                ("fd00:1::9", "fd00:2::9", 64, &long[..], (2, 0)),
            ] {
                let mut frame = datagram(site.mac, src, dst, hops, data);
                if src.contains('.') {
                    let (mut header, _) = Ipv4Header::from_slice(&frame[14..]).expect("a header");
                    header.dont_fragment = true;
                    header.header_checksum = header.calc_header_checksum();
                    frame[14..34].copy_from_slice(&header.to_bytes());
                }
                site.send(0, &frame);
                site.expect(0, &format!("{expected:?} for {dst}"), |frame| {
                    frame[..6] == HOST[0] && icmp_kind(frame) == Some(expected)
                });
            }
        });
        for reason in ["HopsExceeded", "NoRoute", "TooLong"] {
            assert_eq!(counters[&format!("router.refused.{reason}")], 2);
        }
        assert_eq!(counters["0.fast_path.received.frames"], 0);
    });
}

fn neighbours_in_use_are_asked_whether_they_are_there() {
    on_two_links(|| {
        let (mut router, mut fast_path) = introduced(TC);
        let frame = datagram(mac_of(NEAR), "10.1.0.9", "192.0.2.77", 64, b"hello");
        let mut now = Time::ZERO;
        // Nobody sends: nobody is asked for, and the way remains. Neighbours of IPv6 are asked for, as they were sent an answer.
        for _ in 0..40 {
            now += Span::from_secs(1);
            router.handle_timeouts(now);
            fast_path.update(now, &mut router).expect("memory");
        }
        drain(&mut router, now);
        // Whoever is in use and silent is asked three times, and given up.
        let mut asked = 0;
        let mut until = None;
        for second in 0..30 {
            now += Span::from_secs(1);
            if fast_path.run(0, &frame).expect("a frame").is_none() {
                until = until.or(Some(second));
            }
            router.handle_timeouts(now);
            fast_path.update(now, &mut router).expect("memory");
            asked += drain(&mut router, now)[1];
        }
        assert_eq!(asked, 3, "requests to the neighbour");
        let until = until.expect("it is given up");
        assert!((7..12).contains(&until), "after {until} s");
    });
}

fn a_link_that_is_down_is_the_routers_business() {
    on_two_links(|| {
        let (mut router, mut fast_path) = introduced(TC);
        let frame = datagram(mac_of(NEAR), "10.1.0.9", "10.2.0.9", 64, b"hello");
        let goes = |fast_path: &FastPath| fast_path.run(0, &frame).expect("a frame").is_some();
        assert!(goes(&fast_path));
        let mut now = Time::ZERO;
        for (state, expected) in [("down", false), ("up", true)] {
            run("ip", &["link", "set", BEYOND, state]);
            now += Span::from_secs(1);
            fast_path.update(now, &mut router).expect("memory");
            assert_eq!(goes(&fast_path), expected, "the other end is {state}");
        }
        drop(fast_path);
        for name in NAMES {
            let shown = run("ip", &["-d", "link", "show", "dev", name]);
            assert!(!shown.contains("xdp"), "nothing stays: {shown}");
        }
    });
}

fn drivers_are_asked_whether_they_send() {
    on_two_links(|| {
        let kind_of = |config| {
            let attached = FastPath::attach(&NAMES, config).expect("it attaches");
            (attached.kind(), attached.mode())
        };
        let any = FastPathConfig::default();
        let asked = FastPathConfig { mode: None, ..XDP };
        let refused = FastPath::attach(&NAMES, NATIVE).expect_err("no end polls");
        assert!(
            matches!(&refused, XdpError::NoRedirect(name) if name == NEAR),
            "{refused}"
        );
        assert_eq!(kind_of(any), (FastPathKind::TrafficControl, None));
        assert_eq!(kind_of(asked), (FastPathKind::Xdp, Some(Mode::Generic)));
        for name in [FAR, BEYOND] {
            run("ethtool", &["-K", name, "gro", "on"]);
        }
        assert_eq!(kind_of(any), (FastPathKind::Xdp, Some(Mode::Native)));
        // It does not go on to send where it no longer can.
        let (mut router, mut fast_path) = introduced(any);
        let frame = datagram(mac_of(NEAR), "10.1.0.9", "10.2.0.9", 64, b"hello");
        assert!(fast_path.run(0, &frame).expect("a frame").is_some());
        run("ethtool", &["-K", BEYOND, "gro", "off"]);
        let later = Time::ZERO + Span::from_secs(1);
        fast_path.update(later, &mut router).expect("memory");
        assert!(fast_path.run(0, &frame).expect("a frame").is_none());
    });
}
