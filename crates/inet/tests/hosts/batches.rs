//! Checks that hosts behave the same whether they send and receive frames in batches, with runs of segments split and merged, or one by one,
//! whatever happens to the frames in transit.

use crate::common::{V4, V6, interface};
use baton_inet::{Arrived, Host, LookedUp, Stats, Unclaimed};
use baton_tcp::{Config, ConnId, EcnMode, Event};
use baton_wire::{Endpoint, Flow, Span, Time};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::net::IpAddr;

const CONNECTIONS: usize = 2;

/// An event on one side, or a change to the frames that it has sent.
#[derive(Clone, Debug)]
enum Step {
    Write {
        conn: usize,
        len: usize,
    },
    Deliver {
        most: usize,
    },
    Swap,
    Lose,
    Repeat,
    /// Changes a byte of a frame, and may truncate or pad the frame.
    Change {
        frame: usize,
        at: usize,
        by: u8,
        len: Option<u8>,
    },
    Wait {
        us: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let write = (0..CONNECTIONS, 1..40_000usize).prop_map(|(conn, len)| Step::Write { conn, len });
    // Mostly a byte of a header.
    let change = (0..8usize, 0..100usize, 1..=255u8, any::<Option<u8>>())
        .prop_map(|(frame, at, by, len)| Step::Change { frame, at, by, len });
    prop_oneof![
        8 => write,
        30 => (1..50usize).prop_map(|most| Step::Deliver { most }),
        1 => Just(Step::Swap),
        1 => Just(Step::Lose),
        1 => Just(Step::Repeat),
        2 => change,
        4 => (1..400u64).prop_map(|us| Step::Wait { us }),
        1 => (1..400_000u64).prop_map(|us| Step::Wait { us }),
    ]
}

struct World {
    batches: bool,
    now: Time,
    hosts: [Host; 2],
    conns: [Vec<ConnId>; 2],
    /// Frames of each side that have not arrived yet.
    on_way: [VecDeque<Bytes>; 2],
    /// All frames that each side has sent.
    sent: [Vec<Bytes>; 2],
    received: [Vec<Vec<u8>>; 2],
    unclaimed: [Vec<Unclaimed>; 2],
    written: u8,
}

impl World {
    /// Creates two hosts with established connections.
    fn new(networks: [&str; 2], config: &Config, batches: bool) -> Self {
        let host = |side: usize| {
            let interface = interface(side, networks[side]);
            Host::new(interface, config.clone(), side as u64).expect("the parameters are valid")
        };
        let mut world = Self {
            batches,
            now: Time::ZERO,
            hosts: [host(0), host(1)],
            conns: [Vec::new(), Vec::new()],
            on_way: [VecDeque::new(), VecDeque::new()],
            sent: [Vec::new(), Vec::new()],
            received: [0, 1].map(|_| vec![Vec::new(); CONNECTIONS]),
            unclaimed: [Vec::new(), Vec::new()],
            written: 0,
        };
        let address = |host: &Host| -> IpAddr { host.interface().config().addresses[0].addr() };
        let [local, remote] = [0, 1].map(|side: usize| address(&world.hosts[side]));
        let remote = Endpoint::new(remote, 80);
        world.hosts[1].stack_mut().listen(remote, CONNECTIONS);
        for number in 0..CONNECTIONS {
            let local = Endpoint::new(local, 5000 + number as u16);
            let flow = Flow { local, remote };
            let conn = world.hosts[0].stack_mut().connect(world.now, flow);
            world.conns[0].push(conn.expect("a free four-tuple"));
            for side in [0, 1, 0, 1, 0, 1] {
                world.settle();
                world.take(side, &Step::Deliver { most: 9 });
            }
        }
        world.settle();
        assert_eq!(world.conns[1].len(), CONNECTIONS);
        world
    }

    fn take(&mut self, side: usize, step: &Step) {
        let on_way = &mut self.on_way[side];
        match *step {
            Step::Write { conn, len } => {
                self.written = self.written.wrapping_add(1);
                let data = Bytes::from(vec![self.written; len]);
                let id = self.conns[side][conn];
                let taken = self.hosts[side].stack_mut().write(id, data);
                taken.expect("it is open");
            }
            Step::Deliver { most } => {
                let frames: Vec<_> = on_way.drain(..on_way.len().min(most)).collect();
                let host = &mut self.hosts[1 - side];
                if self.batches {
                    host.handle_frames(self.now, frames);
                } else {
                    for frame in frames {
                        // A look-up changes nothing, and agrees with what happens to the frame afterwards.
                        let looked_up = host.look_up(self.now, &frame);
                        match host.handle_frame(self.now, frame) {
                            Arrived::Unclaimed => assert_ne!(looked_up, LookedUp::Own),
                            Arrived::Segment(_) => assert_ne!(looked_up, LookedUp::Other),
                            _ => {}
                        }
                    }
                }
            }
            Step::Swap if on_way.len() > 1 => on_way.swap(0, 1),
            Step::Lose => drop(on_way.pop_front()),
            Step::Repeat => on_way.extend(on_way.front().cloned()),
            Step::Change { frame, at, by, len } if !on_way.is_empty() => {
                let frame = frame % on_way.len();
                let mut bytes = on_way[frame].to_vec();
                let at = at % bytes.len();
                bytes[at] ^= by;
                if let Some(len) = len {
                    bytes.resize(len.into(), 0);
                }
                on_way[frame] = bytes.into();
            }
            Step::Swap | Step::Change { .. } => {}
            Step::Wait { us } => {
                self.now += Span::from_us(us);
                for host in &mut self.hosts {
                    host.handle_timeouts(self.now);
                }
            }
        }
    }

