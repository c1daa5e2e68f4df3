//! The state machine, driven by hand: a path of a known rate and round-trip time, round by round.

use super::probe_bw::AckPhase;
use super::*;
use baton_wire::{SeqNr, Span};

const SMSS: u32 = 1000;
/// Bytes a second, and the path's least round-trip time: a hundred segments fill it.
const RATE: u64 = 2_000_000;
const RTT: Span = Span::from_ms(50);
const BDP: u32 = 100_000;

/// A path that carries no more than [`RATE`] and queues the excess.
struct Path {
    bbr: Bbr,
    now: Moment,
    delivered: u64,
    prior: u64,
    round_trip: Span,
}

impl Path {
    fn new(seed: u64) -> Self {
        let mut bbr = Bbr::new(seed);
        let now = Moment::ZERO + Span::from_secs(1);
        bbr.on_established(&Start {
            now,
            window: 10 * SMSS,
            smss: SMSS,
            srtt: RTT,
            sack: true,
        });
        Self {
            bbr,
            now,
            delivered: 0,
            prior: 0,
            round_trip: RTT,
        }
    }

    /// Rate sample of this acknowledgment.
    fn sample(&self, rate: u64, tx_in_flight: u32, lost: u64) -> RateSample {
        RateSample {
            delivered: self.delivered - self.prior,
            interval: self.round_trip,
            rate,
            prior_delivered: self.prior,
            total_delivered: self.delivered,
            tx_in_flight,
            lost,
            is_app_limited: false,
        }
    }

    fn ack(&mut self, bytes: u32, in_flight: u32, sample: RateSample) {
        self.bbr.on_ack(&Ack {
            now: self.now,
            smss: SMSS,
            acked: bytes,
            delivered: bytes,
            flight: in_flight,
            in_flight,
            rtt: Some(self.round_trip),
            echoes_congestion: false,
            recovering: self.bbr.recovering,
            used_window: false,
            sample: Some(sample),
        });
    }

    /// Plays a round trip with ten acknowledgments. The delivery rate is the sending rate, up to the path's rate.
    fn round(&mut self) {
        self.round_with(0);
    }

    fn round_with(&mut self, lost: u64) {
        let volume = u64::from(self.bbr.window().min(2 * BDP));
        let sent = self.bbr.pacing_rate().min(volume * 20);
        let rate = sent.min(RATE);
        let round = self.delivered;
        for _ in 0..10 {
            let bytes = (rate / 200) as u32;
            self.now = self.now + RTT / 10;
            self.prior = round;
            self.delivered += u64::from(bytes);
            let in_flight = (sent / 20) as u32;
            let sample = self.sample(rate, in_flight, lost);
            self.ack(bytes, in_flight.min(self.bbr.window()), sample);
        }
    }

    fn rounds_until(&mut self, state: State) -> usize {
        for count in 0..400 {
            if self.bbr.state == state {
                return count;
            }
            self.round();
        }
        panic!("{:?} does not become {state:?}", self.bbr.state)
    }

    fn lose(&mut self, seq: u32, tx_in_flight: u32, lost: u64) {
        let sample = self.sample(0, tx_in_flight, lost);
        self.bbr.on_lost(&Lost {
            now: self.now,
            seq: SeqNr(seq),
            bytes: SMSS,
            smss: SMSS,
            total_delivered: self.delivered,
            sample: Some(sample),
        });
    }
}

#[test]
fn startup_fills_the_path_and_drain_empties_the_queue() {
    let mut path = Path::new(1);
    assert_eq!(path.bbr.state, State::Startup);
    assert_eq!(path.bbr.pacing_rate(), 10_000 * 20 * 277 / 100);
    let rounds = path.rounds_until(State::Drain);
    assert!((5..12).contains(&rounds), "{rounds}");
    assert_eq!(path.bbr.bandwidth.max(), RATE);
    assert_eq!(path.bbr.pacing_rate(), RATE / 2 * 99 / 100);
    path.rounds_until(State::Down);
    assert_eq!(path.bbr.pacing_gain, 90);
    assert!(path.bbr.window() <= 3 * BDP);
}

#[test]
fn the_cycle_goes_down_cruises_refills_and_goes_up() {
    let mut path = Path::new(1);
    path.rounds_until(State::Down);
    for (state, pacing_gain, cwnd_gain) in [
        (State::Cruise, 100, 200),
        (State::Refill, 100, 200),
        (State::Up, 125, 225),
        (State::Down, 90, 200),
    ] {
        path.rounds_until(state);
        assert_eq!(
            (path.bbr.pacing_gain, path.bbr.cwnd_gain),
            (pacing_gain, cwnd_gain)
        );
    }
}

/// 5.3.3.8.3: two to three seconds, or 62 to 63 rounds, whichever is sooner.
#[test]
fn the_wait_for_a_probe_is_random_and_comes_from_the_seed() {
    let wait = |seed| {
        let mut path = Path::new(seed);
        path.rounds_until(State::Down);
        path.bbr.cycle
    };
    assert_eq!(wait(7), wait(7), "the same seed, the same waits");
    let waits: Vec<_> = (0..20).map(wait).collect();
    assert!(waits.iter().any(|other| *other != waits[0]));
    let mut path = Path::new(3);
    path.rounds_until(State::Cruise);
    let start = path.now;
    path.rounds_until(State::Refill);
    let waited = path.now.since(start);
    let bounds = Span::from_ms(1900)..Span::from_ms(3100);
    assert!(bounds.contains(&waited), "{waited:?}");
}

