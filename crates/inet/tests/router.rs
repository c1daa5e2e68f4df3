//! Tests of a router between two links: which packets it forwards, which errors it reports, and that no input makes it panic.

use baton_inet::{Cidr, ForwardRefusal, Host, InterfaceConfig, Medium, Route, Router, Verdict};
use baton_tcp::{Config, Event};
use baton_testkit::{Counting, allocations_of};
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;
use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::icmpv6::DestUnreachableCode;
use etherparse::{
    ArpPacketSlice, Icmpv4Slice, Icmpv4Type, Icmpv6Slice, Icmpv6Type, Ipv4Header, NetSlice,
    PacketBuilder, SlicedPacket, TransportSlice,
};
use proptest::prelude::*;
use std::net::IpAddr;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Ethernet addresses of the router's interfaces.
const ROUTER: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
/// Ethernet addresses of the hosts, one on each link.
const HOST: [[u8; 6]; 2] = [[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 1, 2]];

fn cidrs(list: &[&str]) -> Vec<Cidr> {
    list.iter()
        .map(|text| text.parse().expect("a network"))
        .collect()
}

fn router_of(mtus: [u16; 2], routes: &[(&str, &str)]) -> Router {
    let networks = [["10.0.0.1/24", "fd00::1/64"], ["10.0.1.1/24", "fd01::1/64"]];
    let mut interfaces = [0, 1].map(|at| InterfaceConfig {
        mtu: mtus[at],
        announce: false,
        ..InterfaceConfig::new(ROUTER[at], cidrs(&networks[at]))
    });
    interfaces[1].routes = routes
        .iter()
        .map(|(destination, gateway)| Route {
            destination: destination.parse().expect("a network"),
            gateway: Some(gateway.parse().expect("an address")),
        })
        .collect();
    Router::new(interfaces.to_vec()).expect("the parameters are valid")
}

fn router() -> Router {
    router_of([1500; 2], &[])
}

/// Returns a frame with a datagram from the host on the first link.
fn datagram(src: &str, dst: &str, hops: u8, data: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(HOST[0], ROUTER[0]);
    let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
    let builder = match (parse(src), parse(dst)) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => builder.ipv4(src.octets(), dst.octets(), hops),
        (IpAddr::V6(src), IpAddr::V6(dst)) => builder.ipv6(src.octets(), dst.octets(), hops),
        _ => panic!("expected two addresses of the same version"),
    };
    let mut frame = Vec::new();
    builder
        .udp(7, 9)
        .write(&mut frame, data)
        .expect("a vector can be written");
    frame
}

fn own_frames(router: &mut Router, at: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    loop {
        let mut frame = Vec::new();
        if !router.poll_frame(Time::ZERO, at, &mut frame) {
            return frames;
        }
        frames.push(frame);
    }
}

/// Makes the router learn the Ethernet addresses of both hosts.
fn introduce(router: &mut Router) {
    let hosts = [("10.0.0.9", "10.0.0.1"), ("10.0.1.9", "10.0.1.1")];
    for (at, (host, own)) in hosts.into_iter().enumerate() {
        let mut frame = arp_request(HOST[at], host, own);
        assert_eq!(
            router.handle_frame(Time::ZERO, at, &mut frame),
            Verdict::Consumed
        );
    }
    let hosts = [("fd00::9", "fd00::1"), ("fd01::9", "fd01::1")];
    for (at, (host, own)) in hosts.into_iter().enumerate() {
        let mut frame = solicitation(at, host, own);
        assert_eq!(
            router.handle_frame(Time::ZERO, at, &mut frame),
            Verdict::Consumed
        );
    }
    for at in [0, 1] {
        assert_eq!(
            own_frames(router, at).len(),
            2,
            "both requests are answered"
        );
    }
}

fn arp_request(mac: [u8; 6], own: &str, target: &str) -> Vec<u8> {
    let octets = |text: &str| text.parse::<std::net::Ipv4Addr>().expect("IPv4").octets();
    let mut frame = Vec::new();
    frame.extend_from_slice(&[0xff; 6]);
    frame.extend_from_slice(&mac);
    frame.extend_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend_from_slice(&mac);
    frame.extend_from_slice(&octets(own));
    frame.extend_from_slice(&[0; 6]);
    frame.extend_from_slice(&octets(target));
    frame
}

