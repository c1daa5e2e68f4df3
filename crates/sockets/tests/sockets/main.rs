//! Applications on both sides of a network of two adapters.

mod asynchronous;
mod blocking;
mod faults;
mod network;
mod readiness;

use baton_sockets::{Adapter, TcpListener, TcpStream};
use network::{Network, Side};
use std::time::Duration;

/// Nothing here takes so long.
const LONG: Duration = Duration::from_secs(30);

/// Bytes that tell where they belong.
fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|index| ((index + seed) % 251) as u8 ^ (index >> 13) as u8)
        .collect()
}

fn adapter(network: &Network, side: Side) -> Adapter {
    Adapter::connect(network.path(side)).expect("an adapter")
}

/// Two ends of one connection.
fn pair(network: &Network) -> (TcpStream, TcpStream) {
    let (left, right) = (adapter(network, Side::Left), adapter(network, Side::Right));
    let address = Side::Right.address(80);
    let listener = TcpListener::bind(&right, address).expect("a free port");
    let client = TcpStream::connect(&left, address).expect("a connection");
    let (server, peer) = listener.accept().expect("a connection");
    assert_eq!(peer.ip(), Side::Left.address(0).ip());
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(LONG)).expect("not zero");
        stream.set_write_timeout(Some(LONG)).expect("not zero");
    }
    (client, server)
}
