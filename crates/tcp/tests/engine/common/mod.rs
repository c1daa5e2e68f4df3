//! Two ends joined by a network that loses, duplicates, delays and reorders, with applications that write, read, pause
//! and close at random. Each end may move its connection between two stacks, which must not be visible.

#![allow(dead_code, reason = "each test uses its part of this")]

mod fast_open;

use baton_tcp::{
    CloseReason, Config, ConnId, Essentials, Event, ListenerId, Portable, Segment, Stack, State,
};
use baton_testkit::{End, Network, Pair, Random, endpoint, patient_config, symbolic};
use baton_wire::impairment::{Impairment, Share};
use baton_wire::{Endpoint, Flags, Flow, SeqNr, Span, Symbolic, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;

/// Maximum number of segments in a run. Every run that makes progress needs fewer.
const MOST_SEGMENTS: usize = 100_000;

/// Maximum number of moves by essentials in a run. Each restarts the retransmission timer; too many would keep it from ever expiring.
const MOST_ESSENTIAL_MOVES: u32 = 20;

/// When connections are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    Never,
    /// At every event, out of a stack and back into it.
    InPlace,
    /// At every event, to the other stack of the same end.
    Across,
    /// At some events, before or after their effects were polled.
    Sometimes,
    /// At a few events, after their effects were polled, by the essentials that another system's TCP can export and import.
    ByEssentials,
    /// Now and then, connections settle: they send nothing new until everything is acknowledged. Once at rest, they move, completely or by
    /// essentials, or continue. Some continue before they are at rest.
    AtRest,
}

/// Parameters of a run, all drawn from the seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub moves: Moves,
    pub impairment: Impairment,
    pub delay: Span,
    pub configs: [Config; 2],
    pub totals: [u64; 2],
    /// Whether both ends open actively at about the same time.
    pub simultaneous: bool,
    /// Whether reads follow events immediately, or happen at random.
    pub eager: [bool; 2],
    pub pause: Span,
    /// How the client opens by Fast Open, if it does.
    pub fast_open: Option<fast_open::Opening>,
}

impl Scenario {
    pub fn random(seed: u64, moves: Moves) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let clean = rng.random_bool(0.25);
        let configs = [seed << 1, seed << 1 | 1].map(|seed| patient_config(&mut Random::new(seed)));
        let mut total = || {
            if rng.random_bool(0.2) {
                0
            } else {
                rng.random_range(1..60_000)
            }
        };
        let totals = [total(), total()];
        let impairment = match clean {
            true => Impairment::default(),
            false => Impairment {
                loss: Share::from_probability(rng.random_range(0.0..0.2)),
                duplicate: Share::from_probability(rng.random_range(0.0..0.1)),
                jitter: Span::from_us(rng.random_range(0..30_000)),
                ..Impairment::default()
            },
        };
        Self {
            seed,
            moves,
            impairment,
            delay: Span::from_us(rng.random_range(1..20_000)),
            configs,
            totals,
            simultaneous: rng.random_bool(0.1),
            eager: [rng.random_bool(0.6), rng.random_bool(0.6)],
            pause: Span::from_us(rng.random_range(2_000..100_000)),
            fast_open: None,
        }
    }
}

/// Segments that each end sent, and how connections ended for the applications.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    pub segments: [Vec<(Time, Segment<Symbolic>)>; 2],
    pub ends: [Option<CloseReason>; 2],
}

/// One end: two stacks, one of which holds the connection, and the application.
struct Side {
    number: usize,
    scenario: Scenario,
    stacks: [Stack<Symbolic>; 2],
    holder: usize,
    listener: Option<ListenerId>,
    conn: Option<ConnId>,
    flow: Flow,
    app: Application,
    /// When the application acts next.
    acts_at: Time,
    ended: Option<CloseReason>,
    /// Segments to send.
    outbox: VecDeque<Segment<Symbolic>>,
    sent: Vec<(Time, Segment<Symbolic>)>,
    /// One more than the highest sequence number sent.
    highest: Option<SeqNr>,
    mover: Pcg64Mcg,
    essential_moves: u32,
    /// How often the settling connection came to rest.
    at_rest: u32,
    settles: bool,
}

struct Application {
    rng: Pcg64Mcg,
    eager: bool,
    total: u64,
    written: u64,
    expected: u64,
    read: u64,
    unconsumed: usize,
    shut_down: bool,
    peer_closed: bool,
}

fn end(side: usize) -> Endpoint {
    endpoint(1 + side as u8, [5000, 80][side])
}