fn solicitation(at: usize, own: &str, target: &str) -> Vec<u8> {
    let octets = |text: &str| text.parse::<std::net::Ipv6Addr>().expect("IPv6").octets();
    let mut content = octets(target).to_vec();
    content.extend_from_slice(&[1, 1]);
    content.extend_from_slice(&HOST[at]);
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(HOST[at], ROUTER[at])
        .ipv6(octets(own), octets(target), 255)
        .icmpv6(Icmpv6Type::NeighborSolicitation)
        .write(&mut frame, &content)
        .expect("a vector can be written");
    frame
}

#[test]
fn a_packet_leaves_in_the_frame_in_which_it_came() {
    for (src, dst) in [("10.0.0.9", "10.0.1.9"), ("fd00::9", "fd01::9")] {
        let mut router = router();
        introduce(&mut router);
        let data = b"some data";
        for hops in [2, 64, 255] {
            let mut frame = datagram(src, dst, hops, data);
            let len = frame.len();
            // Ethernet pads short frames.
            frame.resize(90, 0xee);
            let verdict = router.handle_frame(Time::ZERO, 0, &mut frame);
            assert_eq!(verdict, Verdict::Forward { interface: 1, len });
            let mut expected = datagram(src, dst, hops - 1, data);
            expected[..6].copy_from_slice(&HOST[1]);
            expected[6..12].copy_from_slice(&ROUTER[1]);
            assert_eq!(frame[..len], expected, "the checksum is also correct");
        }
        assert_eq!(router.stats().forwarded, 3);
    }
}

#[test]
fn forwarding_allocates_nothing() {
    let mut router = router_of([1500; 2], &[("0.0.0.0/0", "10.0.1.9"), ("::/0", "fd01::9")]);
    introduce(&mut router);
    let mut frames: Vec<_> = (1..200)
        .flat_map(|last| {
            [
                ("10.0.0.9", format!("8.8.{last}.8")),
                ("fd00::9", format!("fd09::{last}")),
            ]
        })
        .map(|(src, dst)| datagram(src, &dst, 9, b""))
        .collect();
    let allocated = allocations_of(|| {
        for frame in &mut frames {
            let verdict = router.handle_frame(Time::ZERO, 0, frame);
            assert!(matches!(verdict, Verdict::Forward { interface: 1, .. }));
        }
    });
    assert_eq!(allocated, 0);
}

#[test]
fn packets_wait_for_a_neighbour_and_leave_when_it_answers() {
    let mut router = router();
    let mut frame = datagram("10.0.0.9", "10.0.1.9", 9, b"first");
    assert_eq!(
        router.handle_frame(Time::ZERO, 0, &mut frame),
        Verdict::Consumed
    );
    let asked = own_frames(&mut router, 1);
    assert_eq!(asked.len(), 1);
    let arp = ArpPacketSlice::from_slice(&asked[0][14..]).expect("ARP");
    assert_eq!(arp.target_protocol_addr(), [10, 0, 1, 9]);
    // The neighbour itself asks for the router, and its request contains its Ethernet address.
    let mut told = arp_request(HOST[1], "10.0.1.9", "10.0.1.1");
    router.handle_frame(Time::ZERO, 1, &mut told);
    let released = own_frames(&mut router, 1);
    let mut expected = datagram("10.0.0.9", "10.0.1.9", 8, b"first");
    expected[..6].copy_from_slice(&HOST[1]);
    expected[6..12].copy_from_slice(&ROUTER[1]);
    assert!(released.contains(&expected));
    assert_eq!(router.stats().waited, 1);
}

#[test]
fn the_longest_prefix_wins() {
    let mut router = router_of(
        [1500; 2],
        &[("0.0.0.0/0", "10.0.1.7"), ("192.0.2.0/25", "10.0.1.8")],
    );
    for (dst, gateway) in [
        ("192.0.2.1", [10, 0, 1, 8]),
        ("192.0.2.129", [10, 0, 1, 7]),
        ("8.8.8.8", [10, 0, 1, 7]),
    ] {
        let mut frame = datagram("10.0.0.9", dst, 9, b"");
        router.handle_frame(Time::ZERO, 0, &mut frame);
        let asked = own_frames(&mut router, 1);
        if let [frame] = &asked[..] {
            let arp = ArpPacketSlice::from_slice(&frame[14..]).expect("ARP");
            assert_eq!(arp.target_protocol_addr(), gateway, "{dst}");
        } else {
            assert_eq!(
                dst, "8.8.8.8",
                "the router asks for the same neighbour only once"
            );
        }
    }
}

