//! Blocking sockets with the interface of the standard library.

use crate::network::{Network, Side, nowhere};
use crate::{LONG, adapter, listening, pair, pattern, spawn_until_it_waits};
use baton_iolib::Geometry;
use baton_nic::adapter::AdapterConfig;
use baton_sockets::{Adapter, AdapterAddress, DriverConfig, ListenOptions, TcpListener, TcpStream};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

/// Accepts TCP Fast Open.
const FAST_OPEN: ListenOptions = ListenOptions {
    fast_open: 16,
    share: 0,
};

#[test]
fn sent_data_is_echoed() {
    let network = Network::start();
    let (mut client, mut server) = pair(&network);
    for round in 0..200_u32 {
        client.write_all(&round.to_le_bytes()).expect("sent");
        let mut bytes = [0; 4];
        server.read_exact(&mut bytes).expect("received");
        server.write_all(&bytes).expect("sent");
        client.read_exact(&mut bytes).expect("received");
        assert_eq!(u32::from_le_bytes(bytes), round);
    }
    assert_eq!(
        client.peer_addr().expect("an address"),
        Side::Right.address(80)
    );
    assert_eq!(
        server.local_addr().expect("an address"),
        Side::Right.address(80)
    );
    assert!(client.take_error().expect("no failure").is_none());
}

#[test]
fn a_fast_open_listener_accepts_ordinary_connections() {
    let network = Network::start();
    let [client, server] = [Side::Left, Side::Right].map(|side| adapter(&network, side));
    let at = Side::Right.address(80);
    let listener = TcpListener::bind_with(&server, at, FAST_OPEN).expect("a listener");
    let mut stream = TcpStream::connect(&client, at).expect("a connection");
    stream.write_all(b"hello").expect("sent");
    let (mut accepted, _) = listener.accept().expect("a connection");
    let mut bytes = [0; 5];
    accepted.read_exact(&mut bytes).expect("received");
    assert_eq!(&bytes, b"hello");
}

#[test]
fn data_goes_with_the_syn_to_a_peer_that_gave_a_cookie() {
    let network = Network::start();
    let [client, server] = [Side::Left, Side::Right].map(|side| adapter(&network, side));
    let at = Side::Right.address(80);
    let listener = TcpListener::bind_with(&server, at, FAST_OPEN).expect("a listener");
    let data = pattern(1000, 3);
    for with_syn in [0, 1, 2] {
        let opened = TcpStream::connect_fast_open(&client, at, &data);
        let (_stream, taken) = opened.expect("a connection");
        assert_eq!(taken, data.len());
        let (mut accepted, _) = listener.accept().expect("a connection");
        let mut bytes = vec![0; data.len()];
        accepted.read_exact(&mut bytes).expect("received");
        assert!(bytes == data);
        assert_eq!(network.syns_with_data(), with_syn);
    }
}

#[test]
fn a_connection_begins_by_fast_open_without_waiting() {
    let network = Network::start();
    let [client, server] = [Side::Left, Side::Right].map(|side| adapter(&network, side));
    let at = Side::Right.address(80);
    let listener = TcpListener::bind_with(&server, at, FAST_OPEN).expect("a listener");
    let data = pattern(1000, 3);
    // The first connection requests a cookie, with which the next one sends data in its SYN. Without a cookie, the data is sent once the
    // connection is open.
    for (without_cookie, with_syn) in [(false, 0), (false, 1), (true, 1)] {
        let begun = TcpStream::begin_fast_open(&client, at, &data, without_cookie);
        let (_stream, taken) = begun.expect("the connection is opening");
        assert_eq!(taken, data.len());
        let (mut accepted, _) = listener.accept().expect("a connection");
        let mut bytes = vec![0; data.len()];
        accepted.read_exact(&mut bytes).expect("received");
        assert!(bytes == data);
        if !without_cookie {
            assert_eq!(network.syns_with_data(), with_syn);
        }
    }
}

#[test]
fn sends_respect_the_limit_of_the_adapter() {
    let network = Network::with(AdapterConfig {
        most_sends: 2,
        ..AdapterConfig::default()
    });
    let (mut client, mut server) = pair(&network);
    let data = pattern(3_000_000, 4);
    thread::scope(|scope| {
        scope.spawn(|| client.write_all(&data).expect("sent"));
        let mut received = vec![0; data.len()];
        server.read_exact(&mut received).expect("received");
        assert!(received == data);
    });
}

