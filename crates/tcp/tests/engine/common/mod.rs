//! Two ends joined by a network that loses, duplicates, delays and reorders, with applications that write, read, pause
//! and close at random. Each end may move its connection between two stacks, which must not be visible.

#![allow(dead_code, reason = "each test uses its part of this")]

mod fast_open;
mod rules;

use baton_tcp::{
    CloseReason, Config, Congestion, ConnId, EcnMode, Essentials, Event, ListenerId, Portable,
    Segment, Stack, State,
};
use baton_testkit::{Network, endpoint, symbolic};
use baton_wire::impairment::{Impairment, Share};
use baton_wire::{Endpoint, Flags, Flow, SeqNr, Span, Symbolic, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Maximum number of segments in a run. Every run that makes progress needs fewer.
const MOST_SEGMENTS: usize = 100_000;

/// Maximum number of moves by essentials in a run. Each restarts the retransmission timer; too many would keep it from ever expiring.
const MOST_ESSENTIAL_MOVES: u32 = 20;

/// The built-in controllers.
const CONTROLLERS: [Congestion; 4] = [
    Congestion::NewReno,
    Congestion::Cubic,
    Congestion::Dctcp,
    Congestion::Bbr,
];

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
    /// Whether reads follow events at once, or happen at random.
    pub eager: [bool; 2],
    pub pause: Span,
    /// How the client opens by Fast Open, if it does.
    pub fast_open: Option<fast_open::Opening>,
}

impl Scenario {
    pub fn random(seed: u64, moves: Moves) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let clean = rng.random_bool(0.25);
        let mut config = || Config {
            mss: [536, 1000, 1460, 8960][rng.random_range(0..4)],
            send_buffer: rng.random_range(500..80_000),
            receive_buffer: rng.random_range(500..80_000),
            window_scaling: rng.random_bool(0.7),
            timestamps: rng.random_bool(0.6),
            sack: rng.random_bool(0.6),
            initial_window_segments: rng.random_range(1..11),
            nagle: rng.random_bool(0.5),
            rto_min_ms: [10, 200][rng.random_range(0..2)],
            rto_initial_ms: [300, 1000, 3000][rng.random_range(0..3)],
            rto_max_ms: 4_000,
            delayed_ack_ms: [0, 40, 100, 200][rng.random_range(0..4)],
            ack_every_segments: rng.random_range(1..4),
            data_retries: 200,
            syn_retries: 100,
            congestion: CONTROLLERS[rng.random_range(0..CONTROLLERS.len())],
            hystart: rng.random_bool(0.5),
            slow_start_after_idle: rng.random_bool(0.5),
            limited_transmit: rng.random_bool(0.5),
            rack_tlp: rng.random_bool(0.7),
            rate_reduction: rng.random_bool(0.7),
            duplicate_sack: rng.random_bool(0.7),
            forward_rto: rng.random_bool(0.7),
            undo: rng.random_bool(0.7),
            ecn: [EcnMode::Off, EcnMode::Accept, EcnMode::Request][rng.random_range(0..3)],
            ..Config::default()
        };
        let configs = [config(), config()];
        let configs = configs.map(|config| rules::with_patient_rules(&mut rng, config));
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

/// Segments on the wire, and how connections ended for the applications.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    pub segments: Vec<(Time, usize, Segment<Symbolic>)>,
    pub ends: Vec<(usize, CloseReason)>,
}

/// One end: two stacks, one of which holds the connection, and the application.
struct Side {
    stacks: [Stack<Symbolic>; 2],
    holder: usize,
    listener: Option<ListenerId>,
    conn: Option<ConnId>,
    flow: Flow,
    app: Application,
    ended: Option<CloseReason>,
    /// One more than the highest sequence number sent.
    sent: Option<SeqNr>,
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

pub struct World {
    scenario: Scenario,
    now: Time,
    sides: [Side; 2],
    /// The network to each side.
    networks: [Network<Segment<Symbolic>>; 2],
    /// When the application of each side acts next.
    acts_at: [Time; 2],
    mover: Pcg64Mcg,
    essential_moves: u32,
    /// How often a settling connection came to rest.
    pub at_rest: u32,
    pub trace: Trace,
}

fn end(side: usize) -> Endpoint {
    endpoint(1 + side as u8, [5000, 80][side])
}

impl Side {
    fn new(scenario: &Scenario, side: usize) -> Self {
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
            stacks,
            holder: 0,
            listener,
            conn: None,
            flow,
            app,
            ended: None,
            sent: None,
            settles: false,
        }
    }

    fn stack(&mut self) -> &mut Stack<Symbolic> {
        &mut self.stacks[self.holder]
    }

