//! How sockets are closed, and when their numbers and buffers are free again.

use baton_bus::descriptor::{Action, Close, Outcome, Status};
use baton_cluster::script::{CLIENT, CLOSE, SERVER, Script};
use baton_host::adapter::OsLayerConfig;
use baton_host::{Receive, Sockets};

const ABORT: Action = Action::Close(Close::Abort);

#[test]
fn a_number_is_free_when_everything_has_been_answered() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    script.os.close(script.now, socket);
    assert_eq!(script.os.receive(socket, 10), Receive::Gone);
    let requests = script.requests();
    assert_eq!(requests[0].action, CLOSE);
    script.done(&requests[0], Status::Ok);
    script.pump();
    assert_eq!(script.os.sockets(), 1, "the adapter still has its buffer");
    script.deliver(&receive, 10);
    script.pump();
    assert_eq!(script.os.stats().dropped_bytes, 10);
    script.assert_empty();
}

#[test]
fn the_sending_direction_is_closed_where_that_is_wanted() {
    let config = OsLayerConfig {
        half_close: true,
        ..OsLayerConfig::default()
    };
    let (mut script, socket, _) = Script::with_connection(config);
    script.send(socket, 10);
    assert!(script.calls().shutdown(socket));
    assert!(script.calls().send(socket, "x".into()).is_err());
    let actions = script.actions();
    assert_eq!(actions[1..], [Action::Close(Close::Write)]);
    assert_eq!(script.os.receive(socket, 10), Receive::WouldBlock);
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    assert!(!script.calls().shutdown(socket));
    assert_eq!(script.send(socket, 10), 10);
}

#[test]
fn an_abort_drops_what_is_held_back() {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    script.calls().set_cork(socket, true);
    script.send(socket, 10);
    script.calls().abort(socket);
    assert_eq!(script.actions(), [ABORT]);
    assert_eq!(script.os.poll_timeout(), None);
}

#[test]
fn a_connection_may_end_while_it_is_being_closed() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    script.os.close(script.now, socket);
    let requests = script.requests();
    script.done(&receive, Status::Reset);
    script.tell(socket, Status::Reset, Outcome::Over);
    script.done(&requests[0], Status::NoSuchSocket);
    script.pump();
    assert!(script.ready().is_empty(), "a closed socket is not notified");
    script.assert_empty();
}

#[test]
fn a_listener_takes_untaken_connections_with_it() {
    let mut script = Script::new(OsLayerConfig::default());
    let listener = script.os.listen(script.now, SERVER, 5).unwrap();
    let requests = script.requests();
    for request in &requests[..3] {
        script.done(request, Status::Ok);
    }
    script.answer(&requests[3], Status::Ok, Outcome::Accepted(CLIENT));
    script.pump();
    script.os.close(script.now, listener);
    assert!(script.ready().is_empty());
    let requests = script.requests();
    let receive = requests[0];
    let mut ends: Vec<Action> = requests[1..].iter().map(|r| r.action).collect();
    ends.sort_by_key(|action| *action == CLOSE);
    assert_eq!(ends, [ABORT, CLOSE]);
    script.done(&receive, Status::Aborted);
    for request in &requests[1..] {
        script.done(request, Status::Ok);
    }
    script.pump();
    script.assert_empty();
}

#[test]
fn connections_accepted_by_a_closed_listener_are_reset() {
    let mut script = Script::new(OsLayerConfig::default());
    let listener = script.os.listen(script.now, SERVER, 5).unwrap();
    let requests = script.requests();
    for request in &requests[..3] {
        script.done(request, Status::Ok);
    }
    script.os.close(script.now, listener);
    let close = script.requests();
    script.answer(&requests[3], Status::Ok, Outcome::Accepted(CLIENT));
    script.done(&close[0], Status::Ok);
    let abort = script.requests();
    assert_eq!(abort[0].action, ABORT);
    script.done(&abort[0], Status::Ok);
    script.pump();
    assert!(script.ready().is_empty());
    script.assert_empty();
}

#[test]
fn a_socket_whose_request_was_not_sent_is_removed_at_once() {
    let mut script = Script::new(OsLayerConfig::default());
    let connection = script.os.connect(script.now, CLIENT).unwrap();
    let listener = script.os.listen(script.now, SERVER, 5).unwrap();
    script.os.close(script.now, connection);
    script.os.close(script.now, listener);
    assert!(script.actions().is_empty());
    script.assert_empty();
}
