//! ProbeRTT (5.3.4): now and then reduces what is in flight to measure the least round-trip time.

use super::probe_bw::AckPhase;
use super::{Ack, Bbr, RateSample, State};
use crate::clock::Moment;
use baton_wire::Span;
use serde::{Deserialize, Serialize};

/// BBR.ProbeRTTCwndGain and BBR.ProbeRTTDuration (2.16.2).
const CWND_GAIN: u32 = 50;
const DURATION: Span = Span::from_ms(200);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProbeRtt {
    /// BBR.probe_rtt_done_stamp; `None` until the volume in flight has come down.
    until: Option<Moment>,
    /// BBR.probe_rtt_round_done.
    round_done: bool,
}

impl Bbr {
    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, ack: &Ack, sample: &RateSample) {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.enter_probe_rtt();
            self.probe_rtt.until = None;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.rounds.begin();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// EnterProbeRTT, with SaveCwnd before the state changes.
    fn enter_probe_rtt(&mut self) {
        self.save_cwnd();
        self.state = State::ProbeRtt;
        self.pacing_gain = 100;
        self.cwnd_gain = CWND_GAIN;
    }

    /// HandleProbeRTT.
    fn handle_probe_rtt(&mut self, ack: &Ack) {
        if self.probe_rtt.until.is_none() {
            if ack.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt.until = Some(ack.now + DURATION);
                self.probe_rtt.round_done = false;
                self.rounds.begin();
            }
            return;
        }
        self.probe_rtt.round_done |= self.rounds.start;
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(ack.now);
        }
    }

    /// CheckProbeRTTDone.
    pub(super) fn check_probe_rtt_done(&mut self, now: Moment) {
        if self.probe_rtt.until.is_some_and(|until| now.after(until)) {
            self.min_rtt.probed(now);
            self.restore_cwnd();
            self.exit_probe_rtt(now);
        }
    }

    /// ExitProbeRTT (5.3.4.4): little is in flight, so BBR cruises at once.
    fn exit_probe_rtt(&mut self, now: Moment) {
        self.reset_short_term_model();
        if self.full_pipe.reached {
            self.start_down(now);
            self.start_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// ProbeRTTCwnd (5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp_multiple(self.bandwidth.bw, CWND_GAIN)
            .max(self.least_window())
    }
}
