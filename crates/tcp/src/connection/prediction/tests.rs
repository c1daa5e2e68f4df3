//! The predicted way and the general way send the same segments and end in the same state, whatever happens.

use crate::{Config, ConnId, EcnMode, Event, Portable, Segment, Stack, Symbolic, WriteFlags};
use baton_wire::{Ecn, Endpoint, Flow, Span, Time};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

thread_local! {
    static ALLOWED: Cell<bool> = const { Cell::new(true) };
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Whether the connections of this thread may predict.
pub(super) fn is_allowed() -> bool {
    ALLOWED.get()
}

/// A segment was taken in as predicted.
pub(super) fn count() {
    TAKEN.set(TAKEN.get() + 1);
}

/// Something happens at one side, or to what it sent.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write { len: u32, more: bool },
    Read,
    Deliver,
    DeliverLast,
    Mark,
    Lose,
    Repeat,
    Wait { us: u64 },
    Move,
}

fn step() -> impl Strategy<Value = Step> {
    let write = (1..20_000u32, any::<bool>()).prop_map(|(len, more)| Step::Write { len, more });
    prop_oneof![
        6 => write,
        6 => Just(Step::Read),
        20 => Just(Step::Deliver),
        1 => Just(Step::DeliverLast),
        1 => Just(Step::Mark),
        1 => Just(Step::Lose),
        1 => Just(Step::Repeat),
        4 => (1..400u64).prop_map(|us| Step::Wait { us }),
        1 => (1..400_000u64).prop_map(|us| Step::Wait { us }),
        1 => Just(Step::Move),
    ]
}

/// All that can be told from outside.
#[derive(Debug, Default, PartialEq)]
struct Trace {
    segments: Vec<Segment<Symbolic>>,
    states: Vec<Portable<Symbolic>>,
    events: Vec<(usize, Event)>,
}

struct World {
    now: Time,
    stacks: [Stack<Symbolic>; 2],
    conns: [Option<ConnId>; 2],
    /// What each side sent and has not arrived.
    sent: [VecDeque<Segment<Symbolic>>; 2],
    written: [u64; 2],
    trace: Trace,
}

impl World {
    /// Two ends with an established connection.
    fn new(config: &Config) -> Self {
        let [local, remote] =
            [1, 2].map(|last| Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), 80));
        let mut world = Self {
            now: Time::from_ps(1 << 50),
            stacks: [1, 2].map(|secret| Stack::new(config.clone(), secret)),
            conns: [None, None],
            sent: [VecDeque::new(), VecDeque::new()],
            written: [0, 0],
            trace: Trace::default(),
        };
        world.stacks[1].listen(remote, 1);
        world.conns[0] = world.stacks[0].connect(world.now, Flow { local, remote });
        for side in [0, 1, 0, 1] {
            world.settle();
            world.take(side, Step::Deliver);
        }
        world.settle();
        world
    }

    fn take(&mut self, side: usize, step: Step) {
        let now = self.now;
        match step {
            Step::Write { len, more } => self.write(side, len, more),
            Step::Read => self.read(side),
            Step::Deliver => {
                let first = self.sent[side].pop_front();
                self.arrive(side, first);
            }
            Step::DeliverLast => {
                let last = self.sent[side].pop_back();
                self.arrive(side, last);
            }
            Step::Mark => {
                let first = self.sent[side]
                    .front_mut()
                    .filter(|it| it.ecn != Ecn::NotCapable);
                if let Some(first) = first {
                    first.ecn = Ecn::Congested;
                }
            }
            Step::Lose => drop(self.sent[side].pop_front()),
            Step::Repeat => {
                let first = self.sent[side].front().cloned();
                self.arrive(side, first);
            }
            Step::Wait { us } => {
                self.now += Span::from_us(us);
                for stack in &mut self.stacks {
                    stack.handle_timeouts(self.now);
                }
            }
            Step::Move => {
                if let Some(id) = self.conns[side] {
                    let state = self.stacks[side].export(now, id);
                    self.trace.states.push(state.clone());
                    let moved = self.stacks[side].import(now, state);
                    self.conns[side] = Some(moved.expect("the state is sound"));
                }
            }
        }
    }

    fn write(&mut self, side: usize, len: u32, more: bool) {
        let Some(id) = self.conns[side] else { return };
        let data = Symbolic {
            source: side as u64,
            offset: self.written[side],
            len,
        };
        let flags = WriteFlags {
            more,
            end_of_record: false,
        };
        let taken = self.stacks[side].write_with(id, data, flags);
        self.written[side] += taken.unwrap_or(0) as u64;
    }

    fn read(&mut self, side: usize) {
        let Some(id) = self.conns[side] else { return };
        while let Some(piece) = self.stacks[side].read(id, usize::MAX) {
            self.stacks[side].consume(id, piece.len as usize);
        }
    }

    /// What `from` sent reaches the other side.
    fn arrive(&mut self, from: usize, segment: Option<Segment<Symbolic>>) {
        if let Some(segment) = segment {
            self.stacks[1 - from].handle_segment(self.now, segment);
        }
    }

    /// What is to be told is told, and what is to be sent is sent.
    fn settle(&mut self) {
        for side in [0, 1] {
            let stack = &mut self.stacks[side];
            while let Some((id, event)) = stack.poll_event() {
                match event {
                    Event::Acceptable(listener) => self.conns[side] = stack.accept(listener),
                    Event::Closed(_) if self.conns[side] == Some(id) => self.conns[side] = None,
                    _ => {}
                }
                self.trace.events.push((side, event));
            }
            while let Some((_, segment)) = stack.poll_transmit(self.now) {
                self.trace.segments.push(segment.clone());
                self.sent[side].push_back(segment);
            }
            stack.check();
        }
    }
}