impl Side {
    fn new(scenario: &Scenario, side: usize, now: Time) -> Self {
        let config = scenario.configs[side].clone();
        // A connection that moves must keep its own parameters, even if its new stack has others.
        let other = Config {
            nagle: !config.nagle,
            rto_min_ms: 77,
            delayed_ack_ms: 7,
            mss: 700,
            ..Config::default()
        };
        let secret = scenario.seed ^ (side as u64) << 60;
        let mut stacks = [Stack::new(config, secret), Stack::new(other, !secret)];
        let passive = side == 1 && !scenario.simultaneous;
        let listener = passive.then(|| stacks[0].listen(end(1), 4));
        let app = Application {
            rng: Pcg64Mcg::seed_from_u64(secret.wrapping_add(1)),
            eager: scenario.eager[side],
            total: scenario.totals[side],
            written: 0,
            expected: scenario.totals[1 - side],
            read: 0,
            unconsumed: 0,
            shut_down: false,
            peer_closed: false,
        };
        let flow = Flow {
            local: end(side),
            remote: end(1 - side),
        };
        Self {
            number: side,
            scenario: scenario.clone(),
            stacks,
            holder: 0,
            listener,
            conn: None,
            flow,
            app,
            acts_at: now + Span::from_us(1),
            ended: None,
            outbox: VecDeque::new(),
            sent: Vec::new(),
            highest: None,
            mover: Pcg64Mcg::seed_from_u64(secret ^ 0x6d6f_7665),
            essential_moves: 0,
            at_rest: 0,
            settles: false,
        }
    }

    fn stack(&mut self) -> &mut Stack<Symbolic> {
        &mut self.stacks[self.holder]
    }

    /// Polls events until there are none; an eager application reads.
    fn drain_events(&mut self) {
        while let Some((id, event)) = self.stacks[self.holder].poll_event() {
            if self.ended.is_some() {
                self.leave_late_duplicate(event);
                continue;
            }
            match event {
                Event::Connected => self.conn = Some(id),
                Event::Acceptable(listener) => self.conn = self.stack().accept(listener),
                Event::Readable if self.app.eager => self.read(usize::MAX),
                Event::Readable | Event::Urgent | Event::Acknowledged(_) | Event::TransmitTimes => {
                }
                Event::PeerClosed => self.app.peer_closed = true,
                Event::Closed(reason) => {
                    assert_eq!(self.conn, Some(id));
                    self.conn = None;
                    self.ended = Some(reason);
                }
            }
        }
        let idle = 1 - self.holder;
        assert_eq!(
            self.stacks[idle].poll_event(),
            None,
            "only the stack that holds the connection reports events"
        );
    }

    fn read(&mut self, max: usize) {
        let Some(id) = self.conn else { return };
        let mut left = max;
        while let Some(piece) = self.stacks[self.holder].read(id, left) {
            assert_eq!(
                piece.source,
                1 - self.number as u64,
                "the other end wrote it"
            );
            assert_eq!(
                piece.offset, self.app.read,
                "bytes arrive in order, none lost or duplicated"
            );
            self.app.read += u64::from(piece.len);
            self.app.unconsumed += piece.len as usize;
            left -= piece.len as usize;
        }
        if self.app.eager {
            let len = std::mem::take(&mut self.app.unconsumed);
            self.stack().consume(id, len);
        }
    }

    /// Lets the application act at random.
    fn act(&mut self) {
        let Some(id) = self.conn else { return };
        let choice = self.app.rng.random_range(0..10);
        let amount = match self.app.rng.random_range(0..3) {
            0 => self.app.rng.random_range(1..100),
            1 => self.app.rng.random_range(1..3_000),
            _ => self.app.rng.random_range(1..30_000),
        };
        match choice {
            0..=4 => self.write(id, amount),
            5..=6 => self.read(amount as usize),
            7 => {
                let len = self.app.unconsumed.min(amount as usize);
                self.app.unconsumed -= len;
                self.stack().consume(id, len);
            }
            8 => self.stack().set_cork(id, amount % 2 == 0),
            _ => self.stack().set_nodelay(id, amount % 2 == 0),
        }
        let app = &self.app;
        if app.written == app.total && !app.shut_down {
            self.app.shut_down = true;
            self.stack().shutdown(id);
        }
    }

    fn write(&mut self, id: ConnId, amount: u64) {
        let len = amount.min(self.app.total - self.app.written) as u32;
        let data = symbolic(self.number as u64, self.app.written, len);
        if len > 0 {
            let taken = self.stack().write(id, data).expect("the direction is open");
            self.app.written += taken as u64;
        }
    }

