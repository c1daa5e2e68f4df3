//! Sockets before they have a connection: SOCKET, BIND, LISTEN, SETSOCKOPT, STATUS, and refused requests.

use crate::connected;
use crate::world::*;
use baton_bus::descriptor::{
    Action, Buffer, Close, Opcode, Outcome, SocketInfo, SocketOption, Status,
};
use baton_bus::link::{LinkError, Violation};
use baton_bus::{Descriptor, HostLink};
use baton_wire::Endpoint;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[test]
fn a_number_identifies_one_socket_at_a_time() {
    let mut world = World::with(|config| config.most_sockets = 2);
    let tags = [
        world.ask(0, 5, Action::Socket),
        world.ask(0, 5, Action::Socket),
        world.ask(0, u32::MAX, Action::Socket),
        world.ask(0, 6, Action::Socket),
        world.ask(0, 5, close()),
        world.ask(0, 6, Action::Socket),
    ];
    let socket = |index: usize, number, status| done(number, tags[index], status, Opcode::Socket);
    assert_eq!(
        world.answers(0),
        [
            socket(0, 5, Status::Ok),
            socket(1, 5, Status::SocketInUse),
            socket(2, u32::MAX, Status::Ok),
            socket(3, 6, Status::TooManySockets),
            done(5, tags[4], Status::Ok, Opcode::Close),
            socket(5, 6, Status::Ok),
        ]
    );
}

#[test]
fn every_request_to_no_socket_is_refused() {
    let mut world = World::new();
    let anywhere = Endpoint::new(PEER, 80);
    let buffer = Buffer::Memory {
        address: 0x1000,
        len: 9,
    };
    let (data, more) = (buffer, false);
    let status = Outcome::Status(SocketInfo::default());
    let none = Outcome::AcceptedBulk { count: 0 };
    let nowhere = Endpoint::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 0);
    let (len, cumulative) = (9, false);
    let nothing = Outcome::Received(Buffer::Memory {
        address: 0x1000,
        len: 0,
    });
    for (action, outcome) in [
        (Action::Bind(anywhere), Outcome::Done(Opcode::Bind)),
        (Action::Listen { backlog: 1 }, Outcome::Done(Opcode::Listen)),
        (accept(2, 3, 0), none),
        (Action::Connect(anywhere), Outcome::Done(Opcode::Connect)),
        (close(), Outcome::Done(Opcode::Close)),
        (
            set(SocketOption::NoDelay, 1),
            Outcome::Done(Opcode::SetOption),
        ),
        (Action::Status, status),
        (Action::Name, Outcome::Name(nowhere)),
        (Action::Info, Outcome::Info { len: 0 }),
        (Action::Cancel { target: 1 }, Outcome::Done(Opcode::Cancel)),
        (Action::send(data, more), Outcome::Sent { len, cumulative }),
        (
            Action::Receive {
                address: 0x1000,
                len: 9,
            },
            nothing,
        ),
    ] {
        let tag = world.ask(0, 1, action);
        let refused = answer(1, tag, Status::NoSuchSocket, outcome);
        assert_eq!(world.answers(0), [refused]);
    }
}

#[test]
fn every_request_in_the_wrong_state_is_refused() {
    let mut world = World::new();
    world.listen(0, 2, 80);
    world.ask(0, 1, Action::Socket);
    world.ask(0, 2, accept(3, 1, 0));
    world.received(0);
    let remote = Endpoint::new(PEER, 80);
    let (idle, listening, reserved) = (1, 2, 3);
    let wrong = |world: &mut World, socket, action| {
        let tag = world.ask(0, socket, action);
        let responses = world.answers(0);
        assert_eq!(responses.len(), 1, "{action:?}: {responses:?}");
        assert_eq!((responses[0].socket, responses[0].tag), (socket, tag));
        assert_eq!(
            responses[0].status,
            Status::WrongState,
            "{action:?} of {socket}"
        );
    };
    let address = world.apps[0]
        .link
        .place(data(0, 9))
        .expect("a buffer is free");
    let send = Action::send(Buffer::Memory { address, len: 9 }, false);
    let receive = Action::Receive { address, len: 9 };
    for socket in [idle, listening, reserved] {
        wrong(&mut world, socket, send);
        wrong(&mut world, socket, Action::Close(Close::Write));
    }
    for socket in [listening, reserved] {
        wrong(&mut world, socket, Action::Bind(Endpoint::new(ANY, 81)));
        wrong(&mut world, socket, Action::Connect(remote));
    }
    for socket in [idle, listening] {
        wrong(&mut world, socket, receive);
    }
    for socket in [idle, reserved] {
        wrong(&mut world, socket, Action::Listen { backlog: 1 });
        wrong(&mut world, socket, accept(9, 1, 0));
    }
    wrong(&mut world, reserved, close());
    wrong(&mut world, reserved, set(SocketOption::NoDelay, 1));
}

