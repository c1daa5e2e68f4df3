//! Connections of this machine's kernel leave it and come back, over loopback. They need CAP_NET_ADMIN.

#[path = "../../../baton/tests/common/needs.rs"]
mod needs;

use baton_live::repair::{RepairError, Taken, cancel, forget, give_back, take};
use baton_tcp::{Config, Essentials, State};
use bytes::Bytes;
use libtest_mimic::Arguments;
use needs::Need;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

const ADDRESSES: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

fn main() {
    needs::run(&Arguments::from_args(), Need::Root, &ALL);
}

const ALL: [(&str, fn()); 9] = [
    ("an idle connection goes round and round", idle),
    ("data of both directions comes along", with_data),
    ("what was not sent goes as well", with_unsent_data),
    ("a half-closed connection stays so", half_closed),
    (
        "an end that waits for room comes along",
        with_an_end_that_waits,
    ),
    ("options of the socket are kept", options),
    ("what was looked at may stay", cancelled),
    ("a connection may come from the engine", through_the_engine),
    ("other states are refused by name", refused),
];

/// Both ends of a connection.
fn pair(address: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(address).expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    let client = TcpStream::connect(address).expect("it listens");
    let (server, _) = listener.accept().expect("it was opened");
    for end in [&client, &server] {
        let patience = Some(Duration::from_secs(10));
        end.set_read_timeout(patience).expect("an option");
    }
    (client, server)
}

/// Out of the kernel and back.
fn round(socket: &TcpStream) -> Essentials<Bytes> {
    let Taken { essentials, .. } = take(socket.as_fd()).expect("it can be taken");
    forget(socket.as_fd()).expect("it can be forgotten");
    let mut let_go = false;
    give_back(socket.as_fd(), &essentials, || let_go = true).expect("it can come back");
    assert!(let_go, "packets may reach it again");
    essentials
}

/// Both directions still work.
fn exchange(one: &mut TcpStream, other: &mut TcpStream) {
    for text in [b"one way", b"another"] {
        one.write_all(text).expect("it is open");
        let mut found = [0; 7];
        other.read_exact(&mut found).expect("it arrives");
        assert_eq!(&found, text);
    }
    other.write_all(b"back").expect("it is open");
    let mut found = [0; 4];
    one.read_exact(&mut found).expect("it arrives");
    assert_eq!(&found, b"back");
}

