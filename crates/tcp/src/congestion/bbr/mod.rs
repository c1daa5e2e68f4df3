//! BBR, version 3 (draft-ietf-ccwg-bbr-06): what is sent follows a model of the path, made of the rate at which data leaves the
//! network, the least round-trip time, and the loss at each volume in flight.
//!
//! Section numbers are the draft's, and so are names where Rust's conventions allow. "Infinity" in the draft is the largest
//! number here. Rates are in bytes a second, volumes in bytes, gains in hundredths.
//!
//! Choices that the draft leaves open: ECN marks, of which it only says that they signal congestion (3.7), count as a loss once in
//! a window of data; and the random lengths of waits come from the connection's seed.

mod aggregation;
mod bandwidth;
mod full_pipe;
mod loss;
mod min_rtt;
mod output;
mod probe_bw;
mod probe_rtt;
mod rounds;

use super::controller::{Ack, Acked, Controller, Loss, Lost, Needs, RateSample, Start, Window};
use crate::clock::Moment;
use aggregation::Aggregation;
use bandwidth::Bandwidth;
use full_pipe::FullPipe;
use loss::{Congestion, Undo};
use min_rtt::MinRtt;
use output::Output;
use probe_bw::Cycle;
use probe_rtt::ProbeRtt;
use rounds::Rounds;
use serde::{Deserialize, Serialize};

/// "Infinity" of volumes.
const UNLIMITED: u32 = u32::MAX;
/// BBR.StartupPacingGain, BBR.DrainPacingGain, BBR.DefaultCwndGain (2.5, 2.6).
const STARTUP_PACING_GAIN: u32 = 277;
const DRAIN_PACING_GAIN: u32 = 50;
const DEFAULT_CWND_GAIN: u32 = 200;
/// Rounds after which Drain ends, however much is in flight (5.3.2).
const LONGEST_DRAIN: u64 = 3;

/// BBR.state (5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// IsInAProbeBWState.
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// State of BBR for one connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bbr {
    state: State,
    /// BBR.pacing_gain and BBR.cwnd_gain.
    pacing_gain: u32,
    cwnd_gain: u32,
    smss: u32,
    /// C.has_selective_acks.
    sack: bool,
    /// BBR.idle_restart.
    idle_restart: bool,
    /// BBR.drain_start_round.
    drain_start: u64,
    /// A loss is being repaired.
    recovering: bool,
    rounds: Rounds,
    bandwidth: Bandwidth,
    min_rtt: MinRtt,
    aggregation: Aggregation,
    full_pipe: FullPipe,
    congestion: Congestion,
    undo: Undo,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    output: Output,
    /// State of the random number generator for the waits.
    random: u64,
}

impl Bbr {
    /// Creates a controller in Startup. `seed` is its only source of randomness.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            state: State::Startup,
            pacing_gain: STARTUP_PACING_GAIN,
            cwnd_gain: DEFAULT_CWND_GAIN,
            smss: 1,
            sack: false,
            idle_restart: false,
            drain_start: 0,
            recovering: false,
            rounds: Rounds::default(),
            bandwidth: Bandwidth::default(),
            min_rtt: MinRtt::default(),
            aggregation: Aggregation::default(),
            full_pipe: FullPipe::default(),
            congestion: Congestion::default(),
            undo: Undo::default(),
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            output: Output::default(),
            random: seed,
        }
    }

    /// The next random number (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    // --- Startup and Drain (5.3.1, 5.3.2) ---

    /// EnterStartup.
    fn enter_startup(&mut self) {
        self.state = State::Startup;
        self.pacing_gain = STARTUP_PACING_GAIN;
        self.cwnd_gain = DEFAULT_CWND_GAIN;
    }

    /// CheckStartupDone.
    fn check_startup_done(&mut self, ack: &Ack, sample: &RateSample) {
        self.check_startup_high_loss(ack, sample);
        if self.state == State::Startup && self.full_pipe.reached {
            self.enter_drain();
        }
    }

    /// EnterDrain.
    fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.pacing_gain = DRAIN_PACING_GAIN;
        self.cwnd_gain = DEFAULT_CWND_GAIN;
        self.drain_start = self.rounds.count;
    }

    /// CheckDrainDone.
    fn check_drain_done(&mut self, ack: &Ack) {
        if self.state != State::Drain {
            return;
        }
        let drained = ack.in_flight <= self.inflight(self.bandwidth.bw, 100);
        if drained || self.rounds.count.saturating_sub(self.drain_start) > LONGEST_DRAIN {
            self.enter_probe_bw(ack.now);
        }
    }

    // --- each acknowledgment (5.2.3) ---

    /// UpdateModelAndState.
    fn update_model(&mut self, ack: &Ack, sample: &RateSample) {
        self.update_latest_delivery_signals(sample);
        self.update_congestion_signals(sample);
        self.update_aggregation(ack);
        self.full_pipe
            .check(self.rounds.start, sample.is_app_limited, sample.rate);
        self.check_startup_done(ack, sample);
        self.check_drain_done(ack);
        self.update_probe_bw_cycle(ack, sample);
        self.min_rtt.update(ack.now, ack.rtt);
        self.check_probe_rtt(ack, sample);
        self.advance_latest_delivery_signals(sample);
        self.bandwidth.bound();
    }

    /// UpdateACKAggregation (5.5.9).
    fn update_aggregation(&mut self, ack: &Ack) {
        let (bw, cwnd) = (self.bandwidth.bw, self.output.cwnd);
        let (round, filled) = (self.rounds.count, self.full_pipe.reached);
        self.aggregation
            .update(ack.now, ack.delivered, bw, cwnd, round, filled);
    }
}

