//! What the peer of a connection that moves between kernel and adapter sees on the wire.

use crate::application::{attach_with, with_application_seen};
use crate::moving::FAR_PORT;
use crate::peers::PATIENCE;
use crate::wire::on_veth;
use baton_host::Threshold;
use baton_live::port::{PacketSocket, Port};
use baton_sockets::{DriverConfig, TcpStream};
use baton_testkit::Pattern;
use baton_testkit::process::until;
use baton_wire::Time;
use etherparse::{NetHeaders, PacketHeaders, TcpHeader, TcpOptionElement, TransportHeader};
use std::io::{Read, Write};

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    an_adapter_sends_the_segments_that_the_kernel_would,
    after_a_return_an_old_byte_and_more_pushes_are_seen,
];

/// What the near end writes, and what the far end answers, bytes.
const EXCHANGES: [(usize, usize); 12] = [
    (1, 1),
    (700, 1),
    (1448, 700),
    (2896, 1448),
    (5000, 1),
    (1, 5000),
    (14_480, 1),
    (1, 14_480),
    (20_000, 20_000),
    (100, 100),
    (1449, 1449),
    (1, 1),
];

/// A segment with data or a FIN, without what depends on time or differs between connections.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    /// Bytes from the start of the connection, and length.
    at: u32,
    len: usize,
    push: bool,
    fin: bool,
    /// Type of service, time to live, whether IPv4 forbids fragments, whether IPv6 has a flow label.
    service: u8,
    hops: u8,
    is_whole: bool,
    has_label: bool,
    options: Vec<&'static str>,
}

impl Sent {
    fn of(ip: &NetHeaders, tcp: &TcpHeader, payload: usize, first: u32) -> Self {
        let (service, hops, is_whole, has_label) = match ip {
            NetHeaders::Ipv4(ip, _) => (ip.dscp.value(), ip.time_to_live, ip.dont_fragment, false),
            NetHeaders::Ipv6(ip, _) => {
                let has_label = ip.flow_label.value() != 0;
                (ip.traffic_class, ip.hop_limit, true, has_label)
            }
            NetHeaders::Arp(_) => unreachable!("it has TCP"),
        };
        let name = |option| match option {
            TcpOptionElement::Noop => "nop",
            TcpOptionElement::Timestamp(..) => "timestamps",
            _ => "another",
        };
        let options = tcp.options_iterator();
        Self {
            at: tcp.sequence_number.wrapping_sub(first),
            len: payload,
            push: tcp.psh,
            fin: tcp.fin,
            service,
            hops,
            is_whole,
            has_label,
            options: options.map(|it| name(it.expect("an option"))).collect(),
        }
    }
}

/// Sends `data` from one end to the other.
fn pass(mut from: impl Write, mut to: impl Read, data: &[u8]) {
    from.write_all(data).expect("it is open");
    let mut arrived = vec![0; data.len()];
    to.read_exact(&mut arrived).expect("it is open");
    assert!(arrived == data, "what arrives is what was sent");
}

/// Exchanges data and closes the near end. Calls `between` after each exchange, with its number.
fn converse<N: Read + Write>(
    mut near: N,
    mut far: std::net::TcpStream,
    between: impl Fn(&N, usize),
) {
    far.set_read_timeout(Some(PATIENCE)).expect("an option");
    for (number, (len, answer)) in (0..).zip(EXCHANGES) {
        pass(&mut near, &far, &Pattern::new(number).bytes(len));
        pass(&far, &mut near, &Pattern::new(number).bytes(answer));
        between(&near, number as usize);
    }
    drop(near);
    assert_eq!(far.read(&mut [0]).expect("an end"), 0);
}

