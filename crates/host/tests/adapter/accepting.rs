//! Listeners, and connections opened by the host.

use baton_bus::descriptor::{Action, Outcome, Peer, Request, Status, write_peer};
use baton_bus::link::MemoryConfig;
use baton_cluster::script::{CLIENT, LINK, SERVER, Script, response};
use baton_host::adapter::OsLayerConfig;
use baton_host::{Ready, SocketId, Sockets};
use baton_testkit::endpoint;

/// Listens, and answers all requests except the ACCEPTs, which are returned.
fn listen(script: &mut Script) -> (SocketId, Vec<Request>) {
    let listener = script.os.listen(script.now, SERVER, 5).unwrap();
    let mut requests = script.requests();
    let accepts = requests.split_off(3);
    for request in &requests {
        script.done(request, Status::Ok);
    }
    script.pump();
    (listener, accepts)
}

#[test]
fn a_listener_is_made_and_accepts_in_one_transfer() {
    let mut script = Script::new(OsLayerConfig::default());
    let listener = script.os.listen(script.now, SERVER, 5).unwrap();
    script.pump();
    assert_eq!(script.transfers(), 1);
    let requests = script.requests();
    let actions: Vec<Action> = requests.iter().map(|request| request.action).collect();
    let [
        Action::Socket,
        Action::Bind(local),
        Action::Listen { backlog },
        Action::Accept { first, count, .. },
    ] = actions[..]
    else {
        panic!("{actions:?}");
    };
    assert_eq!((local, backlog, count), (SERVER, 5, 1));
    assert_ne!(first, listener.0);
    assert!(requests.iter().all(|request| request.socket == listener.0));
    assert_eq!(script.os.local(listener), Some(SERVER));
}

#[test]
fn the_next_accept_leaves_with_the_first_receive_of_the_connection() {
    let mut script = Script::new(OsLayerConfig::default());
    let (_, accepts) = listen(&mut script);
    let accepted = Outcome::Accepted(CLIENT);
    script.answer(&accepts[0], Status::Ok, accepted);
    assert!(script.os.gather(script.now, &mut script.host).unwrap());
    assert_eq!(script.ready(), [Ready::Acceptable]);
    let socket = script.calls().accept().unwrap();
    assert_eq!(script.calls().accept(), None);
    assert_eq!(script.os.peer(socket), Some(CLIENT));
    let transfers = script.transfers();
    let actions = script.actions();
    assert!(
        matches!(actions[..], [Action::Receive { .. }, Action::Accept { .. }]),
        "{actions:?}"
    );
    assert_eq!(script.transfers(), transfers + 1);
}

#[test]
fn untaken_connections_are_reported_at_each_wait_and_delay_accepts() {
    let mut script = Script::new(OsLayerConfig::default());
    let (listener, accepts) = listen(&mut script);
    script.answer(&accepts[0], Status::Ok, Outcome::Accepted(CLIENT));
    script.pump();
    for _ in 0..3 {
        assert_eq!(script.ready(), [Ready::Acceptable]);
        let actions = script.actions();
        assert!(
            !actions
                .iter()
                .any(|action| matches!(action, Action::Accept { .. }))
        );
    }
    assert_eq!(script.os.acceptable(listener), 1);
    assert!(script.os.accept_on(listener).is_some());
    assert!(matches!(script.actions()[..], [Action::Accept { .. }]));
}

fn bulk(bulk_accept: u16) -> OsLayerConfig {
    OsLayerConfig {
        bulk_accept,
        accept_timeout_us: 77,
        ..OsLayerConfig::default()
    }
}

#[test]
fn a_bulk_accept_brings_connections_with_consecutive_numbers() {
    let mut script = Script::new(bulk(3));
    let (_, accepts) = listen(&mut script);
    let Action::Accept {
        first,
        count: 3,
        timeout_us: 77,
    } = accepts[0].action
    else {
        panic!("{accepts:?}");
    };
    let peers = (0..3).map(|n| {
        let (socket, remote) = (first + n, endpoint(9, 1000 + n as u16));
        write_peer(Peer { socket, remote })
    });
    let head = response(&accepts[0], Status::Ok, Outcome::AcceptedBulk { count: 3 });
    let entry: Vec<_> = std::iter::once(head).chain(peers).collect();
    script.put(&entry);
    script.pump();
    for n in 0..3 {
        let socket = script.calls().accept().unwrap();
        assert_eq!(socket, SocketId(first + n));
        assert_eq!(script.os.peer(socket), Some(endpoint(9, 1000 + n as u16)));
    }
    let actions = script.actions();
    assert!(
        matches!(actions[..], [.., Action::Accept { count: 3, .. }]),
        "{actions:?}"
    );
}