impl Controller for Bbr {
    fn needs(&self) -> Needs {
        Needs::ACKS | Needs::RATE_SAMPLES | Needs::PACING | Needs::WINDOW
    }

    /// OnInit (5.2.1).
    fn on_established(&mut self, start: &Start) {
        self.smss = start.smss;
        self.sack = start.sack;
        self.min_rtt.start(start.now, start.srtt);
        self.aggregation.restart(start.now);
        self.start_output(start.window, start.srtt);
        self.enter_startup();
    }

    /// UpdateOnACK (5.2.3). Ignores an ACK that delivers nothing new.
    fn on_ack(&mut self, ack: &Ack) {
        if ack.delivered == 0 {
            return;
        }
        self.smss = ack.smss;
        match &ack.sample {
            Some(sample) => {
                self.rounds.delivered(sample.total_delivered);
                self.update_model(ack, sample);
                self.set_pacing_rate();
                self.set_send_quantum();
                self.set_cwnd(ack.delivered, sample.total_delivered);
            }
            // No record of the segment's transmission.
            None => self.set_cwnd(ack.delivered, u64::MAX),
        }
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.handle_lost_packet(lost);
    }

    /// Never called, since BBR sets the window itself.
    fn on_growth(&mut self, _window: Window, _acked: &Acked) -> u32 {
        0
    }

    /// OnEnterFastRecovery (5.6.4.4). There is no ssthresh.
    fn on_loss(&mut self, _window: Window, _loss: &Loss) -> u32 {
        self.begin_recovery();
        UNLIMITED
    }

    /// OnEnterRTO (5.6.4.4).
    fn on_timeout(&mut self, _window: Window, loss: &Loss) -> u32 {
        self.begin_recovery();
        self.output.cwnd = loss.flight.saturating_add(loss.smss);
        UNLIMITED
    }

    fn on_ecn_echo(&mut self, _window: Window, loss: &Loss) -> u32 {
        self.handle_mark(loss.now, loss.flight);
        UNLIMITED
    }

    fn on_recovered(&mut self) {
        self.recovering = false;
        self.restore_cwnd();
    }

    fn on_spurious(&mut self) {
        self.recovering = false;
        self.handle_spurious_loss();
    }

    /// HandleRestartFromIdle (5.4.1).
    fn on_restart(&mut self, now: Moment) {
        self.idle_restart = true;
        self.aggregation.restart_interval(now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate_with_gain(100);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }

    fn window(&self) -> u32 {
        self.output.cwnd
    }

    fn pacing_rate(&self) -> u64 {
        self.output.pacing_rate
    }

    fn send_quantum(&self) -> u32 {
        self.output.send_quantum
    }

    /// MarkConnectionAppLimited (5.3.4.3): in ProbeRTT, BBR itself limits the rate.
    fn holds_back(&self) -> bool {
        self.state == State::ProbeRtt
    }
}

#[cfg(test)]
mod tests;
