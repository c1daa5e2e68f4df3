//! Adapts the model to losses and ECN marks (5.5.10), and undoes this when a loss turns out to be spurious (5.5.11).

use super::{Ack, Bbr, Lost, RateSample, State, UNLIMITED};
use crate::clock::Moment;
use baton_wire::SeqNr;
use serde::{Deserialize, Serialize};

/// BBR.LossThresh (2.8), in hundredths.
const LOSS_THRESHOLD: u64 = 2;
/// BBRStartupFullLossCnt: runs of lost segments in a round (5.3.1.3).
const STARTUP_RUNS: u8 = 6;

/// BBR.Beta of a rate or volume (2.8).
pub(super) fn reduced(whole: u64) -> u64 {
    (u128::from(whole) * 7 / 10) as u64
}

/// Bounds on the volume in flight, learnt from congestion (2.9.2, 2.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Congestion {
    /// BBR.inflight_longterm and BBR.inflight_shortterm.
    pub(super) inflight_longterm: u32,
    pub(super) inflight_shortterm: u32,
    /// BBR.inflight_latest.
    inflight_latest: u32,
    /// BBR.is_loss_in_round, BBR.loss_round_start and BBR.loss_round_delivered.
    in_round: bool,
    round_start: bool,
    round_delivered: u64,
    /// Number of runs of lost segments in this round, and the end of the last run.
    runs: u8,
    run_end: SeqNr,
}

impl Default for Congestion {
    fn default() -> Self {
        Self {
            inflight_longterm: UNLIMITED,
            inflight_shortterm: UNLIMITED,
            inflight_latest: 0,
            in_round: false,
            round_start: false,
            round_delivered: 0,
            runs: 0,
            run_end: SeqNr(0),
        }
    }
}

/// State from before a loss (2.15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Undo {
    /// BBR.undo_state: the state to return to.
    state: Option<State>,
    bw_shortterm: u64,
    inflight_shortterm: u32,
    inflight_longterm: u32,
}

impl Bbr {
    // --- each acknowledgment ---

