//! The loss of a link, and continuing with another.

use super::script::{CLIENT, SERVER, Script, no_batching, small_link};
use baton_bus::descriptor::{Action, Outcome, SocketOption, Status};
use baton_bus::link::{LinkError, memory_link};
use baton_host::{Ready, Receive, Sockets};

fn lose_link(script: &mut Script) {
    script.host.faults().cut();
    assert_eq!(script.try_pump(), Err(LinkError::Gone));
    script.os.handle_link_lost(script.now);
    script.os.check();
}

#[test]
fn connections_fail_listeners_come_back_and_nothing_is_left() {
    let (mut script, socket, receive) = Script::with_connection(no_batching());
    let listener = script.os.listen(script.now, SERVER(), 5).unwrap();
    let requests = script.requests();
    for request in &requests[..3] {
        script.done(request, Status::Ok);
    }
    script.answer(&requests[3], Status::Ok, Outcome::Accepted(CLIENT()));
    script.deliver(&receive, 10);
    script.pump();
    script.calls().set_cork(socket, true);
    script.send(socket, 100);
    drop(script.ready());
    lose_link(&mut script);
    assert_eq!(script.os.outstanding(), 0);
    assert_eq!(
        script.ready(),
        [Ready::Readable(socket)],
        "nobody took the other"
    );
    assert_eq!(script.os.error_of(socket), Some(Status::Aborted));
    assert!(matches!(script.os.receive(socket, 99), Receive::Data(_)));
    assert_eq!(script.os.receive(socket, 99), Receive::Gone);
    (script.host, script.adapter) = memory_link(small_link());
    script.os.close(script.now, socket);
    let actions = script.actions();
    assert!(
        matches!(
            actions[..],
            [
                Action::Socket,
                Action::Bind(_),
                Action::Listen { .. },
                Action::Accept { .. }
            ]
        ),
        "{actions:?}"
    );
    assert_eq!(script.os.local(listener), Some(SERVER()));
    let (other, _) = script.open();
    assert_eq!(script.os.error_of(other), None);
}

#[test]
fn a_listener_takes_fast_open_also_on_the_next_link() {
    let mut script = Script::new(no_batching());
    let listener = script
        .os
        .listen_fast_open(script.now, SERVER(), 5, 7)
        .unwrap();
    for _ in 0..2 {
        let actions = script.actions();
        let option = SocketOption::FastOpen;
        assert_eq!(actions[0], Action::Socket);
        assert_eq!(actions[1], Action::SetOption { option, value: 7 });
        assert_eq!(actions[2], Action::Bind(SERVER()));
        lose_link(&mut script);
        (script.host, script.adapter) = memory_link(small_link());
    }
    let requests = script.requests();
    script.done(&requests[0], Status::Ok);
    script.done(&requests[1], Status::BadValue);
    script.pump();
    assert_eq!(script.ready(), [Ready::Readable(listener)]);
    assert_eq!(script.os.error_of(listener), Some(Status::BadValue));
}

#[test]
fn what_is_being_closed_is_gone_and_what_was_never_asked_for_begins_on_the_next_link() {
    let (mut script, socket, _) = Script::with_connection(no_batching());
    script.os.close(script.now, socket);
    script.pump();
    let begun = script.os.connect(script.now, CLIENT()).unwrap();
    script.pump();
    let waiting = script.os.connect(script.now, CLIENT()).unwrap();
    script.os.handle_link_lost(script.now);
    script.os.check();
    assert_eq!(script.ready(), [Ready::Readable(begun)]);
    assert_eq!(script.os.sockets(), 2);
    (script.host, script.adapter) = memory_link(small_link());
    let requests = script.requests();
    assert!(requests.iter().all(|request| request.socket == waiting.0));
    assert_eq!(requests.len(), 2);
    script.os.close(script.now, begun);
    assert_eq!(script.os.sockets(), 1);
}

#[test]
fn a_link_may_be_lost_again_and_again() {
    let mut script = Script::new(no_batching());
    script.os.listen(script.now, SERVER(), 5).unwrap();
    for _ in 0..3 {
        lose_link(&mut script);
        (script.host, script.adapter) = memory_link(small_link());
        assert_eq!(script.actions().len(), 4);
    }
    assert_eq!(script.os.stats().links_lost, 3);
}
