//! Tests of two hosts on a link: they resolve neighbours, detect neighbours that fall silent, and handle errors reported by the network.

use crate::common::{Link, MACS, V4, V6, interface};
use baton_inet::{Arrived, InterfaceConfig, NeighbourState, Passing, Route, UnclaimedKind};
use baton_tcp::{CloseReason, Config, PathError};
use baton_wire::{Endpoint, Span};
use bytes::Bytes;
use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::icmpv6::DestUnreachableCode;
use etherparse::{
    Icmpv4Type, Icmpv6Type, PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice,
};

#[test]
fn bytes_flow_both_ways_once_neighbours_are_resolved() {
    for networks in [V4, V6] {
        let mut link = Link::between(networks);
        let conn = link.connect();
        assert!(link.run(1, Link::connected));
        // One request and its answer were enough for both hosts, because a request contains its sender's addresses.
        let stats = [0, 1].map(|side| link.hosts[side].interface().stats().clone());
        let asked = stats.each_ref().map(|stats| stats.solicitations_sent);
        let answered = stats.each_ref().map(|stats| stats.advertisements_sent);
        assert_eq!((asked, answered), ([1, 0], [0, 1]));
        assert_eq!(stats[0].segments_waited, 1);
        link.write(0, conn, b"there");
        assert!(link.run(1, |link| link.received(1) == b"there"));
        let accepted = link.events[1][0].0;
        link.write(1, accepted, b"and back");
        assert!(link.run(1, |link| link.received(0) == b"and back"));
        link.pass(1);
        for side in [0, 1] {
            let neighbours: Vec<_> = link.hosts[side].interface().neighbours().collect();
            assert_eq!(neighbours.len(), 1);
            assert_eq!(neighbours[0].mac, Some(MACS[1 - side]));
            // The acknowledgment of the data confirmed that the neighbour is reachable.
            assert_eq!(neighbours[0].state, NeighbourState::Reachable);
        }
    }
}

#[test]
fn a_link_of_1500_bytes_leaves_1460_to_segments_of_ipv4_and_1440_to_those_of_ipv6() {
    for (networks, mss) in [(V4, 1460), (V6, 1440)] {
        let mut link = Link::between(networks);
        let conn = link.connect();
        assert!(link.run(1, Link::connected));
        let accepted = link.hosts[1].stack().connections().next();
        for (side, conn) in [conn, accepted.expect("it was accepted")]
            .into_iter()
            .enumerate()
        {
            let info = link.hosts[side].stack().info(link.now, conn);
            assert_eq!((info.advertised_mss, info.path_mtu), (mss, 1500));
        }
        let syn = link.sent[0].iter().find_map(|frame| {
            let sliced = SlicedPacket::from_ethernet(frame).ok()?;
            match sliced.transport? {
                TransportSlice::Tcp(tcp) => tcp.options_iterator().find_map(Result::ok),
                _ => None,
            }
        });
        assert_eq!(syn, Some(TcpOptionElement::MaximumSegmentSize(mss)));
    }
}

#[test]
fn a_lost_neighbour_request_is_repeated_after_a_second() {
    for networks in [V4, V6] {
        let mut link = Link::between(networks);
        let mut left = 2;
        link.loses = Box::new(move |side, frame| {
            let lost = side == 0 && left > 0 && frame[0] & 1 == 1;
            left -= usize::from(lost);
            lost
        });
        link.connect();
        assert!(link.run(10, Link::connected));
        assert_eq!(link.now.as_ms(), 2002, "requests are sent at 0, 1 and 2 s");
        assert_eq!(link.hosts[0].interface().stats().solicitations_sent, 3);
    }
}

