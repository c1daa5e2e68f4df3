//! TCP Fast Open (RFC 7413).

use crate::connected;
use crate::world::*;
use baton_bus::descriptor::{Action, Opcode, Outcome, SocketOption, Status};
use baton_tcp::{Config, ConnId, FastOpen, FastOpenListening, State};
use baton_wire::{Endpoint, Flow};

/// Lets the peer open a connection to port 80 by Fast Open and write `len` bytes before its SYN leaves.
fn peer_connects_fast(world: &mut World, port: u16, len: u32) -> ConnId {
    let flow = Flow {
        local: Endpoint::new(PEER, port),
        remote: Endpoint::new(ADAPTER, 80),
    };
    let config = Config::default();
    let conn = world
        .peer
        .connect_fast_open(world.now, flow, &config, FastOpen::Cookie);
    let conn = conn.expect("a free four-tuple");
    let taken = world.peer.write(conn, data(0, len));
    assert_eq!(taken, Ok(len as usize));
    conn
}

#[test]
fn data_of_a_syn_is_received_and_answered() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    world.ask(0, 1, set(SocketOption::FastOpen, 5));
    // The first connection asks for a cookie.
    let first = peer_connects_fast(&mut world, 4000, 100);
    world.ask(0, 1, accept(2, 1, 0));
    assert!(!world.peer.info(world.now, first).syn_data);
    world.answers(0);
    // The second connection has the cookie: the connection and its data are there before the peer's handshake is complete.
    let peer = peer_connects_fast(&mut world, 4001, 300);
    world.post(0, 1, accept(3, 1, 0));
    let receive = world.post_receive(0, 3, 4096);
    let send = world.post_inline(0, 3, data(7, 60));
    world.run();
    let answers = world.answers(0);
    assert!(matches!(answers[0].outcome, Outcome::Accepted(_)));
    assert!(answers.contains(&received(3, receive, Status::Ok, 300)));
    assert!(answers.contains(&sent(3, send, Status::Ok, 60)));
    assert!(world.peer.info(world.now, peer).syn_data);
    assert_eq!(world.peer_reads(peer), [data(7, 60)]);
    assert_eq!(world.stack.stats().fast_open_accepted, 1);
}

#[test]
fn a_connection_is_accepted_before_its_handshake_is_complete() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    world.ask(0, 1, set(SocketOption::FastOpen, 5));
    peer_connects_fast(&mut world, 4000, 100);
    world.ask(0, 1, accept(2, 1, 0));
    world.answers(0);
    let peer = peer_connects_fast(&mut world, 4001, 300);
    let (_, syn) = world.peer.poll_transmit(world.now).expect("a SYN");
    world.is_cut = true;
    let handled = world.stack.handle_segment(world.now, syn);
    let conn = handled.conn.expect("the SYN creates a connection");
    world.post(0, 1, accept(3, 1, 0));
    let receive = world.post_receive(0, 3, 4096);
    world.run();
    let answers = world.answers(0);
    assert!(matches!(answers[0].outcome, Outcome::Accepted(_)));
    assert_eq!(answers[1], received(3, receive, Status::Ok, 300));
    assert_eq!(world.stack.state(conn), State::SynReceived);
    assert_eq!(world.peer.state(peer), State::SynSent);
}

#[test]
fn without_fast_open_a_listener_takes_no_data_of_a_syn() {
    let mut world = World::new();
    world.listen(0, 1, 80);
    peer_connects_fast(&mut world, 4000, 100);
    world.ask(0, 1, accept(2, 1, 0));
    peer_connects_fast(&mut world, 4001, 100);
    world.ask(0, 1, accept(3, 1, 0));
    let stats = world.stack.stats();
    assert_eq!(stats.fast_open_accepted + stats.fast_open_cookies_sent, 0);
}

#[test]
fn inline_sends_go_with_the_syn_of_a_connect() {
    let mut world = World::new();
    let remote = Endpoint::new(PEER, 80);
    let listener = world.peer_listens(remote);
    let rules = FastOpenListening {
        pending: 5,
        without_cookie: false,
    };
    world.peer.set_fast_open(listener, rules);
    for (socket, in_syn) in [(1, false), (2, true)] {
        world.post(0, socket, Action::Socket);
        world.post(0, socket, set(SocketOption::FastOpen, 1));
        let connect = world.post(0, socket, Action::Connect(remote));
        let inline = world.post_inline(0, socket, data(0, 50));
        let more = world.post_inline(0, socket, data(50, 40));
        let memory = world.post_send(0, socket, data(90, 3000));
        world.run();
        let answers = world.answers(0);
        let order = |tag| answers.iter().position(|answer| answer.tag == tag);
        assert_eq!(order(inline) < order(connect), in_syn, "{answers:?}");
        assert!(order(inline) < order(more) && order(more) < order(memory));
        assert!(answers.iter().all(|answer| answer.status == Status::Ok));
        let peer = world.peer_accepts(listener);
        assert_eq!(world.peer_reads(peer), [data(0, 3090)]);
        assert_eq!(world.peer.info(world.now, peer).syn_data, in_syn);
    }
    assert_eq!(world.stack.stats().fast_open_data_acknowledged, 1);
}

#[test]
fn fast_open_is_refused_on_a_connected_socket() {
    let (mut world, _) = connected(World::new());
    let tag = world.ask(0, 2, set(SocketOption::FastOpen, 1));
    let refused = done(2, tag, Status::WrongState, Opcode::SetOption);
    assert_eq!(world.answers(0), [refused]);
}
