//! On-board memory: how requests and packets are handled if there is no memory for them.

use crate::world::*;
use baton_bus::descriptor::{Action, Close, Opcode, Outcome, Status};
use baton_nic::adapter::OnBoardMemory;
use baton_wire::Endpoint;

/// Creates a world whose adapter has memory for one connection and 16 KiB of packets.
fn small() -> World {
    World::with(|config| {
        config.memory = Some(OnBoardMemory {
            kib: 17,
            connection_bytes: 1024,
        });
    })
}

#[test]
fn a_connect_that_finds_no_memory_is_refused_until_there_is_some() {
    let mut world = small();
    let remote = Endpoint::new(PEER, 80);
    world.peer_listens(remote);
    for socket in 1..=2 {
        world.ask(0, socket, Action::Socket);
    }
    world.answers(0);
    let connected = |socket, tag, status| done(socket, tag, status, Opcode::Connect);
    let first = world.ask(0, 1, Action::Connect(remote));
    let second = world.ask(0, 2, Action::Connect(remote));
    let expected = [
        connected(1, first, Status::Ok),
        connected(2, second, Status::Memory),
    ];
    assert_eq!(world.answers(0), expected);
    world.ask(0, 1, Action::Close(Close::Abort));
    world.answers(0);
    let again = world.ask(0, 2, Action::Connect(remote));
    assert_eq!(world.answers(0), [connected(2, again, Status::Ok)]);
    world.adapter.check();
}

#[test]
fn a_connection_that_finds_no_memory_waits_to_be_accepted() {
    let mut world = small();
    world.listen(0, 1, 80);
    let tags = [2, 3].map(|first| world.post(0, 1, accept(first, 1, 0)));
    let peers = [0, 1].map(|_| world.peer_connects(80));
    world.run();
    let accepted = [0, 1].map(|number| {
        let remote = world.peer.flow(peers[number]).local;
        answer(1, tags[number], Status::Ok, Outcome::Accepted(remote))
    });
    assert_eq!(world.answers(0), accepted[..1]);
    world.adapter.check();
    world.ask(0, 2, Action::Close(Close::Abort));
    assert!(world.answers(0).contains(&accepted[1]));
    world.adapter.check();
}

#[test]
fn packets_that_find_no_memory_are_counted() {
    let mut world = small();
    let now = world.now;
    let taken = (0..40).filter(|_| world.adapter.take_packet(now, 1024));
    assert_eq!(taken.count(), 17);
    assert_eq!(world.adapter.packets_without_memory(), 23);
    world.adapter.free_packet(1024);
    assert!(world.adapter.take_packet(now, 1024));
    world.adapter.check();
}

#[test]
fn each_user_has_a_share_of_the_memory_of_the_stack() {
    let mut world = World::new();
    // A connection takes 12 of 40 KiB.
    world.stack.limit_memory(40 << 10);
    let other = world.attach();
    for (app, user) in [(0, 1000), (other, 1001)] {
        let session = world.apps[app].session.expect("it is attached");
        world.adapter.set_user(session, user);
    }
    let remote = Endpoint::new(PEER, 80);
    world.peer_listens(remote);
    let connects = |world: &mut World, app, socket| {
        world.ask(app, socket, Action::Socket);
        world.answers(app);
        let tag = world.ask(app, socket, Action::Connect(remote));
        let refused = done(socket, tag, Status::Memory, Opcode::Connect);
        !world.answers(app).contains(&refused)
    };
    let firsts = [1, 2, 3].map(|socket| connects(&mut world, 0, socket));
    assert_eq!(firsts, [true, true, false]);
    assert!(
        connects(&mut world, other, 1),
        "there is memory for another user"
    );
    world.ask(0, 1, Action::Close(Close::Abort));
    world.answers(0);
    assert!(
        !connects(&mut world, other, 2),
        "each of two users may use a third"
    );
    world.stack.check();
    world.adapter.check();
}