/// Returns the destination of a frame, and the ICMP message in it.
fn icmp_of(frame: &[u8]) -> (IpAddr, String) {
    let packet = SlicedPacket::from_ethernet(frame).expect("a frame");
    match (packet.net, packet.transport) {
        (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Icmpv4(message))) => {
            let own = Icmpv4Slice::from_slice(ip.payload().payload).expect("a message");
            assert_eq!(own.checksum(), {
                let header = message.header();
                let again =
                    etherparse::Icmpv4Header::with_checksum(header.icmp_type, message.payload());
                again.checksum
            });
            let to = ip.header().destination_addr();
            (to.into(), format!("{:?}", message.icmp_type()))
        }
        (Some(NetSlice::Ipv6(ip)), Some(TransportSlice::Icmpv6(_))) => {
            let message = Icmpv6Slice::from_slice(ip.payload().payload).expect("a message");
            let header = ip.header();
            let (src, dst) = (header.source(), header.destination());
            assert!(message.is_checksum_valid(src, dst));
            (
                header.destination_addr().into(),
                format!("{:?}", message.icmp_type()),
            )
        }
        other => panic!("expected ICMP, got {other:?}"),
    }
}

#[test]
fn senders_are_notified_why_a_packet_was_not_forwarded() {
    let unreachable = |why| format!("{:?}", Icmpv4Type::DestinationUnreachable(why));
    let unreachable_v6 = |why| format!("{:?}", Icmpv6Type::DestinationUnreachable(why));
    let exceeded = format!(
        "{:?}",
        Icmpv4Type::TimeExceeded(etherparse::icmpv4::TimeExceededCode::TtlExceededInTransit)
    );
    let exceeded_v6 = format!(
        "{:?}",
        Icmpv6Type::TimeExceeded(etherparse::icmpv6::TimeExceededCode::HopLimitExceeded)
    );
    let long = vec![1; 1300];
    let too_long = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1280 };
    for (src, dst, hops, data, reason, told) in [
        (
            "10.0.0.9",
            "8.8.8.8",
            9,
            &b""[..],
            ForwardRefusal::NoRoute,
            unreachable(DestUnreachableHeader::Network),
        ),
        (
            "10.0.0.9",
            "10.0.1.9",
            1,
            b"",
            ForwardRefusal::HopsExceeded,
            exceeded,
        ),
        (
            "10.0.0.9",
            "10.0.1.9",
            9,
            &long,
            ForwardRefusal::TooLong,
            unreachable(too_long),
        ),
        (
            "fd00::9",
            "fd09::9",
            9,
            b"",
            ForwardRefusal::NoRoute,
            unreachable_v6(DestUnreachableCode::NoRoute),
        ),
        (
            "fd00::9",
            "fd01::9",
            1,
            b"",
            ForwardRefusal::HopsExceeded,
            exceeded_v6,
        ),
        (
            "fd00::9",
            "fd01::9",
            9,
            &long,
            ForwardRefusal::TooLong,
            format!("{:?}", Icmpv6Type::PacketTooBig { mtu: 1280 }),
        ),
    ] {
        let mut router = router_of([1500, 1280], &[]);
        introduce(&mut router);
        let mut frame = datagram(src, dst, hops, data);
        if src.contains('.') {
            forbid_fragments(&mut frame);
        }
        let verdict = router.handle_frame(Time::ZERO, 0, &mut frame);
        assert_eq!(verdict, Verdict::Refused(reason));
        assert_eq!(router.stats().refused.get(reason), 1);
        let [error] = &own_frames(&mut router, 0)[..] else {
            panic!("expected one error about {src} to {dst}")
        };
        assert_eq!(icmp_of(error), (src.parse().expect("an address"), told));
    }
}

fn forbid_fragments(frame: &mut [u8]) {
    let (mut header, _) = Ipv4Header::from_slice(&frame[14..]).expect("a header");
    header.dont_fragment = true;
    header.header_checksum = header.calc_header_checksum();
    let bytes = header.to_bytes();
    frame[14..14 + bytes.len()].copy_from_slice(&bytes);
}

