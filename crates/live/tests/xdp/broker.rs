//! The broker with the kernels of two namespaces: connections leave the near kernel and return to it.

use crate::application::open;
use crate::peers::{connect, transfer, with_far_listeners};
use crate::wire::{NEAR, on_veth};
use baton_live::broker::Broker;
use baton_live::repair::option;
use baton_nic::adapter::Custody;
use baton_sockets::broker::{BrokerClient, BrokerError};
use baton_tcp::{Config, Moved, Segment, Stack, State};
use baton_testkit::Pattern;
use baton_wire::{Ecn, Flags, Header, Options, Pieces, Time, Timestamps};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    connections_leave_the_kernel_and_return_through_the_broker,
    an_end_of_stream_received_meanwhile_is_passed_to_the_kernel,
    half_closed_connections_leave_the_kernel_and_return,
    the_broker_refuses_what_does_not_belong_to_the_application,
    no_socket_of_an_application_is_ever_in_repair_mode,
    a_returned_connection_may_leave_again,
    an_adapter_that_waited_for_the_broker_gets_connections,
];

/// Runs `work` with a broker at the near end of the veth pair, an application's client of the broker, and the interface by which an adapter claims
/// and releases connections.
fn with_broker(
    work: impl FnOnce(&[TcpListener], &mut BrokerClient, &mut dyn Custody<Bytes>) + Send,
) {
    on_veth(1, || {
        with_far_listeners(|listeners| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("broker");
            let _broker = Broker::start(&path, NEAR, None).expect("XDP");
            let adapter = open(folder.path());
            let mut client = BrokerClient::connect(&path).expect("the broker listens");
            work(&listeners, &mut client, &mut adapter.beside.custody());
        });
    });
}

