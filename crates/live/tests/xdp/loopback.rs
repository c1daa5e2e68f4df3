//! Connections on the loopback interface move between kernel and adapter, at one end or at both.

use crate::application::{with_application_at, with_application_by};
use crate::moving::{echo, moves, opened, sees_it_back, until_on_adapter};
use crate::wire::{apart, run};
use baton_live::adapter::AdapterServiceConfig;
use baton_nic::{Config, Scheduler};
use baton_sockets::{Adapter, TcpListener, TcpStream};
use baton_testkit::Pattern;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::thread;

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    one_end_of_a_loopback_connection_moves,
    both_ends_of_a_loopback_connection_move,
    connections_move_when_work_is_done_one_piece_at_a_time,
    a_client_connects_again_from_the_port_of_a_connection_that_ended_on_the_adapter,
    settings_of_the_loopback_interface_are_restored,
];

const NAME: &str = "lo";
/// All addresses in 127.0.0.0/8 belong to the interface.
const ADDRESSES: [&str; 3] = ["127.0.0.1", "127.1.2.3", "::1"];
const MOVES: usize = 60;
/// Connections in a row from the same port.
const CONNECTIONS: u8 = 5;
/// More bytes than the largest frame of the loopback interface (GSO).
const LONG: usize = 1 << 20;

fn addresses() -> impl Iterator<Item = IpAddr> {
    ADDRESSES
        .iter()
        .map(|address| address.parse().expect("an address"))
}

fn with_loopback(work: impl FnOnce(&Adapter) + Send) {
    apart(|| with_application_at(NAME, None, |adapter, _| work(adapter)));
}

/// Writes short pieces, each of which moves the connection, and then more data at once than fits into one frame.
fn talks(near: &TcpStream) {
    for number in 0..MOVES {
        sees_it_back(near, number);
    }
    let data = Pattern::new(0).bytes(LONG);
    thread::scope(|scope| {
        scope.spawn(|| {
            (&mut &*near)
                .write_all(&data)
                .expect("the connection is open")
        });
        let mut back = vec![0; LONG];
        (&mut &*near)
            .read_exact(&mut back)
            .expect("the connection is open");
        assert!(back == data, "the echo equals what was sent");
    });
    near.shutdown(Shutdown::Write)
        .expect("the connection is open");
    assert_eq!(
        (&mut &*near)
            .read(&mut [0; 8])
            .expect("the end of the stream"),
        0
    );
}

/// Checks that connections have moved at least `least` times in each direction since `before`.
fn have_moved(adapter: &Adapter, before: (u64, u64, u64), least: u64) {
    let (there, back, bad) = moves(adapter);
    let (there, back) = (there - before.0, back - before.1);
    assert!(
        there >= least && back >= least,
        "{there} there, {back} back"
    );
    assert_eq!(bad, 0);
}

fn one_end_of_a_loopback_connection_moves() {
    with_loopback(|adapter| {
        for address in addresses() {
            let before = moves(adapter);
            let listener = std::net::TcpListener::bind((address, 0)).expect("a listener");
            let (near, far) = opened(adapter, &listener);
            thread::scope(|scope| {
                scope.spawn(|| echo(&far));
                talks(&near);
            });
            have_moved(adapter, before, 10);
        }
    });
}

fn both_ends_of_a_loopback_connection_move() {
    with_loopback(both_ends_move);
}

/// Tests the schedulers of the handoff papers, with queues that may overflow.
fn connections_move_when_work_is_done_one_piece_at_a_time() {
    for scheduler in [Scheduler::Fcfs, Scheduler::HostFirst] {
        let config = || AdapterServiceConfig {
            firmware: Some(Config {
                scheduler,
                ..Config::default()
            }),
            ..AdapterServiceConfig::default()
        };
        apart(|| {
            with_application_by(config(), NAME, None, |adapter, _| both_ends_move(adapter));
        });
    }
}

fn both_ends_move(adapter: &Adapter) {
    for address in addresses() {
        let before = moves(adapter);
        let listener = TcpListener::bind(adapter, (address, 0).into()).expect("it listens");
        let peer = listener.local_addr().expect("it has one");
        let near = TcpStream::connect(adapter, peer).expect("it is open");
        let (far, _) = listener.accept().expect("it comes");
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut buffer = [0; 4096];
                while let Ok(len @ 1..) = (&mut &far).read(&mut buffer) {
                    (&mut &far).write_all(&buffer[..len]).expect("it is open");
                }
                far.shutdown(Shutdown::Write).expect("it is open");
            });
            talks(&near);
        });
        have_moved(adapter, before, 20);
    }
}

/// Connects to `peer` from a local port, or from any port if it is 0. Waits until the previous connection from the port is closed.
fn connect_from(port: u16, peer: SocketAddr) -> std::net::TcpStream {
    let family = match peer {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    loop {
        let socket = socket(family, SocketType::STREAM, None).expect("a socket");
        sockopt::set_socket_reuseaddr(&socket, true).expect("a valid socket");
        bind(&socket, &SocketAddr::new(peer.ip(), port)).expect("the port is free");
        match connect(&socket, &peer) {
            Err(Errno::ADDRNOTAVAIL) => thread::yield_now(),
            connected => {
                connected.expect("the peer listens");
                return socket.into();
            }
        }
    }
}

/// Returns how many SYNs and SYN-ACKs were sent again in this thread's network namespace.
fn repeated_syns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/netstat").expect("a file");
    let mut rows = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (
        rows.next().expect("a row of names"),
        rows.next().expect("a row of values"),
    );
    let mut pairs = names.split(' ').zip(values.split(' '));
    let (_, value) = (pairs.find(|(name, _)| *name == "TCPSynRetrans")).expect("a counter");
    value.parse().expect("a number")
}

fn a_client_connects_again_from_the_port_of_a_connection_that_ended_on_the_adapter() {
    with_loopback(|adapter| {
        for address in addresses() {
            let listener = TcpListener::bind(adapter, (address, 0).into()).expect("a listener");
            let peer = listener.local_addr().expect("an address");
            let mut port = 0;
            for number in 0..CONNECTIONS {
                let mut near = connect_from(port, peer);
                port = near.local_addr().expect("an address").port();
                let (mut far, _) = listener.accept().expect("a connection");
                until_on_adapter(adapter, || {
                    far.write_all(&[number]).expect("the connection is open");
                    near.read_exact(&mut [0]).expect("the connection is open");
                });
                // The server closes first, so the connection stays on the adapter in TIME-WAIT.
                drop(far);
                assert_eq!(near.read(&mut [0]).expect("the end of the stream"), 0);
            }
        }
        assert_eq!(
            repeated_syns(),
            0,
            "no SYN is lost and retransmitted after a second"
        );
    });
}

fn setting(name: &str) -> String {
    run("sysctl", &["-n", &format!("net.ipv4.conf.lo.{name}")])
}

fn settings_of_the_loopback_interface_are_restored() {
    apart(|| {
        run("sysctl", &["-qw", "net.ipv4.conf.lo.route_localnet=1"]);
        with_application_at(NAME, None, |_, _| {
            assert_eq!(setting("accept_local").trim(), "1");
            assert_eq!(setting("route_localnet").trim(), "1");
        });
        assert_eq!(setting("accept_local").trim(), "0");
        assert_eq!(
            setting("route_localnet").trim(),
            "1",
            "the setting that was there before"
        );
    });
}
