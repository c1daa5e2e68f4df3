//! Handoff and restore, one dialogue at a time.

use crate::common::World;
use crate::common::host::Place;
use baton_bus::handoff::{Command, Control, Event, Handle, Refusal, ToHost, ToNic};
use baton_nic::{Config, LoadControl, LoadState, Relief, Scheduler, Work};
use baton_tcp::{CloseReason, State};
use baton_wire::Span;

fn tcp() -> baton_tcp::Config {
    baton_tcp::Config::default()
}

/// Established connections with `to_write` bytes each way.
fn connected(config: Config, to_write: &[(u64, u64)]) -> World {
    let mut world = World::new(config, tcp(), to_write);
    world.connect();
    world
}

fn handle(world: &World, n: usize) -> Handle {
    match world.host.sockets[n].place {
        Place::Nic(handle) => handle,
        place => panic!("connection {n} is not on the NIC but {place:?}"),
    }
}

fn on_host(world: &World, n: usize) -> bool {
    matches!(world.host.sockets[n].place, Place::Host(_))
}

#[test]
fn a_connection_lives_on_the_nic() {
    let mut world = connected(Config::default(), &[(100_000, 50_000)]);
    world.hand_off(0);
    assert_eq!(
        (world.nic.connections(), world.nic.stats().handoffs),
        (1, 1)
    );
    let sent_by_host = world.nic.stats().host_packets_sent;
    world.finish();
    world.assert_complete();
    let stats = world.nic.stats();
    assert_eq!(
        stats.host_packets_sent, sent_by_host,
        "the host sends no packet of it any more"
    );
    assert_eq!(
        (stats.closed, stats.released, stats.ignored.total()),
        (1, 1, 0)
    );
    assert!(stats.nic_packets_sent >= 100_000 / 1460);
    assert!(
        world.host.acknowledgments.len() < 100_000 / 1460 / 2,
        "acknowledgments are gathered"
    );
}

#[test]
fn without_handoff_the_nic_is_a_bridge() {
    let mut world = connected(
        Config {
            hard_limit: 0,
            ..Config::default()
        },
        &[(10_000, 10_000)],
    );
    world.hand_off(0);
    assert_eq!(world.host.refusals, [Refusal::HardLimit]);
    world.finish();
    world.assert_complete();
    assert_eq!(
        (
            world.nic.stats().nic_packets_received,
            world.nic.stats().nic_packets_sent
        ),
        (0, 0)
    );
}

#[test]
fn taken_back_in_mid_transfer() {
    let mut world = connected(Config::default(), &[(200_000, 200_000), (1000, 1000)]);
    world.hand_off(0);
    for _ in 0..4 {
        world.peer_write(0, 30_000);
        world.host.write(world.now, 0, 30_000);
        world.host.post_receive(0, 10_000);
        for _ in 0..10 {
            world.descriptor();
            world.frame_in();
            world.work();
        }
        world.host.restore(0);
        world.settle();
        assert!(on_host(&world, 0));
        world.hand_off(0);
        handle(&world, 0);
    }
    assert_eq!(
        (world.nic.stats().handoffs, world.nic.stats().restores),
        (5, 4)
    );
    world.finish();
    world.assert_complete();
}

#[test]
fn hard_limit() {
    let mut world = connected(
        Config {
            hard_limit: 1,
            ..Config::default()
        },
        &[(0, 0), (0, 0)],
    );
    world.hand_off(0);
    world.hand_off(1);
    assert_eq!(
        (
            world.host.refusals.as_slice(),
            world.nic.stats().refused.hard_limit
        ),
        ([Refusal::HardLimit].as_slice(), 1)
    );
    assert!(on_host(&world, 1), "the refusal gave the state back");
    world.finish();
    world.assert_complete();
}

#[test]
fn memory_is_short_and_then_free_again() {
    let config = Config {
        memory_kib: 20,
        connection_bytes: 3000,
        ..Config::default()
    };
    let mut world = connected(config, &[(0, 0), (0, 0)]);
    world.hand_off(0);
    world.hand_off(1);
    assert_eq!(world.host.refusals, [Refusal::Memory]);
    assert_eq!(world.host.memory, [0]);
    world.host.restore(0);
    world.settle();
    assert_eq!(world.host.memory, [0, 1]);
    world.hand_off(1);
    handle(&world, 1);
    world.finish();
    world.assert_complete();
}

