//! Round-trip time and retransmission timeout (RFC 6298), in integer arithmetic.

use crate::clock::Past;
use crate::config::{Config, RtoFloor};
use baton_wire::{SeqNr, Span};
use serde::{Deserialize, Serialize};

/// Longest measurement that counts: the longest that an echoed timestamp can express (RFC 7323 4.1).
const LONGEST: Span = Span::from_ms(i32::MAX as u64);

/// A round trip that is being timed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    /// The number whose acknowledgment ends the measurement.
    pub(crate) end: SeqNr,
    /// When the measurement began.
    pub(crate) sent: Past,
    _tag: Tag,
}

/// A niche, so that an `Option` of the struct that holds the tag takes no additional memory.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Tag {
    Some,
}

impl Timed {
    pub(crate) fn new(end: SeqNr, sent: Past) -> Self {
        let _tag = Tag::Some;
        Self { end, sent, _tag }
    }
}

/// The estimator of one connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RttEstimator {
    smoothed: Smoothed,
    /// RTO without backoff.
    base: Span,
    /// Timeouts since the last measurement: each doubles the RTO.
    backoff: u8,
}

/// Results of the measurements so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Smoothed {
    Unknown,
    /// SRTT and RTTVAR, from one measurement a round trip.
    Usual(Span, Span),
    /// From one measurement per acknowledgment.
    Peaks(Box<Peaks>),
}

/// State for many measurements per round trip. Averaged with the usual gains, the variance would decay within the round trip. As in
/// Linux, the timeout uses the largest variance of a round trip, which decays from one round trip to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Peaks {
    srtt: Span,
    rttvar: Span,
    /// Amount by which the timeout exceeds SRTT: four times the largest variance.
    spread: Span,
    /// Four times the largest variance in this round trip, which ends when more than `end` is acknowledged.
    peak: Span,
    end: SeqNr,
}

impl Peaks {
    fn sample(&mut self, rtt: Span, una: SeqNr, next: SeqNr, least: Span) {
        let shorter = rtt < self.srtt;
        let error = if shorter {
            self.srtt - rtt
        } else {
            rtt - self.srtt
        };
        self.srtt = match shorter {
            true => self.srtt - error / 8,
            false => self.srtt + error / 8,
        };
        self.rttvar = match error > self.rttvar {
            // A round trip that got shorter is no reason for a longer timeout.
            true if shorter => self.rttvar + (error - self.rttvar) / 32,
            true => self.rttvar + (error - self.rttvar) / 4,
            false => self.rttvar - (self.rttvar - error) / 4,
        };
        self.peak = self.peak.max(self.rttvar * 4);
        self.spread = self.spread.max(self.peak);
        if una.after(self.end) {
            self.spread = self.spread - (self.spread - self.peak) / 4;
            self.peak = least;
            self.end = next;
        }
    }
}