#[test]
fn too_much_loss_ends_a_probe_and_bounds_what_is_in_flight() {
    let mut path = Path::new(1);
    path.rounds_until(State::Up);
    assert_eq!(path.bbr.congestion.inflight_longterm, UNLIMITED);
    path.lose(0, 120_000, 1000);
    assert_eq!(path.bbr.state, State::Up, "less than two hundredths");
    path.lose(1000, 120_000, 6000);
    assert_eq!(path.bbr.state, State::Down);
    let bound = path.bbr.congestion.inflight_longterm;
    assert!((110_000..=120_000).contains(&bound), "{bound}");
    path.rounds_until(State::Cruise);
    path.round();
    let bound = path.bbr.congestion.inflight_longterm;
    assert_eq!(path.bbr.window(), bound * 85 / 100, "with headroom");
    // 5.3.3.6: the next probe goes only as far as that bound.
    path.rounds_until(State::Up);
    assert!(path.bbr.cycle.prev_probe_too_high);
}

#[test]
fn a_probe_after_one_that_went_too_far_is_cut_short() {
    let mut path = Path::new(1);
    path.rounds_until(State::Up);
    path.lose(0, 120_000, 6000);
    path.rounds_until(State::Up);
    let bound = path.bbr.congestion.inflight_longterm;
    path.now = path.now + RTT / 10;
    let sample = path.sample(RATE, bound, 0);
    path.ack(SMSS, bound, sample);
    assert_eq!(path.bbr.state, State::Down);
    // The precautionary probe was safe: BBR goes up again without cruising.
    path.round();
    path.round();
    assert!(
        matches!(path.bbr.state, State::Refill | State::Up),
        "{:?}",
        path.bbr.state
    );
}

#[test]
fn loss_while_cruising_lowers_the_short_term_until_the_next_probe() {
    let mut path = Path::new(1);
    path.rounds_until(State::Cruise);
    path.round();
    path.lose(0, 100_000, 1000);
    path.round();
    path.round();
    let congestion = path.bbr.congestion;
    assert!(congestion.inflight_shortterm < UNLIMITED);
    assert!(path.bbr.bandwidth.bw <= path.bbr.bandwidth.max());
    assert_eq!(congestion.inflight_longterm, UNLIMITED, "it was no probe");
    path.rounds_until(State::Refill);
    assert_eq!(path.bbr.congestion.inflight_shortterm, UNLIMITED);
}

#[test]
fn startup_ends_after_six_lost_runs_in_a_round_and_resumes_if_undone() {
    let mut path = Path::new(1);
    for _ in 0..3 {
        path.round();
    }
    assert_eq!(path.bbr.state, State::Startup);
    let window = Window {
        bytes: path.bbr.window(),
        threshold: UNLIMITED,
    };
    let loss = Loss {
        now: path.now,
        flight: 50_000,
        smss: SMSS,
    };
    for run in 0..6 {
        path.lose(run * 3000, 50_000, 6000);
    }
    path.bbr.on_loss(window, &loss);
    path.round_with(6000);
    path.round_with(6000);
    assert_ne!(path.bbr.state, State::Startup);
    assert!(path.bbr.full_pipe.reached);
    assert!(path.bbr.congestion.inflight_longterm < UNLIMITED);
    path.bbr.on_spurious();
    assert_eq!(path.bbr.state, State::Startup);
    assert_eq!(path.bbr.congestion.inflight_longterm, UNLIMITED);
}

#[test]
fn five_seconds_without_a_lower_round_trip_are_enough_to_probe_for_one() {
    let mut path = Path::new(1);
    path.rounds_until(State::Cruise);
    let before = path.bbr.window();
    path.round_trip = RTT + Span::from_ms(5);
    path.rounds_until(State::ProbeRtt);
    assert!(path.bbr.holds_back());
    path.round();
    assert_eq!(path.bbr.window(), BDP / 2);
    path.round_trip = RTT;
    let start = path.now;
    path.rounds_until(State::Cruise);
    let lasted = path.now.since(start);
    assert!(
        (Span::from_ms(100)..Span::from_ms(500)).contains(&lasted),
        "{lasted:?}"
    );
    path.round();
    assert!(path.bbr.window() > before / 2, "the window is put back");
}

#[test]
fn after_an_idle_time_it_continues_at_the_known_rate() {
    let mut path = Path::new(1);
    path.rounds_until(State::Down);
    path.now = path.now + Span::from_secs(60);
    path.bbr.on_restart(path.now);
    assert_eq!(path.bbr.pacing_rate(), RATE * 99 / 100);
    path.round();
    assert_ne!(
        path.bbr.state,
        State::ProbeRtt,
        "the idle time drained the path"
    );
}

#[test]
fn a_timeout_leaves_one_segment_beyond_what_is_in_flight_until_it_is_over() {
    let mut path = Path::new(1);
    path.rounds_until(State::Cruise);
    let before = path.bbr.window();
    let window = Window {
        bytes: before,
        threshold: UNLIMITED,
    };
    let loss = Loss {
        now: path.now,
        flight: 3000,
        smss: SMSS,
    };
    path.bbr.on_timeout(window, &loss);
    assert_eq!(path.bbr.window(), 4000);
    path.bbr.on_recovered();
    assert_eq!(path.bbr.window(), before);
}

/// 3.7: marks are congestion.
#[test]
fn a_mark_ends_a_probe() {
    let mut path = Path::new(1);
    path.rounds_until(State::Up);
    path.bbr.on_ecn_echo(
        Window {
            bytes: 1,
            threshold: 1,
        },
        &Loss {
            now: path.now,
            flight: 90_000,
            smss: SMSS,
        },
    );
    assert_eq!(path.bbr.state, State::Down);
    assert_eq!(path.bbr.congestion.inflight_longterm, 90_000);
    assert_eq!(path.bbr.cycle.ack_phase, AckPhase::ProbeStopping);
}