    /// UpdateLatestDeliverySignals (5.5.10.3).
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &RateSample) {
        let congestion = &mut self.congestion;
        self.bandwidth.latest = self.bandwidth.latest.max(sample.rate);
        congestion.inflight_latest = congestion.inflight_latest.max(delivered(sample));
        congestion.round_start = sample.prior_delivered >= congestion.round_delivered;
        if congestion.round_start {
            congestion.round_delivered = sample.total_delivered;
        }
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &RateSample) {
        if self.congestion.round_start {
            self.bandwidth.latest = sample.rate;
            self.congestion.inflight_latest = delivered(sample);
        }
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.congestion.in_round = false;
        self.bandwidth.latest = 0;
        self.congestion.inflight_latest = 0;
    }

    /// UpdateCongestionSignals.
    pub(super) fn update_congestion_signals(&mut self, sample: &RateSample) {
        if self.rounds.update(sample.prior_delivered) {
            self.cycle.round_passed();
        }
        self.bandwidth.update(sample.rate, sample.is_app_limited);
        if !self.congestion.round_start {
            return;
        }
        self.adapt_lower_bounds();
        self.congestion.in_round = false;
    }

    /// AdaptLowerBoundsFromCongestion: once in a round, unless a probe caused the loss.
    fn adapt_lower_bounds(&mut self) {
        let probing = matches!(self.state, State::Startup | State::Refill | State::Up);
        if probing || !self.congestion.in_round {
            return;
        }
        self.bandwidth.lower();
        let congestion = &mut self.congestion;
        let from = match congestion.inflight_shortterm {
            UNLIMITED => self.output.cwnd,
            shortterm => shortterm,
        };
        let lower = reduced(from.into()) as u32;
        congestion.inflight_shortterm = congestion.inflight_latest.max(lower);
    }

    /// ResetShortTermModel.
    pub(super) fn reset_short_term_model(&mut self) {
        self.bandwidth.reset_shortterm();
        self.congestion.inflight_shortterm = UNLIMITED;
    }

    // --- losses ---

    /// IsInflightTooHigh (5.5.10.2).
    pub(super) fn is_inflight_too_high(&self, sample: &RateSample) -> bool {
        let lost = u128::from(sample.lost) * 100;
        lost > u128::from(sample.tx_in_flight) * u128::from(LOSS_THRESHOLD)
            || (sample.lost > 0 && !self.sack)
    }

    /// HandleLostPacket.
    pub(super) fn handle_lost_packet(&mut self, lost: &Lost) {
        self.rounds.delivered(lost.total_delivered);
        self.note_loss(lost.total_delivered);
        if lost.seq != self.congestion.run_end || self.congestion.runs == 0 {
            self.congestion.runs = self.congestion.runs.saturating_add(1);
        }
        self.congestion.run_end = lost.seq + lost.bytes;
        let Some(mut sample) = lost.sample else {
            return;
        };
        if self.cycle.is_probe_sample && self.is_inflight_too_high(&sample) {
            sample.tx_in_flight = inflight_at_loss(&sample, lost.bytes);
            self.handle_inflight_too_high(lost.now, &sample);
        }
    }

    /// NoteLoss.
    fn note_loss(&mut self, total_delivered: u64) {
        if !self.congestion.in_round {
            self.congestion.round_delivered = total_delivered;
            self.save_state_upon_loss();
        }
        self.congestion.in_round = true;
    }

    /// HandleInflightTooHigh.
    fn handle_inflight_too_high(&mut self, now: Moment, sample: &RateSample) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_probe_sample = false;
        if !sample.is_app_limited {
            let least = reduced(self.target_inflight().into()) as u32;
            self.congestion.inflight_longterm = sample.tx_in_flight.max(least);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }

    /// CheckStartupHighLoss (5.3.1.3).
    pub(super) fn check_startup_high_loss(&mut self, ack: &Ack, sample: &RateSample) {
        if self.full_pipe.reached {
            return;
        }
        let often = self.congestion.runs >= STARTUP_RUNS && self.congestion.round_start;
        let lossy = match self.sack {
            true => often && self.is_inflight_too_high(sample),
            false => self.congestion.runs > 0,
        };
        if ack.recovering && lossy {
            self.leave_startup_lossy();
        }
        if self.congestion.round_start {
            self.congestion.runs = 0;
        }
    }

    /// Ends Startup because of losses: the path is full, and the volume that it delivered in a round bounds the volume in flight.
    fn leave_startup_lossy(&mut self) {
        self.undo.state = Some(State::Startup);
        self.full_pipe.reached = true;
        let bdp = self.bdp_multiple(self.bandwidth.bw.max(self.bandwidth.max()), 100);
        self.congestion.inflight_longterm = bdp.max(self.congestion.inflight_latest);
    }

    /// Records that the network marked a segment that was sent while `in_flight` bytes were in the network (3.7).
    pub(super) fn handle_mark(&mut self, now: Moment, in_flight: u32) {
        self.congestion.in_round = true;
        if self.state == State::Startup {
            self.leave_startup_lossy();
        } else if self.cycle.is_probe_sample {
            let sample = RateSample {
                tx_in_flight: in_flight,
                ..RateSample::default()
            };
            self.handle_inflight_too_high(now, &sample);
        }
    }

    // --- recoveries, due and spurious ---

    /// A recovery begins (5.6.4.4). If segments were reported lost before, the state is saved already.
    pub(super) fn begin_recovery(&mut self) {
        if !self.congestion.in_round {
            self.save_state_upon_loss();
        }
        self.save_cwnd();
        self.recovering = true;
    }

    /// SaveStateUponLoss (5.5.11.1).
    fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bandwidth.shortterm(),
            inflight_shortterm: self.congestion.inflight_shortterm,
            inflight_longterm: self.congestion.inflight_longterm,
        };
    }

    /// HandleSpuriousLossDetection (5.5.11.2).
    pub(super) fn handle_spurious_loss(&mut self) {
        self.restore_cwnd();
        self.congestion.in_round = false;
        self.full_pipe.reset(0);
        self.bandwidth.raise_shortterm(self.undo.bw_shortterm);
        let (congestion, undo) = (&mut self.congestion, &self.undo);
        congestion.inflight_shortterm = congestion.inflight_shortterm.max(undo.inflight_shortterm);
        congestion.inflight_longterm = congestion.inflight_longterm.max(undo.inflight_longterm);
        let back_to = self.undo.state.take();
        if back_to == Some(State::Startup) && self.state != State::Startup {
            self.full_pipe.reached = false;
            if self.state != State::ProbeRtt {
                self.enter_startup();
            }
        } else if back_to == Some(State::Up) && !matches!(self.state, State::Up | State::ProbeRtt) {
            self.start_refill();
        }
    }
}

/// RS.delivered as a volume in flight.
fn delivered(sample: &RateSample) -> u32 {
    sample.delivered.min(u64::from(UNLIMITED - 1)) as u32
}

/// InflightAtLoss (5.5.10.2): the volume in flight at which losses crossed the threshold, somewhere within the lost segment.
fn inflight_at_loss(sample: &RateSample, size: u32) -> u32 {
    let before = sample.tx_in_flight.saturating_sub(size);
    let lost_before = sample.lost.saturating_sub(size.into());
    let room = (u64::from(before) * LOSS_THRESHOLD).saturating_sub(lost_before.saturating_mul(100));
    let prefix = room / (100 - LOSS_THRESHOLD);
    before.saturating_add(prefix.min(u64::from(u32::MAX)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_cross_the_threshold_within_a_segment() {
        let sample = |tx_in_flight, lost| RateSample {
            tx_in_flight,
            lost,
            ..RateSample::default()
        };
        // Nothing was lost of the 98,000 bytes before the segment: 2,000 lost bytes of 100,000 are two hundredths.
        assert_eq!(inflight_at_loss(&sample(108_000, 10_000), 10_000), 100_000);
        // Losses before the segment had already exceeded the threshold.
        assert_eq!(inflight_at_loss(&sample(100_000, 50_000), 1_000), 99_000);
    }
}
