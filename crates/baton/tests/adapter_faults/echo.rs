//! An application that echoes what it receives, and the data that tests send through it.

use crate::application::{open, say};
use baton_host::{Ready, Receive, SocketId, Sockets};
use baton_sockets::Driver;
use baton_testkit::Pattern;
use baton_wire::Endpoint;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Length of [`content`] in bytes.
pub const CONTENT_BYTES: usize = 8 << 20;
/// Most bytes to receive in one call.
const PIECE_BYTES: usize = 64 * 1024;

/// Returns the data that tests send.
pub fn content() -> Vec<u8> {
    Pattern::new(0).bytes(CONTENT_BYTES)
}

/// Echoes all data that arrives on `port`. Prints `lost` when the adapter is gone and all connections have failed, and `attached` when there is an
/// adapter again.
pub fn run(port: u16) {
    let mut driver = open();
    let now = driver.now();
    let local = Endpoint::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    driver.os_mut().listen(now, local, 16).expect("a socket");
    say("listens");
    let mut attached = true;
    // Received data that still has to be sent back.
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
        // Print this only after the failures of the connections, whichever turn detects the loss.
        if attached != driver.is_attached() {
            attached = driver.is_attached();
            say(if attached { "attached" } else { "lost" });
        }
        driver.transmit();
        driver
            .wait(Some(Duration::from_secs(1)))
            .expect("the wait succeeds");
    }
}

/// Echoes data on one socket until it would block.
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
