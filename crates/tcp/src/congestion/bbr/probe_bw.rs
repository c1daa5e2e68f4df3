//! ProbeBW (5.3.3): Down drains the queue, Cruise keeps the rate, Refill fills the pipe, Up probes for more bandwidth. The
//! pseudocode after which functions are named is in 5.3.3.9, the waits are in 5.3.3.8.3.

use super::{Ack, Bbr, RateSample, State, UNLIMITED};
use crate::clock::Moment;
use baton_wire::Span;
use serde::{Deserialize, Serialize};

/// Gains of the states (5.6.1).
const DOWN_PACING_GAIN: u32 = 90;
const UP_PACING_GAIN: u32 = 125;
const UP_CWND_GAIN: u32 = 225;
/// Fixed and random part of the wait for the next probe (5.3.3.8.3).
const LEAST_WAIT: Span = Span::from_secs(2);
const RANDOM_WAIT: Span = Span::from_secs(1);
/// Maximum number of rounds between probes (5.3.3.8.3), so that Reno and CUBIC get their share.
const MOST_ROUNDS: u32 = 63;
/// 1 - BBR.Headroom (2.8), in hundredths.
const BESIDE_HEADROOM: u64 = 85;
/// Maximum number of doublings of the growth of BBR.inflight_longterm.
const MOST_DOUBLINGS: u32 = 30;

/// BBR.ack_phase (2.14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Position in the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// BBR.is_bw_probe_sample.
    pub(super) is_probe_sample: bool,
    /// BBR.prev_probe_too_high and BBR.prev_probe_precautionary.
    pub(super) prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    /// BBR.cycle_stamp and BBR.bw_probe_wait.
    stamp: Moment,
    wait: Span,
    /// BBR.rounds_since_probe_up.
    rounds: u32,
    /// BBR.bw_probe_up_rounds, BBR.bw_probe_up_acked and BBR.probe_up_acked_per_inc.
    up_rounds: u32,
    up_acked: u32,
    acked_per_increase: u32,
}

impl Default for Cycle {
    fn default() -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            stamp: Moment::ZERO,
            wait: Span::ZERO,
            rounds: 0,
            up_rounds: 0,
            up_acked: 0,
            acked_per_increase: UNLIMITED,
        }
    }
}

impl Cycle {
    pub(super) fn round_passed(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
    }
}

impl Bbr {
    /// EnterProbeBW.
    pub(super) fn enter_probe_bw(&mut self, now: Moment) {
        self.start_down(now);
    }

    fn enter(&mut self, state: State, pacing_gain: u32, cwnd_gain: u32) {
        self.state = state;
        self.pacing_gain = pacing_gain;
        self.cwnd_gain = cwnd_gain;
    }