#[test]
fn a_packet_that_may_be_fragmented_is() {
    let mut router = router_of([1500, 1280], &[]);
    introduce(&mut router);
    let data: Vec<u8> = (0..3000_u32).map(|at| at as u8).collect();
    let mut frame = datagram("10.0.0.9", "10.0.1.9", 9, &data);
    let (mut header, _) = Ipv4Header::from_slice(&frame[14..]).expect("a header");
    header.dont_fragment = false;
    header.header_checksum = header.calc_header_checksum();
    frame[14..34].copy_from_slice(&header.to_bytes());
    assert_eq!(
        router.handle_frame(Time::ZERO, 0, &mut frame),
        Verdict::Consumed
    );
    let mut again = Vec::new();
    for fragment in own_frames(&mut router, 1) {
        assert_eq!(
            (&fragment[..6], fragment.len() <= 14 + 1280),
            (&HOST[1][..], true)
        );
        let (header, carried) = Ipv4Header::from_slice(&fragment[14..]).expect("a header");
        assert_eq!(
            (header.time_to_live, header.header_checksum),
            (8, header.calc_header_checksum())
        );
        assert_eq!(usize::from(header.fragment_offset.value()) * 8, again.len());
        again.extend_from_slice(carried);
    }
    assert_eq!(again[8..], data, "the data follows UDP's header");
    assert_eq!(
        (router.stats().fragmented, router.stats().fragments),
        (1, 3)
    );
}

#[test]
fn a_neighbour_that_does_not_answer_is_reported() {
    for (src, dst, told) in [
        (
            "10.0.0.9",
            "10.0.1.9",
            format!(
                "{:?}",
                Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Host)
            ),
        ),
        (
            "fd00::9",
            "fd01::9",
            format!(
                "{:?}",
                Icmpv6Type::DestinationUnreachable(DestUnreachableCode::Address)
            ),
        ),
    ] {
        let mut router = router();
        let mut asked = arp_request(HOST[0], "10.0.0.9", "10.0.0.1");
        router.handle_frame(Time::ZERO, 0, &mut asked);
        router.handle_frame(Time::ZERO, 0, &mut solicitation(0, "fd00::9", "fd00::1"));
        own_frames(&mut router, 0);
        router.handle_frame(Time::ZERO, 0, &mut datagram(src, dst, 9, b""));
        let mut now = Time::ZERO;
        let mut solicitations = own_frames(&mut router, 1).len();
        while now < Time::ZERO + Span::from_ms(3500) {
            now = router
                .poll_timeout()
                .expect("a request is pending")
                .max(now);
            router.handle_timeouts(now);
            solicitations += own_frames(&mut router, 1).len();
            router.check();
            if router.interfaces()[1].stats().neighbours_failed > 0 {
                break;
            }
        }
        assert_eq!((now, solicitations), (Time::ZERO + Span::from_secs(3), 3));
        let [error] = &own_frames(&mut router, 0)[..] else {
            panic!("expected one error")
        };
        assert_eq!(icmp_of(error), (src.parse().expect("an address"), told));
        let again = router.handle_frame(now, 0, &mut datagram(src, dst, 9, b""));
        assert_eq!(again, Verdict::Refused(ForwardRefusal::NeighbourFailed));
    }
}

#[test]
fn each_address_of_the_router_answers_echo() {
    let echo = etherparse::IcmpEchoHeader { id: 3, seq: 4 };
    let mut router = router();
    introduce(&mut router);
    for own in [[10, 0, 0, 1], [10, 0, 1, 1]] {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2(HOST[0], ROUTER[0])
            .ipv4([10, 0, 0, 9], own, 9)
            .icmpv4(Icmpv4Type::EchoRequest(echo))
            .write(&mut frame, b"ping")
            .expect("a vector can be written");
        assert_eq!(
            router.handle_frame(Time::ZERO, 0, &mut frame),
            Verdict::Consumed
        );
        let [reply] = &own_frames(&mut router, 0)[..] else {
            panic!("expected one reply")
        };
        let told = format!("{:?}", Icmpv4Type::EchoReply(echo));
        assert_eq!(
            icmp_of(reply),
            ("10.0.0.9".parse().expect("an address"), told)
        );
    }
    let mut frame = Vec::new();
    let far = "fd01::1".parse::<std::net::Ipv6Addr>().expect("an address");
    let near = "fd00::9".parse::<std::net::Ipv6Addr>().expect("an address");
    PacketBuilder::ethernet2(HOST[0], ROUTER[0])
        .ipv6(near.octets(), far.octets(), 9)
        .icmpv6(Icmpv6Type::EchoRequest(echo))
        .write(&mut frame, b"ping")
        .expect("a vector can be written");
    router.handle_frame(Time::ZERO, 0, &mut frame);
    assert_eq!(own_frames(&mut router, 0).len(), 1);
}

