//! Waits for sockets and other descriptors at the same time.

use crate::network::Network;
use crate::{LONG, listening, spawn_until_it_waits};
use baton_sockets::{Interest, TcpStream, Watched};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use std::io::{Read, Write};
use std::thread;

fn bell() -> OwnedFd {
    eventfd(0, EventfdFlags::NONBLOCK).expect("a descriptor")
}

fn ring(bell: &OwnedFd) {
    rustix::io::write(bell, &1_u64.to_ne_bytes()).expect("the counter does not overflow");
}

/// Two threads wait, of which only one waits for the adapter itself. Each wakes at its own events.
#[test]
fn the_first_event_ends_a_wait() {
    let network = Network::start();
    let (left, right, listener, address) = listening(&network, 80);
    let pairs = [(), ()].map(|()| {
        let client = TcpStream::connect(&left, address).expect("a connection");
        (client, listener.accept().expect("a connection").0)
    });
    let bells = [bell(), bell()];
    let wait = |index: usize| {
        let others = [PollFd::new(&bells[index], PollFlags::IN)];
        let watched = [Watched::Stream(&pairs[index].1, Interest::READABLE)];
        let waited = right.wait_beside(&watched, &others, Some(LONG), poll);
        waited.expect("poll succeeds");
    };
    for rung_first in [0, 1] {
        thread::scope(|scope| {
            let first = spawn_until_it_waits(scope, || wait(0));
            let second = spawn_until_it_waits(scope, || wait(1));
            let threads = if rung_first == 0 {
                [first, second]
            } else {
                [second, first]
            };
            let [rung, sent_to] = threads;
            ring(&bells[rung_first]);
            rung.join().expect("no panic");
            assert!(!sent_to.is_finished());
            (&pairs[1 - rung_first].0).write_all(b"x").expect("sent");
            sent_to.join().expect("no panic");
        });
        rustix::io::read(&bells[rung_first], &mut [0; 8])
            .expect("the thread was woken by this descriptor");
        let mut server = &pairs[1 - rung_first].1;
        assert!(server.readiness().is_readable() && server.readiness().writable);
        server.read_exact(&mut [0]).expect("received");
        assert!(!server.readiness().is_readable());
    }
}

#[test]
fn listeners_report_connections() {
    let network = Network::start();
    let (left, right, listener, address) = listening(&network, 80);
    assert!(!listener.is_acceptable());
    let wait = || right.wait_beside(&[Watched::Listener(&listener)], &[], Some(LONG), poll);
    thread::scope(|scope| {
        let waits = spawn_until_it_waits(scope, wait);
        let _client = TcpStream::connect(&left, address).expect("a connection");
        waits.join().expect("no panic").expect("poll succeeds");
        assert!(listener.is_acceptable());
        listener.accept().expect("a connection");
    });
}