#[test]
fn a_handle_or_flow_is_there_once() {
    let mut world = connected(Config::default(), &[(0, 0), (0, 0)]);
    world.hand_off(0);
    let taken = handle(&world, 0);
    let Place::Host(conn) = world.host.sockets[1].place else {
        panic!("on the host")
    };
    let state = Box::new(world.host.stack.export(world.now, conn));
    let command = Command::Handoff {
        handle: taken,
        state: state.clone(),
        cached: Vec::new(),
    };
    let mut ask = |command| {
        world
            .nic
            .handle_descriptor(world.now, ToNic::Command(command))
            .expect("room");
        assert_eq!(
            world.nic.poll_work(world.now, &mut baton_nic::NoMeter),
            Some(Work::Handoff)
        );
        world.nic.check();
        world.nic.poll_upcall().expect("an answer").item
    };
    let refused = Err((Refusal::Duplicate, state.clone()));
    assert_eq!(
        ask(command),
        ToHost::Event(Event::Handoff {
            handle: taken,
            result: refused.clone()
        })
    );
    let free = Handle(99);
    assert_eq!(
        ask(Command::Handoff {
            handle: free,
            state: state.clone(),
            cached: Vec::new(),
        }),
        ToHost::Event(Event::Handoff {
            handle: free,
            result: Ok(())
        })
    );
    let again = Handle(100);
    assert_eq!(
        ask(Command::Handoff {
            handle: again,
            state,
            cached: Vec::new(),
        }),
        ToHost::Event(Event::Handoff {
            handle: again,
            result: refused
        })
    );
}

#[test]
fn only_established_connections_are_taken() {
    let mut world = World::new(Config::default(), tcp(), &[(0, 0)]);
    let flow = baton_wire::Flow {
        local: crate::common::SERVER,
        remote: crate::common::client(77),
    };
    let conn = world
        .host
        .stack
        .connect(world.now, flow)
        .expect("no such connection");
    let state = Box::new(world.host.stack.export(world.now, conn));
    assert_eq!(state.state, State::SynSent);
    let command = Command::Handoff {
        handle: Handle(1),
        state: state.clone(),
        cached: Vec::new(),
    };
    world
        .nic
        .handle_descriptor(world.now, ToNic::Command(command))
        .expect("room");
    assert_eq!(
        world.nic.poll_work(world.now, &mut baton_nic::NoMeter),
        Some(Work::Handoff)
    );
    let answer = Event::Handoff {
        handle: Handle(1),
        result: Err((Refusal::State, state)),
    };
    assert_eq!(
        world.nic.poll_upcall().map(|upcall| upcall.item),
        Some(ToHost::Event(answer))
    );
    world.nic.check();
}

/// A handoff while data is on its way through the NIC to the host: the host forwards it.
#[test]
fn packets_that_cross_a_handoff_are_forwarded() {
    for scheduler in [Scheduler::Fcfs, Scheduler::HostFirst] {
        let mut world = connected(
            Config {
                scheduler,
                ..Config::default()
            },
            &[(1000, 20_000)],
        );
        world.peer_write(0, 20_000);
        while world.frame_in() {}
        while world.nic.queue_lengths().arrivals > 0 {
            assert!(world.work());
        }
        // All of it is the host's by lookup, none has reached the host.
        world.host.hand_off(world.now, 0);
        world.settle();
        assert!(world.host.forwarded > 0);
        assert_eq!(world.nic.stats().forwarded, u64::from(world.host.forwarded));
        assert_eq!(world.nic.stats().passed_on, 0);
        world.finish();
        world.assert_complete();
        assert_eq!(
            world.peer_stack.stats().retransmissions,
            0,
            "nothing was lost"
        );
    }
}

/// A restore while packets wait for the NIC: under host first they were the NIC's by lookup and go on to the host, under
/// FCFS lookup finds them to be the host's.
#[test]
fn packets_that_cross_a_restore_are_passed_on() {
    for scheduler in [Scheduler::Fcfs, Scheduler::HostFirst] {
        let mut world = connected(
            Config {
                scheduler,
                ..Config::default()
            },
            &[(1000, 8000)],
        );
        world.hand_off(0);
        world.host.restore(0);
        assert!(world.descriptor());
        world.peer_write(0, 8000);
        while world.frame_in() {}
        world.settle();
        assert!(on_host(&world, 0));
        let looked_up_before = scheduler == Scheduler::HostFirst;
        assert_eq!(world.nic.stats().passed_on > 0, looked_up_before);
        world.finish();
        world.assert_complete();
        assert_eq!(
            world.peer_stack.stats().retransmissions,
            0,
            "nothing was lost"
        );
    }
}

