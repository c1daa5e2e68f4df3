//! How the window comes down after a loss or a mark, what recovery makes of it, and how a reduction is undone.

use super::{CongestionWindow, DUPLICATE_THRESHOLD, LARGEST_WINDOW, Phase};
use crate::config::WindowCounting;
use crate::congestion::algorithm::ask;
use crate::congestion::hystart::EarlyExit;
use crate::congestion::{Algorithm, Controller, Loss, RateReduction, Window};
use baton_wire::SeqNr;
use serde::{Deserialize, Serialize};

/// How the window comes down in fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    /// By PRR, acknowledgment by acknowledgment (RFC 9937).
    Gradual,
    /// To ssthresh at once (RFC 6675 5, 4.2).
    AtOnce,
    /// The same, and inflated by the segments that left the network (RFC 5681 3.2, step 3).
    Inflated,
}

/// What a reduction that was not due is undone to. A controller with the window to itself sees to that by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Saved {
    size: Window,
    algorithm: Option<Algorithm>,
}

impl CongestionWindow {
    /// What a reduction starts from.
    fn reduced_from(&self, loss: &Loss) -> Loss {
        match self.counting {
            WindowCounting::Rfc => *loss,
            WindowCounting::Linux => Loss {
                flight: self.size.bytes,
                ..*loss
            },
        }
    }

    /// A new ssthresh.
    fn counted(&self, threshold: u32, smss: u32) -> u32 {
        match self.counting {
            WindowCounting::Rfc => threshold,
            WindowCounting::Linux => threshold / smss * smss,
        }
    }

    /// The books of PRR for a recovery that begins with `flight` in flight (RecoverFS of RFC 9937 6.1).
    pub(crate) fn rate_reduction(&self, flight: u32, smss: u32) -> RateReduction {
        match self.counting {
            WindowCounting::Rfc => RateReduction::new(flight),
            WindowCounting::Linux => RateReduction::in_units(self.size.bytes, smss),
        }
    }

    /// What a reduction now could be undone to.
    pub(crate) fn save(&self) -> Saved {
        Saved {
            size: self.size,
            algorithm: (!self.is_governed()).then(|| self.algorithm.clone()),
        }
    }

    /// The last reduction was not due (RFC 4015 3.2, RFC 9438 4.9). What grew since then stays.
    pub(crate) fn undo(&mut self, saved: Saved, smss: u32) {
        self.size.threshold = self.size.threshold.max(saved.size.threshold);
        self.phase = Phase::Open;
        self.duplicates = 0;
        if self.is_governed() {
            ask!(&mut self.algorithm, it => it.on_spurious());
            self.follow(smss);
            return;
        }
        self.size.bytes = self.size.bytes.max(saved.size.bytes);
        if let Some(algorithm) = saved.algorithm
            && algorithm.kind() == self.algorithm.kind()
        {
            self.algorithm = algorithm;
        }
    }

    /// The new ssthresh after a sign of congestion; a controller that has the window to itself changes that too.
    fn reduce_threshold(&mut self, loss: &Loss, marked: bool) {
        let (size, from) = (self.size, self.reduced_from(loss));
        let threshold = match marked {
            true => ask!(&mut self.algorithm, it => it.on_ecn_echo(size, &from)),
            false => ask!(&mut self.algorithm, it => it.on_loss(size, &from)),
        };
        self.size.threshold = self.counted(threshold, loss.smss).min(LARGEST_WINDOW);
        self.follow(loss.smss);
    }

    /// Enters fast recovery, because of a loss or because the network marked what was sent.
    pub(crate) fn enter_recovery(
        &mut self,
        loss: &Loss,
        max: SeqNr,
        reduction: Reduction,
        marked: bool,
    ) {
        self.reduce_threshold(loss, marked);
        match reduction {
            _ if self.is_governed() => {}
            Reduction::Gradual => {}
            Reduction::AtOnce => self.size.bytes = self.size.threshold,
            Reduction::Inflated => {
                self.size.bytes = self.size.threshold
                    + u32::from(self.duplicates.max(DUPLICATE_THRESHOLD)) * loss.smss;
            }
        }
        self.recover = max;
        self.phase = Phase::FastRecovery;
        self.partial_seen = false;
    }

    /// An ACK in a recovery with PRR.
    pub(crate) fn reduce(
        &mut self,
        reduction: &mut RateReduction,
        delivered: u32,
        in_flight: u32,
        smss: u32,
        safe: bool,
    ) {
        if self.is_governed() {
            return;
        }
        let threshold = self.size.threshold;
        self.size.bytes = reduction
            .on_ack(delivered, in_flight, threshold, smss, safe)
            .clamp(smss, LARGEST_WINDOW);
    }

    /// One more duplicate in fast recovery without SACK: one more segment left the network (RFC 5681 3.2, step 4).
    pub(crate) fn inflate(&mut self, smss: u32) {
        if self.is_governed() {
            return;
        }
        self.size.bytes = (self.size.bytes + smss).min(LARGEST_WINDOW);
    }

    /// An ACK that ends less than the whole recovery, without SACK (RFC 6582 3.2, step 3). True when it is the first.
    pub(crate) fn partial_ack(&mut self, acked: u32, smss: u32) -> bool {
        if !self.is_governed() {
            self.size.bytes = self.size.bytes.saturating_sub(acked).max(smss);
            if acked >= smss {
                self.size.bytes += smss;
            }
        }
        let first = !self.partial_seen;
        self.partial_seen = true;
        first
    }

    /// `recover` is acknowledged; `flight` is what is outstanding now.
    pub(crate) fn leave_recovery(&mut self, flight: u32, smss: u32, sack: bool) {
        if self.is_governed() {
            ask!(&mut self.algorithm, it => it.on_recovered());
            self.follow(smss);
        } else if self.phase == Phase::FastRecovery {
            self.size.bytes = match sack {
                true => self.size.threshold,
                // RFC 6582 3.2, step 3, first alternative: no burst.
                false => self.size.threshold.min(flight.max(smss) + smss),
            };
        }
        self.phase = Phase::Open;
        self.duplicates = 0;
    }

    /// The retransmission timer expired, for the first time for this data or again (RFC 5681 3.1).
    pub(crate) fn time_out(&mut self, first: bool, loss: &Loss, max: SeqNr) {
        if !self.is_governed() {
            if first {
                let (size, from) = (self.size, self.reduced_from(loss));
                let threshold = ask!(&mut self.algorithm, it => it.on_timeout(size, &from));
                self.size.threshold = self.counted(threshold, loss.smss).min(LARGEST_WINDOW);
            }
            self.size.bytes = loss.smss;
        }
        self.recover = max;
        self.phase = Phase::Timeout;
        self.duplicates = 0;
        if let EarlyExit::Trains(trains) = &mut self.early_exit {
            trains.begin_anew(max);
        }
    }

    /// F-RTO found that the timeout was not spurious: go on with at most so much (RFC 5682 2.1, step 3a).
    pub(crate) fn limit(&mut self, most: u32) {
        if !self.is_governed() {
            self.size.bytes = self.size.bytes.min(most);
        }
    }

    /// A lost tail was repaired by a probe, or the network marked what was sent: the window is reduced without a
    /// recovery (RFC 8985 7.4.2; RFC 3168 6.1.2).
    pub(crate) fn reduce_once(&mut self, loss: &Loss, marked: bool) {
        self.reduce_threshold(loss, marked);
        if !self.is_governed() {
            self.size.bytes = self.size.bytes.min(self.size.threshold);
        }
    }
}
