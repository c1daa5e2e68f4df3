//! Applications whose adapter ends, stalls or is restarted.

use crate::network::{Network, Side};
use crate::{LONG, adapter, listening, pair, spawn_until_it_waits};
use baton_host::{Ready, Sockets};
use baton_sockets::{Adapter, AdapterAddress, Driver, DriverConfig, TcpListener, TcpStream};
use baton_wire::Endpoint;
use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_missing_adapter_is_reported_with_advice() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Adapter::connect(folder.path().join("none.sock")).expect_err("no adapter listens");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("baton live adapter"), "{error}");
}

#[test]
fn all_waiting_calls_fail_when_the_adapter_is_lost() {
    let network = Network::start();
    let (mut client, server) = pair(&network);
    let listener_adapter = adapter(&network, Side::Right);
    let listener =
        TcpListener::bind(&listener_adapter, Side::Right.address(81)).expect("a free port");
    thread::scope(|scope| {
        let reader = spawn_until_it_waits(scope, || {
            let read = (&server).read(&mut [0; 10]);
            read.map_or_else(|error| error.kind(), |_| ErrorKind::UnexpectedEof)
        });
        let writer = spawn_until_it_waits(scope, || {
            let data = vec![0; 1 << 20];
            loop {
                if let Err(error) = (&server).write(&data) {
                    return error.kind();
                }
            }
        });
        let accepts = spawn_until_it_waits(scope, || listener.accept().expect_err("lost").kind());
        network.kill(Side::Right);
        let [reader, writer, accepts] =
            [reader, writer, accepts].map(|waiting| waiting.join().expect("no panic"));
        assert_eq!(accepts, ErrorKind::ConnectionAborted);
        // Of two threads that wait for the same connection, only the first gets the error.
        assert!(matches!(
            (reader, writer),
            (ErrorKind::ConnectionAborted, ErrorKind::BrokenPipe)
                | (ErrorKind::UnexpectedEof, ErrorKind::ConnectionAborted)
        ));
    });
    let connected = TcpStream::connect(&listener_adapter, Side::Left.address(80));
    assert_eq!(
        connected.expect_err("no adapter").kind(),
        ErrorKind::NetworkDown
    );
    // The other adapter has not noticed, so the client can still write.
    client
        .write_all(b"into the void")
        .expect("the data is accepted");
}

#[test]
fn listeners_listen_again_when_the_adapter_returns() {
    let network = Network::start();
    let (left, right, listener, address) = listening(&network, 80);
    for _ in 0..3 {
        network.kill(Side::Right);
        assert_eq!(
            listener
                .accept()
                .expect_err("each listener reports the loss once")
                .kind(),
            ErrorKind::ConnectionAborted
        );
        thread::scope(|scope| {
            let server = spawn_until_it_waits(scope, || listener.accept().expect("a connection").0);
            network.start_again(Side::Right);
            let start = Instant::now();
            let mut client = loop {
                match TcpStream::connect_timeout(&left, address, Duration::from_secs(2)) {
                    Ok(client) => break client,
                    Err(error) => assert!(start.elapsed() < LONG, "{error}"),
                }
                thread::sleep(Duration::from_millis(10));
            };
            client.write_all(b"hello").expect("sent");
            drop(client);
            let mut hello = String::new();
            let mut server = server.join().expect("no panic");
            server.read_to_string(&mut hello).expect("received");
            assert_eq!(hello, "hello");
        });
    }
    assert_eq!(right.with_driver(Driver::links_lost), 3);
}

#[test]
fn a_stalled_adapter_does_not_block_calls_that_do_not_wait() {
    let network = Network::start();
    let (mut client, mut server) = pair(&network);
    network.pause(Side::Left);
    client.write_all(b"late").expect("the data is accepted");
    client
        .set_read_timeout(Some(Duration::from_millis(50)))
        .expect("not zero");
    assert_eq!(
        client
            .read(&mut [0; 10])
            .expect_err("no data has arrived")
            .kind(),
        ErrorKind::WouldBlock
    );
    network.go_on(Side::Left);
    let mut late = [0; 4];
    server.read_exact(&mut late).expect("received");
    assert_eq!(&late, b"late");
}

#[test]
fn a_driver_serves_before_and_after_losing_its_adapter() {
    let network = Network::start();
    let address = AdapterAddress::Unix(network.path(Side::Right));
    let mut driver = Driver::open(address, DriverConfig::default()).expect("an adapter");
    let now = driver.now();
    let at = Side::Right.address(7);
    let local = Endpoint::new(at.ip(), at.port());
    driver.os_mut().listen(now, local, 16).expect("a socket");
    let left = adapter(&network, Side::Left);
    let mut gone = 0;
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            for round in 0..2 {
                let _open = echo_one(&left, at);
                if round == 0 {
                    network.kill(Side::Right);
                    network.start_again(Side::Right);
                }
            }
        });
        while !client.is_finished() {
            driver.turn();
            while let Some(ready) = driver.next_ready() {
                gone += u32::from(echo(&mut driver, ready));
            }
            driver.transmit();
            driver
                .wait(Some(Duration::from_millis(20)))
                .expect("the driver can wait");
        }
        client.join().expect("no panic");
    });
    assert_eq!(driver.links_lost(), 1);
    assert_eq!(gone, 1, "a connection was open when its adapter was lost");
    driver.os().check();
}

fn echo_one(adapter: &Adapter, at: std::net::SocketAddr) -> TcpStream {
    let start = Instant::now();
    let mut stream = loop {
        match TcpStream::connect_timeout(adapter, at, Duration::from_secs(1)) {
            Ok(stream) => break stream,
            Err(error) => assert!(start.elapsed() < LONG, "{error}"),
        }
        thread::sleep(Duration::from_millis(10));
    };
    stream.set_read_timeout(Some(LONG)).expect("not zero");
    stream.write_all(b"echo").expect("sent");
    let mut echo = [0; 4];
    stream.read_exact(&mut echo).expect("received");
    assert_eq!(&echo, b"echo");
    stream
}

/// Handles an event; returns whether a connection was lost.
fn echo(driver: &mut Driver, ready: Ready) -> bool {
    use baton_host::Receive;
    let mut calls = driver.calls();
    match ready {
        Ready::Acceptable => while calls.accept().is_some() {},
        Ready::Readable(socket) => loop {
            match calls.receive(socket, 4096) {
                Receive::Data(data) => {
                    let len = data.len();
                    assert_eq!(
                        calls.send(socket, data),
                        Ok(len),
                        "the send buffer has space"
                    );
                }
                Receive::WouldBlock => return false,
                end => {
                    calls.close(socket);
                    return end == Receive::Gone;
                }
            }
        },
        Ready::Writable(_) => {}
    }
    false
}