/// A refused handoff with packets already forwarded: they come back after the state.
#[test]
fn forwarded_packets_follow_a_refused_connection() {
    let mut world = connected(
        Config {
            hard_limit: 0,
            ..Config::default()
        },
        &[(1000, 8000)],
    );
    world.peer_write(0, 8000);
    while world.frame_in() {}
    while world.nic.queue_lengths().arrivals > 0 {
        assert!(world.work());
    }
    world.host.hand_off(world.now, 0);
    world.settle();
    assert!(world.nic.stats().forwarded > 0);
    assert_eq!(world.nic.stats().given_back, world.nic.stats().forwarded);
    world.finish();
    world.assert_complete();
    assert_eq!(
        world.peer_stack.stats().retransmissions,
        0,
        "nothing was lost"
    );
}

#[test]
fn received_data_waits_for_buffers_and_the_end_for_the_data() {
    let mut world = connected(Config::default(), &[(0, 5000)]);
    world.hand_off(0);
    world.peer_write(0, 5000);
    world.settle();
    assert_eq!(
        (
            world.host.sockets[0].received,
            world.host.sockets[0].peer_closed
        ),
        (0, false)
    );
    world.host.post_receive(0, 3000);
    world.settle();
    assert_eq!(
        (
            world.host.sockets[0].received,
            world.host.sockets[0].peer_closed
        ),
        (3000, false)
    );
    world.host.post_receive(0, 2000);
    world.settle();
    assert_eq!(
        (
            world.host.sockets[0].received,
            world.host.sockets[0].peer_closed
        ),
        (5000, true)
    );
    world.finish();
    world.assert_complete();
}

/// The same, but the connection is taken back: what could not be told is in its state.
#[test]
fn unread_data_and_end_come_back_with_the_state() {
    let mut world = connected(Config::default(), &[(100, 5000)]);
    world.hand_off(0);
    world.peer_write(0, 5000);
    world.host.post_receive(0, 1000);
    world.settle();
    world.host.restore(0);
    world.settle();
    assert_eq!(
        (
            world.host.sockets[0].received,
            world.host.sockets[0].peer_closed
        ),
        (5000, true)
    );
    world.finish();
    world.assert_complete();
}

/// Handed off with unread data and a FIN behind it.
#[test]
fn unread_data_and_end_go_with_a_handoff() {
    let mut world = connected(Config::default(), &[(100, 5000)]);
    world.hand_off(0);
    world.peer_write(0, 5000);
    world.settle();
    // By way of a restore that the host does not read from.
    let taken = handle(&world, 0);
    let now = world.now;
    let mut ask = |command| {
        world
            .nic
            .handle_descriptor(now, ToNic::Command(command))
            .expect("room");
        let mut events = Vec::new();
        while world.nic.poll_work(now, &mut baton_nic::NoMeter).is_some() {
            events.extend(std::iter::from_fn(|| world.nic.poll_upcall()).map(|upcall| upcall.item));
            while world.nic.poll_frame().is_some() {}
            world.nic.check();
        }
        events
    };
    let restored = ask(Command::Restore { handle: taken });
    let [ToHost::Event(Event::Restored { state, .. })] = restored.as_slice() else {
        panic!("{restored:?}")
    };
    assert_eq!(state.state, State::CloseWait);
    let handoff = ask(Command::Handoff {
        handle: Handle(5),
        state: state.clone(),
        cached: Vec::new(),
    });
    assert_eq!(
        handoff,
        [ToHost::Event(Event::Handoff {
            handle: Handle(5),
            result: Ok(())
        })]
    );
    let told = ask(Command::PostReceive {
        handle: Handle(5),
        len: 5000,
    });
    assert!(matches!(
        told.as_slice(),
        [ToHost::Event(Event::Receive { data, .. }), ToHost::Event(Event::PeerClosed { .. })] if data.len == 5000
    ));
}

#[test]
fn the_end_and_a_restore_cross() {
    let mut world = connected(Config::default(), &[(0, 0)]);
    world.hand_off(0);
    let taken = handle(&world, 0);
    world.peer_write(0, 0);
    world.host.write(world.now, 0, 0);
    // Everything happens but the host does not hear of it yet.
    while world.work() || world.descriptor() || world.frame_in() || world.frame_out() {
        world.check();
    }
    assert_eq!(world.nic.connections(), 0);
    let free = world.nic.memory_free();
    world
        .host
        .to_nic
        .push_back(ToNic::Command(Command::Restore { handle: taken }));
    world.settle();
    assert_eq!(world.nic.stats().ignored.ended, 1);
    assert!(
        world.nic.memory_free() > free,
        "the block is free only after the release"
    );
    assert_eq!(world.nic.stats().restores, 0);
    world.assert_complete();
}