#[test]
fn a_missing_neighbour_ends_the_connection_attempt() {
    for (networks, nobody) in [(V4, "10.0.0.9"), (V6, "fd00::9")] {
        let mut link = Link::between(networks);
        link.connect_to(Endpoint::new(nobody.parse().expect("an address"), 80));
        assert!(link.run(10, |link| link.closed(0).is_some()));
        let unreachable = CloseReason::Unreachable(PathError::HostUnreachable);
        assert_eq!(link.closed(0), Some(unreachable));
        assert_eq!(
            link.now.as_ms(),
            3000,
            "three requests, each with a timeout of one second"
        );
        let stats = link.hosts[0].interface().stats();
        assert_eq!(
            (stats.neighbours_failed, stats.waiting_failed),
            (1, 2),
            "the SYN was sent twice"
        );
        // The host does not ask for the neighbour again within a second, and then forgets it.
        let states: Vec<_> = link.hosts[0]
            .interface()
            .neighbours()
            .map(|known| known.state)
            .collect();
        assert_eq!(states, [NeighbourState::Failed]);
        link.pass(2);
        assert_eq!(link.hosts[0].interface().neighbours().count(), 0);
    }
}

#[test]
fn a_neighbour_that_falls_silent_is_probed_and_given_up() {
    for networks in [V4, V6] {
        let mut link = Link::between(networks);
        let conn = link.connect();
        link.run(1, Link::connected);
        link.loses = Box::new(|side, _| side == 1);
        link.write(0, conn, b"anybody there?");
        let state = |link: &Link| {
            link.hosts[0]
                .interface()
                .neighbours()
                .next()
                .map(|known| known.state)
        };
        // 30 s after its last confirmation, the neighbour may no longer be reachable. The next retransmission starts the check.
        assert!(link.run(120, |link| state(link) == Some(NeighbourState::Probe)));
        let probe = link.sent[0].last().expect("a probe");
        assert_eq!(
            probe[..6],
            MACS[1],
            "the probe is sent to the neighbour itself"
        );
        assert!(link.run(5, |link| state(link) == Some(NeighbourState::Failed)));
        // The neighbour answers again.
        link.loses = Box::new(|_, _| false);
        assert!(link.run(200, |link| link.received(1) == b"anybody there?"));
    }
}

#[test]
fn data_follows_a_neighbour_to_its_new_ethernet_address() {
    let mut link = Link::between(V4);
    let conn = link.connect();
    link.run(1, Link::connected);
    link.pass(1);
    // A gratuitous ARP request of 10.0.0.2, whose Ethernet address is now 02:00:00:00:00:77.
    let moved = [2, 0, 0, 0, 0, 0x77];
    let arp = etherparse::ArpEthIpv4Packet {
        operation: etherparse::ArpOperation::REQUEST,
        sender_mac: moved,
        sender_ipv4: [10, 0, 0, 2],
        target_mac: [0; 6],
        target_ipv4: [10, 0, 0, 2],
    };
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(moved, [0xff; 6])
        .arp(arp.into())
        .write(&mut frame)
        .expect("it fits");
    link.put(1, frame.into());
    link.pass(1);
    link.write(0, conn, b"data");
    link.pass(0);
    assert_eq!(link.sent[0].last().expect("a segment")[..6], moved);
}

/// Creates a link on which host 1 plays both a router that host 0 uses and a distant host behind that router.
fn routed(gateway: &str, near: [&str; 2], far: &str) -> Link {
    let mut from = interface(0, near[0]);
    from.routes = vec![Route::default_by(gateway.parse().expect("an address"))];
    let mut to = interface(1, far);
    to.addresses.push(near[1].parse().expect("a network"));
    Link::new([from, to], Config::default())
}

#[test]
fn packets_to_distant_hosts_go_to_the_gateway() {
    for (gateway, near, far) in [
        (
            "10.0.0.254",
            ["10.0.0.1/24", "10.0.0.254/24"],
            "192.168.7.1/32",
        ),
        ("fd00::fe", ["fd00::1/64", "fd00::fe/64"], "2001:db8::1/128"),
    ] {
        let mut link = routed(gateway, near, far);
        link.connect();
        assert!(link.run(1, Link::connected));
        let known = link.hosts[0]
            .interface()
            .neighbours()
            .next()
            .expect("the gateway");
        assert_eq!(
            known.addr,
            gateway.parse::<std::net::IpAddr>().expect("an address")
        );
    }
}