#[test]
fn sockets_are_bound_once_to_addresses_of_the_adapter() {
    let mut world = World::new();
    for (socket, local, status) in [
        (1, Endpoint::new(PEER, 80), Status::AddressNotAvailable),
        (2, Endpoint::new(ADAPTER, 80), Status::Ok),
        (3, Endpoint::new(ADAPTER_V6, 0), Status::Ok),
        (
            4,
            Endpoint::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 80),
            Status::Ok,
        ),
        (
            5,
            Endpoint::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80),
            Status::AddressNotAvailable,
        ),
    ] {
        world.ask(0, socket, Action::Socket);
        world.received(0);
        let tag = world.ask(0, socket, Action::Bind(local));
        assert_eq!(world.answers(0), [done(socket, tag, status, Opcode::Bind)]);
    }
    let tag = world.ask(0, 2, Action::Bind(Endpoint::new(ANY, 81)));
    let refused = done(2, tag, Status::WrongState, Opcode::Bind);
    assert_eq!(world.answers(0), [refused], "the socket is already bound");
}

#[test]
fn only_one_application_listens_at_an_address() {
    let mut world = World::new();
    let other = world.attach();
    world.listen(0, 1, 80);
    let v6 = |port| Endpoint::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port);
    for app in [0, other] {
        for (socket, local, status) in [
            (10, Endpoint::new(ADAPTER, 80), Status::AddressInUse),
            (11, Endpoint::new(ANY, 80), Status::AddressInUse),
            (12, v6(90 + app as u16), Status::Ok),
            (13, Endpoint::new(ADAPTER, 81), Status::Ok),
        ] {
            world.ask(app, socket, Action::Socket);
            world.received(app);
            let tag = world.ask(app, socket, Action::Bind(local));
            assert_eq!(
                world.answers(app),
                [done(socket, tag, status, Opcode::Bind)]
            );
        }
    }
    // Both sockets are bound to port 81; the first to listen gets the port.
    for (app, status) in [(other, Status::Ok), (0, Status::AddressInUse)] {
        let tag = world.ask(app, 13, Action::Listen { backlog: 1 });
        assert_eq!(world.answers(app), [done(13, tag, status, Opcode::Listen)]);
    }
    // The address is free once the listener is closed.
    world.ask(other, 13, close());
    world.received(other);
    let tag = world.ask(0, 13, Action::Listen { backlog: 1 });
    assert_eq!(
        world.answers(0),
        [done(13, tag, Status::Ok, Opcode::Listen)]
    );
}

#[test]
fn a_backlog_can_be_changed_and_has_a_limit() {
    let mut world = World::with(|config| config.most_backlog = 3);
    world.listen(0, 1, 80);
    for _ in 0..4 {
        world.peer_connects(80);
    }
    world.run();
    let acceptable = |world: &mut World| {
        world.ask(0, 1, Action::Status);
        match world.answers(0)[..] {
            [response] => match response.outcome {
                Outcome::Status(info) => info.acceptable,
                other => panic!("{other:?}"),
            },
            _ => panic!("expected one answer"),
        }
    };
    assert_eq!(
        acceptable(&mut world),
        3,
        "the backlog of 16 is limited to 3"
    );
    let tag = world.ask(0, 1, Action::Listen { backlog: 0 });
    assert_eq!(world.answers(0), [done(1, tag, Status::Ok, Opcode::Listen)]);
    assert_eq!(
        acceptable(&mut world),
        3,
        "connections that already wait are kept"
    );
}

