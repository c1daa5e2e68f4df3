//! Applications on two adapters that are connected to each other.

mod asynchronous;
mod beside;
mod blocking;
mod faults;
mod files;
mod readiness;

use baton_cluster::network;
use baton_sockets::{Adapter, TcpListener, TcpStream};
use baton_testkit::Pattern;
use network::{Network, Side};
use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// Longer than any operation takes, however busy the machine is.
const LONG: Duration = Duration::from_secs(120);

/// Returns bytes that depend on their position, so that misplaced data is detected.
fn pattern(len: usize, seed: usize) -> Vec<u8> {
    Pattern::new(seed as u64).bytes(len)
}

fn adapter(network: &Network, side: Side) -> Adapter {
    Adapter::connect(network.path(side)).expect("an adapter")
}

/// Starts a thread that runs `act`, and returns once the thread sleeps in the kernel.
fn spawn_until_it_waits<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    act: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let (sender, number) = channel();
    let thread = scope.spawn(move || {
        let told = sender.send(rustix::thread::gettid().as_raw_nonzero());
        told.expect("the parent waits");
        act()
    });
    let number = number.recv().expect("the thread sends its number");
    let stat = format!("/proc/self/task/{number}/stat");
    // The state is the first field after the name, which may contain spaces and parentheses: proc(5).
    let state = || {
        let fields = std::fs::read_to_string(&stat).unwrap_or_default();
        let behind_name = fields.rsplit_once(") ")?.1;
        behind_name.chars().next()
    };
    while !thread.is_finished() && state() != Some('S') {
        thread::yield_now();
    }
    thread
}

/// Attaches to both adapters and listens on the right one.
fn listening(network: &Network, port: u16) -> (Adapter, Adapter, TcpListener, SocketAddr) {
    let (left, right) = (adapter(network, Side::Left), adapter(network, Side::Right));
    let address = Side::Right.address(port);
    let listener = TcpListener::bind(&right, address).expect("a free port");
    (left, right, listener, address)
}

/// Returns the two ends of a connection.
fn pair(network: &Network) -> (TcpStream, TcpStream) {
    let (left, _right, listener, address) = listening(network, 80);
    let client = TcpStream::connect(&left, address).expect("a connection");
    let (server, peer) = listener.accept().expect("a connection");
    assert_eq!(peer.ip(), Side::Left.address(0).ip());
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(LONG)).expect("not zero");
        stream.set_write_timeout(Some(LONG)).expect("not zero");
    }
    (client, server)
}
