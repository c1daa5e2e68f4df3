//! Packets of the interface tester do not reach the kernel's IP layer, and all others do.

use crate::wire::{FAR, NEAR, on_veth, run};
use baton_live::port::{Batch, PacketConfig, PacketSocket, Port, RingKind};
use baton_live::xdp::Withheld;
use baton_testkit::process::until;
use baton_wire::Time;
use etherparse::PacketBuilder;
use std::net::UdpSocket;
use std::time::Duration;

pub const ALL: &[(&str, fn())] = baton_testkit::tests![packets_of_tests_are_kept_from_the_kernel];

/// Ethernet address of the interface.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x77];
const PATIENCE: Duration = Duration::from_secs(60);

fn socket_of(name: &str) -> PacketSocket {
    let config = PacketConfig {
        ring: RingKind::Slots,
        promiscuous: true,
        ..PacketConfig::default()
    };
    PacketSocket::open(name, &config).expect("it opens")
}

fn datagram(to: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], MAC)
        .ipv4([198, 18, 0, 2], to, 64)
        .udp(9, 9)
        .write(&mut frame, data)
        .expect("writing to memory succeeds");
    frame
}

fn packets_of_tests_are_kept_from_the_kernel() {
    on_veth(1, || {
        for addr in ["198.18.0.1/24", "198.19.255.1/24", "198.20.0.1/24"] {
            run("ip", &["addr", "add", addr, "dev", NEAR]);
        }
        run("ip", &["link", "set", NEAR, "address", "02:00:00:00:00:77"]);
        let (mut far, mut tap) = (socket_of(FAR), socket_of(NEAR));
        let mut send = |to: [u8; 4], data: &[u8]| {
            let mut batch = Batch::default();
            batch.push(&datagram(to, data));
            far.send(Time::ZERO, &mut batch)
                .expect("the interface exists");
        };
        let socket = UdpSocket::bind("0.0.0.0:9").expect("a port");
        socket
            .set_read_timeout(Some(PATIENCE))
            .expect("a valid timeout");
        let heard = || {
            let mut data = [0; 64];
            let len = socket.recv(&mut data).expect("a datagram");
            data[..len].to_vec()
        };
        send([198, 18, 0, 1], b"before");
        assert_eq!(heard(), b"before");
        let withheld = Withheld::attach(NEAR).expect("it attaches");
        send([198, 18, 0, 1], b"test");
        send([198, 19, 255, 1], b"test");
        send([198, 20, 0, 1], b"other");
        assert_eq!(
            heard(),
            b"other",
            "the kernel received no packet of the tester"
        );
        assert_eq!(withheld.packets(), 2);
        let mut frames = Vec::new();
        until("packet sockets receive packets of the tester", || {
            tap.receive(Time::ZERO, &mut frames)
                .expect("the interface exists");
            let of_tester = frames.iter().filter(|one| one.ends_with(b"test"));
            of_tester.count() >= 2
        });
        drop(withheld);
        send([198, 18, 0, 1], b"after");
        assert_eq!(heard(), b"after");
    });
}
