//! Reports to congestion controllers that need more than variants of Reno do, and pacing. Connections that need neither hold no such state.

use super::output::Run;
use super::{Connection, Context, Marks};
use crate::clock::Moment;
use crate::config::{Config, Congestion};
use crate::congestion::{Ack, CongestionWindow, Lost, Needs, Pacing, Phase, Start};
use crate::flight::Sent;
use crate::rack::Delivery;
use crate::rate_sampler::{RateSampler, Transmission};
use baton_wire::Payload;
use baton_wire::{Span, Time};
use serde::{Deserialize, Serialize};

/// Longest burst, in bytes, where the controller sets no quantum (as for a super-segment).
const LARGEST_QUANTUM: u64 = 65_536;

/// Number of first data segments that are not paced if only the configuration asks for pacing.
const UNPACED_SEGMENTS: u32 = 10;

/// Rate samples and pacing of a connection that needs either.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Feedback {
    pub(super) rates: RateSampler,
    pacing: Pacing,
}

/// Summary of an acknowledgment that was processed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) acked: u32,
    pub(super) delivered: u32,
    pub(super) rtt: Option<Span>,
    pub(super) echoes_congestion: bool,
}

impl Taken {
    pub(super) fn of(delivery: &Delivery) -> Self {
        Self {
            acked: delivery.acked,
            delivered: delivery.delivered,
            rtt: delivery.last_rtt,
            echoes_congestion: delivery.echoes_congestion,
        }
    }
}

impl Feedback {
    /// Creates the state if the controller needs it or the configuration limits the rate.
    pub(super) fn wanted(congestion: &CongestionWindow, config: &Config) -> Option<Box<Self>> {
        Self::is_wanted(congestion, config).then(|| {
            Box::new(Self {
                rates: RateSampler::new(),
                pacing: Pacing::default(),
            })
        })
    }

    fn is_wanted(congestion: &CongestionWindow, config: &Config) -> bool {
        let wanted = Needs::ACKS | Needs::RATE_SAMPLES | Needs::PACING;
        congestion.needs(wanted) || config.linux.limits_rate()
    }

    /// Reports a lost segment to the controller, if that wants rate samples.
    pub(super) fn lost(
        &mut self,
        congestion: &mut CongestionWindow,
        now: Moment,
        sent: &Sent,
        len: u32,
        smss: u32,
    ) {
        if congestion.needs(Needs::RATE_SAMPLES) {
            congestion.lost(&Lost {
                now,
                seq: sent.end - len,
                bytes: len,
                smss,
                sample: self.rates.lost(sent, len),
                total_delivered: self.rates.delivered(),
            });
        }
    }
}

impl<P: Payload> Connection<P> {
    /// Introduces this established connection to a new controller.
    pub(super) fn introduce_controller(&mut self, now: Time) {
        let start = Start {
            now: self.clock.moment(now),
            window: self.congestion.window(),
            smss: self.smss(),
            srtt: self.rtt.srtt(),
            sack: self.options.sack,
        };
        self.congestion.established(&start);
    }

    /// CheckIfApplicationLimited (draft-ietf-ccwg-bbr-06 4.1.2.4): called before data is written, an acknowledgment is processed or
    /// a timer runs.
    #[inline]
    pub(super) fn note_app_limit(&mut self) {
        if self.feedback.is_some() {
            self.note_app_limit_of_rates();
        }
    }

    #[cold]
    #[inline(never)]
    fn note_app_limit_of_rates(&mut self) {
        let in_flight = self.pipe();
        let may_send = self.not_sent() > 0 && !self.marks.contains(Marks::SETTLING);
        let limited = !may_send
            && in_flight < self.congestion.window()
            && self.lost() == 0
            && self.is_synchronized();
        if let Some(feedback) = &mut self.feedback
            && limited
        {
            feedback.rates.mark_app_limited(in_flight);
        }
    }

    /// Bytes in the network before a transmission. Not inlined, like all code for feedback, so that connections without feedback do
    /// not pay for it.
    #[cold]
    #[inline(never)]
    pub(super) fn pipe_to_tell(&self) -> u32 {
        self.pipe()
    }

    /// Reports that a run was sent; `again` says that it was sent before.
    #[cold]
    #[inline(never)]
    pub(super) fn tell_sent(&mut self, cx: &Context<'_>, run: Run, again: bool, before: u32) {
        let now = self.clock.moment(cx.now);
        let by_time = self.keeps_times();
        let after = self.pipe();
        let transmission = Transmission {
            at: now,
            order: self.repair.flight.order(),
            end: run.end(),
            again,
            before,
            after,
            fills_window: after + self.smss() > self.congestion.window(),
        };
        let pace = self.pace(cx.config);
        let Some(feedback) = &mut self.feedback else {
            return;
        };
        if self.congestion.needs(Needs::RATE_SAMPLES) {
            feedback.rates.sent(&transmission, by_time);
        }
        if let Some((rate, quantum)) = pace {
            let len = run.end() - run.seq;
            let credits = cx.config.linux.paces;
            feedback.pacing.sent(now, len, rate, quantum, credits);
        }
    }

    /// Returns the pacing rate in bytes a second and the length of a burst, if data is paced: as the controller wants it, within
    /// the owner's limit.
    fn pace(&mut self, config: &Config) -> Option<(u64, u32)> {
        let most = config.linux.max_pacing_rate;
        if !self.congestion.needs(Needs::PACING) {
            // The first window is not paced, as in Linux.
            let begins = most.is_none() && self.counts.data_segments_out < UNPACED_SEGMENTS;
            if begins || !config.linux.limits_rate() {
                return None;
            }
            let rate = self.usual_rate().min(most.unwrap_or(u64::MAX));
            return Some((rate, self.usual_quantum(rate)));
        }
        let (rate, quantum) = self.congestion.pace();
        Some(match (rate, most) {
            (0, Some(most)) => (most, self.usual_quantum(most)),
            (rate, Some(most)) if most < rate => (most, quantum.min(self.usual_quantum(most))),
            _ => (rate, quantum),
        })
    }