    /// Exports the connection and imports it again, here or in the other stack.
    fn relocate(&mut self, now: Time, across: bool) {
        let Some(id) = self
            .conn
            .or_else(|| self.stacks[self.holder].find(&self.flow))
        else {
            return;
        };
        if self.stacks[self.holder].state(id) == State::TimeWait {
            return;
        }
        let known = self.conn.is_some();
        let waited = self.waits_for_accept();
        let mut portable = self.stacks[self.holder].export(now, id);
        if across {
            self.holder = 1 - self.holder;
            // The state moves as bytes, as if the other stack were in another program.
            let bytes = portable.to_bytes();
            portable = Portable::from_bytes(&bytes).expect("an exported state can be decoded");
        }
        let id = self.stacks[self.holder]
            .import(now, portable)
            .expect("the four-tuple is free and the state valid");
        let half_open = self.stacks[self.holder].state(id) == State::SynReceived;
        let gone_from_listener = waited || !half_open;
        if known || (across && gone_from_listener) {
            self.conn = Some(id);
        }
    }

    /// Exports and imports the connection as if through another system's TCP, if possible.
    fn pass_on_essentials(&mut self, now: Time) {
        let Some(id) = self.conn else {
            return;
        };
        if self.stacks[self.holder].state(id) == State::TimeWait {
            return;
        }
        let whole = self.stacks[self.holder].export(now, id);
        let essentials = whole.essentials().ok().filter(|_| !whole.unaccepted);
        let state = match essentials {
            Some(essentials) => {
                let state = essentials
                    .clone()
                    .into_portable(&self.scenario.configs[self.number]);
                let again = state.essentials().expect("it is the same state");
                let expected = Essentials {
                    timestamp: essentials.timestamp.map(|value| value.wrapping_add(1)),
                    // The controller may choose these values.
                    congestion_window: again.congestion_window,
                    slow_start_threshold: again.slow_start_threshold,
                    ..essentials
                };
                assert_eq!(again, expected);
                state
            }
            None => whole,
        };
        let id = self.stacks[self.holder].import(now, state);
        self.conn = Some(id.expect("the four-tuple is free and the state valid"));
    }

    fn timer(&self) -> Option<Time> {
        self.stacks.iter().filter_map(Stack::poll_timeout).min()
    }

    /// Polls all output, and moves the connection.
    fn after_event(&mut self, now: Time) {
        for _ in 0..2 {
            self.maybe_move(now);
            self.settle(now);
        }
        match self.scenario.moves {
            Moves::AtRest => self.settle_or_move(now),
            Moves::ByEssentials
                if self.essential_moves < MOST_ESSENTIAL_MOVES && self.mover.random_bool(0.05) =>
            {
                self.essential_moves += 1;
                self.pass_on_essentials(now);
            }
            _ => return,
        }
        self.settle(now);
    }

    fn settle_or_move(&mut self, now: Time) {
        let may_give_up = self.scenario.seed.is_multiple_of(2);
        let Some(id) = self.conn else { return };
        let stack = &mut self.stacks[self.holder];
        if matches!(stack.state(id), State::SynSent | State::SynReceived) {
            return;
        }
        if !self.settles {
            if self.mover.random_bool(0.05) {
                self.settles = true;
                stack.set_settling(id, true);
            }
        } else if stack.is_at_rest(id) {
            self.at_rest += 1;
            self.settles = false;
            match self.mover.random_range(0..4) {
                0 => stack.set_settling(id, false),
                1 => self.relocate(now, false),
                2 => self.relocate(now, true),
                _ => self.pass_on_essentials(now),
            }
        } else if may_give_up && self.mover.random_bool(0.02) {
            self.settles = false;
            stack.set_settling(id, false);
        }
    }

    /// Checks that a settling connection sends nothing that it has not sent before.
    fn note_sent(&mut self, segment: &Segment<Symbolic>) {
        let len: u32 = segment.payload.iter().map(|piece| piece.len).sum();
        let flags = segment.header.flags;
        let opens_or_ends = flags.intersects(Flags::SYN | Flags::FIN);
        if flags.contains(Flags::RST) || len == 0 && !opens_or_ends {
            return;
        }
        let to = segment.header.seq + len + u32::from(opens_or_ends);
        let highest = *self.highest.get_or_insert(to);
        assert!(
            !self.settles || to.at_or_before(highest),
            "{segment:?} is new, although the connection settles"
        );
        self.highest = Some(highest.latest(to));
    }