/// Takes a connection out of the kernel as soon as all sent data and the FIN, if any, are acknowledged. Returns the received data that has not been read, and the
/// state.
fn take_at_rest(client: &mut BrokerClient, near: &TcpStream) -> (Vec<u8>, Vec<u8>) {
    loop {
        match client.take(near.as_fd()) {
            Ok(taken) => return taken,
            Err(BrokerError::Refused(why))
                if why.contains("acknowledged") || why.contains("FIN-WAIT-1") =>
            {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("the connection does not leave the kernel: {error}"),
        }
    }
}

fn state_of(bytes: &[u8]) -> Moved<Bytes> {
    Moved::from_bytes(bytes).expect("a valid state")
}

fn connections_leave_the_kernel_and_return_through_the_broker() {
    with_broker(|listeners, client, _| {
        for listener in listeners {
            let (mut near, far) = connect(listener);
            for _ in 0..50 {
                let (unread, state) = take_at_rest(client, &near);
                let again = client
                    .take(near.as_fd())
                    .expect_err("the connection has left the kernel");
                assert!(matches!(again, BrokerError::Refused(_)), "{again}");
                near = client
                    .give_back_unread(&unread, &state)
                    .expect("the connection returns")
                    .into();
                transfer(&near, &far, 10_000);
                transfer(&far, &near, 10_000);
            }
        }
    });
}

/// Processes a FIN of the peer as an adapter does, and returns the connection's new state.
fn with_fin(custody: &mut dyn Custody<Bytes>, bytes: &[u8]) -> Vec<u8> {
    let state = state_of(bytes).state;
    custody
        .claim(Some(0), &state)
        .expect("the connection has left the kernel");
    let essentials = state.essentials().expect("an open connection");
    let flow = state.flow;
    let mut stack = Stack::new(Config::default(), 1);
    let conn = stack
        .import(Time::ZERO, state)
        .expect("the flow is not in use");
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
    assert!(stack.peer_closed(conn), "the FIN is processed");
    Moved::new(custody.release(stack.export(Time::ZERO, conn))).to_bytes()
}

fn an_end_of_stream_received_meanwhile_is_passed_to_the_kernel() {
    with_broker(|listeners, client, custody| {
        for listener in listeners {
            let (near, far) = connect(listener);
            let (_, state) = client
                .take(near.as_fd())
                .expect("the connection leaves the kernel");
            far.shutdown(Shutdown::Write)
                .expect("the connection is open");
            let state = with_fin(custody, &state);
            let mut near: TcpStream = client
                .give_back(&state)
                .expect("the connection returns")
                .into();
            assert_eq!(near.read(&mut [0; 8]).expect("the end of the stream"), 0);
            transfer(&near, &far, 10_000);
        }
    });
}

/// Moves a connection out of the kernel, into the engine, and back.
fn round(
    client: &mut BrokerClient,
    custody: &mut dyn Custody<Bytes>,
    near: &mut TcpStream,
) -> State {
    let (unread, state) = take_at_rest(client, near);
    let state = state_of(&state).state;
    let is_in = state.state;
    custody
        .claim(Some(0), &state)
        .expect("the connection has left the kernel");
    let mut stack = Stack::new(Config::default(), 1);
    let conn = stack
        .import(Time::ZERO, state)
        .expect("the flow is not in use");
    let back = Moved::new(custody.release(stack.export(Time::ZERO, conn))).to_bytes();
    *near = client
        .give_back_unread(&unread, &back)
        .expect("the connection returns")
        .into();
    is_in
}

/// Waits until the peer's FIN has arrived, even if there is unread data before it.
fn wait_for_end(near: &TcpStream) {
    let mut ends = [PollFd::new(near, PollFlags::RDHUP)];
    assert_eq!(poll(&mut ends, None).expect("poll succeeds"), 1);
}

/// Tests empty and short queues, with either end closing first.
fn half_closed_connections_leave_the_kernel_and_return() {
    with_broker(|listeners, client, custody| {
        let sizes = [0, 1, 5_000];
        for (listener, size) in listeners
            .iter()
            .flat_map(|one| sizes.map(|size| (one, size)))
        {
            for near_closes in [true, false] {
                let (mut near, far) = connect(listener);
                let data = Pattern::new(0).bytes(size);
                (&near).write_all(&data).expect("the send buffer has space");
                (&far).write_all(&data).expect("the send buffer has space");
                let closes = if near_closes { &near } else { &far };
                closes
                    .shutdown(Shutdown::Write)
                    .expect("the connection is open");
                if !near_closes {
                    wait_for_end(&near);
                }
                let expected = match near_closes {
                    true => State::FinWait2,
                    false => State::CloseWait,
                };
                for _ in 0..10 {
                    assert_eq!(round(client, custody, &mut near), expected);
                }
                let (closed, open) = if near_closes {
                    (&near, &far)
                } else {
                    (&far, &near)
                };
                for mut end in [closed, open] {
                    let mut found = vec![0; size];
                    end.read_exact(&mut found).expect("the data arrives");
                    assert!(found == data, "the data arrives unchanged");
                }
                { open }
                    .read_to_end(&mut Vec::new())
                    .expect("the end of the stream");
                { open }
                    .write_all(b"after the end")
                    .expect("the connection is open");
                open.shutdown(Shutdown::Write)
                    .expect("the connection is open");
                let mut last = Vec::new();
                { closed }
                    .read_to_end(&mut last)
                    .expect("the end of the stream");
                assert_eq!(last, b"after the end");
            }
        }
    });
}

fn the_broker_refuses_what_does_not_belong_to_the_application() {
    with_broker(|listeners, client, custody| {
        let refused = |outcome: Result<(), BrokerError>| match outcome {
            Err(BrokerError::Refused(why)) => why,
            other => panic!("the broker does not refuse: {other:?}"),
        };
        let (near, far) = connect(&listeners[0]);
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let why = refused(client.take(datagrams.as_fd()).map(drop));
        assert_eq!(why, "the socket is not a TCP socket");
        let why = refused(client.take(far.as_fd()).map(drop));
        assert_eq!(why, "the socket belongs to another network namespace");
        let why = refused(client.give_back(b"nothing").map(drop));
        assert!(why.contains("state"), "{why}");

        // A state that the application has modified is not that of the connection.
        let (_, taken) = client
            .take(near.as_fd())
            .expect("the connection leaves the kernel");
        let mut changed = state_of(&taken);
        changed.state.receive_buffer = vec![Bytes::from_static(b"made up")];
        let why = refused(client.give_back(&changed.to_bytes()).map(drop));
        assert!(why.contains("not the one"), "{why}");

        // Once the adapter has claimed the connection, the state from before is no longer valid, also after the adapter releases it.
        let state = state_of(&taken).state;
        custody
            .claim(Some(0), &state)
            .expect("the connection has left the kernel");
        let why = refused(client.give_back(&taken).map(drop));
        assert!(why.contains("the adapter has"), "{why}");
        let state = custody.release(state);
        let why = refused(client.give_back(&taken).map(drop));
        assert!(why.contains("not the one"), "{why}");

        // The state that the adapter has released returns the connection to the kernel, but only once.
        let state = Moved::new(state).to_bytes();
        let near: TcpStream = client
            .give_back(&state)
            .expect("the connection returns")
            .into();
        let why = refused(client.give_back(&state).map(drop));
        assert!(why.contains("not handed over"), "{why}");

        // Loopback is not the adapter's interface.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let local =
            TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let why = refused(client.take(local.as_fd()).map(drop));
        assert!(why.contains("127.0.0.1"), "{why}");
        // A connection to an address of the interface itself does not use the interface either.
        let own = near.local_addr().expect("an address").ip();
        let listener = TcpListener::bind((own, 0)).expect("a free port");
        let local =
            TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let why = refused(client.take(local.as_fd()).map(drop));
        assert!(
            why.contains("does not go through the adapter's interface"),
            "{why}"
        );
        transfer(&local, &listener.accept().expect("a connection").0, 10_000);
        transfer(&near, &far, 10_000);
    });
}

/// A process could bind a socket in repair mode to an address at which another process listens.
fn no_socket_of_an_application_is_ever_in_repair_mode() {
    with_broker(|listeners, client, _| {
        let (near, far) = connect(&listeners[0]);
        let current = Mutex::new(near);
        let is_done = AtomicBool::new(false);
        let repair = |socket: &TcpStream| {
            let value = option::<libc::c_int>(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_REPAIR);
            value.expect("a socket")
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let copy = current.lock().expect("no panic").try_clone();
                    let copy = copy.expect("a descriptor");
                    for _ in 0..100 {
                        assert_eq!(repair(&copy), 0);
                    }
                }
            });
            for _ in 0..200 {
                let near = current.lock().expect("no panic").try_clone();
                let near = near.expect("a descriptor");
                let (unread, state) = take_at_rest(client, &near);
                assert_eq!(repair(&near), 0);
                let back = client
                    .give_back_unread(&unread, &state)
                    .expect("the connection returns")
                    .into();
                assert_eq!(repair(&back), 0);
                *current.lock().expect("no panic") = back;
                // A state that the broker refuses leaves no socket in repair mode either.
                client
                    .give_back(&state)
                    .expect_err("the connection has returned already");
            }
            is_done.store(true, Ordering::Relaxed);
        });
        transfer(&current.into_inner().expect("no panic"), &far, 10_000);
    });
}

