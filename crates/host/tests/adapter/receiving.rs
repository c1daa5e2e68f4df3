//! Receiving: posted buffers, data, and the end of the data.

use baton_bus::descriptor::{Action, Buffer, Outcome, Status, write_inline};
use baton_cluster::script::{Script, response};
use baton_host::adapter::OsLayerConfig;
use baton_host::{Gone, Ready, Receive, Sockets, Unread};

fn posted(actions: &[Action]) -> usize {
    let receives = actions.iter();
    receives
        .filter(|action| matches!(action, Action::Receive { .. }))
        .count()
}

#[test]
fn data_is_read_in_portions_and_then_the_next_buffer_is_posted() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    assert_eq!(script.os.receive(socket, 10), Receive::WouldBlock);
    script.deliver(&receive, 100);
    script.pump();
    assert_eq!(script.ready(), [Ready::Readable(socket)]);
    let unread = |len, ended| Unread { len, ended };
    assert_eq!(script.os.unread(socket), unread(100, false));
    assert!(
        script.actions().is_empty(),
        "no buffer is posted while data is unread"
    );
    let Receive::Data(data) = script.os.receive(socket, 60) else {
        panic!("expected data");
    };
    assert_eq!(
        (data.len(), script.os.unread(socket)),
        (60, unread(40, false))
    );
    assert!(script.actions().is_empty());
    assert!(matches!(script.os.receive(socket, 60), Receive::Data(data) if data.len() == 40));
    assert_eq!(posted(&script.actions()), 1);
}

#[test]
fn a_buffer_is_posted_even_while_data_waits_for_earlier_sends() {
    let config = OsLayerConfig {
        most_sends: 1,
        ..OsLayerConfig::default()
    };
    let (mut script, socket, receive) = Script::with_connection(config);
    script.send(socket, 10);
    script.send(socket, 10);
    script.deliver(&receive, 100);
    script.pump();
    assert!(matches!(script.os.receive(socket, 100), Receive::Data(_)));
    assert_eq!(
        posted(&script.actions()),
        1,
        "the peer may not read before its own data is read"
    );
}

#[test]
fn full_buffers_increase_the_number_of_posted_buffers() {
    let config = OsLayerConfig {
        receive_buffers: 3,
        ..OsLayerConfig::default()
    };
    let (mut script, socket, receive) = Script::with_connection(config);
    script.deliver(&receive, 4096);
    script.pump();
    assert!(matches!(script.os.receive(socket, 9000), Receive::Data(_)));
    let requests = script.requests();
    assert_eq!(requests.len(), 2);
    script.deliver(&requests[0], 4096);
    script.pump();
    assert!(matches!(script.os.receive(socket, 9000), Receive::Data(_)));
    assert_eq!(
        posted(&script.actions()),
        2,
        "three with the one that is already posted"
    );
}

#[test]
fn data_in_descriptors_frees_the_buffer_at_once() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    let outcome = Outcome::Received(Buffer::Inline { len: 20 });
    let mut entry = vec![response(&receive, Status::Ok, outcome)];
    let mut head = entry[0];
    write_inline(&mut head, &[5; 20], &mut entry);
    entry[0] = head;
    script.put(&entry);
    script.pump();
    assert_eq!(script.free(), 16);
    assert_eq!(
        script.os.receive(socket, 100),
        Receive::Data(vec![5; 20].into())
    );
}

#[test]
fn the_end_comes_after_the_data() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    script.deliver(&receive, 10);
    script.tell(socket, Status::Ok, Outcome::PeerClosed);
    script.pump();
    assert_eq!(script.ready(), [Ready::Readable(socket)]);
    assert!(script.os.unread(socket).ended);
    assert!(matches!(script.os.receive(socket, 100), Receive::Data(_)));
    assert_eq!(script.os.receive(socket, 100), Receive::EndOfStream);
    assert!(script.actions().is_empty(), "no buffer is posted any more");
    assert_eq!(script.send(socket, 10), 10, "the other direction is open");
}

#[test]
fn an_end_of_stream_instead_of_data_is_reported_once() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    script.done(&receive, Status::EndOfStream);
    script.tell(socket, Status::Ok, Outcome::PeerClosed);
    script.pump();
    assert_eq!(script.ready(), [Ready::Readable(socket)]);
    assert_eq!(script.os.receive(socket, 100), Receive::EndOfStream);
    assert_eq!(script.free(), 16);
}

#[test]
fn a_reset_is_reported_after_the_data() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    script.deliver(&receive, 10);
    script.tell(socket, Status::Reset, Outcome::Over);
    script.pump();
    assert_eq!(script.os.error_of(socket), Some(Status::Reset));
    assert!(matches!(script.os.receive(socket, 100), Receive::Data(_)));
    assert_eq!(script.os.receive(socket, 100), Receive::Gone);
    script.os.close(script.now, socket);
    assert!(
        script.actions().is_empty(),
        "the adapter has already freed the socket"
    );
    script.assert_empty();
}

#[test]
fn fewer_buffers_are_posted_when_the_adapter_refuses_more() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    script.deliver(&receive, 4096);
    script.pump();
    assert!(matches!(script.os.receive(socket, 9000), Receive::Data(_)));
    let requests = script.requests();
    assert_eq!(requests.len(), 2);
    script.done(&requests[1], Status::TooManyRequests);
    assert!(script.actions().is_empty());
    script.deliver(&requests[0], 1);
    script.pump();
    assert!(matches!(script.os.receive(socket, 9000), Receive::Data(_)));
    assert_eq!(posted(&script.actions()), 1);
}

#[test]
fn what_the_adapter_keeps_is_counted_until_it_is_delivered() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    script.deliver(&receive, 10);
    let keeps = |len, ended| Outcome::Unread { len, ended };
    script.tell(socket, Status::Ok, keeps(50, false));
    script.pump();
    assert_eq!(script.ready(), [Ready::Readable(socket)]);
    let unread = |len, ended| Unread { len, ended };
    assert_eq!(script.os.unread(socket), unread(60, false));
    script.tell(socket, Status::Ok, keeps(70, true));
    script.pump();
    assert_eq!(
        script.ready(),
        [Ready::Readable(socket)],
        "more has arrived"
    );
    assert_eq!(script.os.unread(socket), unread(80, true));
    assert!(matches!(script.os.receive(socket, 100), Receive::Data(_)));
    assert_eq!(script.os.unread(socket), unread(70, true));
    assert!(script.os.is_delivery_due(socket));
    assert_eq!(script.os.receive(socket, 100), Receive::WouldBlock);
    let requests = script.requests();
    script.deliver(&requests[0], 40);
    script.pump();
    assert_eq!(script.os.unread(socket), unread(70, true));
    assert!(!script.os.is_delivery_due(socket));
}

#[test]
fn a_failure_behind_unread_data_is_known_before_the_data_is_read() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    script.deliver(&receive, 10);
    let outcome = Outcome::Unread {
        len: 50,
        ended: false,
    };
    script.tell(socket, Status::Reset, outcome);
    script.pump();
    assert_eq!(script.os.error_of(socket), Some(Status::Reset));
    assert_eq!(script.calls().send(socket, vec![1].into()), Err(Gone));
    assert!(matches!(script.os.receive(socket, 100), Receive::Data(_)));
    assert_eq!(script.os.receive(socket, 100), Receive::WouldBlock);
    assert!(script.os.is_delivery_due(socket), "more data comes first");
}