#[test]
fn options_have_bounds_and_are_inherited_from_a_listener() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    for (option, value, status) in [
        (SocketOption::NoDelay, 2, Status::BadValue),
        (SocketOption::Cork, 1, Status::Ok),
        (SocketOption::KeepAlive, 1, Status::Ok),
        (SocketOption::SendBuffer, 100, Status::BadValue),
        (SocketOption::SendBuffer, 10_000, Status::Ok),
        (SocketOption::ReceiveBuffer, u32::MAX, Status::BadValue),
        (SocketOption::ReceiveBuffer, 20_000, Status::Ok),
        (SocketOption::UserTimeout, 5_000, Status::Ok),
        (SocketOption::FastOpen, 5, Status::Ok),
    ] {
        let tag = world.ask(0, 1, set(option, value));
        assert_eq!(world.answers(0), [done(1, tag, status, Opcode::SetOption)]);
    }
    let peer = world.connection(0, 1, 2, 80);
    let config_of = |world: &World| {
        let flow = world.peer.flow(peer);
        let (local, remote) = (flow.remote, flow.local);
        let conn = world.stack.find(&baton_wire::Flow { local, remote });
        world.stack.config_of(conn.expect("it is open")).clone()
    };
    let config = config_of(&world);
    assert!(config.keepalive.is_some());
    assert_eq!(
        (config.send_buffer, config.receive_buffer),
        (10_000, 20_000)
    );
    assert_eq!(config.user_timeout_ms, Some(5_000));
    // The cork holds a partial segment back until the cork is removed.
    world.post_send(0, 2, data(0, 100));
    world.run();
    assert_eq!(world.peer_reads(peer), []);
    world.ask(0, 2, set(SocketOption::Cork, 0));
    assert_eq!(world.peer_reads(peer), [data(0, 100)]);
    world.ask(0, 2, set(SocketOption::UserTimeout, 0));
    world.ask(0, 2, set(SocketOption::KeepAlive, 0));
    let config = config_of(&world);
    assert_eq!((config.user_timeout_ms, config.keepalive), (None, None));
    assert!(
        world
            .answers(0)
            .iter()
            .all(|answer| answer.status == Status::Ok)
    );
}

#[test]
fn options_that_are_set_before_have_effect_from_the_start() {
    let mut world = World::new();
    world.post(0, 1, Action::Socket);
    world.post(0, 1, Action::Bind(Endpoint::new(ANY, 80)));
    world.post(0, 1, set(SocketOption::ReceiveBuffer, 1 << 20));
    world.ask(0, 1, Action::Listen { backlog: 4 });
    world.received(0);
    let peer = world.connection(0, 1, 2, 80);
    // A window of a megabyte needs a larger scale than the default of 256 KB.
    let shift = world.peer.info(world.now, peer).send_shift;
    assert_eq!(shift, 5);
}

#[test]
fn nonsensical_requests_are_violations() {
    let long = Action::Receive {
        address: 0x1_0000,
        len: 4097,
    };
    let beyond = Action::Receive {
        address: u64::MAX - 10,
        len: 100,
    };
    let elsewhere = Action::send(
        Buffer::Memory {
            address: 0x10,
            len: 100,
        },
        false,
    );
    let too_many_blocks = Action::SendCached {
        offset: 0,
        len: 4 * 4096 + 1,
        more: false,
    };
    let requests = [
        (long, Violation::Length(4097)),
        (too_many_blocks, Violation::Length(4 * 4096 + 1)),
        (
            beyond,
            Violation::Range {
                address: u64::MAX - 10,
                len: 100,
            },
        ),
        (
            elsewhere,
            Violation::Range {
                address: 0x10,
                len: 100,
            },
        ),
    ];
    for (action, violation) in requests {
        let (mut world, _) = connected(World::new());
        world.post(0, 2, action);
        assert_eq!(world.pump(0), Err(LinkError::Violation(violation)));
    }
    let mut world = World::new();
    let now = world.now;
    let put = world.apps[0].link.put(now, &[Descriptor([0xff, 0, 0, 0])]);
    assert_eq!(put, Ok(1));
    let error = world.pump(0).expect_err("the opcode does not exist");
    assert!(error.to_string().contains("opcode 0xff"), "{error}");
}
