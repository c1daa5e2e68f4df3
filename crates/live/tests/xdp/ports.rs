//! AF_XDP sockets as a port that receives all frames of an interface.

use crate::wire::{FAR, NEAR, on_veth, run};
use baton_live::port::{AfXdp, AfXdpConfig, Batch, PacketConfig, PacketSocket, Port, RingKind};
use baton_live::xdp::Mode;
use baton_wire::{Checksum, Span, Time};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    frames_cross_unchanged_and_in_order,
    frames_of_all_queues_are_received,
    a_port_can_be_opened_again_at_once,
    frames_for_an_interface_that_is_down_are_dropped_and_counted,
    checksums_left_to_hardware_are_computed,
    frames_that_do_not_fit_are_dropped_and_counted,
    a_removed_interface_is_an_error,
    the_mtu_of_an_interface_is_followed,
    a_link_that_was_down_does_not_keep_a_socket_ready,
    frames_without_a_carrier_are_dropped_and_counted,
];

/// Longer than any operation takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

fn in_mode(mode: Mode) -> AfXdpConfig {
    AfXdpConfig {
        mode: Some(mode),
        ..AfXdpConfig::default()
    }
}

fn packet_socket(name: &str) -> PacketSocket {
    let config = PacketConfig {
        ring: RingKind::Slots,
        ..PacketConfig::default()
    };
    PacketSocket::open(name, &config).expect("it opens")
}

/// Returns a frame that contains its number; its EtherType is reserved for experiments (IEEE 802).
fn frame(number: u32) -> Vec<u8> {
    let len = 60 + (number as usize * 37) % 1455;
    let mut frame = vec![number as u8; len];
    frame[..12].fill(2);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Returns the frames of [`frame`] that a port has received. The kernel also sends frames on these links.
fn take(port: &mut impl Port) -> Vec<Bytes> {
    let mut frames = Vec::new();
    port.receive(Time::ZERO, &mut frames)
        .expect("the interface exists");
    frames.retain(|frame| frame[12..14] == [0x88, 0xb5]);
    frames
}

fn counters(port: &impl Port) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    port.counters(&mut |name: &str, value| {
        all.insert(name.to_owned(), value);
    });
    all
}

/// Waits until a condition becomes true.
fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "the condition stays false");
        std::thread::yield_now();
    }
}

/// Sends frames from one port to another in bursts for which the rings have space.
fn cross(from: &mut impl Port, to: &mut impl Port, count: u32, burst: u32) {
    let (mut sent, mut arrived) = (0, 0);
    let mut batch = Batch::default();
    until(|| {
        while batch.len() < 200 && sent < count && sent - arrived < burst {
            batch.push(&frame(sent));
            sent += 1;
        }
        from.send(Time::ZERO, &mut batch)
            .expect("the interface exists");
        for received in take(to) {
            assert_eq!(received, frame(arrived), "number {arrived}");
            arrived += 1;
        }
        arrived == count
    });
}

fn frames_cross_unchanged_and_in_order() {
    for mode in [Mode::Native, Mode::Generic] {
        on_veth(1, || {
            let mut near = AfXdp::open(NEAR, &in_mode(mode)).expect("it opens");
            let mut far = packet_socket(FAR);
            // Enough frames to fill each ring several times.
            cross(&mut far, &mut near, 20_000, 400);
            cross(&mut near, &mut far, 20_000, 400);
            drop(far);
            let mut far = AfXdp::open(FAR, &in_mode(mode)).expect("it opens");
            cross(&mut far, &mut near, 20_000, 400);
            for port in [near, far] {
                let all = counters(&port);
                for (name, value) in &all {
                    assert!(!name.contains("dropped") || *value == 0, "{name} {value}");
                }
                assert!(all["port.writes"] >= 20_000 && all["port.arena.chunks"] < 50);
                assert_eq!(all["port.xdp.native"], u64::from(mode == Mode::Native));
            }
        });
    }
}

fn frames_of_all_queues_are_received() {
    for mode in [Mode::Native, Mode::Generic] {
        on_veth(2, || {
            let mut port = AfXdp::open(NEAR, &in_mode(mode)).expect("it opens");
            assert_eq!(port.queues(), 2);
            run("ip", &["addr", "add", "10.1.0.2/24", "dev", FAR]);
            let neighbour = "neigh add 10.1.0.1 lladdr 02:00:00:00:00:09 dev";
            run(
                "ip",
                &[&neighbour.split(' ').collect::<Vec<_>>()[..], &[FAR]].concat(),
            );
            // The kernel selects a queue by the UDP ports.
            const SENDERS: u16 = 200;
            for _ in 0..SENDERS {
                let socket = UdpSocket::bind("10.1.0.2:0").expect("a port");
                socket.send_to(b"hello", "10.1.0.1:9").expect("it is sent");
            }
            let mut arrived = 0;
            let mut frames = Vec::new();
            until(|| {
                let fd = port.fd().expect("an AF_XDP port has a descriptor");
                let mut wait = [rustix::event::PollFd::new(
                    &fd,
                    rustix::event::PollFlags::IN,
                )];
                rustix::event::poll(&mut wait, None).expect("it waits");
                port.receive(Time::ZERO, &mut frames)
                    .expect("the interface exists");
                let ours = |frame: &Bytes| frame.ends_with(b"hello");
                arrived += frames.drain(..).filter(ours).count();
                arrived == usize::from(SENDERS)
            });
            // The port sends all frames on one of the queues.
            let mut far = packet_socket(FAR);
            cross(&mut port, &mut far, 5_000, 400);
        });
    }
}

