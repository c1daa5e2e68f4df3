//! SENDs of files that the adapter reads by itself.

use baton_bus::HostLink;
use baton_bus::descriptor::{Action, Buffer, Close, FilePlace, MOST_FILE_BYTES, Request, Status};
use baton_cluster::script::Script;
use baton_host::adapter::OsLayerConfig;
use baton_host::{Gone, Ready, SocketId, Sockets};
use bytes::Bytes;

/// Creates a script with a connection, and lends a file of 2 MiB, whose address is returned.
fn with_file() -> (Script, SocketId, u64) {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    let address = script.host.lend(Bytes::from(vec![7; 2 << 20]));
    (script, socket, address)
}

fn addresses(requests: &[Request]) -> Vec<(u64, u32)> {
    let sent = |request: &Request| match request.action {
        Action::Send {
            data: Buffer::Memory { address, len },
            ..
        } if FilePlace::at(address).is_some() => Some((address, len)),
        _ => None,
    };
    requests.iter().filter_map(sent).collect()
}

/// Returns the lengths of the SENDs among `actions`, and whether more data follows each.
fn sends(actions: &[Action]) -> Vec<(u32, bool)> {
    let send = |action: &Action| match *action {
        Action::Send { data, more, .. } => Some((data.len(), more)),
        _ => None,
    };
    actions.iter().filter_map(send).collect()
}

#[test]
fn a_header_goes_before_the_file_and_waits_for_it() {
    let (mut script, socket, address) = with_file();
    let mut calls = script.calls();
    calls.set_cork(socket, true);
    assert_eq!(calls.send(socket, Bytes::from(vec![1; 200])), Ok(200));
    assert_eq!(calls.send_lent(socket, (address, 100_000)), Ok(100_000));
    calls.set_cork(socket, false);
    let requests = script.requests();
    let actions: Vec<_> = requests.iter().map(|request| request.action).collect();
    assert_eq!(sends(&actions), [(200, true), (100_000, false)]);
    assert_eq!(addresses(&requests), [(address, 100_000)]);
    assert!(!script.os.is_flushed(), "the adapter has yet to read");
    assert_eq!(script.host.lent_files(), 1);
    script.done(&requests[0], Status::Ok);
    script.done(&requests[1], Status::Ok);
    script.pump();
    assert!(script.os.is_flushed());
    assert_eq!(script.host.lent_files(), 0);
    let stats = script.os.stats();
    assert_eq!((stats.lent_sends, stats.lent_bytes), (1, 100_000));
}

#[test]
fn a_connection_has_a_limited_number_of_bytes_to_be_read() {
    let (mut script, socket, address) = with_file();
    let most = MOST_FILE_BYTES;
    let calls = &mut script.calls();
    assert_eq!(calls.send_lent(socket, (address, 2 * most)), Ok(most));
    assert_eq!(calls.send_room(socket), Ok(0));
    let other = script.host.lend(Bytes::from_static(b"other"));
    let calls = &mut script.calls();
    assert_eq!(calls.send_lent(socket, (other, 5)), Ok(0), "it is full");
    script.host.free(other);
    let requests = script.requests();
    assert_eq!(addresses(&requests), [(address, most)]);
    assert!(!script.os.masks_lazy(), "the application waits");
    assert_eq!(script.ready(), []);
    script.done(&requests[0], Status::Ok);
    script.pump();
    assert_eq!(script.ready(), [Ready::Writable(socket)]);
    assert_ne!(script.calls().send_room(socket), Ok(0));
}

#[test]
fn a_file_that_cannot_be_read_fails_the_connection() {
    let (mut script, socket, address) = with_file();
    let calls = &mut script.calls();
    assert_eq!(calls.send_lent(socket, (address, 1000)), Ok(1000));
    let requests = script.requests();
    script.done(&requests[0], Status::NotReadable);
    let abort = Action::Close(Close::Abort);
    assert_eq!(script.actions(), [abort]);
    assert_eq!(script.os.error_of(socket), Some(Status::NotReadable));
    assert_eq!(script.host.lent_files(), 0);
    let other = script.host.lend(Bytes::from_static(b"other"));
    let calls = &mut script.calls();
    assert_eq!(calls.send_lent(socket, (other, 5)), Err(Gone));
}

#[test]
fn a_lost_link_ends_all_uses() {
    let (mut script, socket, address) = with_file();
    let calls = &mut script.calls();
    assert_eq!(calls.send_lent(socket, (address, 1000)), Ok(1000));
    script.pump();
    script.os.handle_link_lost(script.now);
    script.os.check();
    assert_eq!(script.os.error_of(socket), Some(Status::Aborted));
}