#[test]
fn without_a_route_nothing_is_sent() {
    let mut link = Link::between(V4);
    let end = |text: &str, port| Endpoint::new(text.parse().expect("an address"), port);
    assert_eq!(
        link.hosts[0].interface().source_for(end("8.8.8.8", 1).addr),
        None
    );
    let flow = baton_wire::Flow {
        local: end("10.0.0.1", 5000),
        remote: end("8.8.8.8", 80),
    };
    let now = link.now;
    link.hosts[0]
        .stack_mut()
        .connect(now, flow)
        .expect("a free four-tuple");
    assert!(link.run(1, |link| link.closed(0).is_some()));
    assert_eq!(
        link.closed(0),
        Some(CloseReason::Unreachable(PathError::NetUnreachable))
    );
    assert!(link.sent[0].is_empty());
}

/// Returns an ICMP error about a frame, sent by the other host.
fn icmp_error(about: &[u8], v4: Icmpv4Type, v6: Icmpv6Type) -> Bytes {
    let builder = PacketBuilder::ethernet2(MACS[1], MACS[0]);
    let quote = &about[14..];
    let mut frame = Vec::new();
    match quote[0] >> 4 {
        4 => builder
            .ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64)
            .icmpv4(v4)
            .write(&mut frame, &quote[..28]),
        _ => {
            let addr = |last| {
                let mut octets = [0; 16];
                (octets[0], octets[15]) = (0xfd, last);
                octets
            };
            builder
                .ipv6(addr(2), addr(1), 64)
                .icmpv6(v6)
                .write(&mut frame, quote)
        }
    }
    .expect("it fits");
    frame.into()
}

#[test]
fn an_unreachable_port_ends_the_connection_attempt() {
    for networks in [V4, V6] {
        let mut link = Link::between(networks);
        link.loses = Box::new(|side, frame| {
            side == 1 && frame.len() > 90 || side == 1 && frame[12] == 8 && frame[13] == 0
        });
        link.connect();
        link.pass(0);
        link.run(1, |link| {
            link.hosts[0].interface().stats().segments_waited > 0 && link.sent[0].len() > 1
        });
        let syn = link.sent[0].last().expect("the SYN").clone();
        let error = icmp_error(
            &syn,
            Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Port),
            Icmpv6Type::DestinationUnreachable(DestUnreachableCode::Port),
        );
        link.loses = Box::new(|_, _| false);
        link.put(1, error);
        assert!(link.run(1, |link| link.closed(0).is_some()));
        assert_eq!(
            link.closed(0),
            Some(CloseReason::Unreachable(PathError::PortUnreachable))
        );
        assert_eq!(link.hosts[0].interface().stats().path_errors, 1);
    }
}

#[test]
fn segments_shrink_to_the_path_mtu() {
    const MTU: u16 = 1300;
    for networks in [V4, V6] {
        let mut link = Link::between(networks);
        let conn = link.connect();
        assert!(link.run(1, Link::connected));
        // A router on the path drops packets that are too long, and reports them.
        link.loses = Box::new(|side, frame| side == 0 && frame.len() > usize::from(MTU) + 14);
        static DATA: [u8; 20_000] = [5; 20_000];
        link.write(0, conn, &DATA);
        link.pass(0);
        let too_long = link.sent[0]
            .iter()
            .find(|frame| frame.len() > usize::from(MTU) + 14);
        let too_long = too_long.expect("a full segment").clone();
        let next_hop_mtu = MTU;
        link.put(
            1,
            icmp_error(
                &too_long,
                Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::FragmentationNeeded {
                    next_hop_mtu,
                }),
                Icmpv6Type::PacketTooBig { mtu: MTU.into() },
            ),
        );
        let before = link.sent[0].len();
        assert!(link.run(30, |link| link.received(1).len() == DATA.len()));
        let longest = link.sent[0][before..].iter().map(Bytes::len).max();
        assert_eq!(
            longest,
            Some(usize::from(MTU) + 14),
            "as long as the path allows"
        );
    }
}