fn a_port_can_be_opened_again_at_once() {
    on_veth(2, || {
        for mode in [Mode::Native, Mode::Generic].repeat(4) {
            let mut port = AfXdp::open(NEAR, &in_mode(mode)).expect("it opens");
            let mut batch = Batch::default();
            (0..100).for_each(|number| batch.push(&frame(number)));
            port.send(Time::ZERO, &mut batch)
                .expect("the interface exists");
        }
        let _port = AfXdp::open(NEAR, &AfXdpConfig::default()).expect("it opens");
    });
}

fn frames_for_an_interface_that_is_down_are_dropped_and_counted() {
    on_veth(1, || {
        let mut near = AfXdp::open(NEAR, &AfXdpConfig::default()).expect("it opens");
        run("ip", &["link", "set", NEAR, "down"]);
        let mut batch = Batch::default();
        for _ in 0..10 {
            (0..500).for_each(|number| batch.push(&frame(number)));
            near.send(Time::ZERO, &mut batch)
                .expect("the interface exists");
            assert!(
                batch.is_empty(),
                "no frame waits for an interface that is down"
            );
        }
        assert!(counters(&near)["port.dropped.link_down"] > 1_000);
        // The frames that are already in the ring are sent when the interface is up again.
        run("ip", &["link", "set", NEAR, "up"]);
        let mut far = packet_socket(FAR);
        let mut last = None;
        until(|| {
            let mut batch = Batch::default();
            batch.push(&frame(7_777));
            near.send(Time::ZERO, &mut batch)
                .expect("the interface exists");
            last = take(&mut far).pop().or(last.take());
            last.as_deref() == Some(&frame(7_777)[..])
        });
    });
}

fn checksums_left_to_hardware_are_computed() {
    for mode in [Mode::Native, Mode::Generic] {
        on_veth(1, || {
            let mut port = AfXdp::open(NEAR, &in_mode(mode)).expect("it opens");
            for (own, other) in [("10.1.0.2/24", "10.1.0.1"), ("fd00:1::2/64", "fd00:1::1")] {
                let add = ["addr", "add", own, "dev", FAR];
                let nodad: &[&str] = if own.contains(':') { &["nodad"] } else { &[] };
                run("ip", &[&add, nodad].concat());
                let mac = "02:00:00:00:00:09";
                run("ip", &["neigh", "add", other, "lladdr", mac, "dev", FAR]);
                let before = counters(&port)["port.xdp.checksums_finished"];
                let address = format!(
                    "{}:80",
                    if own.contains(':') {
                        format!("[{other}]")
                    } else {
                        other.to_owned()
                    }
                );
                let address = address.parse().expect("an address");
                std::thread::scope(|scope| {
                    let namespace = std::fs::File::open("/proc/thread-self/ns/net");
                    let namespace = namespace.expect("the thread's namespace");
                    scope.spawn(move || {
                        use std::os::fd::AsFd;
                        let network = rustix::thread::LinkNameSpaceType::Network;
                        rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(network))
                            .expect("the test runs as root");
                        let _ = TcpStream::connect_timeout(&address, Duration::from_millis(100));
                    });
                });
                until(|| {
                    let mut frames = Vec::new();
                    port.receive(Time::ZERO, &mut frames)
                        .expect("the interface exists");
                    frames.iter().for_each(|frame| check_syn(frame));
                    counters(&port)["port.xdp.checksums_finished"] > before
                });
            }
        });
    }
}

/// Checks that the checksum of a TCP segment without IP options or extension headers is correct.
fn check_syn(frame: &[u8]) {
    let (addresses, start, end) = match (&frame[12..14], frame[23], frame[20]) {
        ([0x08, 0x00], 6, _) => (26..34, 34, 14 + u16::from_be_bytes([frame[16], frame[17]])),
        ([0x86, 0xdd], _, 6) => (22..54, 54, 54 + u16::from_be_bytes([frame[18], frame[19]])),
        _ => return,
    };
    let segment = &frame[start..usize::from(end)];
    let sum = Checksum::new().add_bytes(&frame[addresses]).add_u16(6);
    let sum = sum.add_u16(segment.len() as u16).add_bytes(segment);
    assert!(sum.is_right(), "{frame:02x?}");
}

