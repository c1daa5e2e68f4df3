//! Unmodified programs with the preloaded library on one of two adapters; their peer is on the other. The programs are written in Python, which makes
//! its socket calls through the C library.

use baton_cluster::network::{Network, Side};
use baton_sockets::{Adapter, TcpStream};
use baton_testkit::needs::{self, Need};
use libtest_mimic::Arguments;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

fn main() {
    needs::run(&Arguments::from_args(), Need::Program("python3"), &ALL);
}

const ALL: [(&str, fn()); 12] = [
    ("an epoll instance holds sockets of both kinds", || {
        play("epoll", 7001)
    }),
    (
        "a socket added by one thread ends the wait of another",
        || play("threads", 7009),
    ),
    ("new buffer space is reported as an edge", || {
        play("room", 7002)
    }),
    ("options, flags and duplicated descriptors work", || {
        play("options", 7003)
    }),
    ("signals interrupt waits", || play("signals", 7004)),
    (
        "a listener also accepts connections from the kernel",
        || play("kernel", 7005),
    ),
    ("child processes can listen again", || play("fork", 7006)),
    ("connections cannot be passed to other processes", || {
        play("passed", 7007)
    }),
    ("requests that only the kernel supports are refused", || {
        play("refused", 7010)
    }),
    (
        "timestamps of bytes are reported as the kernel reports them",
        || play("times", 7011),
    ),
    ("files are sent as the kernel sends them", || {
        play("files", 7012)
    }),
    ("written data arrives after the program has ended", || {
        play("leaves", 7008)
    }),
];

/// Returns the path of the library, which is in the directory of the test programs or in its parent.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the program's path");
    let places = test.ancestors().skip(1).take(2);
    let mut places = places.map(|place| place.join("libbaton_preload.so"));
    let found = places.find(|path| path.exists());
    found.expect("the library is built with the tests")
}

/// Runs one part of `server.py` and a peer that does what the program asks for.
fn play(part: &str, port: u16) {
    let network = Network::start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calls/server.py");
    let mut program = Command::new("python3")
        .arg(script)
        .args([part, &port.to_string(), "1"])
        .env("LD_PRELOAD", library())
        .env("BATON_ADAPTER", network.path(Side::Right))
        .env("BATON_LOG", "stderr")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let adapter = Adapter::connect(network.path(Side::Left)).expect("an adapter");
    let peer = connect(&adapter, port, &mut program);
    let obeyed = peer.map(|stream| obey(&stream, &mut program));
    let ended = program.wait().expect("the program ends");
    assert!(ended.success(), "{part}: {ended}");
    assert!(
        obeyed.is_some(),
        "the peer connects before the program ends"
    );
}

/// Connects once the program listens.
fn connect(adapter: &Adapter, port: u16, program: &mut Child) -> Option<TcpStream> {
    while program.try_wait().expect("a child process").is_none() {
        match TcpStream::connect(adapter, Side::Right.address(port)) {
            Ok(stream) => return Some(stream),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
    None
}

/// Obeys the commands that the program sends, one per line, until the program closes the connection.
fn obey(stream: &TcpStream, program: &mut Child) {
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|len| len > 0) {
        let (what, count) = line.trim().split_once(' ').unwrap_or((line.trim(), "0"));
        let count: usize = count.parse().expect("a number");
        let mut peer = stream;
        match what {
            "send" => peer.write_all(&vec![b'x'; count]).expect("sent"),
            "echo" => {
                let mut data = vec![0; count];
                lines.read_exact(&mut data).expect("received");
                peer.write_all(&data).expect("sent");
            }
            "shut" => stream.shutdown(Shutdown::Write).expect("shut"),
            "pause" => {
                // Waits until the program prints that it has filled all buffers.
                let output = program.stdout.as_mut().expect("standard output is a pipe");
                output
                    .read_exact(&mut [0; 6])
                    .expect("the program prints a line");
                let mut rest = Vec::new();
                lines.read_to_end(&mut rest).expect("received");
                assert!(rest.iter().all(|&byte| byte == b'.'));
                assert!(rest.len() >= 200_000);
                // Sends the answer in one piece. If the program has ended, nobody reads it.
                let _ = peer.write_all(format!("{}\n", rest.len()).as_bytes());
                return;
            }
            "quit" => return,
            other => panic!("unknown command: {other}"),
        }
        line.clear();
    }
}