    /// StartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, now: Moment) {
        self.reset_congestion_signals();
        self.cycle.acked_per_increase = UNLIMITED;
        self.pick_probe_wait();
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.rounds.begin();
        self.enter(State::Down, DOWN_PACING_GAIN, super::DEFAULT_CWND_GAIN);
    }

    /// StartProbeBW_CRUISE.
    pub(super) fn start_cruise(&mut self) {
        self.enter(State::Cruise, 100, super::DEFAULT_CWND_GAIN);
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self) {
        self.reset_short_term_model();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.prev_probe_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.begin();
        self.enter(State::Refill, 100, super::DEFAULT_CWND_GAIN);
    }

    /// StartProbeBW_UP.
    fn start_up(&mut self, sample: &RateSample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.rounds.begin();
        self.full_pipe.reset(sample.rate);
        self.enter(State::Up, UP_PACING_GAIN, UP_CWND_GAIN);
        self.raise_inflight_longterm_slope();
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw_cycle(&mut self, ack: &Ack, sample: &RateSample) {
        if !self.full_pipe.reached || self.adapt_long_term_model(ack, sample) {
            return;
        }
        match self.state {
            State::Down => self.leave_down_if_time(ack),
            State::Cruise => {
                self.probes_if_time(ack.now);
            }
            State::Refill if self.rounds.start => {
                self.cycle.is_probe_sample = true;
                self.start_up(sample);
            }
            State::Up => self.leave_up_if_time(ack, sample),
            _ => {}
        }
    }

    fn leave_down_if_time(&mut self, ack: &Ack) {
        if !self.probes_if_time(ack.now) && self.is_time_to_cruise(ack.in_flight) {
            self.start_cruise();
        }
    }

    fn leave_up_if_time(&mut self, ack: &Ack, sample: &RateSample) {
        if self.is_time_to_go_down(ack, sample) {
            self.cycle.prev_probe_too_high = false;
            self.start_down(ack.now);
        }
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, in_flight: u32) -> bool {
        in_flight <= self.inflight_with_headroom()
            && in_flight <= self.inflight(self.bandwidth.max(), 100)
    }

    /// IsTimeToGoDown (5.3.3.7). A precautionary probe ends at the volume that was too high for the last probe (5.3.3.6).
    fn is_time_to_go_down(&mut self, ack: &Ack, sample: &RateSample) -> bool {
        let longterm = self.congestion.inflight_longterm;
        if self.cycle.prev_probe_too_high && ack.in_flight >= longterm {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if ack.used_window && self.output.cwnd >= longterm {
            // The bound on the volume in flight limits the rate, not the path.
            self.full_pipe.reset(sample.rate);
            return false;
        }
        self.full_pipe.now
    }

    /// IsTimeToProbeBW. If it is time, starts Refill and returns true.
    fn probes_if_time(&mut self, now: Moment) -> bool {
        let waited = now.since(self.cycle.stamp) > self.cycle.wait;
        let due = waited || self.is_reno_coexistence_probe_time();
        if due {
            self.start_refill();
        }
        due
    }

    /// PickProbeWait.
    fn pick_probe_wait(&mut self) {
        self.cycle.rounds = (self.random() & 1) as u32;
        self.cycle.wait = LEAST_WAIT + Span::from_ps(self.random() % RANDOM_WAIT.as_ps());
    }

    /// IsRenoCoexistenceProbeTime.
    fn is_reno_coexistence_probe_time(&self) -> bool {
        let reno_rounds = self.target_inflight() / self.smss.max(1);
        self.cycle.rounds >= reno_rounds.min(MOST_ROUNDS)
    }

    /// TargetInflight.
    pub(super) fn target_inflight(&self) -> u32 {
        self.bdp_multiple(self.bandwidth.bw, 100)
            .min(self.output.cwnd)
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> u32 {
        let longterm = self.congestion.inflight_longterm;
        if longterm == UNLIMITED {
            return UNLIMITED;
        }
        let beside = (u64::from(longterm) * BESIDE_HEADROOM / 100) as u32;
        beside
            .min(longterm.saturating_sub(self.smss))
            .max(self.least_window())
    }

    /// RaiseInflightLongtermSlope.
    fn raise_inflight_longterm_slope(&mut self) {
        let growth = 1 << self.cycle.up_rounds.min(MOST_DOUBLINGS);
        self.cycle.up_rounds = self.cycle.up_rounds.min(MOST_DOUBLINGS - 1) + 1;
        self.cycle.acked_per_increase = (self.output.cwnd / growth).max(self.smss);
    }

    /// ProbeInflightLongtermUpward.
    fn probe_inflight_longterm_upward(&mut self, ack: &Ack) {
        let longterm = self.congestion.inflight_longterm;
        if !ack.used_window || self.output.cwnd < longterm {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.up_acked = cycle.up_acked.saturating_add(ack.delivered);
        let per = cycle.acked_per_increase.max(1);
        let increases = cycle.up_acked / per;
        cycle.up_acked %= per;
        let more = increases.saturating_mul(self.smss);
        self.congestion.inflight_longterm = longterm.saturating_add(more);
        if self.rounds.start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// AdaptLongTermModel. Returns true if it changed the state.
    fn adapt_long_term_model(&mut self, ack: &Ack, sample: &RateSample) -> bool {
        match self.cycle.ack_phase {
            AckPhase::ProbeStarting if self.rounds.start => {
                self.cycle.ack_phase = AckPhase::ProbeFeedback;
            }
            AckPhase::ProbeStopping if self.rounds.start => {
                // All data of the probe has been acknowledged.
                self.cycle.is_probe_sample = false;
                self.cycle.ack_phase = AckPhase::Init;
                if self.state.is_probe_bw() && !sample.is_app_limited {
                    self.bandwidth.advance();
                }
                let safe = self.cycle.prev_probe_precautionary && !self.cycle.prev_probe_too_high;
                if self.state.is_probe_bw() && safe {
                    self.start_refill();
                    return true;
                }
            }
            _ => {}
        }
        if !self.is_inflight_too_high(sample) && self.congestion.inflight_longterm != UNLIMITED {
            let congestion = &mut self.congestion;
            congestion.inflight_longterm = congestion.inflight_longterm.max(sample.tx_in_flight);
            if self.state == State::Up {
                self.probe_inflight_longterm_upward(ack);
            }
        }
        false
    }
}
