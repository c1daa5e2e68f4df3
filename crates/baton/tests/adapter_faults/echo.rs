//! What is sent through echoes, and the application that echoes.

use crate::application::{open, say};
use baton_host::{Ready, Receive, SocketId, Sockets};
use baton_sockets::Driver;
use baton_wire::Endpoint;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Bytes of [`content`].
pub const CONTENT_BYTES: usize = 8 << 20;
/// The most that is received at a time, bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Bytes that do not repeat soon.
pub fn content() -> Vec<u8> {
    (0..CONTENT_BYTES as u64)
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect()
}

/// Gives back on `port` what comes; says when the adapter is lost, after its connections have failed, and when there is one again.
pub fn run(port: u16) {
    let mut driver = open();
    let now = driver.now();
    let local = Endpoint::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    driver.os_mut().listen(now, local, 16).expect("a socket");
    say("listens");
    let mut attached = true;
    // What has come and has not been taken back.
    let mut unsent: BTreeMap<u32, Bytes> = BTreeMap::new();
    loop {
        driver.turn();
        while let Some(ready) = driver.next_ready() {
            match ready {
                Ready::Acceptable => {
                    while let Some(id) = driver.calls().accept() {
                        echo(&mut driver, &mut unsent, id);
                    }
                }
                Ready::Readable(id) | Ready::Writable(id) => echo(&mut driver, &mut unsent, id),
            }
        }
        // After what has become of the connections, whichever turn finds it.
        if attached != driver.is_attached() {
            attached = driver.is_attached();
            say(if attached { "attached" } else { "lost" });
        }
        driver.turn();
        driver.wait(Some(Duration::from_secs(1))).expect("a wait");
    }
}

/// Gives back what can be given back on one socket.
fn echo(driver: &mut Driver, unsent: &mut BTreeMap<u32, Bytes>, id: SocketId) {
    let mut calls = driver.calls();
    loop {
        if let Some(mut data) = unsent.remove(&id.0) {
            let Ok(taken) = calls.send(id, data.clone()) else {
                say("connection failed");
                return calls.close(id);
            };
            if taken < data.len() {
                unsent.insert(id.0, data.split_off(taken));
                return;
            }
        }
        match calls.receive(id, PIECE_BYTES) {
            Receive::Data(data) => drop(unsent.insert(id.0, data)),
            Receive::WouldBlock => return,
            Receive::EndOfStream => return calls.close(id),
            Receive::Gone => {
                say("connection failed");
                return calls.close(id);
            }
        }
    }
}
