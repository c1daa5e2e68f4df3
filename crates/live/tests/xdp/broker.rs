//! The broker between the kernels of two namespaces: connections leave the near one and come back.

use crate::application::open;
use crate::peers::{connect, transfer, with_far_listeners};
use crate::wire::{NEAR, on_veth};
use baton_live::broker::Broker;
use baton_sockets::broker::{BrokerClient, BrokerError};
use baton_tcp::{Config, Moved, Segment, Stack, State};
use baton_wire::{Ecn, Flags, Header, Options, Pieces, Time, Timestamps};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

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
        "half_closed_connections_leave_the_kernel_and_come_back",
        half_closed_connections_leave_the_kernel_and_come_back,
    ),
    (
        "the_broker_refuses_what_is_not_the_applications",
        the_broker_refuses_what_is_not_the_applications,
    ),
    (
        "an_adapter_that_waits_for_the_broker_has_connections",
        an_adapter_that_waits_for_the_broker_has_connections,
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

/// Out of the kernel, into the engine, and back.
fn round(client: &mut BrokerClient, near: &TcpStream) -> State {
    let state = state_of(&client.take(near.as_fd()).expect("it leaves")).state;
    let is_in = state.state;
    let mut stack = Stack::new(Config::default(), 1);
    let conn = stack.import(Time::ZERO, state).expect("its flow is free");
    let back = Moved::new(stack.export(Time::ZERO, conn)).to_bytes();
    client.give_back(near.as_fd(), &back).expect("it is back");
    is_in
}

/// Until the peer's FIN has arrived, whatever it came behind.
fn wait_for_end(near: &TcpStream) {
    let mut ends = [PollFd::new(near, PollFlags::RDHUP)];
    assert_eq!(poll(&mut ends, None).expect("it can be waited for"), 1);
}

/// Sends what there is room for without waiting; gives how much.
fn fill(mut end: &TcpStream, data: &[u8]) -> usize {
    end.set_nonblocking(true).expect("it can");
    let mut sent = 0;
    while sent < data.len() {
        match end.write(&data[sent..]) {
            Ok(len) => sent += len,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    end.set_nonblocking(false).expect("it can");
    sent
}

/// With nothing, a little, and as much as fits in both queues; each end is the one that closes first.
fn half_closed_connections_leave_the_kernel_and_come_back() {
    with_broker(|listeners, client| {
        let data: Vec<u8> = (0..64 << 20).map(|at: usize| (at % 251) as u8).collect();
        let sizes = [0, 1, 5_000, data.len()];
        for (listener, size) in listeners
            .iter()
            .flat_map(|one| sizes.map(|size| (one, size)))
        {
            for near_closes in [true, false] {
                let (near, far) = connect(listener);
                let to_far = fill(&near, &data[..size]);
                let to_near = fill(&far, &data[..size.min(50_000)]);
                let closes = if near_closes { &near } else { &far };
                closes.shutdown(Shutdown::Write).expect("it is open");
                match near_closes {
                    // What there is room for arrives.
                    true => thread::sleep(Duration::from_millis(20)),
                    false => wait_for_end(&near),
                }
                let mut seen = Vec::new();
                for _ in 0..10 {
                    seen.push(round(client, &near));
                }
                let first = seen[0];
                let expected = match (near_closes, size == data.len()) {
                    (true, true) => first == State::FinWait1,
                    (true, false) => matches!(first, State::FinWait1 | State::FinWait2),
                    (false, _) => first == State::CloseWait,
                };
                assert!(expected, "{near_closes}, {size}: {seen:?}");
                let ends = [(&near, to_near, !near_closes), (&far, to_far, near_closes)];
                thread::scope(|scope| {
                    for (mut end, len, ends) in ends {
                        let (far, data) = (if near_closes { &far } else { &near }, &data);
                        scope.spawn(move || {
                            let mut found = vec![0; len];
                            end.read_exact(&mut found).expect("it arrives");
                            assert!(found == data[..len], "what arrives is what was sent");
                            if ends {
                                assert_eq!(end.read(&mut [0; 1]).expect("an end"), 0);
                                (&*far).write_all(b"after the end").expect("it is open");
                                far.shutdown(Shutdown::Write).expect("it is open");
                            }
                        });
                    }
                });
                let mut last = Vec::new();
                { closes }.read_to_end(&mut last).expect("its end");
                assert_eq!(last, b"after the end");
            }
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

/// Who has connected before the broker serves is served first, perhaps before the programs are at the interface.
fn an_adapter_that_waits_for_the_broker_has_connections() {
    on_veth(1, || {
        with_far_listeners(|listeners| {
            for _ in 0..10 {
                let folder = tempfile::tempdir().expect("a folder");
                let path = folder.path().join("broker");
                let socket = Broker::bind(&path).expect("a free path");
                thread::scope(|scope| {
                    let opened = scope.spawn(|| open(folder.path()));
                    let _broker = Broker::start_at(socket, NEAR, None).expect("XDP");
                    let _adapter = opened.join().expect("it is let in");
                    let mut client = BrokerClient::connect(&path).expect("it listens");
                    let (near, _far) = connect(&listeners[0]);
                    client.take(near.as_fd()).expect("it leaves");
                });
            }
        });
    });
}
