//! A lookup between the kernels of two namespaces captures one connection; another connection is unaffected.

use crate::frames::{flow_between, flow_of};
use crate::links::{ATTACHED, child};
use crate::peers::{PATIENCE, connect, transfer, with_far_listeners};
use crate::wire::{NEAR, on_veth};
use baton_live::port::{AfXdp, AfXdpConfig, Port};
use baton_live::xdp::{GuardKind, Lookup, LookupConfig, Mode};
use baton_testkit::process::until;
use baton_wire::Time;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    a_connection_is_captured_and_given_back_while_another_continues,
    a_connection_continues_when_the_process_that_captured_it_is_killed,
];

/// Returns the local and the remote address.
fn ends(near: &TcpStream) -> (SocketAddr, SocketAddr) {
    let local = near.local_addr().expect("an address");
    (local, near.peer_addr().expect("an address"))
}

fn a_connection_is_captured_and_given_back_while_another_continues() {
    for (mode, guard) in [
        (Mode::Native, GuardKind::Tcx),
        (Mode::Generic, GuardKind::Clsact),
    ] {
        on_veth(1, || {
            with_far_listeners(|listeners| {
                let config = LookupConfig {
                    mode: Some(mode),
                    guard: Some(guard),
                    ..LookupConfig::default()
                };
                let lookup = Lookup::attach(NEAR, config).expect("it attaches");
                let mut port =
                    AfXdp::with_lookup(NEAR, &AfXdpConfig::default(), &lookup).expect("a socket");
                for listener in &listeners {
                    capture_one(listener, &lookup, &mut port);
                }
            });
        });
    }
}

fn a_connection_continues_when_the_process_that_captured_it_is_killed() {
    for guard in ["tcx", "clsact"] {
        on_veth(1, || {
            with_far_listeners(|listeners| {
                let (near, far) = connect(&listeners[0]);
                let (local, remote) = ends(&near);
                let (mut child, line) = child(&["env"], &format!("{guard} {local} {remote}"));
                assert_eq!(line, ATTACHED);
                (&near)
                    .write_all(b"held back")
                    .expect("the send buffer has space");
                far.set_read_timeout(Some(Duration::from_millis(300)))
                    .expect("a valid timeout");
                (&far).read(&mut [0; 9]).expect_err("nothing comes through");
                child.kill();
                far.set_read_timeout(Some(PATIENCE))
                    .expect("a valid timeout");
                let mut arrived = [0; 9];
                (&far).read_exact(&mut arrived).expect("the data arrives");
                assert_eq!(&arrived, b"held back");
            });
        });
    }
}

fn capture_one(listener: &TcpListener, lookup: &Lookup, port: &mut AfXdp) {
    let (near, far) = connect(listener);
    let (other_near, other_far) = connect(listener);
    let (local, remote) = ends(&near);
    let flow = flow_between(local, remote);
    transfer(&near, &far, 100_000);
    transfer(&far, &near, 100_000);
    let before = lookup.counters();
    lookup.insert(&flow).expect("the map has space");

    // Data from the far end arrives at the port. The guard drops what the near kernel sends.
    (&far)
        .write_all(b"to the adapter")
        .expect("the send buffer has space");
    (&near)
        .write_all(b"held back")
        .expect("the send buffer has space");
    let mut frames = Vec::new();
    until("the port captures data, and the guard drops some", || {
        port.receive(Time::ZERO, &mut frames)
            .expect("the interface exists");
        let mut data = frames.iter();
        lookup.counters().guarded > before.guarded
            && data.any(|frame| frame.ends_with(b"to the adapter"))
    });
    transfer(&other_near, &other_far, 2_000_000);
    transfer(&other_far, &other_near, 2_000_000);
    port.receive(Time::ZERO, &mut frames)
        .expect("the interface exists");
    assert!(
        frames.iter().all(|frame| flow_of(frame) == Some(flow)),
        "the port receives frames of this connection only"
    );
    assert!(
        lookup.counters().passed > before.passed + 1_000,
        "frames of the other connection pass"
    );
    for end in [&near, &far] {
        end.set_nonblocking(true).expect("a valid socket");
        let nothing = { end }
            .read(&mut [0; 100])
            .expect_err("nothing comes through");
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        end.set_nonblocking(false).expect("a valid socket");
    }

    // The connection continues after it is returned to the kernel, because both kernels retransmit.
    assert!(lookup.remove(&flow).expect("no error"));
    let mut arrived = [0; 14];
    (&near).read_exact(&mut arrived).expect("the data arrives");
    assert_eq!(&arrived, b"to the adapter");
    let mut arrived = [0; 9];
    (&far).read_exact(&mut arrived).expect("the data arrives");
    assert_eq!(&arrived, b"held back");
}