impl RttEstimator {
    /// RFC 6298 2.1.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            smoothed: Smoothed::Unknown,
            base: Span::from_ms(config.rto_initial_ms.into()),
            backoff: 0,
        }
    }

    /// Continues with the measurements of another TCP.
    pub(crate) fn resume(&mut self, srtt: Span, rttvar: Span, config: &Config) {
        let (srtt, rttvar) = (srtt.min(LONGEST), rttvar.min(LONGEST));
        self.smoothed = Smoothed::Usual(srtt, rttvar);
        self.set_base(srtt, rttvar * 4, config);
    }

    /// Takes one measurement (RFC 6298 2.2, 2.3) and ends the backoff (5.7, Karn).
    pub(crate) fn sample(&mut self, rtt: Span, config: &Config) {
        let rtt = rtt.min(LONGEST);
        let (srtt, rttvar) = match self.smoothed() {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => {
                let error = if srtt > rtt { srtt - rtt } else { rtt - srtt };
                // beta = 1/4, alpha = 1/8.
                ((srtt * 7 + rtt) / 8, (rttvar * 3 + error) / 4)
            }
        };
        self.smoothed = Smoothed::Usual(srtt, rttvar);
        self.set_base(srtt, rttvar * 4, config);
    }

    /// Takes one of many measurements of a round trip; everything up to `una` is acknowledged, and `next` is SND.NXT.
    pub(crate) fn sample_often(&mut self, rtt: Span, una: SeqNr, next: SeqNr, config: &Config) {
        let rtt = rtt.min(LONGEST);
        let least = match config.rto_floor {
            RtoFloor::Timeout => Span::ZERO,
            RtoFloor::Variance => Span::from_ms(config.rto_min_ms.into()),
        };
        if let Smoothed::Peaks(peaks) = &mut self.smoothed {
            peaks.sample(rtt, una, next, least);
        } else {
            let known = self.smoothed();
            let (srtt, rttvar) = known.unwrap_or((rtt, rtt / 2));
            let spread = (rttvar * 4).max(least);
            let mut peaks = Box::new(Peaks {
                srtt,
                rttvar,
                spread,
                peak: spread,
                end: next,
            });
            if known.is_some() {
                peaks.sample(rtt, una, next, least);
            }
            self.smoothed = Smoothed::Peaks(peaks);
        }
        if let Smoothed::Peaks(peaks) = &self.smoothed {
            let (srtt, spread) = (peaks.srtt, peaks.spread);
            self.set_base(srtt, spread, config);
        }
    }

    /// RFC 6298 2.3 to 2.5; `spread` is four times the variance.
    #[inline]
    fn set_base(&mut self, srtt: Span, spread: Span, config: &Config) {
        let (least, most) = (
            Span::from_ms(config.rto_min_ms.into()),
            Span::from_ms(config.rto_max_ms.into()),
        );
        self.base = match config.rto_floor {
            RtoFloor::Timeout => (srtt + spread).clamp_to(least, most),
            RtoFloor::Variance => (srtt + spread.clamp_to(least, most)).clamp_to(least, most),
        };
        self.backoff = 0;
    }

    /// Returns the invariant that is violated, if any.
    pub(crate) fn verify(&self) -> Result<(), &'static str> {
        let (srtt, rttvar) = self.smoothed().unwrap_or((Span::ZERO, Span::ZERO));
        match srtt.max(rttvar) <= LONGEST && self.base <= Span::from_ms(u32::MAX.into()) {
            true => Ok(()),
            false => Err("round trips and timeouts are within the range of the clock"),
        }
    }

    /// SRTT and RTTVAR.
    pub(crate) fn smoothed(&self) -> Option<(Span, Span)> {
        match &self.smoothed {
            Smoothed::Unknown => None,
            Smoothed::Usual(srtt, rttvar) => Some((*srtt, *rttvar)),
            Smoothed::Peaks(peaks) => Some((peaks.srtt, peaks.rttvar)),
        }
    }

    /// SRTT; zero before the first measurement.
    pub(crate) fn srtt(&self) -> Span {
        self.smoothed().map_or(Span::ZERO, |(srtt, _)| srtt)
    }

    /// The current timeout.
    #[inline]
    pub(crate) fn rto(&self, config: &Config) -> Span {
        self.doubled(self.backoff, config)
    }

    /// Time to the next window probe after `probes` of them, which grows exponentially (RFC 9293 3.8.6.1).
    pub(crate) fn probe_interval(&self, probes: u8, config: &Config) -> Span {
        self.doubled(probes, config)
    }

    #[inline]
    fn doubled(&self, times: u8, config: &Config) -> Span {
        if times == 0 {
            return self.base;
        }
        let most = Span::from_ms(config.rto_max_ms.into());
        let doubled = self.base.as_ps().saturating_mul(1 << times.min(32));
        Span::from_ps(doubled.min(most.as_ps()).max(self.base.as_ps()))
    }

    /// Doubles the timeout after the timer expired (RFC 6298 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Sets a cautious timeout until the first measurement, because the SYN was lost (RFC 6298 5.7).
    pub(crate) fn syn_was_lost(&mut self, config: &Config) {
        self.base = self.base.clamp_to(
            Span::from_secs(3),
            Span::from_ms(u64::from(config.rto_max_ms).max(3000)),
        );
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests;