#[test]
fn a_small_link_mtu_is_respected() {
    let mut small = interface(0, V4[0]);
    small.mtu = 600;
    let mut link = Link::new([small, interface(1, V4[1])], Config::default());
    let conn = link.connect();
    assert!(link.run(1, Link::connected));
    static DATA: [u8; 5000] = [5; 5000];
    link.write(0, conn, &DATA);
    assert!(link.run(30, |link| link.received(1).len() == DATA.len()));
    assert!(link.sent[0].iter().all(|frame| frame.len() <= 614));
}

#[test]
fn packets_without_a_link_need_no_neighbours() {
    let plain = |side: usize| InterfaceConfig {
        medium: baton_inet::Medium::Ip,
        ..interface(side, V4[side])
    };
    let mut link = Link::new([plain(0), plain(1)], Config::default());
    let conn = link.connect();
    assert!(link.run(1, Link::connected));
    link.write(0, conn, b"data");
    assert!(link.run(1, |link| link.received(1) == b"data"));
    assert!(link.sent[0].iter().all(|packet| packet[0] == 0x45));
    assert_eq!(link.hosts[0].interface().neighbours().count(), 0);
}

/// Several hosts with one address may each have a listener: a packet that opens a connection is offered to one of them.
#[test]
fn a_host_may_leave_packets_for_its_listener_to_others() {
    let mut link = Link::between(V4);
    link.hosts[1].pass_unclaimed(Passing::Listeners);
    let conn = link.connect();
    assert!(!link.run_for(Span::from_ms(500), Link::connected));
    let unclaimed = link.unclaimed[1].pop().expect("the SYN");
    assert_eq!(unclaimed.kind, UnclaimedKind::Opening);
    assert_eq!(link.unclaimed[1], []);
    // Offered again, it is still left to others; handed in as a stray packet, it opens the connection.
    let offered = link.hosts[1].offer_packet(link.now, unclaimed.packet.clone());
    assert_eq!(offered, Arrived::Unclaimed);
    let again = link.hosts[1].poll_unclaimed().expect("the SYN");
    assert_eq!(again, unclaimed);
    link.hosts[1].handle_stray(link.now, again.packet);
    assert!(link.run(1, Link::connected));
    // Packets of the connection are the host's own.
    link.write(0, conn, b"data");
    assert!(link.run(1, |link| link.received(1) == b"data"));
    assert_eq!(link.unclaimed[1], []);
}

/// Packets that bypass the stack wait in queues of limited length. A packet that finds its queue full is dropped, and counted by reason.
#[test]
fn packets_for_other_hosts_are_dropped_and_counted() {
    let mut link = Link::between(V4);
    link.hosts[0].pass_unclaimed(Passing::Unclaimed);
    let conn = link.connect();
    assert!(link.run(1, Link::connected));
    let sent = link.sent[1].clone();
    // The connection has moved away.
    link.hosts[0].stack_mut().export(link.now, conn);
    let frame = sent.last().expect("the peer has sent something");
    for _ in 0..5_000 {
        link.hosts[0].handle_frame(link.now, frame.clone());
    }
    let waiting = std::iter::from_fn(|| link.hosts[0].poll_unclaimed()).count() as u64;
    let drops = link.hosts[0].packet_drops();
    assert!(waiting > 0 && drops.host_receive_queue > 0);
    assert_eq!(waiting + drops.host_receive_queue, 5_000);
    let packet = frame.slice(14..);
    link.hosts[0].handle_packet(link.now, packet.clone());
    for _ in 0..5_000 {
        link.hosts[0].send_packet(packet.clone());
    }
    let drops = link.hosts[0].packet_drops();
    assert!(drops.host_send_queue > 0 && drops.host_send_queue < 5_000);
    assert_eq!(drops.no_connection, 1);
}
