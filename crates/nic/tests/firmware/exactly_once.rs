//! Random runs: connections are handed off, taken back and handed off again at any moment while both sides write, packets
//! cross on the bus and full queues drop some. Every byte arrives once and in order, and every invariant holds throughout.

use crate::common::World;
use baton_nic::{Config, LoadControl, Relief, Scheduler};
use baton_wire::Span;
use proptest::prelude::*;

/// One thing that may happen next. Numbers choose the connection and the amount.
#[derive(Clone, Copy, Debug)]
enum Step {
    FrameIn,
    FrameOut,
    Lose,
    Swap,
    Descriptor,
    Work,
    Upcall,
    Settle,
    HostWrite(usize, u16),
    PeerWrite(usize, u16),
    Post(usize, u16),
    Consume(usize, u16),
    HandOff(usize),
    Restore(usize),
    Wait(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let n = 0..8_usize;
    prop_oneof![
        12 => Just(Step::FrameIn),
        12 => Just(Step::FrameOut),
        1 => Just(Step::Lose),
        1 => Just(Step::Swap),
        12 => Just(Step::Descriptor),
        16 => Just(Step::Work),
        12 => Just(Step::Upcall),
        1 => Just(Step::Settle),
        4 => (n.clone(), 1..8000_u16).prop_map(|(n, len)| Step::HostWrite(n, len)),
        4 => (n.clone(), 1..8000_u16).prop_map(|(n, len)| Step::PeerWrite(n, len)),
        3 => (n.clone(), 1..8000_u16).prop_map(|(n, len)| Step::Post(n, len)),
        3 => (n.clone(), 1..8000_u16).prop_map(|(n, len)| Step::Consume(n, len)),
        4 => n.clone().prop_map(Step::HandOff),
        3 => n.prop_map(Step::Restore),
        2 => (0..255_u8).prop_map(Step::Wait),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let scheduler = prop_oneof![Just(Scheduler::Fcfs), Just(Scheduler::HostFirst)];
    let relief = prop_oneof![Just(Relief::Passive), Just(Relief::Active)];
    (
        scheduler,
        relief,
        any::<bool>(),
        1..6_u32,
        2..12_u32,
        1..5000_u32,
        16..64_u32,
    )
        .prop_map(
            |(scheduler, relief, enabled, connections, packets, acknowledge_bytes, memory_kib)| {
                Config {
                    hard_limit: connections,
                    scheduler,
                    load_control: LoadControl {
                        enabled,
                        high_water_packets: packets / 2,
                        low_water_packets: packets / 4,
                        relief,
                        ..LoadControl::default()
                    },
                    memory_kib,
                    receive_queue_packets: packets,
                    arrival_queue_packets: packets,
                    descriptor_queue_entries: packets,
                    acknowledge_bytes,
                    ..Config::default()
                }
            },
        )
}

fn tcp() -> baton_tcp::Config {
    baton_tcp::Config {
        send_buffer: 20_000,
        receive_buffer: 20_000,
        ..baton_tcp::Config::default()
    }
}

fn take(world: &mut World, step: Step) {
    let connections = world.peers.len();
    match step {
        Step::FrameIn => _ = world.frame_in(),
        Step::FrameOut => _ = world.frame_out(),
        Step::Lose => _ = world.to_server.pop_front(),
        Step::Swap => {
            if world.to_clients.len() > 1 {
                world.to_clients.swap(0, 1);
            }
        }
        Step::Descriptor => _ = world.descriptor(),
        Step::Work => _ = world.work(),
        Step::Upcall => _ = world.upcall(),
        Step::Settle => world.settle(),
        Step::HostWrite(n, len) => world.host.write(world.now, n % connections, u64::from(len)),
        Step::PeerWrite(n, len) => world.peer_write(n % connections, u64::from(len)),
        Step::Post(n, len) => world.host.post_receive(n % connections, u32::from(len)),
        Step::Consume(n, len) => world.host.consume(n % connections, u32::from(len)),
        Step::HandOff(n) => world.host.hand_off(world.now, n % connections),
        Step::Restore(n) => world.host.restore(n % connections),
        Step::Wait(ms) => world.wait(Span::from_ms(u64::from(ms))),
    }
    while let Some(n) = world.host.relief.pop() {
        world.host.restore(n);
    }
}

proptest! {
    #[test]
    fn every_byte_arrives_once_and_in_order(
        config in config(),
        to_write in prop::collection::vec((0..30_000_u64, 0..30_000_u64), 1..6),
        steps in prop::collection::vec(step(), 0..1500),
    ) {
        let mut world = World::new(config, tcp(), &to_write);
        for step in steps {
            take(&mut world, step);
            world.check();
        }
        world.finish();
        world.assert_complete();
    }
}
