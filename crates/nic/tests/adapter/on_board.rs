//! On-board memory: how requests and packets are handled if there is no memory for them.

use crate::world::*;
use baton_bus::descriptor::{Action, Close, Opcode, Status};
use baton_nic::adapter::OnBoardMemory;
use baton_wire::Endpoint;

#[test]
fn packets_that_find_no_memory_are_counted() {
    let mut world = World::with(|config| {
        config.memory = Some(OnBoardMemory {
            kib: 17,
            connection_bytes: 1024,
        });
    });
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
