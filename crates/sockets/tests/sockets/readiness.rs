//! One thread waits for the readiness of many sockets.

use crate::network::{Network, Side};
use crate::{LONG, adapter, listening, pair, pattern};
use baton_sockets::{
    Adapter, AdapterAddress, Driver, DriverConfig, Events, Interest, Poll, TcpListener, TcpStream,
    Token,
};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

const LISTENER: Token = Token(usize::MAX);

/// Runs an echo server until `connections` have ended.
fn serve(adapter: &Adapter, listener: &TcpListener, connections: usize) {
    let poll = Poll::new(adapter);
    poll.register(listener, LISTENER, Interest::READABLE)
        .expect("registered");
    let mut streams: BTreeMap<usize, (TcpStream, Vec<u8>)> = BTreeMap::new();
    let (mut next, mut ended) = (0, 0);
    let mut events = Events::with_capacity(4);
    while ended < connections {
        poll.poll(&mut events, Some(LONG)).expect("poll succeeds");
        assert!(!events.is_empty(), "poll reports an event");
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).expect("set");
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    poll.register(&stream, Token(next), interest)
                        .expect("the socket is not registered");
                    streams.insert(next, (stream, Vec::new()));
                    next += 1;
                }
            } else if let Some((stream, pending)) = streams.get_mut(&event.token().0)
                && !echo(stream, pending)
            {
                streams.remove(&event.token().0);
                ended += 1;
            }
        }
    }
}

/// Echoes data; returns false at the end of the stream.
fn echo(mut stream: &TcpStream, pending: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 1000];
    loop {
        while !pending.is_empty() {
            match stream.write(pending) {
                Ok(len) => drop(pending.drain(..len)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) => panic!("{error}"),
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(len) => pending.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn one_thread_serves_many_connections() {
    let network = Network::start();
    let (left, right, listener, address) = listening(&network, 7);
    listener.set_nonblocking(true).expect("set");
    thread::scope(|scope| {
        scope.spawn(|| serve(&right, &listener, 20));
        for seed in 0..20 {
            let left = left.clone();
            scope.spawn(move || {
                let stream = TcpStream::connect(&left, address).expect("a connection");
                let data = pattern(50_000, seed);
                let mut echo = vec![0; data.len()];
                thread::scope(|scope| {
                    scope.spawn(|| (&stream).write_all(&data).expect("sent"));
                    (&stream).read_exact(&mut echo).expect("received");
                });
                assert!(echo == data);
            });
        }
    });
}

#[test]
fn registrations_are_independent() {
    let network = Network::start();
    let (client, mut server) = pair(&network);
    let left = adapter(&network, Side::Left);
    let error = Poll::new(&left)
        .register(&client, Token(1), Interest::READABLE)
        .expect_err("the socket belongs to another link");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);

    let listening = TcpListener::bind(&left, Side::Left.address(5)).expect("a free port");
    let poll = Poll::new(&left);
    let interest = Interest::READABLE;
    poll.register(&listening, Token(1), interest)
        .expect("the socket is not registered");
    let error = poll.register(&listening, Token(2), interest);
    assert_eq!(
        error.expect_err("the socket is registered already").kind(),
        ErrorKind::AlreadyExists
    );
    poll.reregister(&listening, Token(2), interest)
        .expect("the socket is registered");
    poll.deregister(&listening)
        .expect("the socket is registered");
    let error = poll
        .deregister(&listening)
        .expect_err("the socket is not registered");
    assert_eq!(error.kind(), ErrorKind::NotFound);

    let mut events = Events::with_capacity(1);
    let start = Instant::now();
    poll.poll(&mut events, Some(Duration::from_millis(30)))
        .expect("poll succeeds");
    assert!(events.is_empty() && start.elapsed() >= Duration::from_millis(30));
    server.write_all(b"x").expect("sent");
}

#[test]
fn several_polls_wait_for_one_socket() {
    let network = Network::start();
    let (left, right, listener, address) = listening(&network, 80);
    let mut client = TcpStream::connect(&left, address).expect("a connection");
    let (server, _) = listener.accept().expect("a connection");
    let polls = [Token(1), Token(2)].map(|token| {
        let poll = Poll::new(&right);
        let registered = poll.register(&server, token, Interest::READABLE);
        registered.expect("the socket is new to this poll");
        (poll, token)
    });
    let mut events = Events::with_capacity(4);
    let mut tell = |told: &[&(Poll, Token)]| {
        client.write_all(b"x").expect("sent");
        for (poll, token) in told {
            poll.poll(&mut events, Some(LONG)).expect("poll succeeds");
            let tokens: Vec<Token> = (&events).into_iter().map(|it| it.token()).collect();
            assert_eq!(tokens, [*token]);
        }
        (&server).read_exact(&mut [0]).expect("received");
    };
    tell(&[&polls[0], &polls[1]]);
    polls[0]
        .0
        .deregister(&server)
        .expect("the socket is registered");
    tell(&[&polls[1]]);
    polls[0]
        .0
        .poll(&mut events, Some(Duration::ZERO))
        .expect("poll succeeds");
    assert!(events.is_empty());
}

/// Returns a driver with a listener, and the listener's address.
fn listening_driver(network: &Network) -> (Driver, SocketAddr) {
    let address = AdapterAddress::Unix(network.path(Side::Right));
    let mut driver = Driver::open(address, DriverConfig::default()).expect("an adapter");
    let now = driver.now();
    let at = Side::Right.address(7);
    let local = baton_wire::Endpoint::new(at.ip(), at.port());
    let listener = driver.os_mut().listen(now, local, 16).expect("a socket");
    while !driver.os().is_listening(listener) {
        if !driver.turn() {
            driver.wait(Some(LONG)).expect("the driver can wait");
        }
    }
    (driver, at)
}

/// Waits until something arrives for a driver, for the longest time that it allows.
fn wait_beside(driver: &mut Driver) {
    let timeout = driver.before_wait().expect("the driver can wait");
    let timeout = timeout.unwrap_or(LONG).min(LONG);
    let timeout = rustix::event::Timespec::try_from(timeout).expect("a short timeout");
    let mut fds = [PollFd::from_borrowed_fd(driver.as_fd(), PollFlags::IN)];
    poll(&mut fds, Some(&timeout)).expect("poll succeeds");
}

#[test]
fn an_event_loop_can_wait_for_a_driver_and_other_sources() {
    let network = Network::start();
    let (mut driver, at) = listening_driver(&network);
    let left = adapter(&network, Side::Left);
    let client = thread::spawn(move || TcpStream::connect(&left, at).map(drop));
    let start = Instant::now();
    loop {
        driver.turn();
        if driver.next_ready().is_some() {
            break;
        }
        wait_beside(&mut driver);
        assert!(start.elapsed() < LONG);
    }
    client.join().expect("no panic").expect("connected");
}

/// A program that sees no event between its turn and its wait must not sleep through one that arrives meanwhile.
#[test]
fn what_arrives_before_requests_are_submitted_ends_the_wait() {
    let network = Network::start();
    let (mut driver, at) = listening_driver(&network);
    driver.turn();
    let left = adapter(&network, Side::Left);
    let client = thread::spawn(move || TcpStream::connect(&left, at).map(drop));
    client.join().expect("no panic").expect("connected");
    let start = Instant::now();
    while driver.next_ready().is_none() {
        driver.transmit();
        assert_eq!(driver.next_ready(), None, "nothing arrives by submitting");
        driver.wait(Some(LONG)).expect("the driver can wait");
        assert!(start.elapsed() < LONG);
        driver.turn();
    }
}
