//! Connections opened by Fast Open, with their first data.

use baton_bus::descriptor::{Action, Buffer, MOST_INLINE_BYTES, Outcome, SocketOption, Status};
use baton_cluster::script::{CLIENT, Script};
use baton_host::adapter::OsLayerConfig;
use baton_host::{Ready, SocketId};
use bytes::Bytes;

const OPTION: Action = Action::SetOption {
    option: SocketOption::FastOpen,
    value: 1,
};

fn inline(len: u16) -> Action {
    Action::send(Buffer::Inline { len }, false)
}

/// Opens a connection with `len` bytes; returns its socket and the number of bytes accepted.
fn connect(script: &mut Script, len: usize) -> (SocketId, usize) {
    let data = Bytes::from(vec![7; len]);
    let opening = script
        .os
        .connect_fast_open(script.now, CLIENT, &data, false)
        .expect("a number is free");
    script.os.check();
    opening
}

#[test]
fn data_follows_the_connect_at_once() {
    let mut script = Script::new(OsLayerConfig::default());
    let (socket, taken) = connect(&mut script, 50);
    assert_eq!(taken, 50);
    // Both are in one transfer. Otherwise, the SYN might leave before the data arrives.
    let transfers = script.transfers();
    let requests = script.requests();
    assert_eq!(script.transfers(), transfers + 1);
    let actions: Vec<_> = requests.iter().map(|request| request.action).collect();
    let expected = [Action::Socket, OPTION, Action::Connect(CLIENT), inline(50)];
    assert_eq!(actions, expected);
    // Further data has to wait until the connection is open.
    assert_eq!(script.send(socket, 10), 0);
    script.done(&requests[0], Status::Ok);
    script.done(&requests[1], Status::Ok);
    let sent = Outcome::Sent {
        len: 50,
        cumulative: false,
    };
    script.answer(&requests[3], Status::Ok, sent);
    script.pump();
    assert_eq!(script.ready(), []);
    script.done(&requests[2], Status::Ok);
    script.pump();
    assert_eq!(script.ready(), [Ready::Writable(socket)]);
    assert_eq!(script.send(socket, 10), 10);
}

#[test]
fn fast_open_takes_only_data_that_fits_into_descriptors() {
    let mut script = Script::new(OsLayerConfig::default());
    let (_, taken) = connect(&mut script, 100_000);
    let pieces = taken / MOST_INLINE_BYTES;
    assert!(taken == pieces * MOST_INLINE_BYTES && pieces > 6, "{taken}");
    // All data is in the same transfer as the CONNECT.
    let transfers = script.transfers();
    let actions = script.actions();
    assert_eq!(script.transfers(), transfers + 1);
    let more = Action::send(
        Buffer::Inline {
            len: MOST_INLINE_BYTES as u16,
        },
        true,
    );
    assert_eq!(actions.len(), 3 + pieces);
    assert!(actions[3..2 + pieces].iter().all(|&action| action == more));
    assert_eq!(actions[2 + pieces], inline(MOST_INLINE_BYTES as u16));
    // Without data, the SYN still asks for a cookie.
    let (_, taken) = connect(&mut script, 0);
    assert_eq!(taken, 0);
    let expected = [Action::Socket, OPTION, Action::Connect(CLIENT)];
    assert_eq!(script.actions(), expected);
}

#[test]
fn a_connect_fails_if_the_adapter_lacks_fast_open() {
    let mut script = Script::new(OsLayerConfig::default());
    let (socket, _) = connect(&mut script, 50);
    let requests = script.requests();
    script.done(&requests[0], Status::Ok);
    script.done(&requests[1], Status::BadValue);
    script.pump();
    assert_eq!(script.ready(), [Ready::Readable(socket)]);
    assert_eq!(script.os.error_of(socket), Some(Status::BadValue));
}

#[test]
fn a_refused_connect_drops_its_data() {
    let mut script = Script::new(OsLayerConfig::default());
    let (socket, _) = connect(&mut script, 50);
    let requests = script.requests();
    script.done(&requests[0], Status::Ok);
    script.done(&requests[1], Status::Ok);
    script.done(&requests[3], Status::Refused);
    script.done(&requests[2], Status::Refused);
    script.pump();
    assert_eq!(script.ready(), [Ready::Readable(socket)]);
    assert_eq!(script.os.error_of(socket), Some(Status::Refused));
    script.os.close(script.now, socket);
    for request in script.requests() {
        script.done(&request, Status::Ok);
    }
    script.pump();
    script.assert_empty();
}

#[test]
fn an_unsent_connect_begins_on_the_next_link_with_its_data() {
    let mut script = Script::new(OsLayerConfig::default());
    connect(&mut script, 50);
    script.os.handle_link_lost(script.now);
    script.os.check();
    assert_eq!(script.ready(), []);
    script.reconnect();
    assert_eq!(script.actions()[3], inline(50));
}

#[test]
fn data_may_go_without_a_cookie() {
    let mut script = Script::new(OsLayerConfig::default());
    let data = Bytes::from_static(b"hello");
    let opening = script.os.connect_fast_open(script.now, CLIENT, &data, true);
    assert!(opening.is_ok());
    let option = Action::SetOption {
        option: SocketOption::FastOpen,
        value: 2,
    };
    let expected = [Action::Socket, option, Action::Connect(CLIENT), inline(5)];
    assert_eq!(script.actions(), expected);
}