#[test]
fn time_wait_is_the_nics_and_a_new_incarnation_the_hosts() {
    let mut world = connected(Config::default(), &[(0, 0)]);
    world.hand_off(0);
    world.host.write(world.now, 0, 0);
    world.settle();
    world.peer_write(0, 0);
    let fin = world.to_server.back().expect("the peer's FIN").clone();
    world.settle();
    world.assert_complete();
    let before = world.nic.stats().clone();
    // As if its ACK had been lost, the FIN comes again.
    world.to_server.push_back(fin);
    world.frame_in();
    while world.work() {}
    world.to_clients.clear();
    let after = world.nic.stats().clone();
    assert_eq!(after.nic_packets_received, before.nic_packets_received + 1);
    assert_eq!(after.nic_packets_sent, before.nic_packets_sent + 1);
    assert_eq!(after.host_packets_received, before.host_packets_received);
    world.wait(Span::from_secs(1));
    world.connect_again(0);
    world.settle();
    assert!(world.peers[0].connected && on_host(&world, 0));
}

/// A connection ends while the host has no buffers for what it received. Much later a packet of it turns up.
#[test]
fn late_packets_of_a_connection_that_is_over_end_on_the_nic() {
    let mut world = connected(Config::default(), &[(0, 1000)]);
    world.hand_off(0);
    world.peer_write(0, 1000);
    let late = world
        .to_server
        .back()
        .expect("a packet of the peer")
        .clone();
    world.host.write(world.now, 0, 0);
    world.settle();
    for _ in 0..10 {
        world.wait(Span::from_secs(100));
        world.settle();
    }
    assert!(world.peers[0].closed.is_some() && world.nic.connections() == 1);
    world.to_server.push_back(late);
    world.settle();
    assert_eq!((world.host.forwarded, world.nic.stats().forwarded), (1, 1));
    assert_eq!(world.nic.tcp_stats().resets_sent, 1);
    world.finish();
    world.assert_complete();
}

#[test]
fn commands_for_nobody_are_counted() {
    let mut world = connected(Config::default(), &[(10, 10)]);
    world.hand_off(0);
    let taken = handle(&world, 0);
    for command in [
        Command::Release { handle: taken },
        Command::Release {
            handle: Handle(500),
        },
        Command::Restore {
            handle: Handle(500),
        },
        Command::Received {
            handle: Handle(u32::MAX),
            len: 1,
        },
    ] {
        world.host.to_nic.push_back(ToNic::Command(command));
    }
    world.settle();
    let ignored = &world.nic.stats().ignored;
    assert_eq!(
        (ignored.not_ended, ignored.no_connection, ignored.total()),
        (1, 3, 4)
    );
    world.finish();
    world.assert_complete();
}

#[test]
fn data_after_shutdown_is_ignored() {
    let mut world = connected(Config::default(), &[(0, 10)]);
    world.hand_off(0);
    let taken = handle(&world, 0);
    world.host.write(world.now, 0, 0);
    let data = baton_wire::Symbolic {
        source: 1,
        offset: 0,
        len: 1,
    };
    world.host.to_nic.push_back(ToNic::Command(Command::Send {
        handle: taken,
        data,
        cached: None,
    }));
    world.settle();
    assert_eq!(world.nic.stats().ignored.closed_for_writing, 1);
    world.finish();
    world.assert_complete();
}

#[test]
fn an_aborted_connection_resets() {
    let mut world = connected(Config::default(), &[(10, 10)]);
    world.hand_off(0);
    let control = Command::Control {
        handle: handle(&world, 0),
        control: Control::Abort,
    };
    world.host.to_nic.push_back(ToNic::Command(control));
    world.settle();
    assert_eq!(world.peers[0].closed, Some(CloseReason::Reset));
    assert_eq!(world.host.sockets[0].closed, Some(CloseReason::Aborted));
    assert_eq!(
        world.nic.memory_free(),
        u64::from(world.nic.config().memory_kib) * 1024
    );
}

