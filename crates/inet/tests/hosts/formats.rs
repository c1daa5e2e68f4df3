//! Checks that each message has exactly the bytes that its RFC specifies, both when it is sent and when it is received.

use crate::common::MACS;
use baton_inet::{Arrived, Cidr, Host, InterfaceConfig, NeighbourState, Refusal};
use baton_tcp::Config;
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;

/// Returns the frame with this name.
fn frame(name: &str) -> Bytes {
    let lines = include_str!("../formats.txt").lines();
    let mut named = lines.filter_map(|line| line.split_once(' '));
    let (_, hex) = named
        .find(|(known, _)| *known == name)
        .expect("a known name");
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// Creates host 1 or 2, with an IPv4 address and an IPv6 address.
fn host(number: u8, change: impl FnOnce(&mut InterfaceConfig)) -> Host {
    let addresses = [format!("10.0.0.{number}/24"), format!("fd00::{number}/64")];
    let addresses = addresses.map(|text| text.parse::<Cidr>().expect("a network"));
    let mac = MACS[usize::from(number) - 1];
    let mut config = InterfaceConfig {
        announce: false,
        ..InterfaceConfig::new(mac, addresses.to_vec())
    };
    change(&mut config);
    Host::new(config, Config::default(), 1).expect("the parameters are valid")
}

/// Returns all frames that the host sends.
fn sent(host: &mut Host) -> Vec<Bytes> {
    let mut frames = Vec::new();
    let mut frame = Vec::new();
    while host.poll_frame(Time::ZERO, &mut frame) {
        frames.push(Bytes::from(std::mem::take(&mut frame)));
    }
    frames
}

fn take(host: &mut Host, name: &str) -> Arrived {
    host.handle_frame(Time::ZERO, frame(name))
}

fn connect(host: &mut Host, from: &str, to: &str) {
    let end = |text: &str, port| Endpoint::new(text.parse().expect("an address"), port);
    let flow = Flow {
        local: end(from, 5000),
        remote: end(to, 80),
    };
    host.stack_mut()
        .connect(Time::ZERO, flow)
        .expect("a free four-tuple");
}

#[test]
fn neighbour_requests_and_answers_have_the_right_format() {
    for (from, to, request, answer) in [
        ("10.0.0.1", "10.0.0.2", "arp_request", "arp_reply"),
        ("fd00::1", "fd00::2", "ns", "na"),
    ] {
        let (mut asking, mut asked) = (host(1, |_| {}), host(2, |_| {}));
        connect(&mut asking, from, to);
        assert_eq!(sent(&mut asking), [frame(request)]);
        assert_eq!(take(&mut asked, request), Arrived::Consumed);
        assert_eq!(sent(&mut asked), [frame(answer)]);
        assert_eq!(take(&mut asking, answer), Arrived::Consumed);
        let released = sent(&mut asking);
        assert_eq!(released.len(), 1, "the SYN that waited for the address");
        assert_eq!(released[0][..6], MACS[1]);
        // The host that was asked knows the other host's address, but not whether that host is reachable. Its advertisement is a packet to
        // that host, which starts the delay before the first probe (RFC 4861 7.3.3).
        let doubtful = match answer {
            "na" => NeighbourState::Delay,
            _ => NeighbourState::Stale,
        };
        for (host, state) in [(&asking, NeighbourState::Reachable), (&asked, doubtful)] {
            let neighbours = host.interface().neighbours();
            let states: Vec<_> = neighbours.map(|known| known.state).collect();
            assert_eq!(states, [state]);
        }
    }
}

#[test]
fn unsolicited_packets_of_a_host_have_the_right_format() {
    let mut announcing = host(1, |config| config.announce = true);
    announcing.handle_timeouts(Time::ZERO);
    assert_eq!(sent(&mut announcing), [frame("gratuitous")]);
    let mut detecting = host(2, |config| config.duplicate_address_detection = true);
    detecting.handle_timeouts(Time::ZERO);
    assert_eq!(sent(&mut detecting), [frame("dad")]);
    let mut discovering = host(1, |config| config.router_discovery = true);
    discovering.handle_timeouts(Time::ZERO);
    assert_eq!(sent(&mut discovering), [frame("rs")]);
}

#[test]
fn echo_requests_are_answered() {
    for (arp, request, reply) in [
        ("arp_request", "echo4", "echo4r"),
        ("ns", "echo6", "echo6r"),
    ] {
        let mut host = host(2, |_| {});
        take(&mut host, arp);
        sent(&mut host);
        assert_eq!(take(&mut host, request), Arrived::Consumed);
        assert_eq!(sent(&mut host), [frame(reply)]);
    }
}

/// Of several hosts with one address, one answers. The others still learn who asks.
#[test]
fn a_host_that_does_not_answer_learns_neighbours() {
    for (request, echo) in [("arp_request", "echo4"), ("ns", "echo6")] {
        let mut silent = host(2, |config| config.answers = false);
        assert_eq!(take(&mut silent, request), Arrived::Consumed);
        assert_eq!(take(&mut silent, echo), Arrived::Consumed);
        assert_eq!(silent.interface().neighbours().count(), 1);
        take(&mut silent, "udp4");
        take(&mut silent, "udp6");
        assert_eq!(sent(&mut silent), [] as [Bytes; 0]);
        let stats = silent.interface().stats();
        assert_eq!((stats.advertisements_sent, stats.echoes_answered), (0, 0));
        assert_eq!(stats.icmp_errors_sent, 0);
    }
}

#[test]
fn errors_quote_what_they_are_about() {
    for (arp, packet, answer, reason) in [
        ("arp_request", "udp4", "unreach4", Refusal::NoUdpPort),
        (
            "arp_request",
            "proto4",
            "protoun4",
            Refusal::UnknownProtocol,
        ),
        ("ns", "udp6", "unreach6", Refusal::NoUdpPort),
        ("ns", "proto6", "proto6_answer", Refusal::UnknownProtocol),
        ("ns", "route0", "route0_answer", Refusal::SourceRoute),
        ("ns", "option", "option_answer", Refusal::UnknownOption),
    ] {
        let mut host = host(2, |_| {});
        take(&mut host, arp);
        sent(&mut host);
        assert_eq!(
            take(&mut host, packet),
            Arrived::Refused(reason),
            "{packet}"
        );
        assert_eq!(sent(&mut host), [frame(answer)], "{packet}");
        assert_eq!(host.interface().stats().refused.get(reason), 1);
        // The rate limit allows a burst of ten errors, of which one was already sent.
        (0..50).for_each(|_| {
            take(&mut host, packet);
        });
        assert_eq!(sent(&mut host).len(), 9);
        let stats = host.interface().stats();
        assert_eq!(
            (stats.icmp_errors_sent, stats.icmp_errors_limited),
            (10, 41)
        );
    }
}

#[test]
fn a_router_that_advertises_itself_is_used() {
    let mut host = host(1, |config| config.router_discovery = true);
    host.handle_timeouts(Time::ZERO);
    sent(&mut host);
    let far = "2001:db8::1".parse().expect("an address");
    assert_eq!(host.interface().source_for(far), None);
    assert_eq!(take(&mut host, "ra"), Arrived::Consumed);
    assert_eq!(host.interface().source_for(far), "fd00::1".parse().ok());
    assert_eq!(host.interface().mtu(), 1400);
    connect(&mut host, "fd00::1", "2001:db8::1");
    let syn = &sent(&mut host)[0];
    assert_eq!(
        syn[..6],
        [2, 0, 0, 0, 0, 0xfe],
        "sent to the router at once, since its advertisement had its MAC address"
    );
    // The router's lifetime of 1800 s ends.
    let late = Time::ZERO + Span::from_secs(1801);
    host.interface_mut().handle_timeouts(late);
    assert_eq!(host.interface().source_for(far), None);
}

#[test]
fn an_address_in_use_is_not_used() {
    // Another host probes for the address at the same time, or already has it.
    for answer in ["dad", "na_all"] {
        let mut host = host(2, |config| {
            config.duplicate_address_detection = true;
            config.mac = [2, 0, 0, 0, 0, 3];
        });
        host.handle_timeouts(Time::ZERO);
        assert_eq!(
            take(&mut host, answer),
            Arrived::Refused(Refusal::AddressConflict),
            "{answer}"
        );
        host.handle_timeouts(Time::ZERO + Span::from_secs(2));
        assert_eq!(
            host.interface().duplicates().collect::<Vec<_>>(),
            ["fd00::2".parse::<std::net::IpAddr>().expect("an address")]
        );
        assert_eq!(
            host.interface()
                .source_for("fd00::1".parse().expect("an address")),
            None
        );
        assert_eq!(
            take(&mut host, "echo6"),
            Arrived::Refused(Refusal::OtherMac)
        );
    }
    let mut alone = host(2, |config| config.duplicate_address_detection = true);
    alone.handle_timeouts(Time::ZERO);
    assert_eq!(
        take(&mut alone, "echo6"),
        Arrived::Refused(Refusal::TentativeAddress)
    );
    alone.handle_timeouts(Time::ZERO + Span::from_secs(1));
    assert_eq!(take(&mut alone, "echo6"), Arrived::Consumed);
}

#[test]
fn invalid_packets_are_refused_with_a_reason() {
    /// A frame, the offset and the bytes of a change, and the reason for refusing the changed frame (checksums are not verified).
    type Case = (&'static str, usize, &'static [u8], Refusal);
    let cases: &[Case] = &[
        ("echo4", 0, &[2, 0, 0, 0, 0, 9], Refusal::OtherMac),
        ("echo4", 0, &[0xff; 6], Refusal::UnicastInBroadcast),
        ("echo4", 6, &[3], Refusal::BadFrame),
        ("echo4", 6, &MACS[1], Refusal::OwnSource),
        ("echo4", 12, &[0x88, 0xcc], Refusal::UnknownEtherType),
        ("echo4", 14, &[0x55], Refusal::BadIpHeader),
        ("echo4", 14, &[0x44], Refusal::BadIpHeader),
        ("echo4", 16, &[9, 9], Refusal::BadIpHeader),
        ("echo4", 20, &[0x20], Refusal::Fragment),
        ("echo4", 21, &[1], Refusal::Fragment),
        ("echo4", 26, &[224, 0, 0, 1], Refusal::BadSource),
        ("echo4", 26, &[127, 0, 0, 1], Refusal::BadSource),
        ("echo4", 26, &[10, 0, 0, 255], Refusal::BadSource),
        ("echo4", 26, &[0, 0, 0, 0], Refusal::BadSource),
        ("echo4", 26, &[10, 0, 0, 2], Refusal::OwnSource),
        ("echo4", 30, &[10, 0, 0, 9], Refusal::OtherDestination),
        ("echo4", 30, &[10, 0, 0, 255], Refusal::ToMany),
        ("echo4", 30, &[255; 4], Refusal::ToMany),
        ("echo4", 30, &[224, 0, 0, 1], Refusal::ToMany),
        ("echo4", 34, &[42], Refusal::IcmpIgnored),
        ("echo4", 34, &[3, 1], Refusal::ForeignQuote),
        ("echo4", 23, &[6], Refusal::BadTcpHeader),
        ("arp_request", 14, &[0, 6], Refusal::BadArp),
        ("arp_request", 18, &[8], Refusal::BadArp),
        ("arp_request", 20, &[0, 9], Refusal::BadArp),
        ("arp_request", 28, &[10, 0, 0, 2], Refusal::AddressConflict),
        ("arp_request", 38, &[10, 0, 0, 9], Refusal::OtherArpTarget),
        ("echo6", 21, &[255], Refusal::BadTcpHeader),
        ("echo6", 18, &[9], Refusal::BadIpHeader),
        ("echo6", 22, &[0xff], Refusal::BadSource),
        ("echo6", 37, &[2], Refusal::OwnSource),
        ("echo6", 53, &[9], Refusal::OtherDestination),
        ("echo6", 54, &[137], Refusal::IcmpIgnored),
        ("echo6", 54, &[1], Refusal::ForeignQuote),
        ("ns", 21, &[64], Refusal::BadDiscovery),
        ("ns", 62, &[0xff], Refusal::BadDiscovery),
        ("ns", 77, &[9], Refusal::OtherDiscoveryTarget),
        ("ns", 79, &[0], Refusal::BadDiscovery),
        ("route0", 54, &[6, 2, 0, 1], Refusal::SourceRoute),
        ("option", 56, &[0x40], Refusal::UnknownOption),
        ("option", 57, &[200], Refusal::UnknownOption),
        ("option", 20, &[44], Refusal::Fragment),
    ];
    for &(name, at, change, reason) in cases {
        let mut host = host(2, |config| config.verify_checksums = false);
        let mut bytes = frame(name).to_vec();
        if reason == Refusal::BadTcpHeader && name == "echo6" {
            bytes[20] = 6;
        }
        bytes[at..at + change.len()].copy_from_slice(change);
        let arrived = host.handle_frame(Time::ZERO, bytes.into());
        assert_eq!(
            arrived,
            Arrived::Refused(reason),
            "{name} with {change:?} at {at}"
        );
        assert_eq!(host.interface().stats().refused.total(), 1);
    }
}

#[test]
fn wrong_checksums_are_refused_with_a_reason() {
    for (name, at, reason) in [
        ("echo4", 22, Refusal::IpChecksum),
        ("echo4", 50, Refusal::IcmpChecksum),
        ("echo6", 70, Refusal::IcmpChecksum),
        ("ns", 80, Refusal::IcmpChecksum),
    ] {
        let mut host = host(2, |_| {});
        let mut bytes = frame(name).to_vec();
        bytes[at] ^= 1;
        assert_eq!(
            host.handle_frame(Time::ZERO, bytes.into()),
            Arrived::Refused(reason),
            "{name}"
        );
    }
}

#[test]
fn a_flood_of_neighbours_is_limited() {
    let mut host = host(2, |_| ());
    let mut request = frame("arp_request").to_vec();
    for number in 0..5000u16 {
        // From 10.0.x.x. With IPv6, an attacker could use more addresses, but they take the same path.
        request[30..32].copy_from_slice(&number.to_be_bytes());
        host.handle_frame(Time::ZERO, Bytes::copy_from_slice(&request));
        host.check();
    }
    assert!(host.interface().neighbours().count() <= 1024);
}