    /// Lets each side process its events, read, and send its frames.
    fn settle(&mut self) {
        for side in [0, 1] {
            let host = &mut self.hosts[side];
            while let Some((id, event)) = host.stack_mut().poll_event() {
                let stack = host.stack_mut();
                match event {
                    Event::Acceptable(listener) => self.conns[side].extend(stack.accept(listener)),
                    Event::Readable => {
                        let number = self.conns[side].iter().position(|&conn| conn == id);
                        let received = &mut self.received[side][number.expect("it is known")];
                        while let Some(piece) = stack.read(id, usize::MAX) {
                            stack.consume(id, piece.len());
                            received.extend_from_slice(&piece);
                        }
                    }
                    _ => {}
                }
            }
            let host = &mut self.hosts[side];
            self.unclaimed[side].extend(std::iter::from_fn(|| host.poll_unclaimed()));
            self.transmit(side);
            self.hosts[side].check();
        }
    }

    fn transmit(&mut self, side: usize) {
        let (host, mut sent) = (&mut self.hosts[side], Vec::new());
        let mut frame = Vec::new();
        if self.batches {
            let cut = |frame: &mut Vec<u8>| sent.push(std::mem::take(frame).into());
            host.poll_frames(self.now, usize::MAX, &mut frame, cut);
        } else {
            while host.poll_frame(self.now, &mut frame) {
                sent.push(Bytes::from(std::mem::take(&mut frame)));
            }
        }
        self.sent[side].extend_from_slice(&sent);
        self.on_way[side].extend(sent);
    }
}

/// Everything that can be observed from outside.
type Trace = (
    [Vec<Bytes>; 2],
    [Vec<Vec<u8>>; 2],
    [Vec<Unclaimed>; 2],
    [Stats; 2],
);

fn play(
    networks: [&str; 2],
    config: &Config,
    steps: &[(bool, Step)],
    passes: bool,
    batches: bool,
) -> Trace {
    let mut world = World::new(networks, config, batches);
    for host in &mut world.hosts {
        host.pass_unclaimed(passes);
    }
    for (side, step) in steps {
        world.take((*side).into(), step);
        world.settle();
    }
    let stats = [0, 1].map(|side: usize| world.hosts[side].interface().stats().clone());
    (world.sent, world.received, world.unclaimed, stats)
}

fn config() -> impl Strategy<Value = Config> {
    (any::<[bool; 3]>(), 1..4u32).prop_map(|([timestamps, sack, ecn], ack_every_segments)| Config {
        timestamps,
        sack,
        ecn: if ecn { EcnMode::Request } else { EcnMode::Off },
        ack_every_segments,
        ..Config::default()
    })
}

proptest! {
    #[test]
    fn batches_do_not_change_the_behaviour(
        v6 in any::<bool>(),
        config in config(),
        passes in any::<bool>(),
        steps in proptest::collection::vec((any::<bool>(), step()), 1..120),
    ) {
        let networks = if v6 { V6 } else { V4 };
        let one_by_one = play(networks, &config, &steps, passes, false);
        let batches = play(networks, &config, &steps, passes, true);
        prop_assert_eq!(one_by_one, batches);
    }
}

/// What an acknowledgment covers is decided when it is sent. One acknowledgment covers all segments of a batch, as with Linux's receive
/// offload. If segments arrive in pairs, each pair is acknowledged (RFC 9293 3.8.6.3, RFC 5681 4.2).
#[test]
fn every_second_segment_is_acknowledged_unless_more_arrive_together() {
    let config = Config {
        quick_acks: 0,
        ..Config::default()
    };
    for (most, acks) in [(1, 5), (2, 5), (10, 1)] {
        let mut world = World::new(V4, &config, true);
        let before = world.sent[1].len();
        let len = 10 * 1448;
        world.take(0, &Step::Write { conn: 0, len });
        world.settle();
        assert_eq!(world.on_way[0].len(), 10);
        while !world.on_way[0].is_empty() {
            world.take(0, &Step::Deliver { most });
            world.settle();
        }
        assert_eq!(world.received[1][0].len(), len);
        assert_eq!(world.sent[1].len() - before, acks, "{most} at a time");
    }
}