#[test]
fn the_adapter_chooses_ports_and_reports_them() {
    let network = Network::start();
    let (left, right) = (
        adapter(&network, Side::Left),
        adapter(&network, Side::Right),
    );
    let bind = |address| TcpListener::bind(&right, address).expect("a free port");
    let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let listeners = [bind(Side::Right.address(0)), bind(anywhere), bind(anywhere)];
    let ports = listeners
        .each_ref()
        .map(|listener| listener.local_addr().expect("an address").port());
    assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2]);
    for (listener, port) in listeners.iter().zip(ports) {
        assert_ne!(port, 0);
        let client = TcpStream::connect(&left, Side::Right.address(port)).expect("a connection");
        let (server, peer) = listener.accept().expect("a connection");
        assert_eq!(
            client
                .local_addr()
                .expect("the adapter has reported the address"),
            peer
        );
        assert_eq!(client.local_addr().expect("an address"), peer);
        assert_eq!(peer.ip(), Side::Left.address(0).ip());
        assert_eq!(
            server
                .local_addr()
                .expect("the adapter has reported the address"),
            Side::Right.address(port)
        );
    }
    // The listener continues to listen on the same port after the adapter has been restarted.
    let [listener, ..] = listeners;
    network.kill(Side::Right);
    let lost = listener.accept().expect_err("the adapter was killed");
    assert_eq!(lost.kind(), ErrorKind::ConnectionAborted);
    network.start_again(Side::Right);
    let address = listener.local_addr().expect("an address");
    let start = Instant::now();
    let client = loop {
        match TcpStream::connect(&left, address) {
            Ok(client) => break client,
            Err(_) => assert!(start.elapsed() < LONG, "the listener listens again"),
        }
    };
    let (_, peer) = listener.accept().expect("a connection");
    assert_eq!(
        client
            .local_addr()
            .expect("the adapter has reported the address"),
        peer
    );
}

#[test]
fn large_transfers_arrive_whole_in_both_directions() {
    let network = Network::start();
    let (client, server) = pair(&network);
    let (there, back) = (pattern(5_000_000, 1), pattern(3_000_000, 2));
    let write = |stream: &TcpStream, data: &[u8]| {
        (&*stream).write_all(data).expect("sent");
        stream.shutdown(Shutdown::Write).expect("shut");
    };
    let read = |mut stream: &TcpStream| {
        let mut data = Vec::new();
        stream.read_to_end(&mut data).expect("received");
        data
    };
    thread::scope(|scope| {
        scope.spawn(|| write(&client, &there));
        scope.spawn(|| write(&server, &back));
        let received = scope.spawn(|| read(&server));
        assert!(read(&client) == back);
        assert!(received.join().expect("no panic") == there);
    });
}

#[test]
fn many_threads_share_an_adapter() {
    let network = Network::start();
    let (left, _right, listener, address) = listening(&network, 7);
    thread::scope(|scope| {
        scope.spawn(|| {
            for stream in listener.incoming().take(16) {
                let stream = stream.expect("a connection");
                scope.spawn(move || std::io::copy(&mut &stream, &mut &stream).expect("echoed"));
            }
        });
        for seed in 0..16 {
            let left = left.clone();
            scope.spawn(move || {
                let mut stream = TcpStream::connect(&left, address).expect("a connection");
                let data = pattern(20_000 + seed * 777, seed);
                let mut echo = vec![0; data.len()];
                for _ in 0..5 {
                    stream.write_all(&data).expect("sent");
                    stream.read_exact(&mut echo).expect("received");
                    assert!(echo == data);
                }
            });
        }
    });
}

#[test]
fn each_direction_is_shut_down_separately() {
    let network = Network::start();
    let (mut client, mut server) = pair(&network);
    client.write_all(b"question").expect("sent");
    client.shutdown(Shutdown::Write).expect("shut");
    assert_eq!(
        client.write(b"more").expect_err("shut").kind(),
        ErrorKind::BrokenPipe
    );
    let mut question = String::new();
    server.read_to_string(&mut question).expect("received");
    assert_eq!(question, "question");
    server.write_all(b"answer").expect("the other half is open");
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("received");
    assert_eq!(answer, "answer");
}