/// Plays the steps; gives all that can be told from outside, and how many segments were taken in as predicted.
fn play(config: &Config, steps: &[(bool, Step)], predicts: bool) -> (Trace, u64) {
    ALLOWED.set(predicts);
    TAKEN.set(0);
    let mut world = World::new(config);
    for &(side, step) in steps {
        world.take(side.into(), step);
        world.settle();
    }
    for side in [0, 1] {
        world.take(side, Step::Move);
    }
    ALLOWED.set(true);
    (world.trace, TAKEN.get())
}

fn config() -> impl Strategy<Value = Config> {
    (any::<[bool; 8]>(), 1..6u32).prop_map(|(on, ack_every_segments)| {
        let [
            timestamps,
            sack,
            rack_tlp,
            ecn,
            nagle,
            eager_acks,
            hystart,
            linux,
        ] = on;
        let config = Config {
            receive_buffer: 64 << 10,
            send_buffer: 64 << 10,
            timestamps,
            sack,
            rack_tlp,
            ecn: if ecn { EcnMode::Request } else { EcnMode::Off },
            nagle,
            eager_acks,
            hystart,
            ack_every_segments,
            ..Config::default()
        };
        match linux {
            true => Config {
                window_counting: crate::WindowCounting::Linux,
                congestion: crate::Congestion::NewReno,
                ..config
            },
            false => config,
        }
    })
}

proptest! {
    #[test]
    fn prediction_changes_nothing(
        config in config(),
        steps in proptest::collection::vec((any::<bool>(), step()), 1..300),
    ) {
        let (predicted, _) = play(&config, &steps, true);
        let (general, taken) = play(&config, &steps, false);
        prop_assert_eq!(taken, 0);
        prop_assert_eq!(predicted, general);
    }
}

#[test]
fn segments_in_order_are_predicted() {
    let write = Step::Write {
        len: 14_000,
        more: false,
    };
    let mut steps = Vec::new();
    for _ in 0..50 {
        steps.push((false, write));
        for _ in 0..10 {
            steps.extend([
                (false, Step::Deliver),
                (true, Step::Read),
                (true, Step::Deliver),
            ]);
        }
        steps.push((false, Step::Wait { us: 100 }));
    }
    let (trace, taken) = play(&Config::default(), &steps, true);
    let sent = trace.segments.len() as u64;
    assert!(sent > 500, "{sent} segments were sent");
    // All but the handshake's.
    assert!(
        taken + 10 > sent,
        "{taken} of {sent} segments were predicted"
    );
}
