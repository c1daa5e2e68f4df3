//! Measures how long it takes to move a connection between the kernel and an adapter on the same interface, one end of a veth pair. Needs root and
//! two cores.
//!
//! *System calls*: the time of the system calls that take an idle connection out of the kernel and put it back, including the wait until the peer
//! has acknowledged the byte that the kernel sends afterwards. *Broker*: the same through a broker, for an idle connection and for one with 16 KiB of
//! unread data. *Round trips*: 100 bytes to a peer that echoes them, with the connection in the kernel, on the adapter, or moving at each round trip,
//! which is about the time that the peer waits for the next message. A round trip of 190 ms or more has waited for a retransmission timeout.
//! *Path*: the same round trips over a path with a delay of half a millisecond in each direction.

#[path = "../tests/xdp/application.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod application;
mod path;
#[path = "../tests/xdp/peers.rs"]
mod peers;
#[path = "../tests/xdp/wire.rs"]
mod wire;

use application::{attach_with, open, with_application_on};
use baton_host::{Alternate, Selection, Threshold};
use baton_live::broker::Broker;
use baton_live::port::{AfXdp, AfXdpConfig};
use baton_live::repair::{flow_of, give_back, take};
use baton_live::xdp::{Lookup, LookupConfig, SequenceReader};
use baton_sockets::broker::BrokerClient;
use baton_sockets::{DriverConfig, TcpStream};
use path::on_path;
use peers::{connect, transfer, with_far_listeners};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use wire::{NEAR, on_veth};

/// Number of round trips, or of moves to the adapter and back, for one figure.
const TIMES: usize = 2000;
const MESSAGE: usize = 100;
/// Delay of the path in each direction.
const DELAY: Duration = Duration::from_micros(500);
/// Unread data of a connection that the broker moves, bytes.
const UNREAD: usize = 16 << 10;
/// No retransmission timeout is shorter: the minimum of Linux and of the adapter is 200 ms.
const TIMEOUT: Duration = Duration::from_millis(190);

fn main() {
    // `cargo bench` passes this argument, and `cargo test` does not.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!(
        "{:<44}{:>10}{:>10}{:>12}",
        "us", "median", "99 %", "timeouts"
    );
    on_veth(1, || with_far_listeners(|listeners| calls(&listeners[0])));
    on_veth(1, || with_far_listeners(|listeners| broker(&listeners[0])));
    round_trips_on("round trip", |work| on_veth(1, work));
    round_trips_on("path, round trip", |work| on_path(DELAY, work));
}

/// Measures round trips with the connection in the kernel, on the adapter, and moving at each round trip.
fn round_trips_on(what: &str, cable: impl Fn(&mut (dyn FnMut() + Send))) {
    let never = Threshold { enqueues: u32::MAX };
    round_trips(&format!("{what} in the kernel"), &cable, never, 0);
    let once = Threshold { enqueues: 1 };
    round_trips(&format!("{what} on the adapter"), &cable, once, 1);
    let (each, least) = (Alternate { enqueues: 1 }, TIMES as u64 / 3);
    round_trips(&format!("{what} with a move"), &cable, each, least);
}

/// Repeats an operation and prints the distribution of its times.
fn report(what: &str, mut once: impl FnMut()) {
    let mut times: Vec<Duration> = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let start = Instant::now();
        once();
        times.push(start.elapsed());
    }
    let timeouts = times.iter().filter(|&&time| time >= TIMEOUT).count();
    times.sort_unstable();
    let at = |share: usize| times[TIMES * share / 100].as_secs_f64() * 1e6;
    println!("{what:<44}{:>10.1}{:>10.1}{timeouts:>12}", at(50), at(99));
}

fn calls(listener: &TcpListener) {
    let lookup = Lookup::attach(NEAR, LookupConfig::default()).expect("XDP");
    let _port = AfXdp::with_lookup(NEAR, &AfXdpConfig::default(), &lookup).expect("a socket");
    let reader = SequenceReader::new().expect("the program loads");
    let (mut near, far) = connect(listener);
    let flow = flow_of(near.as_fd()).expect("a connected socket");
    report("system calls, idle, there and back", || {
        lookup.insert(&flow).expect("the map has space");
        let (essentials, _) = at_rest(|| take(near.as_fd(), &flow, NEAR, &reader, usize::MAX).ok());
        let back = give_back(&essentials, false, || drop(lookup.remove(&flow)));
        near = back.expect("the connection returns").into();
    });
    transfer(&near, &far, MESSAGE);
}

/// Repeats `take` until all sent data is acknowledged and the connection can move.
fn at_rest<T>(mut take: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(taken) = take() {
            return taken;
        }
    }
}

fn broker(listener: &TcpListener) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("broker");
    let _broker = Broker::start(&path, NEAR, None).expect("XDP");
    let _adapter = open(folder.path());
    let mut client = BrokerClient::connect(&path).expect("the broker listens");
    let (mut near, far) = connect(listener);
    let mut there_and_back = || {
        let (unread, state) = at_rest(|| client.take(near.as_fd()).ok());
        let back = client.give_back_unread(&unread, &state);
        near = back.expect("the connection returns").into();
    };
    report("broker, idle, there and back", &mut there_and_back);
    (&far)
        .write_all(&[7; UNREAD])
        .expect("the send buffer has space");
    report("broker, unread data, there and back", &mut there_and_back);
}

/// Measures round trips under a policy, which must make at least `moves` moves.
fn round_trips(
    what: &str,
    cable: impl Fn(&mut (dyn FnMut() + Send)),
    policy: impl Selection + 'static,
    moves: u64,
) {
    with_application_on(cable, |_, listeners, path: &Path| {
        let adapter = attach_with(path, DriverConfig::default(), policy);
        let peer = listeners[0].local_addr().expect("an address");
        let mut near = TcpStream::connect(&adapter, peer).expect("a connection");
        let (mut far, _) = listeners[0].accept().expect("a connection");
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut message = [0; MESSAGE];
                while far.read_exact(&mut message).is_ok() && far.write_all(&message).is_ok() {}
            });
            let mut message = [7; MESSAGE];
            report(what, || {
                near.write_all(&message).expect("the connection is open");
                near.read_exact(&mut message)
                    .expect("the connection is open");
            });
            near.shutdown(Shutdown::Both)
                .expect("the connection is open");
        });
        let made = adapter.with_kernel(|kernel| {
            let stats = kernel.layer().stats();
            stats.handoffs_accepted + stats.restored
        });
        assert!(
            made.expect("an adapter beside the kernel") >= moves,
            "{made:?} moves"
        );
    });
}