#[test]
fn reading_can_be_shut_down_while_a_thread_reads() {
    let network = Network::start();
    let (client, _server) = pair(&network);
    thread::scope(|scope| {
        let reader = spawn_until_it_waits(scope, || (&client).read(&mut [0; 10]));
        client.shutdown(Shutdown::Read).expect("shut");
        assert_eq!(reader.join().expect("no panic").expect("the end"), 0);
    });
}

#[test]
fn timeouts_are_respected() {
    let network = Network::start();
    let (mut client, _server) = pair(&network);
    let timeout = Duration::from_millis(100);
    let assert_kept = |start: Instant| {
        let took = start.elapsed();
        assert!(took >= timeout && took < LONG, "{took:?}");
    };
    client.set_read_timeout(Some(timeout)).expect("not zero");
    assert_eq!(
        client.read_timeout().expect("the value is known"),
        Some(timeout)
    );
    let start = Instant::now();
    let error = client.read(&mut [0; 10]).expect_err("nothing arrives");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert_kept(start);

    client.set_write_timeout(Some(timeout)).expect("not zero");
    assert_eq!(
        client.write_timeout().expect("the value is known"),
        Some(timeout)
    );
    let data = vec![0; 1 << 20];
    let error = loop {
        let start = Instant::now();
        match client.write(&data) {
            Ok(taken) => assert!(taken > 0, "a successful write accepts at least one byte"),
            Err(error) => {
                assert_kept(start);
                break error;
            }
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);

    let left = adapter(&network, Side::Left);
    let start = Instant::now();
    let error = TcpStream::connect_timeout(&left, nowhere(80), timeout)
        .expect_err("no host has this address");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_kept(start);
    let error = client
        .set_read_timeout(Some(Duration::ZERO))
        .expect_err("zero");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn nonblocking_calls_report_would_block() {
    let network = Network::start();
    let (mut client, mut server) = pair(&network);
    client.set_nonblocking(true).expect("set");
    let error = client.read(&mut [0; 10]).expect_err("nothing has arrived");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let data = pattern(100_000, 0);
    let mut sent = 0;
    let error = loop {
        match client.write(&data[sent % data.len()..]) {
            Ok(len) => sent += len,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    client.shutdown(Shutdown::Write).expect("shut");
    let mut received = Vec::new();
    server.read_to_end(&mut received).expect("received");
    assert_eq!(received.len(), sent, "all accepted data arrives");
    assert!(
        received
            .chunks(data.len())
            .all(|chunk| chunk == &data[..chunk.len()])
    );

    let right = adapter(&network, Side::Right);
    let listener = TcpListener::bind(&right, Side::Right.address(81)).expect("a free port");
    listener.set_nonblocking(true).expect("set");
    let error = listener.accept().expect_err("no connection waits");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[test]
fn errors_have_the_kinds_of_the_standard_library() {
    let network = Network::start();
    let (left, right) = (
        adapter(&network, Side::Left),
        adapter(&network, Side::Right),
    );
    let kind = |outcome: std::io::Result<TcpStream>| outcome.expect_err("refused").kind();
    assert_eq!(
        kind(TcpStream::connect(&left, Side::Right.address(9))),
        ErrorKind::ConnectionRefused
    );
    let listener = TcpListener::bind(&right, Side::Right.address(80)).expect("a free port");
    let kind = |outcome: std::io::Result<TcpListener>| outcome.expect_err("refused").kind();
    // Another application of the same adapter uses the address.
    let other = adapter(&network, Side::Right);
    assert_eq!(
        kind(TcpListener::bind(&other, Side::Right.address(80))),
        ErrorKind::AddrInUse
    );
    assert_eq!(
        kind(TcpListener::bind(&right, nowhere(80))),
        ErrorKind::AddrNotAvailable
    );
    drop(listener);
    let start = Instant::now();
    while TcpListener::bind(&other, Side::Right.address(80)).is_err() {
        assert!(start.elapsed() < LONG, "the address is free again");
    }
}

#[test]
fn a_reset_is_reported_once() {
    for by_reading in [true, false] {
        let network = Network::start();
        let (mut client, mut server) = pair(&network);
        client.write_all(b"never read").expect("sent");
        server.read_exact(&mut [0]).expect("the data has arrived");
        // Closing with unread data discards it and resets the connection (RFC 2525 2.17).
        drop(server);
        let start = Instant::now();
        while !client.readiness().failed {
            assert!(start.elapsed() < LONG, "the connection is reset");
        }
        assert!(client.readiness().untold);
        let error = match by_reading {
            true => client.read(&mut [0; 10]).expect_err("reset"),
            false => client.take_error().expect("no failure").expect("an error"),
        };
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!(client.readiness().failed && !client.readiness().untold);
        assert!(client.take_error().expect("no failure").is_none());
        for _ in 0..2 {
            assert_eq!(client.read(&mut [0; 10]).expect("the end"), 0);
            let error = client.write(b"x").expect_err("the connection has ended");
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        }
    }
}

#[test]
fn written_data_arrives_after_the_writer_is_dropped() {
    let network = Network::start();
    let right = adapter(&network, Side::Right);
    let address = Side::Right.address(80);
    let listener = TcpListener::bind(&right, address).expect("a free port");
    let data = pattern(2_000_000, 3);
    thread::scope(|scope| {
        scope.spawn(|| {
            let left = adapter(&network, Side::Left);
            let mut client = TcpStream::connect(&left, address).expect("a connection");
            client.write_all(&data).expect("the data is accepted");
        });
        let (mut server, _) = listener.accept().expect("a connection");
        let mut received = Vec::new();
        server.read_to_end(&mut received).expect("received");
        assert!(received == data);
    });
}

#[test]
fn clones_share_one_connection() {
    let network = Network::start();
    let (client, mut server) = pair(&network);
    let mut clone = client.try_clone().expect("cloned");
    drop(client);
    clone.set_nodelay(true).expect("set");
    assert!(clone.nodelay().expect("the value is known"));
    clone.write_all(b"still there").expect("sent");
    drop(clone);
    let mut received = String::new();
    server.read_to_string(&mut received).expect("received");
    assert_eq!(received, "still there");
}

#[test]
fn peeked_data_is_still_to_be_read() {
    let network = Network::start();
    let (mut client, mut server) = pair(&network);
    let data = pattern(50_000, 1);
    client.write_all(&data).expect("sent");
    client.shutdown(Shutdown::Write).expect("shut");
    let mut seen = vec![0; 60_000];
    assert!(server.peek(&mut seen[..10]).expect("unread data") > 0);
    while server.peek(&mut seen).expect("unread data") < data.len() {
        thread::yield_now();
    }
    assert_eq!(server.readiness().unread, data.len());
    assert_eq!(server.peek(&mut seen).expect("all data"), data.len());
    assert_eq!(seen[..data.len()], data);
    let mut received = Vec::new();
    server.read_to_end(&mut received).expect("received");
    assert!(received == data);
    assert_eq!(server.peek(&mut seen).expect("the end"), 0);
}

#[test]
fn there_may_be_more_connections_than_buffers() {
    let network = Network::start();
    let config = DriverConfig {
        geometry: Geometry {
            buffers: 24,
            ..Geometry::default()
        },
        ..DriverConfig::default()
    };
    let [client, server] = [Side::Left, Side::Right].map(|side| {
        let address = AdapterAddress::Unix(network.path(side));
        Adapter::open(address, config.clone()).expect("an adapter")
    });
    let at = Side::Right.address(80);
    let listener = TcpListener::bind(&server, at).expect("a listener");
    let mut pairs: Vec<_> = (0..100)
        .map(|_| {
            let stream = TcpStream::connect(&client, at).expect("connected");
            (stream, listener.accept().expect("accepted").0)
        })
        .collect();
    // More than a transfer, and on all connections before any of it is read.
    let data = pattern(40_000, 1);
    for (client, _) in &mut pairs {
        client.write_all(&data[..100]).expect("sent");
    }
    for (client, server) in pairs.iter_mut().rev() {
        thread::scope(|scope| {
            scope.spawn(|| client.write_all(&data[100..]).expect("sent"));
            let mut received = vec![0; data.len()];
            server.read_exact(&mut received).expect("received");
            assert!(received == data);
        });
        server.write_all(b"done").expect("sent");
        let mut answer = [0; 4];
        client.read_exact(&mut answer).expect("received");
    }
    for (client, mut server) in pairs {
        drop(client);
        assert_eq!(server.read(&mut [0; 8]).expect("the end"), 0);
    }
}
