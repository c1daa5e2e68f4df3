//! Outputs of the model: pacing rate, send quantum and window (5.6).

use super::bandwidth::volume;
use super::{Bbr, State, UNLIMITED};
use baton_wire::Span;
use serde::{Deserialize, Serialize};

/// 100 - BBR.PacingMarginPercent (2.5): the part of the rate that is used, in hundredths.
const BESIDE_MARGIN: u128 = 99;
/// Duration of a burst at the pacing rate, within bounds (5.6.3).
const QUANTUM: Span = Span::from_ms(1);
const LARGEST_QUANTUM: u64 = 64 * 1024;
/// Send quanta that offload mechanisms at the two hosts may hold (5.5.8.1).
const OFFLOADED_QUANTA: u32 = 3;
/// BBR.MinPipeCwnd (2.8), segments.
const LEAST_WINDOW: u32 = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Output {
    /// C.cwnd, C.InitialCwnd and BBR.prior_cwnd.
    pub(super) cwnd: u32,
    initial_cwnd: u32,
    prior_cwnd: u32,
    /// C.pacing_rate and C.send_quantum.
    pub(super) pacing_rate: u64,
    pub(super) send_quantum: u32,
}

impl Bbr {
    /// InitPacingRate (5.6.2), and the initial window.
    pub(super) fn start_output(&mut self, window: u32, srtt: Span) {
        let srtt = match srtt {
            Span::ZERO => Span::from_ms(1),
            srtt => srtt,
        };
        let second = u128::from(Span::from_secs(1).as_ps());
        let nominal = u128::from(window) * second / u128::from(srtt.as_ps());
        let rate = nominal * u128::from(super::STARTUP_PACING_GAIN) / 100;
        self.output = Output {
            cwnd: window,
            initial_cwnd: window,
            prior_cwnd: 0,
            pacing_rate: rate.min(u64::MAX.into()) as u64,
            send_quantum: 0,
        };
        self.set_send_quantum();
    }

    /// SetPacingRate.
    pub(super) fn set_pacing_rate(&mut self) {
        self.set_pacing_rate_with_gain(self.pacing_gain);
    }

    /// SetPacingRateWithGain: does not lower the rate until the path has been full once.
    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: u32) {
        let rate = u128::from(self.bandwidth.bw) * u128::from(gain) * BESIDE_MARGIN / 10_000;
        let rate = rate.min(u64::MAX.into()) as u64;
        if rate > 0 && (self.full_pipe.reached || rate > self.output.pacing_rate) {
            self.output.pacing_rate = rate;
        }
    }

    /// SetSendQuantum.
    pub(super) fn set_send_quantum(&mut self) {
        let burst = volume(self.output.pacing_rate, QUANTUM).min(LARGEST_QUANTUM) as u32;
        self.output.send_quantum = burst.max(self.smss.saturating_mul(2));
    }

    // --- the window ---

    /// BBR.MinPipeCwnd, bytes.
    pub(super) fn least_window(&self) -> u32 {
        self.smss.saturating_mul(LEAST_WINDOW)
    }

    /// BDPMultiple for a rate.
    pub(super) fn bdp_multiple(&self, bw: u64, gain: u32) -> u32 {
        let Some(min_rtt) = self.min_rtt.get() else {
            return self.output.initial_cwnd;
        };
        let bdp = u128::from(volume(bw, min_rtt)) * u128::from(gain) / 100;
        bdp.min(u128::from(UNLIMITED - 1)) as u32
    }

    /// QuantizationBudget.
    fn quantization_budget(&self, inflight: u32) -> u32 {
        let offload = self.output.send_quantum.saturating_mul(OFFLOADED_QUANTA);
        let inflight = inflight.max(offload).max(self.least_window());
        match self.state {
            State::Up => inflight.saturating_add(self.smss.saturating_mul(2)),
            _ => inflight,
        }
    }

    /// Inflight for a rate.
    pub(super) fn inflight(&self, bw: u64, gain: u32) -> u32 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// UpdateMaxInflight.
    fn max_inflight(&self) -> u32 {
        let inflight = self.bdp_multiple(self.bandwidth.bw, self.cwnd_gain);
        self.quantization_budget(inflight.saturating_add(self.aggregation.extra()))
    }

    /// SetCwnd (5.6.4.6).
    pub(super) fn set_cwnd(&mut self, delivered: u32, total_delivered: u64) {
        let most = self.max_inflight();
        let cwnd = self.output.cwnd;
        let grown = cwnd.saturating_add(delivered);
        let early = total_delivered < u64::from(self.output.initial_cwnd);
        self.output.cwnd = match self.full_pipe.reached {
            true => grown.min(most),
            false if cwnd < most || early => grown,
            false => cwnd,
        };
        self.output.cwnd = self.output.cwnd.max(self.least_window());
        if self.state == State::ProbeRtt {
            self.output.cwnd = self.output.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// BoundCwndForModel (5.6.4.7).
    fn bound_cwnd_for_model(&mut self) {
        let longterm = match self.state {
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            state if state.is_probe_bw() => self.congestion.inflight_longterm,
            _ => UNLIMITED,
        };
        let cap = longterm.min(self.congestion.inflight_shortterm);
        self.output.cwnd = self.output.cwnd.min(cap.max(self.least_window()));
    }

    /// SaveCwnd (5.6.4.4).
    pub(super) fn save_cwnd(&mut self) {
        let output = &mut self.output;
        let modulated = self.recovering || self.state == State::ProbeRtt;
        output.prior_cwnd = match modulated {
            true => output.prior_cwnd.max(output.cwnd),
            false => output.cwnd,
        };
    }

    /// RestoreCwnd.
    pub(super) fn restore_cwnd(&mut self) {
        self.output.cwnd = self.output.cwnd.max(self.output.prior_cwnd);
    }
}