/// After a connection has returned, the kernel considers the broker the owner of its socket.
fn a_returned_connection_may_leave_again() {
    with_broker(|listeners, client, _| {
        let (mut near, far) = connect(&listeners[1]);
        for _ in 0..3 {
            let (unread, state) = take_at_rest(client, &near);
            near = client
                .give_back_unread(&unread, &state)
                .expect("the connection returns")
                .into();
        }
        transfer(&far, &near, 10_000);
    });
}

/// The adapter connects before the broker serves, so the broker may answer the adapter before the XDP programs are attached.
fn an_adapter_that_waited_for_the_broker_gets_connections() {
    on_veth(1, || {
        with_far_listeners(|listeners| {
            for _ in 0..10 {
                let folder = tempfile::tempdir().expect("a folder");
                let path = folder.path().join("broker");
                let socket = Broker::bind(&path).expect("a free path");
                thread::scope(|scope| {
                    let opened = scope.spawn(|| open(folder.path()));
                    let _broker = Broker::start_at(socket, NEAR, None, 0).expect("XDP");
                    let _adapter = opened.join().expect("the broker accepts the adapter");
                    let mut client = BrokerClient::connect(&path).expect("the broker listens");
                    let (near, _far) = connect(&listeners[0]);
                    client
                        .take(near.as_fd())
                        .expect("the connection leaves the kernel");
                });
            }
        });
    });
}
