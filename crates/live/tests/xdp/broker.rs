//! The broker between the kernels of two namespaces: connections leave the near one and come back.

use crate::application::open;
use crate::peers::{connect, transfer, with_far_listeners};
use crate::wire::{NEAR, on_veth};
use baton_live::broker::Broker;
use baton_sockets::broker::{BrokerClient, BrokerError};
use baton_tcp::{Config, Moved, Segment, Stack};
use baton_wire::{Ecn, Flags, Header, Options, Pieces, Time, Timestamps};
use bytes::Bytes;
use std::io::Read;
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;

pub const ALL: &[(&str, fn())] = &[
    (
        "connections_leave_the_kernel_and_come_back_by_the_broker",
        connections_leave_the_kernel_and_come_back_by_the_broker,
    ),
    (
        "the_end_of_a_stream_that_came_meanwhile_is_told_to_the_kernel",
        the_end_of_a_stream_that_came_meanwhile_is_told_to_the_kernel,
    ),
    (
        "the_broker_refuses_what_is_not_the_applications",
        the_broker_refuses_what_is_not_the_applications,
    ),
];

/// A broker at the near end of the cable, and an application that asks it.
fn with_broker(work: impl FnOnce(&[TcpListener], &mut BrokerClient) + Send) {
    on_veth(1, || {
        with_far_listeners(|listeners| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("broker");
            let _broker = Broker::start(&path, NEAR, None).expect("XDP");
            let _adapter = open(folder.path());
            let mut client = BrokerClient::connect(&path).expect("it listens");
            work(&listeners, &mut client);
        });
    });
}

fn state_of(bytes: &[u8]) -> Moved<Bytes> {
    Moved::from_bytes(bytes).expect("a whole state")
}

fn connections_leave_the_kernel_and_come_back_by_the_broker() {
    with_broker(|listeners, client| {
        for listener in listeners {
            let (near, far) = connect(listener);
            for _ in 0..50 {
                let state = client.take(near.as_fd()).expect("it leaves");
                let again = client.take(near.as_fd()).expect_err("it is away");
                assert!(matches!(again, BrokerError::Refused(_)), "{again}");
                client.give_back(near.as_fd(), &state).expect("it is back");
                transfer(&near, &far, 10_000);
                transfer(&far, &near, 10_000);
            }
        }
    });
}

/// The connection's state with the peer's FIN taken in, as an adapter does.
fn with_fin(bytes: &[u8]) -> Vec<u8> {
    let state = state_of(bytes).state;
    let essentials = state.essentials().expect("it is open");
    let flow = state.flow;
    let mut stack = Stack::new(Config::default(), 1);
    let conn = stack.import(Time::ZERO, state).expect("its flow is free");
    let timestamps = essentials
        .timestamp
        .map(|echo| Timestamps { value: 1, echo });
    let header = Header {
        seq: essentials.receive_next,
        ack: essentials.send_una,
        flags: Flags::FIN | Flags::ACK,
        window: 1000,
        options: Options {
            timestamps,
            ..Options::default()
        },
    };
    stack.handle_segment(
        Time::ZERO,
        Segment {
            src: flow.remote,
            dst: flow.local,
            ecn: Ecn::NotCapable,
            header,
            payload: Pieces::default(),
        },
    );
    assert!(stack.peer_closed(conn), "the FIN was taken in");
    Moved::new(stack.export(Time::ZERO, conn)).to_bytes()
}

fn the_end_of_a_stream_that_came_meanwhile_is_told_to_the_kernel() {
    with_broker(|listeners, client| {
        for listener in listeners {
            let (mut near, far) = connect(listener);
            let state = client.take(near.as_fd()).expect("it leaves");
            far.shutdown(Shutdown::Write).expect("it is open");
            let state = with_fin(&state);
            client.give_back(near.as_fd(), &state).expect("it is back");
            assert_eq!(near.read(&mut [0; 8]).expect("an end"), 0);
            transfer(&near, &far, 10_000);
        }
    });
}

fn the_broker_refuses_what_is_not_the_applications() {
    with_broker(|listeners, client| {
        let refused = |outcome: Result<(), BrokerError>| match outcome {
            Err(BrokerError::Refused(why)) => why,
            other => panic!("it is to be refused: {other:?}"),
        };
        let (near, far) = connect(&listeners[0]);
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let why = refused(client.take(datagrams.as_fd()).map(drop));
        assert_eq!(why, "no socket of TCP");
        let why = refused(client.take(far.as_fd()).map(drop));
        assert_eq!(why, "a socket of another network namespace");
        let why = refused(client.give_back(near.as_fd(), b"nothing"));
        assert!(why.contains("state"), "{why}");

        // What has come back is nobody's to give back again.
        let state = client.take(near.as_fd()).expect("it leaves");
        client.give_back(near.as_fd(), &state).expect("it is back");
        let why = refused(client.give_back(near.as_fd(), &state));
        assert!(why.contains("not handed over"), "{why}");

        // Loopback is not the adapter's interface.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let local = TcpStream::connect(listener.local_addr().expect("one")).expect("connected");
        let why = refused(client.take(local.as_fd()).map(drop));
        assert!(why.contains("127.0.0.1"), "{why}");
        transfer(&near, &far, 10_000);
    });
}
