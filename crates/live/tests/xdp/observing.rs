//! What an operator can observe of connections that move: their owners, when and why they moved, and which path each frame took.

use crate::application::{attach_with, with_application};
use baton_host::{Decision, Selection, View};
use baton_live::{CaptureBlock, CaptureSpec, ConnectionRow, Question, Snapshot, ask, ask_for};
use baton_sockets::broker::{BrokerClient, ConnectionHistory, Destination, HistoryQuery};
use baton_sockets::{DriverConfig, TcpStream};
use baton_wire::Endpoint;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    moves_and_their_reasons_are_known_after_the_connection_ends,
    a_running_adapter_is_captured_and_its_connections_have_owners,
];

const SERVER: &str = "`baton live adapter`";

fn exchange(near: &mut TcpStream, mut far: &std::net::TcpStream) {
    near.write_all(b"there").expect("the connection is open");
    far.read_exact(&mut [0; 5]).expect("the data arrives");
    far.write_all(b"and back").expect("the connection is open");
    near.read_exact(&mut [0; 8]).expect("the data arrives");
}

/// Returns the broker's history of the connection from this port.
fn known(path: &Path, port: u16) -> Option<ConnectionHistory> {
    let mut broker = BrokerClient::connect(&path.join("broker")).expect("the broker listens");
    let query = HistoryQuery {
        port: Some(port),
        ..HistoryQuery::default()
    };
    let mut answer = broker.history(&query).expect("the broker answers");
    assert!(answer.connections.len() <= 1, "{answer:?}");
    answer.connections.pop()
}

fn moves_and_their_reasons_are_known_after_the_connection_ends() {
    with_application(|adapter, listeners, path| {
        let peer = listeners[0].local_addr().expect("an address");
        let mut near = TcpStream::connect(adapter, peer).expect("a connection");
        let (far, from) = listeners[0].accept().expect("a connection");
        // The connection moves, to the adapter or back, at each write.
        let back_twice = |known: &ConnectionHistory| {
            let back = known
                .moves
                .iter()
                .filter(|one| one.to == Destination::Kernel);
            back.count() >= 2
        };
        while !known(path, from.port()).is_some_and(|known| back_twice(&known)) {
            exchange(&mut near, &far);
        }
        let row = known(path, from.port()).expect("the broker has recorded the connection");
        let ends = [from, peer].map(|end| Endpoint::new(end.ip(), end.port()));
        assert_eq!([row.local, row.remote], ends);
        assert_eq!((row.uid, row.pid), (0, std::process::id()));
        assert!(!row.program.is_empty());
        for pair in row.moves.windows(2) {
            assert!(pair[0].at_ms <= pair[1].at_ms, "{row:?}");
        }
        for one in &row.moves {
            match one.to {
                Destination::Stayed => continue,
                _ => assert_eq!(one.why, "policy", "{row:?}"),
            }
        }
        let back = row.moves.iter().find(|one| one.to == Destination::Kernel);
        let took_us = back.and_then(|back| back.took_us);
        assert!(took_us.is_some_and(|took| took > 0), "{row:?}");
        // The history also records that an operator's command returned all connections to the kernel.
        while known(path, from.port()).is_none_or(|known| {
            known
                .moves
                .last()
                .is_none_or(|last| last.to != Destination::Adapter)
        }) {
            exchange(&mut near, &far);
        }
        let mut broker = BrokerClient::connect(&path.join("broker")).expect("the broker listens");
        assert_eq!(broker.restore_all().expect("the test runs as root"), 0);
        let row = known(path, from.port()).expect("the broker has recorded the connection");
        let last = row.moves.iter().rfind(|one| one.to == Destination::Kernel);
        assert_eq!(
            last.expect("a move to the kernel").why,
            "command",
            "{row:?}"
        );
        drop((near, far));
        assert!(
            known(path, from.port()).is_some(),
            "the history is kept after the connection has ended"
        );
    });
}

/// A policy that hands off all connections as soon as possible and never takes them back.
#[derive(Debug)]
struct Always;

impl Selection for Always {
    fn on_established(&mut self, _view: &View) -> Decision {
        Decision::HandOff
    }

    fn on_send(&mut self, _view: &View) -> Decision {
        Decision::HandOff
    }

    fn reconsiders(&self, _view: &View) -> bool {
        true
    }
}

fn a_running_adapter_is_captured_and_its_connections_have_owners() {
    with_application(|_, listeners, path| {
        let adapter = &attach_with(path, DriverConfig::default(), Always);
        let control = path.join("control");
        let listener = &listeners[1];
        let peer = listener.local_addr().expect("an address");
        let mut near = TcpStream::connect(adapter, peer).expect("a connection");
        let (far, from) = listener.accept().expect("a connection");
        let spec = CaptureSpec {
            port: Some(from.port()),
            ..CaptureSpec::default()
        };
        let mut stream =
            ask_for(&control, SERVER, &Question::Capture(spec)).expect("the adapter answers");
        let has_owner = || {
            let answer = ask(&control, SERVER).expect("the adapter answers");
            let snapshot: Snapshot = serde_json::from_slice(&answer).expect("a snapshot");
            assert_eq!(snapshot.counters["capture.running"], 1);
            let is_it = |row: &&ConnectionRow| row.local.port == from.port();
            let Some(row) = snapshot.connections.iter().find(is_it) else {
                return false;
            };
            let info = &row.info;
            assert_eq!((info.advertised_mss, info.path_mtu), (1440, 1500));
            let number = row
                .application
                .expect("the connection belongs to an application");
            let owner = snapshot
                .applications
                .iter()
                .find(|one| one.number == number);
            let owner = owner.expect("the application is attached");
            let process = Some(std::process::id());
            assert_eq!((owner.uid, owner.pid), (Some(0), process));
            true
        };
        let mut bytes = Vec::new();
        let is_captured = |stream: &mut UnixStream, bytes: &mut Vec<u8>| {
            stream.set_nonblocking(true).expect("a valid socket");
            let _ = stream.read_to_end(bytes);
            let text = String::from_utf8_lossy(bytes);
            let all = [
                "received by the adapter, which owns the connection",
                "sent by the adapter, which owns the connection",
            ];
            all.iter().all(|why| text.contains(why))
        };
        while !(is_captured(&mut stream, &mut bytes) && has_owner()) {
            exchange(&mut near, &far);
        }
        stream
            .shutdown(Shutdown::Write)
            .expect("the control socket is open");
        stream.set_nonblocking(false).expect("a valid socket");
        stream.read_to_end(&mut bytes).expect("a capture");
        let (mut frames, mut totals) = (0, None);
        let each = |block: CaptureBlock| {
            frames += u64::from(block.frame_at().is_some());
            totals = totals.or(block.totals());
            Ok(())
        };
        CaptureBlock::take_all(&mut bytes, each).expect("a capture");
        assert!(bytes.is_empty(), "the capture ends with a whole block");
        let (all, lost) = totals.expect("the capture ends with totals");
        assert_eq!((all, lost), (frames, 0));
    });
}