#[test]
fn numbers_that_a_bulk_accept_did_not_need_are_free_again() {
    let mut script = Script::new(bulk(4));
    let (_, accepts) = listen(&mut script);
    let before = script.os.sockets();
    script.answer(&accepts[0], Status::Partial, Outcome::Accepted(CLIENT));
    assert!(script.os.gather(script.now, &mut script.host).unwrap());
    assert_eq!(script.os.sockets(), before - 3);
    assert!(script.os.accept().is_some());
    script.pump();
    script.os.check();
}

#[test]
fn an_accept_that_is_refused_is_not_repeated_before_something_closes() {
    let mut script = Script::new(OsLayerConfig::default());
    let (socket, receive) = script.open();
    let (listener, accepts) = listen(&mut script);
    script.done(&accepts[0], Status::TooManySockets);
    assert!(script.actions().is_empty());
    assert_eq!(script.os.error_of(listener), None);
    script.os.abort(script.now, socket);
    let requests = script.requests();
    script.done(&requests[0], Status::Ok);
    assert!(script.actions().is_empty(), "the RECV is not answered yet");
    script.done(&receive, Status::Cancelled);
    assert!(matches!(script.actions()[..], [Action::Accept { .. }]));
}

#[test]
fn an_address_in_use_is_reported_for_the_listener() {
    let mut script = Script::new(OsLayerConfig::default());
    let listener = script.os.listen(script.now, SERVER, 5).unwrap();
    for request in script.requests() {
        let status = match request.action {
            Action::Bind(_) => Status::AddressInUse,
            Action::Listen { .. } | Action::Accept { .. } => Status::WrongState,
            _ => Status::Ok,
        };
        script.done(&request, status);
    }
    assert!(script.actions().is_empty(), "no request is repeated");
    assert_eq!(script.ready(), [Ready::Readable(listener)]);
    assert_eq!(script.os.error_of(listener), Some(Status::AddressInUse));
    script.os.close(script.now, listener);
    let requests = script.requests();
    script.done(&requests[0], Status::Ok);
    script.pump();
    script.assert_empty();
}

#[test]
fn accepts_are_posted_only_as_buffers_allow() {
    let link = MemoryConfig { buffers: 4, ..LINK };
    let config = OsLayerConfig {
        accepts_posted: 10,
        ..OsLayerConfig::default()
    };
    let mut script = Script::with_link(config, link);
    let (_, accepts) = listen(&mut script);
    assert_eq!(accepts.len(), 3, "one buffer is kept for sends");
}

#[test]
fn a_refused_connection_is_reported() {
    let mut script = Script::new(OsLayerConfig::default());
    let socket = script.os.connect(script.now, CLIENT).unwrap();
    assert_eq!(
        script.send(socket, 10),
        0,
        "no data is accepted before the connection is open"
    );
    for (request, status) in script.requests().iter().zip([Status::Ok, Status::Refused]) {
        script.done(request, status);
    }
    script.pump();
    assert_eq!(script.ready(), [Ready::Readable(socket)]);
    assert_eq!(script.os.error_of(socket), Some(Status::Refused));
    assert!(script.calls().send(socket, "x".into()).is_err());
    script.os.close(script.now, socket);
    let requests = script.requests();
    script.done(&requests[0], Status::Ok);
    script.pump();
    script.assert_empty();
}

#[test]
fn socket_numbers_are_limited() {
    let config = OsLayerConfig {
        most_sockets: 2,
        ..OsLayerConfig::default()
    };
    let mut script = Script::new(config);
    let first = script.os.connect(script.now, CLIENT).unwrap();
    assert!(script.os.connect(script.now, CLIENT).is_ok());
    assert_eq!(
        script.os.connect(script.now, CLIENT),
        Err(Status::TooManySockets)
    );
    script.os.close(script.now, first);
    assert!(
        script.os.connect(script.now, CLIENT).is_ok(),
        "the closed connection was never requested, so its number is free"
    );
    script.pump();
}

#[test]
fn a_connect_gets_the_buffer_of_a_posted_accept() {
    let link = MemoryConfig { buffers: 2, ..LINK };
    let mut script = Script::with_link(OsLayerConfig::default(), link);
    let (_, accepts) = listen(&mut script);
    let socket = script.os.connect(script.now, CLIENT).unwrap();
    let requests = script.requests();
    let target = accepts[0].tag;
    assert_eq!(requests[0].action, Action::Cancel { target });
    script.done(&accepts[0], Status::Cancelled);
    script.done(&requests[0], Status::Ok);
    let requests = script.requests();
    assert!(requests.iter().all(|request| request.socket == socket.0));
    assert_eq!(requests.len(), 2, "SOCKET and CONNECT, and no other ACCEPT");
}