#[test]
fn a_reset_by_the_peer_is_told() {
    let mut world = connected(Config::default(), &[(10, 10)]);
    world.hand_off(0);
    world
        .peer_stack
        .abort(world.peers[0].conn.expect("connected"));
    world.wait(Span::ZERO);
    world.settle();
    assert_eq!(world.host.sockets[0].closed, Some(CloseReason::Reset));
    assert_eq!(
        (world.nic.connections(), world.nic.stats().released),
        (0, 1)
    );
}

#[test]
fn acknowledged_by_amount_or_when_all_is() {
    let mut world = connected(
        Config {
            acknowledge_bytes: 10_000,
            ..Config::default()
        },
        &[(64_000, 0)],
    );
    world.hand_off(0);
    world.host.write(world.now, 0, 64_000);
    world.settle();
    // The ACK of the FIN, and with it of the last data, may be a delayed one.
    world.finish_waiting();
    assert_eq!(world.host.sockets[0].acknowledged, 64_000);
    let (last, others) = world
        .host
        .acknowledgments
        .split_last()
        .expect("acknowledged");
    assert!(
        others.iter().all(|len| (10_000..14_000).contains(len)),
        "{others:?}"
    );
    assert!(*last < 14_000);
}

/// Fills the NIC's receive queue with packets of its connections.
fn overload(world: &mut World) {
    for n in 0..world.peers.len() {
        let len = 1000 * (n as u64 + 1);
        world.peer_write(n, len);
    }
    while world.frame_in() {}
}

fn controlled(relief: Relief) -> Config {
    Config {
        hard_limit: 10,
        load_control: LoadControl {
            enabled: true,
            high_water_packets: 8,
            low_water_packets: 2,
            decrease_percent: 30,
            increase_percent: 10,
            relief,
        },
        ..Config::default()
    }
}

#[test]
fn overload_lowers_the_soft_limit() {
    let mut world = connected(controlled(Relief::Passive), &[(10, 20_000); 10]);
    for n in 0..9 {
        world.hand_off(n);
    }
    overload(&mut world);
    while world.nic.queue_lengths().arrivals > 0 {
        assert!(world.work());
    }
    assert_eq!(
        (world.nic.load_state(), world.nic.soft_limit()),
        (LoadState::Decrease, 7)
    );
    world.settle();
    assert_eq!(
        (
            world.host.soft_limits.as_slice(),
            world.nic.stats().soft_limit_lowered
        ),
        ([7].as_slice(), 1)
    );
    world.hand_off(9);
    assert_eq!(world.host.refusals, [Refusal::SoftLimit]);
    assert!(world.host.relief.is_empty());
    // Connections end, Cnum drops below Soft_Limit, and the light load lets Soft_Limit rise again.
    world.finish();
    world.assert_complete();
    assert!(world.nic.stats().soft_limit_raised > 0);
    assert_ne!(world.nic.load_state(), LoadState::Decrease);
}

#[test]
fn active_relief_asks_for_the_busiest() {
    let mut world = connected(controlled(Relief::Active), &[(10, 20_000); 10]);
    for n in 0..10 {
        world.hand_off(n);
    }
    // Some history: the higher the number, the busier.
    for n in 0..10 {
        world.peer_write(n, 1400 * n as u64);
        world.settle();
    }
    world.finish_waiting();
    for n in 0..10 {
        world.peer_write(n, 1400);
    }
    while world.frame_in() {}
    world.settle();
    assert_eq!(world.nic.soft_limit(), 7);
    // Ten less four is below seven.
    let mut asked = world.host.relief.clone();
    asked.sort_unstable();
    assert_eq!(asked, [6, 7, 8, 9]);
    for n in std::mem::take(&mut world.host.relief) {
        world.host.restore(n);
    }
    world.settle();
    assert_eq!(world.nic.connections(), 6);
    assert_ne!(world.nic.load_state(), LoadState::Decrease);
    world.finish();
    world.assert_complete();
}

/// Host packets wait for one piece of NIC work at most, however much a packet set off.
#[test]
fn host_packets_pass_between_segments() {
    let mut world = connected(Config::default(), &[(50_000, 0), (0, 0)]);
    world.hand_off(0);
    world.host.write(world.now, 0, 50_000);
    while world.descriptor() {}
    world.work.clear();
    while world.work.last() != Some(&Work::Transmit) {
        assert!(world.work());
    }
    assert!(world.nic.has_work());
    world.host.to_nic.push_back(crate::common::host_packet(1));
    world.work.clear();
    assert!(world.descriptor() && world.work() && world.work());
    assert_eq!(world.work, [Work::HostSend, Work::Transmit]);
}