    /// Rate for a controller that sets none, as in Linux (tcp_pacing_ss_ratio and tcp_pacing_ca_ratio): two windows a round
    /// trip in slow start, 1.2 later.
    fn usual_rate(&self) -> u64 {
        let window = self.congestion.window();
        let percent = match window < self.congestion.threshold() / 2 {
            true => 200,
            false => 120,
        };
        let srtt_us = self.rtt.srtt().as_us();
        let bytes = u64::from(window.max(self.flight()));
        match srtt_us {
            0 => u64::MAX,
            _ => bytes * percent * 10_000 / srtt_us,
        }
    }

    /// Bytes sent in a 1024th of a second at `rate`, in whole segments, at least two.
    fn usual_quantum(&self, rate: u64) -> u32 {
        let smss = self.smss();
        let bytes = (rate >> 10).min(LARGEST_QUANTUM) as u32;
        bytes.max(2 * smss) / smss * smss
    }

    /// Reports whether pacing holds data back; a timer then runs until the data may be sent.
    pub(super) fn is_paced_out(&mut self, cx: &Context<'_>) -> bool {
        let Some(feedback) = &self.feedback else {
            return false;
        };
        if !self.congestion.needs(Needs::PACING) && !cx.config.linux.limits_rate() {
            return false;
        }
        let wait = feedback.pacing.wait(self.clock.moment(cx.now));
        if wait > Span::ZERO {
            self.timers.pacing = cx.now + wait;
        }
        wait > Span::ZERO
    }

    /// Notifies the controller if data is about to be sent after the application had nothing to send (draft-ietf-ccwg-bbr-06 5.4.1).
    pub(super) fn restart_if_idle(&mut self, now: Moment) {
        let smss = self.smss();
        if let Some(feedback) = &self.feedback
            && self.flight() == 0
            && feedback.rates.is_app_limited()
            && self.congestion.needs(Needs::RATE_SAMPLES)
        {
            self.congestion.restarted(now, smss);
        }
    }

    /// Counts `bytes` newly known to have arrived.
    #[inline]
    pub(super) fn count_for_rates(&mut self, now: Moment, bytes: u32) {
        if let Some(feedback) = &mut self.feedback {
            feedback.rates.count(now, bytes);
        }
    }

    /// Reports a completely processed acknowledgment to the controller.
    #[inline]
    pub(super) fn tell_ack(&mut self, now: Moment, taken: Taken) {
        if self.feedback.is_some() {
            self.tell_ack_to(now, taken);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_ack_to(&mut self, now: Moment, taken: Taken) {
        let by_time = self.keeps_times();
        let (una, flight) = (self.tx.una, self.flight());
        let in_flight = self.pipe();
        let smss = self.smss();
        let least_rtt = self.repair.rack.min_rtt();
        let Some(feedback) = &mut self.feedback else {
            return;
        };
        let sampled = self.congestion.needs(Needs::RATE_SAMPLES);
        let mut sample = None;
        if sampled {
            if !by_time {
                feedback.rates.acknowledged(una);
            }
            sample = feedback.rates.generate(now, least_rtt);
            if by_time {
                feedback.rates.clean(&self.repair.flight);
            }
        }
        self.congestion.acknowledged(&Ack {
            now,
            smss,
            acked: taken.acked,
            delivered: taken.delivered,
            flight,
            in_flight,
            rtt: taken.rtt,
            echoes_congestion: taken.echoes_congestion,
            recovering: self.congestion.phase != Phase::Open,
            used_window: sampled && feedback.rates.used_window(),
            sample,
        });
        if sampled && self.congestion.holds_back() {
            feedback.rates.mark_app_limited(in_flight);
        }
    }

    /// Reports a loss to the controller where segments are not tracked.
    pub(super) fn tell_lost_untimed(&mut self, now: Moment) {
        if self.keeps_times() || !self.congestion.needs(Needs::RATE_SAMPLES) {
            return;
        }
        let (una, smss, in_flight) = (self.tx.una, self.smss(), self.pipe());
        let bytes = smss.min(self.flight());
        if let Some(feedback) = &mut self.feedback {
            let sample = feedback.rates.lost_untimed(bytes, in_flight);
            self.congestion.lost(&Lost {
                now,
                seq: una,
                bytes,
                smss,
                sample: Some(sample),
                total_delivered: feedback.rates.delivered(),
            });
        }
    }

    /// Recreates a deserialized custom controller; without saved state it starts anew.
    pub(crate) fn revive_controller(&mut self, now: Time, config: &Config) {
        if let Congestion::Custom(custom) = config.congestion
            && custom.is_known()
            && self.congestion.revive(custom)
        {
            self.restart_feedback(now, config, true, false);
        }
    }

    /// Adapts to another controller, or to another way of tracking outstanding data.
    pub(super) fn restart_feedback(
        &mut self,
        now: Time,
        config: &Config,
        other_controller: bool,
        other_books: bool,
    ) {
        // The owner may have set, changed or lifted its limit: reconsider waiting data.
        self.timers.pacing = Time::NEVER;
        let wanted = Feedback::is_wanted(&self.congestion, config);
        if other_controller || wanted != self.feedback.is_some() {
            self.feedback = Feedback::wanted(&self.congestion, config);
        }
        if other_controller {
            if self.is_synchronized() {
                self.introduce_controller(now);
            }
        } else if let Some(feedback) = &mut self.feedback
            && other_books
        {
            feedback.rates.forget();
        }
    }
}
