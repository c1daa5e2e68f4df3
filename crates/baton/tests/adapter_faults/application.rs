//! The roles that this program plays as an application on the adapter.

use crate::echo;
use crate::world::ADAPTER;
use baton_bus::Descriptor;
use baton_bus::link::HostLink;
use baton_host::{Ready, Receive, Sockets};
use baton_iolib::{Geometry, ShmHost};
use baton_sockets::{AdapterAddress, Driver, DriverConfig};
use baton_wire::{Endpoint, Span, Time};
use bytes::Bytes;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Number of bytes that a source sends before it goes silent. The adapter's send buffer has space for all of them.
pub const SOURCE_BYTES: usize = 256 * 1024;

/// Plays a role until it is killed.
pub fn play(role: &str) {
    let (role, argument) = role.split_once(' ').expect("a role and its argument");
    let port = || argument.parse().expect("a port");
    match role {
        "echo" => echo::run(port()),
        "source" => source(port()),
        "reader" => reader(argument.parse().expect("an address")),
        "intruder" => intruder(),
        _ => panic!("no role {role}"),
    }
}

/// Prints a line for the test, which reads standard output.
pub fn say(text: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{text}")
        .and_then(|()| out.flush())
        .expect("the test reads standard output");
}

/// Attaches to the adapter.
pub fn open() -> Driver {
    let path = std::env::var(ADAPTER).expect("an adapter");
    let target: AdapterAddress = path.parse().expect("a path");
    Driver::open(target, DriverConfig::default()).expect("an adapter that listens")
}

/// Connects to `remote`, waits for data, and prints how the wait ended.
fn reader(remote: SocketAddr) {
    let mut driver = open();
    let now = driver.now();
    let remote = Endpoint::new(remote.ip(), remote.port());
    let id = driver.os_mut().connect(now, remote).expect("a socket");
    loop {
        driver.turn();
        while let Some(ready) = driver.next_ready() {
            match ready {
                Ready::Readable(_) if driver.calls().receive(id, 1024) == Receive::Gone => {
                    say("connection failed");
                }
                Ready::Writable(_) => say("connected"),
                _ => {}
            }
        }
        driver.transmit();
        driver.wait(None).expect("the wait succeeds");
    }
}

/// Sends data to the first client that connects to `port`, and then stays idle.
fn source(port: u16) {
    let mut driver = open();
    let now = driver.now();
    let local = Endpoint::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    driver.os_mut().listen(now, local, 16).expect("a socket");
    let mut left = Bytes::from(vec![7; SOURCE_BYTES]);
    let mut socket = None;
    loop {
        driver.turn();
        while driver.next_ready().is_some() {}
        let mut calls = driver.calls();
        socket = socket.or_else(|| calls.accept());
        if let Some(id) = socket.filter(|_| !left.is_empty()) {
            let taken = calls.send(id, left.clone()).expect("a connection");
            left = left.slice(taken..);
            if left.is_empty() {
                say("all is sent");
            }
        }
        driver.transmit();
        driver
            .wait(Some(Duration::from_millis(10)))
            .expect("the wait succeeds");
    }
}

/// Attaches to the adapter, and puts a descriptor into the ring that is not a valid request.
fn intruder() {
    let path = std::env::var(ADAPTER).expect("an adapter");
    let mut link = ShmHost::connect(Path::new(&path), &Geometry::default()).expect("a link");
    let nonsense = Descriptor([0xff, 0, 0, 0]);
    link.put(Time::ZERO, &[nonsense])
        .expect("space in the ring");
    let mut now = Time::ZERO;
    while link.get(now, &mut Vec::new()).is_ok() {
        thread::sleep(Duration::from_millis(10));
        now += Span::from_ms(10);
    }
    say("cut off");
}
