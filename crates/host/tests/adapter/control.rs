//! Requests for the status and options of a socket, and cancellation of requests.

use baton_bus::descriptor::{Action, Outcome, SocketInfo, SocketOption, Status};
use baton_cluster::script::{CLIENT, Script};
use baton_host::Ready;
use baton_host::adapter::{Completed, Completion, NotSubmitted, OsLayerConfig};

#[test]
fn a_status_is_reported_when_it_arrives() {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    script.os.status(script.now, socket).unwrap();
    let requests = script.requests();
    assert_eq!(requests[0].action, Action::Status);
    assert_eq!(script.os.poll_completion(), None);
    let info = SocketInfo {
        send_room: 77,
        ..SocketInfo::default()
    };
    script.answer(&requests[0], Status::Ok, Outcome::Status(info));
    script.pump();
    let what = Completed::Status(Ok(info));
    assert_eq!(
        script.os.poll_completion(),
        Some(Completion { socket, what })
    );
}

#[test]
fn only_refused_options_are_reported() {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    let option = SocketOption::SendBuffer;
    for value in [1, 2] {
        let asked = script.os.set_option(script.now, socket, option, value);
        assert_eq!(asked, Ok(()));
    }
    let requests = script.requests();
    script.done(&requests[0], Status::Ok);
    script.done(&requests[1], Status::BadValue);
    script.pump();
    let status = Status::BadValue;
    let what = Completed::OptionRefused { option, status };
    assert_eq!(
        script.os.poll_completion(),
        Some(Completion { socket, what })
    );
    assert_eq!(script.os.poll_completion(), None);
    assert_eq!(script.os.stats().options_refused, 1);
}

#[test]
fn a_connect_may_be_cancelled() {
    let mut script = Script::new(OsLayerConfig::default());
    let socket = script.os.connect(script.now, CLIENT).unwrap();
    let asked = script.requests();
    script.os.cancel_connect(script.now, socket).unwrap();
    let cancel = script.requests();
    let target = asked[1].tag;
    assert_eq!(cancel[0].action, Action::Cancel { target });
    script.done(&asked[0], Status::Ok);
    script.done(&asked[1], Status::Cancelled);
    script.done(&cancel[0], Status::Ok);
    script.pump();
    assert_eq!(script.ready(), [Ready::Readable(socket)]);
    assert_eq!(script.os.error_of(socket), Some(Status::Cancelled));
    let what = Completed::Cancelled(Status::Ok);
    assert_eq!(
        script.os.poll_completion(),
        Some(Completion { socket, what })
    );
    let again = script.os.cancel_connect(script.now, socket);
    assert_eq!(again, Err(NotSubmitted::NothingToCancel));
}

#[test]
fn a_posted_buffer_may_be_cancelled() {
    let (mut script, socket, receive) = Script::with_connection(OsLayerConfig::default());
    script.os.cancel_receive(script.now, socket).unwrap();
    let cancel = script.requests();
    script.done(&receive, Status::Cancelled);
    script.done(&cancel[0], Status::Ok);
    assert!(
        script.actions().is_empty(),
        "the buffer is not posted again"
    );
    assert_eq!(script.free(), 16);
    script.os.resume_receiving(script.now, socket);
    assert!(matches!(script.actions()[..], [Action::Receive { .. }]));
}

#[test]
fn status_requests_are_limited() {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    let mut asked = 0;
    while script.os.status(script.now, socket) == Ok(()) {
        asked += 1;
        for request in script.requests() {
            script.done(&request, Status::Ok);
        }
        assert!(asked < 1000);
    }
    script.pump();
    assert!(script.os.poll_completion().is_some());
    assert_eq!(script.os.status(script.now, socket), Ok(()));
    script.os.close(script.now, socket);
    let gone = script.os.status(script.now, socket);
    assert_eq!(gone, Err(NotSubmitted::NoSuchSocket));
}