/// Returns the segments with data or a FIN that the near end at this port sent, up to its FIN. Leaves out retransmissions, which a busy machine may
/// cause.
fn segments(seen: &mut PacketSocket, port: u16) -> Vec<Sent> {
    let (mut frames, mut segments, mut first) = (Vec::new(), Vec::<Sent>::new(), 0);
    until("the port shows the end", || {
        seen.receive(Time::ZERO, &mut frames)
            .expect("the interface is there");
        for frame in frames.drain(..) {
            let headers = PacketHeaders::from_ethernet_slice(&frame).expect("a frame");
            let Some(TransportHeader::Tcp(tcp)) = headers.transport else {
                continue;
            };
            if (tcp.source_port, tcp.destination_port) != (port, FAR_PORT) {
                continue;
            }
            if tcp.syn {
                first = tcp.sequence_number.wrapping_add(1);
            }
            let len = headers.payload.slice().len();
            if len > 0 || tcp.fin {
                let ip = headers.net.expect("an IP header");
                let sent = Sent::of(&ip, &tcp, len, first);
                if !segments.contains(&sent) {
                    segments.push(sent);
                }
            }
        }
        segments.last().is_some_and(|last| last.fin)
    });
    segments
}

/// Runs the same exchanges on a connection of the kernel and on one that moves. Passes `compare` the segments of both.
fn on_both(between: impl Fn(&TcpStream, usize) + Sync, compare: impl Fn(&[Sent], &[Sent]) + Sync) {
    let cable = |work: &mut (dyn FnMut() + Send)| on_veth(1, work);
    with_application_seen(cable, |_, listeners, path, mut seen| {
        let policy = Threshold { enqueues: 1 };
        let adapter = attach_with(path, DriverConfig::default(), policy);
        for listener in listeners {
            let peer = listener.local_addr().expect("it has one");
            let stays = std::net::TcpStream::connect(peer).expect("it is open");
            let (far, stayed) = listener.accept().expect("it comes");
            converse(stays, far, |_, _| {});
            let stayed = segments(&mut seen, stayed.port());
            let moves = TcpStream::connect(&adapter, peer).expect("it is open");
            let (far, moved) = listener.accept().expect("it comes");
            converse(moves, far, &between);
            compare(&stayed, &segments(&mut seen, moved.port()));
        }
    });
}

/// Fails at the first segment in which two connections differ.
fn assert_same(stayed: &[Sent], moved: &[Sent]) {
    let longest = stayed.len().max(moved.len());
    let differs = (0..longest).find(|&at| stayed.get(at) != moved.get(at));
    if let Some(at) = differs {
        panic!("{:#?}\n{:#?}", stayed.get(at), moved.get(at));
    }
}

fn an_adapter_sends_the_segments_that_the_kernel_would() {
    let is_there = |near: &TcpStream, _| until("it is on the adapter", || near.is_away());
    on_both(is_there, assert_same);
}

/// The broker's question to the peer is an old byte. The kernel, which measures the path anew, makes shorter bursts, each of which it pushes.
fn after_a_return_an_old_byte_and_more_pushes_are_seen() {
    const LAST_ON_ADAPTER: usize = 5;
    let after: usize = EXCHANGES[..=LAST_ON_ADAPTER]
        .iter()
        .map(|(len, _)| len)
        .sum();
    let returns = |near: &TcpStream, number: usize| {
        if number == LAST_ON_ADAPTER {
            until("it is on the adapter", || near.is_away());
            near.begin_return();
            assert!(near.is_returned(), "it comes back");
        }
    };
    on_both(returns, |stayed, moved| {
        let is_old = |sent: &&Sent| sent.options == ["timestamps"];
        let (old, moved): (Vec<&Sent>, Vec<&Sent>) = moved.iter().partition(is_old);
        assert_eq!(
            old.iter().map(|old| (old.at, old.len)).collect::<Vec<_>>(),
            [(after as u32 - 1, 1)]
        );
        let seen = |sent: &Sent| Sent {
            push: sent.push && (sent.at as usize) < after,
            ..sent.clone()
        };
        let moved: Vec<Sent> = moved.into_iter().map(seen).collect();
        let stayed: Vec<Sent> = stayed.iter().map(seen).collect();
        assert_same(&stayed, &moved);
    });
}