#[test]
fn no_errors_are_sent_about_errors_multicasts_and_later_fragments() {
    let mut router = router();
    introduce(&mut router);
    // An ICMP error whose hop limit is exhausted.
    let error = Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Host);
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(HOST[0], ROUTER[0])
        .ipv4([10, 0, 0, 9], [10, 0, 1, 9], 1)
        .icmpv4(error)
        .write(&mut frame, &[0; 28])
        .expect("a vector can be written");
    router.handle_frame(Time::ZERO, 0, &mut frame);
    // A later fragment.
    let mut frame = datagram("10.0.0.9", "8.8.8.8", 9, b"");
    let (mut header, _) = Ipv4Header::from_slice(&frame[14..]).expect("a header");
    header.dont_fragment = false;
    header.fragment_offset = etherparse::IpFragOffset::try_new(5).expect("an offset");
    header.header_checksum = header.calc_header_checksum();
    frame[14..34].copy_from_slice(&header.to_bytes());
    router.handle_frame(Time::ZERO, 0, &mut frame);
    // Broadcast and multicast destinations, and sources that are multicast, loopback or unspecified addresses.
    for (src, dst) in [
        ("10.0.0.9", "10.0.1.255"),
        ("10.0.0.9", "10.0.1.0"),
        ("10.0.0.9", "255.255.255.255"),
        ("10.0.0.9", "224.0.0.5"),
        ("224.0.0.9", "10.0.1.9"),
        ("127.0.0.1", "10.0.1.9"),
        ("ff02::9", "fd01::9"),
        ("::", "fd01::9"),
    ] {
        let verdict = router.handle_frame(Time::ZERO, 0, &mut datagram(src, dst, 9, b""));
        assert!(
            !matches!(verdict, Verdict::Forward { .. }),
            "{src} to {dst}"
        );
    }
    for at in [0, 1] {
        assert_eq!(own_frames(&mut router, at), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn link_local_packets_are_not_forwarded() {
    let mut router = router();
    introduce(&mut router);
    let mut frame = datagram("fe80::9", "fd01::9", 9, b"");
    let verdict = router.handle_frame(Time::ZERO, 0, &mut frame);
    assert_eq!(verdict, Verdict::Refused(ForwardRefusal::BeyondScope));
    assert_eq!(own_frames(&mut router, 1), Vec::<Vec<u8>>::new());
}

#[test]
fn only_ethernet_interfaces_forward() {
    let interface = InterfaceConfig {
        medium: Medium::Ip,
        ..InterfaceConfig::new(ROUTER[0], cidrs(&["10.0.0.1/24"]))
    };
    let refused = Router::new(vec![interface]).expect_err("the interface has no Ethernet");
    assert!(refused.to_string().contains("Ethernet"));
}

/// Two hosts, each on one of the router's links, exchange data on a connection.
#[test]
fn connections_pass_through_the_router() {
    for (nets, far) in [
        (["10.0.0.9/24", "10.0.1.9/24"], ["10.0.0.1", "10.0.1.1"]),
        (["fd00::9/64", "fd01::9/64"], ["fd00::1", "fd01::1"]),
    ] {
        let mut hosts = [0, 1].map(|side| {
            let gateway = far[side].parse().expect("an address");
            let interface = InterfaceConfig {
                routes: vec![Route::default_by(gateway)],
                ..InterfaceConfig::new(HOST[side], cidrs(&nets[side..=side]))
            };
            Host::new(interface, Config::default(), side as u64).expect("the parameters are valid")
        });
        // The MTU of the return path is smaller.
        let mut router = router_of([1280, 1500], &[]);
        let addrs = nets.map(|net| net.parse::<Cidr>().expect("a network").addr());
        let remote = Endpoint::new(addrs[1], 80);
        hosts[1].stack_mut().listen(remote, 1);
        let local = Endpoint::new(addrs[0], 5000);
        let flow = Flow { local, remote };
        let conn = hosts[0]
            .stack_mut()
            .connect(Time::ZERO, flow)
            .expect("a free four-tuple");
        let data: Vec<u8> = (0..300_000_u32).map(|at| (at / 7) as u8).collect();
        let (mut written, mut received, mut accepted) = ([0; 2], [Vec::new(), Vec::new()], None);
        let mut now = Time::ZERO;
        while received.iter().any(|received| received.len() < data.len()) {
            assert!(
                now < Time::ZERO + Span::from_secs(60),
                "the transfer completes in time"
            );
            for side in [0, 1] {
                let ids = [Some(conn), accepted];
                let stack = hosts[side].stack_mut();
                while let Some((id, event)) = stack.poll_event() {
                    if let Event::Acceptable(listener) = event {
                        accepted = stack.accept(listener);
                    } else if event == Event::Readable {
                        while let Some(piece) = stack.read(id, usize::MAX) {
                            received[side].extend_from_slice(&piece);
                            stack.consume(id, piece.len());
                        }
                    }
                }
                if let Some(id) = ids[side] {
                    let rest = Bytes::copy_from_slice(&data[written[side]..]);
                    written[side] += stack.write(id, rest).unwrap_or(0);
                }
                let mut frame = Vec::new();
                while hosts[side].poll_frame(now, &mut frame) {
                    if let Verdict::Forward { interface, len } =
                        router.handle_frame(now, side, &mut frame)
                    {
                        hosts[interface].handle_frame(now, Bytes::copy_from_slice(&frame[..len]));
                    }
                    frame.clear();
                }
                for at in [0, 1] {
                    while router.poll_frame(now, at, &mut frame) {
                        hosts[at].handle_frame(now, Bytes::from(std::mem::take(&mut frame)));
                    }
                }
            }
            now += Span::from_ms(1);
            hosts.iter_mut().for_each(|host| host.handle_timeouts(now));
            router.handle_timeouts(now);
            router.check();
        }
        assert!(received.iter().all(|received| *received == data));
        assert!(router.stats().forwarded > 400);
        let told = router.stats().refused.get(ForwardRefusal::TooLong);
        assert!(told > 0, "the path's MTU was discovered");
    }
}

proptest! {
    /// A packet that is changed at random is either refused, or forwarded with a hop limit that is lower by one and no other change.
    #[test]
    fn no_input_makes_the_router_panic(
        v6: bool,
        data in prop::collection::vec(any::<u8>(), 0..100),
        changes in prop::collection::vec((0_usize..120, any::<u8>()), 0..6),
        cut in 0_usize..150,
    ) {
        let mut router = router_of([1500, 1280], &[("0.0.0.0/0", "10.0.1.9")]);
        introduce(&mut router);
        let (src, dst) = if v6 { ("fd00::9", "fd01::9") } else { ("10.0.0.9", "10.0.1.9") };
        let mut frame = datagram(src, dst, 9, &data);
        for (at, value) in changes {
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
        }
        frame.truncate(cut.max(1));
        let before = frame.clone();
        if let Verdict::Forward { len, .. } = router.handle_frame(Time::ZERO, 0, &mut frame) {
            prop_assert_eq!(&frame[12..14], &before[12..14]);
            let hops = if before[14] >> 4 == 6 { 21 } else { 22 };
            prop_assert_eq!(frame[hops] + 1, before[hops]);
            if before[14] >> 4 == 4 {
                let (header, rest) = Ipv4Header::from_slice(&frame[14..len]).expect("a header");
                prop_assert_eq!(header.header_checksum, header.calc_header_checksum());
                prop_assert_eq!(rest, &before[len - rest.len()..len]);
            }
        }
        router.check();
        for at in [0, 1] {
            for own in own_frames(&mut router, at) {
                prop_assert!(SlicedPacket::from_ethernet(&own).is_ok());
            }
        }
    }
}
