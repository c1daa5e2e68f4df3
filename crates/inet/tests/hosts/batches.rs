//! Checks that hosts behave the same whether they send and receive frames in batches, with runs of segments split and merged, or one by one,
//! whatever happens to the frames in transit.

use crate::common::{Link, V4, V6, interface};
use baton_inet::{Passing, Stats, Unclaimed};
use baton_tcp::{Config, ConnId, LinuxRules, WriteFlags};
use baton_testkit::{Random, patient_config};
use baton_wire::Span;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;

const CONNECTIONS: usize = 2;

/// An event on one side, or a change to the frames that it has sent.
#[derive(Clone, Debug)]
enum Step {
    Write {
        conn: usize,
        len: usize,
        more: bool,
    },
    Deliver {
        most: usize,
    },
    Swap,
    Lose,
    Repeat,
    /// Sets "congestion experienced" in the first frame.
    Mark,
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
    let write = (0..CONNECTIONS, 1..60_000usize, any::<bool>());
    let write = write.prop_map(|(conn, len, more)| Step::Write { conn, len, more });
    // Usually a byte of a header.
    let change = (0..8usize, 0..100usize, 1..=255u8, any::<Option<u8>>())
        .prop_map(|(frame, at, by, len)| Step::Change { frame, at, by, len });
    prop_oneof![
        8 => write,
        30 => (1..50usize).prop_map(|most| Step::Deliver { most }),
        1 => Just(Step::Swap),
        1 => Just(Step::Lose),
        1 => Just(Step::Repeat),
        1 => Just(Step::Mark),
        2 => change,
        4 => (1..400u64).prop_map(|us| Step::Wait { us }),
        1 => (1..400_000u64).prop_map(|us| Step::Wait { us }),
    ]
}

/// Creates two hosts with established connections.
fn connected(networks: [&str; 2], config: &Config, batches: bool) -> Link {
    let interfaces = [0, 1].map(|side| interface(side, networks[side]));
    let mut link = Link::new(interfaces, config.clone());
    (link.batches, link.delay) = (batches, Span::ZERO);
    for number in 0..CONNECTIONS {
        link.connect();
        assert!(link.run(0, |link| link.conns[1].len() > number));
    }
    link.pass(0);
    link
}

fn take(link: &mut Link, side: usize, step: &Step) {
    let in_flight = &mut link.in_flight[side];
    match *step {
        Step::Write { conn, len, more } => {
            let data = Bytes::from(vec![len as u8; len]);
            let flags = WriteFlags {
                more,
                urgent: len % 11 == 3,
                ..WriteFlags::default()
            };
            let stack = link.hosts[side].stack_mut();
            let taken = stack.write_with(link.conns[side][conn], data, flags);
            taken.expect("it is open");
        }
        Step::Deliver { most } => link.deliver(side, most),
        Step::Swap if in_flight.len() > 1 => in_flight.swap(0, 1),
        Step::Lose => drop(in_flight.pop_front()),
        Step::Repeat => in_flight.extend(in_flight.front().cloned()),
        Step::Mark => {
            if let Some((_, frame)) = in_flight.front_mut() {
                *frame = marked(frame);
            }
        }
        Step::Change { frame, at, by, len } if !in_flight.is_empty() => {
            let frame = frame % in_flight.len();
            let (_, frame) = &mut in_flight[frame];
            let mut bytes = frame.to_vec();
            // An earlier change may have removed everything.
            if !bytes.is_empty() {
                let at = at % bytes.len();
                bytes[at] ^= by;
            }
            if let Some(len) = len {
                bytes.resize(len.into(), 0);
            }
            *frame = bytes.into();
        }
        Step::Swap | Step::Change { .. } => {}
        Step::Wait { us } => {
            link.now += Span::from_us(us);
            link.handle_timeouts();
        }
    }
    for side in [0, 1] {
        link.settle(side);
    }
}

/// Returns the frame with "congestion experienced", if it is of a transport that supports it.
fn marked(frame: &Bytes) -> Bytes {
    let mut bytes = frame.to_vec();
    match bytes[12..16] {
        [0x08, 0x00, _, class] if class & 3 != 0 => {
            bytes[15] |= 3;
            // The checksum is a sum in ones' complement: what one field gains, the other loses (RFC 1624).
            let sum = u16::from_be_bytes([bytes[24], bytes[25]]);
            let gained = u16::from(bytes[15] - class);
            let (sum, borrows) = sum.overflowing_sub(gained);
            bytes[24..26].copy_from_slice(&(sum - u16::from(borrows)).to_be_bytes());
        }
        [0x86, 0xdd, _, class] if class & 0x30 != 0 => bytes[15] |= 0x30,
        _ => {}
    }
    bytes.into()
}

/// Everything that can be observed from outside, and the states of the connections.
type Trace = (
    [Vec<Bytes>; 2],
    [BTreeMap<ConnId, Vec<u8>>; 2],
    [Vec<Unclaimed>; 2],
    [Stats; 2],
    Vec<Vec<u8>>,
);

fn play(
    networks: [&str; 2],
    config: &Config,
    steps: &[(bool, Step)],
    passes: bool,
    batches: bool,
) -> Trace {
    let mut link = connected(networks, config, batches);
    for host in &mut link.hosts {
        host.pass_unclaimed(match passes {
            true => Passing::Unclaimed,
            false => Passing::Nothing,
        });
    }
    for (side, step) in steps {
        take(&mut link, (*side).into(), step);
    }
    let stats = [0, 1].map(|side: usize| link.hosts[side].interface().stats().clone());
    let mut states = Vec::new();
    for side in [0, 1] {
        for &conn in &link.conns[side] {
            let state = link.hosts[side].stack_mut().export(link.now, conn);
            states.push(state.to_bytes());
        }
    }
    (link.sent, link.received, link.unclaimed, stats, states)
}

fn config() -> impl Strategy<Value = Config> {
    (any::<u64>(), any::<bool>()).prop_map(|(seed, large)| {
        let config = patient_config(&mut Random::new(seed));
        let config = Config {
            // Bursts with PSH would make runs differ from single segments.
            linux: LinuxRules {
                push_bursts: false,
                ..config.linux
            },
            ..config
        };
        // With large buffers and windows, writes end within runs.
        match large {
            true => Config {
                send_buffer: 1 << 20,
                receive_buffer: 1 << 20,
                initial_window_segments: 200,
                ..config
            },
            false => config,
        }
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
        let mut link = connected(V4, &config, true);
        let before = link.sent[1].len();
        let len = 10 * 1448;
        take(
            &mut link,
            0,
            &Step::Write {
                conn: 0,
                len,
                more: false,
            },
        );
        assert_eq!(link.in_flight[0].len(), 10);
        while !link.in_flight[0].is_empty() {
            take(&mut link, 0, &Step::Deliver { most });
        }
        assert_eq!(link.received(1).len(), len);
        assert_eq!(link.sent[1].len() - before, acks, "{most} at a time");
    }
}