fn idle() {
    for address in ADDRESSES {
        let (mut client, mut server) = pair(address);
        let flow = round(&server).flow;
        assert_eq!(flow.local.port, server.local_addr().expect("still").port());
        for _ in 0..100 {
            round(&server);
            round(&client);
            exchange(&mut client, &mut server);
        }
        // Ten segments of 64 KB, and not of the least that is allowed.
        let window = round(&server).congestion_window;
        assert!(window.is_some_and(|bytes| bytes > 500_000), "{window:?}");
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

fn with_data() {
    for address in ADDRESSES {
        let (mut client, mut server) = pair(address);
        let sent = pattern(50_000);
        client.write_all(&sent).expect("it fits");
        server.write_all(&sent).expect("it fits");
        thread::sleep(Duration::from_millis(20));
        let essentials = round(&server);
        let unread: usize = essentials.receive_buffer.iter().map(Bytes::len).sum();
        assert_eq!(unread, sent.len());
        let mut found = vec![0; sent.len()];
        server.read_exact(&mut found).expect("it was there");
        assert!(found == sent);
        client.read_exact(&mut found).expect("it was sent");
        assert!(found == sent);
        exchange(&mut client, &mut server);
    }
}

/// The peer reads nothing, so that its window closes and data waits here.
fn with_unsent_data() {
    for address in ADDRESSES {
        let (mut client, mut server) = pair(address);
        server.set_nonblocking(true).expect("an option");
        let sent = pattern(64 << 20);
        let mut written = 0;
        loop {
            match server.write(&sent[written..]) {
                Ok(count) => written += count,
                Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        thread::sleep(Duration::from_millis(50));
        let essentials = round(&server);
        let waiting: usize = essentials.send_buffer.iter().map(Bytes::len).sum();
        let flight = essentials.send_next - essentials.send_una;
        assert!(waiting > flight as usize, "{waiting} and {flight}");
        let mut found = vec![0; written];
        client.read_exact(&mut found).expect("all of it arrives");
        assert!(found == sent[..written]);
        server.set_nonblocking(false).expect("an option");
        exchange(&mut client, &mut server);
    }
}

fn half_closed() {
    for address in ADDRESSES {
        let (mut client, server) = pair(address);
        server.shutdown(Shutdown::Write).expect("it is open");
        let mut end = Vec::new();
        client.read_to_end(&mut end).expect("the end is told");
        thread::sleep(Duration::from_millis(20));
        let essentials = round(&server);
        assert_eq!(essentials.state, State::FinWait2);
        client
            .write_all(b"and more")
            .expect("the other way is open");
        drop(client);
        let mut server = server;
        server
            .read_to_end(&mut end)
            .expect("data, and then its end");
        assert_eq!(end, b"and more");
    }
}

/// Behind data that was sent, data that was not, or neither.
fn with_an_end_that_waits() {
    for address in ADDRESSES {
        for len in [0, 1, 30_000, 64 << 20] {
            let (mut client, mut server) = pair(address);
            server.set_nonblocking(true).expect("an option");
            let sent = pattern(len);
            let mut written = 0;
            while written < len {
                match server.write(&sent[written..]) {
                    Ok(count) => written += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                }
            }
            server.set_nonblocking(false).expect("an option");
            server.shutdown(Shutdown::Write).expect("it is open");
            for _ in 0..10 {
                let state = round(&server).state;
                // Where the peer has room it may have acknowledged the end.
                let may_have = written == len && state == State::FinWait2;
                assert!(may_have || state == State::FinWait1, "{state:?}");
                client.write_all(b"more").expect("the other way is open");
                server.read_exact(&mut [0; 4]).expect("it arrives");
            }
            let mut found = Vec::new();
            client.read_to_end(&mut found).expect("data, and its end");
            assert!(found == sent[..written], "{} of {written}", found.len());
        }
    }
}

fn options() {
    let (_client, server) = pair(ADDRESSES[0]);
    server.set_nodelay(true).expect("an option");
    server.set_ttl(7).expect("an option");
    round(&server);
    assert!(server.nodelay().expect("an option"));
    assert_eq!(server.ttl().expect("an option"), 7);
}

fn cancelled() {
    let (mut client, mut server) = pair(ADDRESSES[0]);
    let first = take(server.as_fd()).expect("it can be taken").essentials;
    cancel(server.as_fd()).expect("it may stay");
    exchange(&mut client, &mut server);
    let second = take(server.as_fd()).expect("again").essentials;
    cancel(server.as_fd()).expect("it may stay");
    assert_eq!(second.receive_next - first.receive_next, 14);
    assert_eq!(second.send_una - first.send_una, 4);
}

/// What the kernel tells is enough for the engine, and what the engine tells is enough for the kernel.
fn through_the_engine() {
    for address in ADDRESSES {
        let (mut client, mut server) = pair(address);
        client.write_all(b"unread").expect("it fits");
        thread::sleep(Duration::from_millis(20));
        let essentials = take(server.as_fd()).expect("it can be taken").essentials;
        forget(server.as_fd()).expect("it can be forgotten");
        let state = essentials.into_portable(&Config::default());
        let back = state.essentials().expect("it is open");
        give_back(server.as_fd(), &back, || ()).expect("it can come back");
        let mut found = [0; 6];
        server.read_exact(&mut found).expect("it was there");
        assert_eq!(&found, b"unread");
        exchange(&mut client, &mut server);
    }
}

fn refused() {
    let listener = TcpListener::bind(ADDRESSES[0]).expect("a free port");
    let error = take(listener.as_fd()).expect_err("it has no connection");
    assert!(
        error.to_string().contains("TCP_REPAIR") || matches!(error, RepairError::State("LISTEN")),
        "{error}"
    );
    let (client, server) = pair(ADDRESSES[0]);
    let mut essentials = take(server.as_fd()).expect("it can be taken").essentials;
    essentials.state = State::CloseWait;
    cancel(server.as_fd()).expect("it may stay");
    let error = give_back(server.as_fd(), &essentials, || ()).expect_err("not yet");
    assert!(error.to_string().contains("CloseWait"), "{error}");
    drop(client);
}