    fn maybe_move(&mut self, now: Time) {
        let across = match self.scenario.moves {
            Moves::Never | Moves::ByEssentials | Moves::AtRest => return,
            Moves::InPlace => false,
            Moves::Across => true,
            Moves::Sometimes if self.mover.random_bool(0.2) => self.mover.random_bool(0.5),
            Moves::Sometimes => return,
        };
        self.relocate(now, across);
    }

    /// Polls all output.
    fn settle(&mut self, now: Time) {
        self.stacks.iter().for_each(Stack::check);
        self.drain_events();
        for index in 0..2 {
            while let Some((_, segment)) = self.stacks[index].poll_transmit(now) {
                self.note_sent(&segment);
                self.sent.push((now, segment.clone()));
                self.outbox.push_back(segment);
            }
        }
        self.stacks.iter().for_each(Stack::check);
    }

    fn open(&mut self, now: Time) {
        self.conn = match self.scenario.fast_open {
            Some(opening) => self.connect_fast(now, opening),
            None => self.stacks[0].connect(now, self.flow),
        };
        assert!(self.conn.is_some(), "a free four-tuple");
        self.settle(now);
    }

    fn progress(&self) -> String {
        let state = self.conn.map(|id| self.stacks[self.holder].state(id));
        let Application {
            written,
            total,
            read,
            ..
        } = self.app;
        let last = &self.sent[self.sent.len().saturating_sub(6)..];
        format!("{state:?}: wrote {written} of {total}, read {read}, sent {last:#?}")
    }
}

impl End for Side {
    type Frame = Segment<Symbolic>;

    fn receive(&mut self, now: Time, segment: Segment<Symbolic>) {
        self.stack().handle_segment(now, segment);
        self.after_event(now);
    }

    fn step(&mut self, now: Time) {
        if self.timer().is_some_and(|due| due <= now) {
            for stack in &mut self.stacks {
                stack.handle_timeouts(now);
            }
            self.after_event(now);
        }
        if self.acts_at <= now {
            self.act();
            let pause = self.app.rng.random_range(0..=self.scenario.pause.as_ps());
            self.acts_at = now + Span::from_ps(pause);
            self.after_event(now);
        }
    }

    fn transmit(&mut self, _now: Time) -> Option<Segment<Symbolic>> {
        self.outbox.pop_front()
    }

    fn next(&mut self, _now: Time) -> Option<Time> {
        self.timer().into_iter().chain([self.acts_at]).min()
    }
}

/// Runs a scenario until both ends are done. Returns what was sent on the wire, and how often settling connections came to rest.
///
/// # Panics
/// If that takes too long, or a byte does not arrive.
pub fn run_settling(scenario: &Scenario) -> (Trace, u32) {
    let now = Time::ZERO + Span::from_secs(scenario.seed % 1000);
    let mut ends = [0, 1].map(|number| Side::new(scenario, number, now));
    if let Some(opening) = scenario.fast_open {
        fast_open::prepare(now, &mut ends, opening);
    }
    let openers = if scenario.simultaneous { 2 } else { 1 };
    ends[..openers].iter_mut().for_each(|end| end.open(now));
    let Scenario {
        impairment, delay, ..
    } = *scenario;
    let seed = scenario.seed << 1;
    let ways = [0, 1].map(|side| Network::new(impairment, delay, seed | side));
    let mut pair = Pair { now, ends, ways };
    let limit = now + Span::from_secs(50_000);
    while pair.ends.iter().any(|end| end.ended.is_none()) {
        let sent: usize = pair.ends.iter().map(|end| end.sent.len()).sum();
        let progress = || pair.ends.each_ref().map(Side::progress).join("\n");
        let in_time = pair.now < limit && sent < MOST_SEGMENTS;
        assert!(in_time, "both ends must close in time: {}", progress());
        pair.step();
    }
    for end in &pair.ends {
        assert_eq!(end.ended, Some(CloseReason::Normal));
        assert_eq!(end.app.read, end.app.expected, "every byte was read");
        assert!(end.app.peer_closed, "the end of the stream was reported");
    }
    let rests = pair.ends.iter().map(|end| end.at_rest).sum();
    let trace = Trace {
        ends: pair.ends.each_ref().map(|end| end.ended),
        segments: pair.ends.map(|end| end.sent),
    };
    (trace, rests)
}

/// Runs a scenario to its end, and returns what was sent on the wire.
pub fn run(scenario: &Scenario) -> Trace {
    run_settling(scenario).0
}