    /// Polls events until there are none; an eager application reads.
    fn drain_events(&mut self, side: usize, ends: &mut Vec<(usize, CloseReason)>) {
        while let Some((id, event)) = self.stacks[self.holder].poll_event() {
            if self.ended.is_some() {
                self.leave_late_duplicate(event);
                continue;
            }
            match event {
                Event::Connected => self.conn = Some(id),
                Event::Acceptable(listener) => self.conn = self.stack().accept(listener),
                Event::Readable if self.app.eager => self.read(usize::MAX, side),
                Event::Readable | Event::Urgent | Event::Acknowledged(_) | Event::TransmitTimes => {
                }
                Event::PeerClosed => self.app.peer_closed = true,
                Event::Closed(reason) => {
                    assert_eq!(self.conn, Some(id));
                    self.conn = None;
                    self.ended = Some(reason);
                    ends.push((side, reason));
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

    fn read(&mut self, max: usize, side: usize) {
        let Some(id) = self.conn else { return };
        let mut left = max;
        while let Some(piece) = self.stacks[self.holder].read(id, left) {
            assert_eq!(piece.source, 1 - side as u64, "the other end wrote it");
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
    fn act(&mut self, side: usize) {
        let Some(id) = self.conn else { return };
        let choice = self.app.rng.random_range(0..10);
        let amount = match self.app.rng.random_range(0..3) {
            0 => self.app.rng.random_range(1..100),
            1 => self.app.rng.random_range(1..3_000),
            _ => self.app.rng.random_range(1..30_000),
        };
        match choice {
            0..=4 => self.write(id, amount, side),
            5..=6 => self.read(amount as usize, side),
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

    fn write(&mut self, id: ConnId, amount: u64, side: usize) {
        let len = amount.min(self.app.total - self.app.written) as u32;
        let data = symbolic(side as u64, self.app.written, len);
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
    fn pass_on_essentials(&mut self, now: Time, config: &Config) {
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
                let state = essentials.clone().into_portable(config);
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

    fn check(&self) {
        self.stacks.iter().for_each(Stack::check);
    }
}

impl World {
    pub fn new(scenario: Scenario) -> Self {
        let sides = [Side::new(&scenario, 0), Side::new(&scenario, 1)];
        let seed = scenario.seed;
        let network = |side| Network::new(scenario.impairment, scenario.delay, seed << 1 | side);
        let networks = [0, 1].map(network);
        let now = Time::ZERO + Span::from_secs(seed % 1000);
        let mut world = Self {
            scenario,
            now,
            sides,
            networks,
            acts_at: [now + Span::from_us(1); 2],
            mover: Pcg64Mcg::seed_from_u64(seed ^ 0x6d6f_7665),
            essential_moves: 0,
            at_rest: 0,
            trace: Trace::default(),
        };
        world.open();
        world
    }

    fn open(&mut self) {
        if let Some(opening) = self.scenario.fast_open {
            self.prepare_fast_open(opening);
        }
        let openers = if self.scenario.simultaneous {
            0..2
        } else {
            0..1
        };
        for side in openers {
            let end = &mut self.sides[side];
            end.conn = match self.scenario.fast_open {
                Some(opening) => end.connect_fast(self.now, opening),
                None => end.stacks[0].connect(self.now, end.flow),
            };
            assert!(end.conn.is_some(), "a free four-tuple");
        }
        for side in 0..2 {
            self.settle(side);
        }
    }

    /// Runs until both ends are done; panics if that takes too long.
    pub fn run(&mut self) {
        let limit = self.now + Span::from_secs(50_000);
        while self.sides.iter().any(|side| side.ended.is_none()) {
            let in_time = self.now < limit && self.trace.segments.len() < MOST_SEGMENTS;
            assert!(
                in_time,
                "both ends must close in time: {:#?} {:#?}",
                self.progress(),
                self.last_segments()
            );
            self.step();
        }
        for side in &self.sides {
            assert_eq!(side.ended, Some(CloseReason::Normal));
            assert_eq!(side.app.read, side.app.expected, "every byte was read");
            assert!(side.app.peer_closed, "the end of the stream was reported");
        }
    }

    fn last_segments(&self) -> &[(Time, usize, Segment<Symbolic>)] {
        &self.trace.segments[self.trace.segments.len().saturating_sub(6)..]
    }

    fn progress(&self) -> Vec<String> {
        let of = |side: &Side| {
            let state = side.conn.map(|id| side.stacks[side.holder].state(id));
            format!(
                "{state:?}: wrote {} of {}, read {}",
                side.app.written, side.app.total, side.app.read
            )
        };
        self.sides.iter().map(of).collect()
    }

    fn step(&mut self) {
        let timer = self.next_timer();
        let arrivals = self.networks.iter().filter_map(Network::next_arrival);
        let next = arrivals.chain(self.acts_at).chain([timer]).min();
        self.now = next.expect("applications act").max(self.now);
        if timer <= self.now {
            for side in 0..2 {
                for index in 0..2 {
                    self.sides[side].stacks[index].handle_timeouts(self.now);
                }
                self.after_event(side);
            }
            return;
        }
        for side in 0..2 {
            if let Some(segment) = self.networks[side].receive(self.now) {
                let now = self.now;
                self.sides[side].stack().handle_segment(now, segment);
            } else if self.acts_at[side] <= self.now {
                self.sides[side].act(side);
                let pause = self.scenario.pause.as_ps();
                let pause = self.sides[side].app.rng.random_range(0..=pause);
                self.acts_at[side] = self.now + Span::from_ps(pause);
            } else {
                continue;
            }
            return self.after_event(side);
        }
    }

    fn next_timer(&self) -> Time {
        let timers = self
            .sides
            .iter()
            .flat_map(|side| side.stacks.iter().filter_map(Stack::poll_timeout));
        timers.min().unwrap_or(Time::NEVER)
    }

    fn after_event(&mut self, side: usize) {
        self.maybe_move(side);
        self.settle(side);
        self.maybe_move(side);
        self.settle(side);
        if self.scenario.moves == Moves::AtRest {
            self.settle_or_move(side);
            self.settle(side);
        }
        let by_essentials = self.scenario.moves == Moves::ByEssentials;
        if by_essentials
            && self.essential_moves < MOST_ESSENTIAL_MOVES
            && self.mover.random_bool(0.05)
        {
            self.essential_moves += 1;
            let config = &self.scenario.configs[side];
            self.sides[side].pass_on_essentials(self.now, config);
            self.settle(side);
        }
    }

    fn settle_or_move(&mut self, side: usize) {
        let may_give_up = self.scenario.seed.is_multiple_of(2);
        let (mover, end) = (&mut self.mover, &mut self.sides[side]);
        let Some(id) = end.conn else { return };
        let stack = &mut end.stacks[end.holder];
        if matches!(stack.state(id), State::SynSent | State::SynReceived) {
            return;
        }
        if !end.settles {
            if mover.random_bool(0.05) {
                end.settles = true;
                stack.set_settling(id, true);
            }
        } else if stack.is_at_rest(id) {
            self.at_rest += 1;
            end.settles = false;
            match mover.random_range(0..4) {
                0 => stack.set_settling(id, false),
                1 => end.relocate(self.now, false),
                2 => end.relocate(self.now, true),
                _ => {
                    end.pass_on_essentials(self.now, &self.scenario.configs[side]);
                }
            }
        } else if may_give_up && mover.random_bool(0.02) {
            end.settles = false;
            stack.set_settling(id, false);
        }
    }

    /// Checks that a settling connection sends nothing that it has not sent before.
    fn note_sent(&mut self, side: usize, segment: &Segment<Symbolic>) {
        let end = &mut self.sides[side];
        let len: u32 = segment.payload.iter().map(|piece| piece.len).sum();
        let flags = segment.header.flags;
        let opens_or_ends = flags.intersects(Flags::SYN | Flags::FIN);
        if flags.contains(Flags::RST) || len == 0 && !opens_or_ends {
            return;
        }
        let to = segment.header.seq + len + u32::from(opens_or_ends);
        let sent = *end.sent.get_or_insert(to);
        assert!(
            !end.settles || to.at_or_before(sent),
            "{segment:?} is new, although the connection settles"
        );
        end.sent = Some(sent.latest(to));
    }

    fn maybe_move(&mut self, side: usize) {
        let across = match self.scenario.moves {
            Moves::Never | Moves::ByEssentials | Moves::AtRest => return,
            Moves::InPlace => false,
            Moves::Across => true,
            Moves::Sometimes if self.mover.random_bool(0.2) => self.mover.random_bool(0.5),
            Moves::Sometimes => return,
        };
        self.sides[side].relocate(self.now, across);
    }

    /// Polls all output of an end.
    fn settle(&mut self, side: usize) {
        self.sides[side].check();
        self.sides[side].drain_events(side, &mut self.trace.ends);
        for index in 0..2 {
            while let Some((_, segment)) = self.sides[side].stacks[index].poll_transmit(self.now) {
                self.send(side, segment);
            }
        }
        self.sides[side].check();
    }

    fn send(&mut self, side: usize, segment: Segment<Symbolic>) {
        self.note_sent(side, &segment);
        self.trace.segments.push((self.now, side, segment.clone()));
        self.networks[1 - side].send(self.now, segment);
    }
}

/// Runs a scenario to its end, and returns what was sent on the wire.
pub fn run(scenario: Scenario) -> Trace {
    let mut world = World::new(scenario);
    world.run();
    std::mem::take(&mut world.trace)
}