fn frames_that_do_not_fit_are_dropped_and_counted() {
    on_veth(1, || {
        let config = AfXdpConfig {
            receive_frames: 64,
            transmit_frames: 64,
            ..AfXdpConfig::default()
        };
        let mut near = AfXdp::open(NEAR, &config).expect("it opens");
        let mut far = packet_socket(FAR);
        let mut batch = Batch::default();
        (0..1_000).for_each(|number| batch.push(&frame(number)));
        until(|| {
            far.send(Time::ZERO, &mut batch)
                .expect("the interface exists");
            batch.is_empty()
        });
        let dropped = || {
            let all = counters(&near);
            all["port.dropped.receive_ring_full"] + all["port.xdp.passed"]
        };
        let redirected = || counters(&near)["port.xdp.redirected"];
        until(|| redirected() + counters(&near)["port.xdp.passed"] >= 1_000);
        until(|| dropped() >= 1_000 - 64);
        let mut frames = Vec::new();
        near.receive(Time::ZERO, &mut frames)
            .expect("the interface exists");
        assert_eq!(frames.len(), 64, "the ring is full");
        assert_eq!(counters(&near)["port.dropped.super_frame"], 0);
        // The rings have space again.
        cross(&mut far, &mut near, 1_000, 30);
    });
}

fn a_removed_interface_is_an_error() {
    on_veth(1, || {
        let mut near = AfXdp::open(NEAR, &AfXdpConfig::default()).expect("it opens");
        run("ip", &["link", "del", NEAR]);
        let mut batch = Batch::default();
        batch.push(&frame(0));
        until(|| {
            batch.push(&frame(1));
            near.send(Time::ZERO, &mut batch).is_err()
        });
    });
}

/// Returns a time at which a port checks its interface again.
fn later(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

/// Returns ports of both kinds at the near end.
fn near_ports() -> [Box<dyn Port>; 2] {
    let xdp = AfXdp::open(NEAR, &AfXdpConfig::default()).expect("it opens");
    [Box::new(xdp), Box::new(packet_socket(NEAR))]
}

fn the_mtu_of_an_interface_is_followed() {
    on_veth(1, || {
        for mut port in near_ports() {
            for (seconds, mtu) in [(1, 1_200), (2, 1_400), (3, 1_500)] {
                run("ip", &["link", "set", NEAR, "mtu", &mtu.to_string()]);
                port.receive(later(seconds), &mut Vec::new())
                    .expect("the interface exists");
                assert_eq!(port.link().mtu, mtu);
            }
        }
        // The buffers do not grow beyond the initial MTU.
        let mut port = packet_socket(NEAR);
        run("ip", &["link", "set", NEAR, "mtu", "1600"]);
        port.receive(later(1), &mut Vec::new())
            .expect("the interface exists");
        assert_eq!(port.link().mtu, 1_500);
    });
    on_veth(1, || {
        let ports = near_ports();
        run("ip", &["link", "del", NEAR]);
        for mut port in ports {
            let gone = port.receive(later(1), &mut Vec::new());
            assert!(
                gone.is_err(),
                "a port that only receives notices the removal too"
            );
        }
    });
}

fn a_link_that_was_down_does_not_keep_a_socket_ready() {
    on_veth(1, || {
        for ring in [RingKind::Slots, RingKind::Blocks] {
            let config = PacketConfig {
                ring,
                ..PacketConfig::default()
            };
            let mut port = PacketSocket::open(NEAR, &config).expect("it opens");
            let is_broken = |port: &PacketSocket| {
                let fd = port.fd().expect("a socket");
                let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
                poll(&mut fds, Some(&Timespec::default())).expect("a valid descriptor");
                fds[0].revents().contains(PollFlags::ERR)
            };
            // The ring contains frames that the kernel sent earlier. The port checks for errors when the ring is empty.
            let receive_all = |port: &mut PacketSocket, at: Time| {
                loop {
                    let mut frames = Vec::new();
                    port.receive(at, &mut frames).expect("the interface exists");
                    if frames.is_empty() {
                        break;
                    }
                }
            };
            run("ip", &["link", "set", NEAR, "down"]);
            until(|| is_broken(&port));
            receive_all(&mut port, later(1));
            assert!(
                !is_broken(&port),
                "{ring:?}: the socket does not stay ready while the link is down"
            );
            run("ip", &["link", "set", NEAR, "up"]);
            receive_all(&mut port, later(2));
            assert!(
                !is_broken(&port),
                "{ring:?}: the socket does not stay ready after the link is up again"
            );
        }
    });
}

fn frames_without_a_carrier_are_dropped_and_counted() {
    on_veth(1, || {
        for merges in [true, false] {
            let config = PacketConfig {
                merges,
                ..PacketConfig::default()
            };
            let mut port = PacketSocket::open(NEAR, &config).expect("it opens");
            run("ip", &["link", "set", FAR, "down"]);
            let mut batch = Batch::default();
            (0..10).for_each(|number| batch.push(&frame(number)));
            port.send(Time::ZERO, &mut batch)
                .expect("the interface exists");
            assert!(batch.is_empty(), "no frame is retried for ever");
            assert_eq!(counters(&port)["port.dropped.link_down"], 10);
            run("ip", &["link", "set", FAR, "up"]);
            let mut far = packet_socket(FAR);
            until(|| {
                batch.push(&frame(1));
                port.send(Time::ZERO, &mut batch)
                    .expect("the interface exists");
                !take(&mut far).is_empty()
            });
        }
    });
}
