//! The web server on the kernel's sockets, over the loopback interface.

use crate::clock::Clock;
use crate::ending::Stop;
use crate::http::HttpConfig;
use crate::kernel::KernelSockets;
use crate::web::ServiceConfig;
use crate::world::WorldService;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

/// Longer than anything here takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// Returns a port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Stops the server when the client is done or has panicked.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Serves a folder with the file `big` to `client`, and returns the counters.
fn with_server(
    most_connections: usize,
    big: &[u8],
    client: impl FnOnce(SocketAddr),
) -> crate::Snapshot {
    let root = tempfile::tempdir().expect("a folder");
    fs::write(root.path().join("big"), big).expect("a file");
    fs::write(root.path().join("small"), b"hello").expect("a file");
    let stop = AtomicBool::new(false);
    let port = free_port();
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut sockets = KernelSockets::new(most_connections, Clock::start(), None)
                .expect("an epoll instance");
            sockets.listen(port, 128).expect("a free port");
            let config = ServiceConfig::new(HttpConfig::new(root.path()));
            let mut service = WorldService::start(&config, sockets).expect("a folder");
            service
                .serve(
                    None,
                    || match stop.load(Ordering::Relaxed) {
                        true => Stop::InOrder,
                        false => Stop::No,
                    },
                    |waiting| panic!("nothing is under way: {waiting}"),
                )
                .expect("sockets last");
            service.snapshot()
        });
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        while TcpStream::connect(address).is_err() {
            thread::sleep(Duration::from_millis(5));
        }
        let stopping = StopOnDrop(&stop);
        client(address);
        drop(stopping);
        server.join().expect("no panic")
    })
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(LONG)).expect("a timeout");
    stream
}

fn get(stream: &mut TcpStream, path: &str, close: bool) {
    let connection = if close { "close" } else { "keep-alive" };
    let request = format!("GET /{path} HTTP/1.1\r\nHost: test\r\nConnection: {connection}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
}

/// Reads the next response and returns its body.
fn response(stream: &mut TcpStream) -> Vec<u8> {
    let mut header = Vec::new();
    while !header.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a header");
        header.push(byte[0]);
    }
    let header = String::from_utf8(header).expect("text").to_lowercase();
    let (_, behind) = header.split_once("content-length: ").expect("a length");
    let (len, _) = behind.split_once('\r').expect("the line's end");
    let mut body = vec![0; len.parse().expect("a number")];
    stream.read_exact(&mut body).expect("a response");
    body
}

/// Reads the rest of the stream and returns it without the header of the first response.
fn body(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("a response");
    let end = all.windows(4).position(|four| four == b"\r\n\r\n");
    all.split_off(end.expect("a header") + 4)
}

#[test]
fn files_arrive_whole_whatever_the_size_and_the_pace() {
    let big = baton_testkit::Pattern::new(0).bytes(8_000_000);
    let snapshot = with_server(100, &big, |address| {
        // A client that at first reads nothing, so that the kernel's buffers fill up.
        let mut slow = connect(address);
        get(&mut slow, "big", true);
        slow.shutdown(Shutdown::Write).expect("a half close");
        let mut quick = connect(address);
        for _ in 0..100 {
            get(&mut quick, "small", false);
            assert_eq!(response(&mut quick), b"hello");
        }
        get(&mut quick, "small", true);
        assert_eq!(body(&mut quick), b"hello");
        assert!(body(&mut slow) == big);
    });
    assert_eq!(snapshot.counters["web.responses"], 102);
    assert_eq!(snapshot.counters["web.lost"], 0);
}

#[test]
fn connections_beyond_the_limit_wait() {
    let snapshot = with_server(2, b"", |address| {
        let mut streams: Vec<_> = (0..8).map(|_| connect(address)).collect();
        for stream in &mut streams {
            get(stream, "small", true);
        }
        // The server keeps a connection until its client closes its side, too.
        for mut stream in streams {
            assert_eq!(body(&mut stream), b"hello");
        }
    });
    assert_eq!(snapshot.counters["web.responses"], 8);
}

#[test]
fn a_port_in_use_is_refused() {
    let other = TcpListener::bind(("0.0.0.0", 0)).expect("a port");
    let port = other.local_addr().expect("an address").port();
    let mut sockets = KernelSockets::new(1, Clock::start(), None).expect("an epoll instance");
    let refused = sockets.listen(port, 1).expect_err("in use");
    assert_eq!(refused.kind(), std::io::ErrorKind::AddrInUse);
}
