//! Listeners at the same address, of several applications.

use crate::world::*;
use baton_bus::descriptor::{Action, Opcode, Outcome, SocketOption, Status};
use baton_nic::adapter::Ending;
use baton_wire::Endpoint;

const PORT: u16 = 80;
const LISTENER: u32 = 1;
/// The user of applications that share.
const USER: u32 = 1000;

/// Creates a world with `users.len()` applications, of these users.
fn with_users(users: &[Option<u32>]) -> World {
    let mut world = World::new();
    while world.apps.len() < users.len() {
        world.attach();
    }
    for (app, &user) in world.apps.iter().zip(users) {
        if let Some(user) = user {
            world
                .adapter
                .set_user(app.session.expect("it is attached"), user);
        }
    }
    world
}

/// Listens, sharing the address with sockets that have the same number. Returns the status of BIND.
fn listen(world: &mut World, app: usize, at: Endpoint, share: u32) -> Status {
    world.post(app, LISTENER, Action::Socket);
    world.post(app, LISTENER, set(SocketOption::Share, share));
    let tag = world.post(app, LISTENER, Action::Bind(at));
    world.ask(app, LISTENER, Action::Listen { backlog: 16 });
    let answers = world.answers(app);
    let bound = answers.iter().find(|answer| answer.tag == tag);
    bound.expect("BIND is answered").status
}

/// Returns the sockets of an application that have got a connection since the last call.
fn accepted(world: &mut World, app: usize) -> Vec<u32> {
    let received = world.received(app);
    let peers = received.iter().flat_map(|one| &one.peers);
    let single = received
        .iter()
        .filter_map(|one| match one.response.outcome {
            Outcome::Accepted(_) => Some(one.response.tag),
            _ => None,
        });
    single.chain(peers.map(|peer| peer.socket)).collect()
}

fn any(port: u16) -> Endpoint {
    Endpoint::new(ANY, port)
}

#[test]
fn each_accepts_in_turn() {
    let mut world = with_users(&[Some(USER); 3]);
    for app in 0..3 {
        assert_eq!(listen(&mut world, app, any(PORT), 7), Status::Ok);
        for socket in 10..20 {
            world.ask(app, LISTENER, accept(socket, 1, 0));
        }
    }
    for _ in 0..9 {
        world.peer_connects(PORT);
        world.run();
        world.adapter.check();
    }
    let counts = [0, 1, 2].map(|app| accepted(&mut world, app).len());
    assert_eq!(counts, [3; 3]);
}

#[test]
fn one_that_does_not_accept_leaves_connections_to_the_others() {
    let mut world = with_users(&[Some(USER); 2]);
    for app in 0..2 {
        assert_eq!(listen(&mut world, app, any(PORT), 7), Status::Ok);
    }
    world.ask(0, LISTENER, accept(10, 1, 0));
    for socket in 10..15 {
        world.ask(1, LISTENER, accept(socket, 1, 0));
    }
    for _ in 0..6 {
        world.peer_connects(PORT);
    }
    world.run();
    assert_eq!(accepted(&mut world, 0).len(), 1);
    assert_eq!(accepted(&mut world, 1).len(), 5);
}

#[test]
fn connections_wait_for_the_remaining_sharers() {
    for ends_by_close in [true, false] {
        let mut world = with_users(&[Some(USER); 2]);
        for app in 0..2 {
            assert_eq!(listen(&mut world, app, any(PORT), 7), Status::Ok);
        }
        for _ in 0..4 {
            world.peer_connects(PORT);
        }
        world.run();
        if ends_by_close {
            world.ask(0, LISTENER, close());
        } else {
            world.detach(0, Ending::Reset);
        }
        world.adapter.check();
        world.ask(1, LISTENER, accept(10, 4, 0));
        assert_eq!(accepted(&mut world, 1), [10, 11, 12, 13]);
        let tag = world.ask(1, LISTENER, close());
        let closed = done(LISTENER, tag, Status::Ok, Opcode::Close);
        assert!(world.answers(1).contains(&closed));
        assert_eq!(world.stack.listeners().count(), 0, "the last one ends it");
        world.adapter.check();
    }
}

#[test]
fn an_address_is_shared_only_if_all_agree_and_have_the_same_user() {
    let (here, there) = (Some(USER), Some(USER + 1));
    for (users, first, second) in [
        ([here, there], 7, 7),
        ([here, None], 7, 7),
        ([None, None], 7, 7),
        ([here, here], 7, 8),
        ([here, here], 0, 7),
        ([here, here], 7, 0),
        ([here, here], 0, 0),
    ] {
        let mut world = with_users(&users);
        assert_eq!(listen(&mut world, 0, any(PORT), first), Status::Ok);
        let refused = listen(&mut world, 1, any(PORT), second);
        assert_eq!(refused, Status::AddressInUse, "{users:?} {first} {second}");
        world.adapter.check();
    }
}

#[test]
fn one_of_several_addresses_is_not_shared_with_all_of_them() {
    let mut world = with_users(&[Some(USER); 2]);
    assert_eq!(listen(&mut world, 0, any(PORT), 7), Status::Ok);
    let one = Endpoint::new(ADAPTER, PORT);
    assert_eq!(listen(&mut world, 1, one, 7), Status::AddressInUse);
}

#[test]
fn sharing_is_decided_before_the_address() {
    let mut world = World::new();
    world.post(0, LISTENER, Action::Socket);
    world.post(0, LISTENER, Action::Bind(any(PORT)));
    let tag = world.ask(0, LISTENER, set(SocketOption::Share, 7));
    let refused = done(LISTENER, tag, Status::WrongState, Opcode::SetOption);
    assert!(world.answers(0).contains(&refused));
}
