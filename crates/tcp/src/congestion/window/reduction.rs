//! Reduction of the window after a loss or an ECN mark, the window during recovery, and undoing a reduction.

use super::{CongestionWindow, DUPLICATE_THRESHOLD, LARGEST_WINDOW, Phase};
use crate::config::WindowCounting;
use crate::congestion::algorithm::ask;
use crate::congestion::hystart::EarlyExit;
use crate::congestion::{Algorithm, Controller, Loss, RateReduction, Window};
use baton_wire::SeqNr;
use serde::{Deserialize, Serialize};

/// How the window is reduced in fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    /// By PRR, acknowledgment by acknowledgment (RFC 9937).
    Gradual,
    /// To ssthresh immediately (RFC 6675 5, 4.2).
    AtOnce,
    /// To ssthresh immediately, inflated by the segments that left the network (RFC 5681 3.2, step 3).
    Inflated,
}

/// State to restore when a reduction turns out to be spurious. A controller that sets the window itself restores its own state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Saved {
    size: Window,
    algorithm: Option<Algorithm>,
}

impl CongestionWindow {
    /// Returns the loss with the number of bytes from which a reduction starts.
    fn reduced_from(&self, loss: &Loss) -> Loss {
        match self.counting {
            WindowCounting::Rfc => *loss,
            WindowCounting::Linux => Loss {
                flight: self.size.bytes,
                ..*loss
            },
        }
    }

    /// Rounds a new ssthresh to whole segments if the window is counted as in Linux.
    fn counted(&self, threshold: u32, smss: u32) -> u32 {
        match self.counting {
            WindowCounting::Rfc => threshold,
            WindowCounting::Linux => threshold / smss * smss,
        }
    }

    /// PRR state of a recovery that begins with `flight` bytes in flight (RecoverFS of RFC 9937 6.1).
    pub(crate) fn rate_reduction(&self, flight: u32, smss: u32) -> RateReduction {
        match self.counting {
            WindowCounting::Rfc => RateReduction::new(flight),
            WindowCounting::Linux => RateReduction::in_units(self.size.bytes, smss),
        }
    }

    /// Returns the state to restore if a reduction at this time turns out to be spurious.
    pub(crate) fn save(&self) -> Saved {
        Saved {
            size: self.size,
            algorithm: (!self.is_governed()).then(|| self.algorithm.clone()),
        }
    }

    /// Undoes the last reduction, which was spurious (RFC 4015 3.2, RFC 9438 4.9). Keeps the growth since then.
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

    /// Sets ssthresh after a sign of congestion, and the window if the controller sets that itself.
    fn reduce_threshold(&mut self, loss: &Loss, marked: bool) {
        let (size, from) = (self.size, self.reduced_from(loss));
        let threshold = match marked {
            true => ask!(&mut self.algorithm, it => it.on_ecn_echo(size, &from)),
            false => ask!(&mut self.algorithm, it => it.on_loss(size, &from)),
        };
        self.size.threshold = self.counted(threshold, loss.smss).min(LARGEST_WINDOW);
        self.follow(loss.smss);
    }

    /// Enters fast recovery, because of a loss or because of an ECN mark.
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

    /// Sets the window after an ACK in a recovery with PRR.
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

    /// Inflates the window after another duplicate ACK in fast recovery without SACK (RFC 5681 3.2, step 4).
    pub(crate) fn inflate(&mut self, smss: u32) {
        if self.is_governed() {
            return;
        }
        self.size.bytes = (self.size.bytes + smss).min(LARGEST_WINDOW);
    }

    /// Processes a partial ACK without SACK (RFC 6582 3.2, step 3). Returns true if it is the first of the recovery.
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

    /// Ends the recovery, since `recover` is acknowledged; `flight` bytes are outstanding now.
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

    /// Reduces the window after a retransmission timeout (RFC 5681 3.1); `first` says that it is the first for this data.
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

    /// Limits the window to `most`, after F-RTO found that the timeout was not spurious (RFC 5682 2.1, step 3a).
    pub(crate) fn limit(&mut self, most: u32) {
        if !self.is_governed() {
            self.size.bytes = self.size.bytes.min(most);
        }
    }

    /// Reduces the window without a recovery, after a probe repaired a lost tail or the network marked data (RFC 8985 7.4.2;
    /// RFC 3168 6.1.2).
    pub(crate) fn reduce_once(&mut self, loss: &Loss, marked: bool) {
        self.reduce_threshold(loss, marked);
        if !self.is_governed() {
            self.size.bytes = self.size.bytes.min(self.size.threshold);
        }
    }
}
