//! The congestion window and the phases of recovery (RFC 5681, RFC 6582, RFC 6675).

mod governed;
mod growth;
mod reduction;

pub(crate) use reduction::{Reduction, Saved};

use super::algorithm::ask;
use super::hystart::EarlyExit;
use super::{Algorithm, Controller, Custom, Needs, Window};
use crate::clock::Moment;
use crate::config::{Config, WindowCounting};
use baton_wire::{SeqNr, Span};
use serde::{Deserialize, Serialize};

/// Duplicate acknowledgments that mean a loss (RFC 5681 3.2).
pub(crate) const DUPLICATE_THRESHOLD: u8 = 3;

/// Largest congestion window: more cannot be in flight (RFC 7323 2.3).
const LARGEST_WINDOW: u32 = 1 << 30;

/// Whether a loss is being repaired, and how it was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Nothing is known to be missing.
    Open,
    /// A loss was detected by duplicate ACKs or by time; lasts until `recover` is acknowledged.
    FastRecovery,
    /// A loss was detected by the retransmission timer; lasts until `recover` is acknowledged.
    Timeout,
}

/// Window and recovery state of one connection. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CongestionWindow {
    size: Window,
    algorithm: Algorithm,
    /// Services that the algorithm needs.
    needs: Needs,
    counting: WindowCounting,
    early_exit: EarlyExit,
    /// When new data was last acknowledged.
    last_ack: Moment,
    /// SND.MAX when the last loss was detected (RFC 6582 3.1).
    pub(crate) recover: SeqNr,
    pub(crate) duplicates: u8,
    pub(crate) phase: Phase,
    /// A partial ACK has restarted the timer in this recovery (RFC 6582 3.2, step 4).
    partial_seen: bool,
    /// Most bytes in flight recently. A new measurement starts when `peak_until`, SND.MAX at the last one, is acknowledged.
    peak: u32,
    peak_until: SeqNr,
}

impl CongestionWindow {
    /// The initial sequence number, which comes from the stack's secret, is the algorithm's only source of randomness.
    pub(crate) fn new(iss: SeqNr, config: &Config) -> Self {
        let mut algorithm = Algorithm::new(config, iss.0.into());
        Self {
            size: Window {
                bytes: 0,
                threshold: LARGEST_WINDOW,
            },
            needs: ask!(&mut algorithm, it => it.needs()),
            algorithm,
            counting: config.window_counting,
            early_exit: EarlyExit::Off,
            last_ack: Moment::default(),
            recover: iss,
            duplicates: 0,
            phase: Phase::Open,
            partial_seen: false,
            peak: 0,
            peak_until: iss,
        }
    }

    /// Starts when the connection is established; `initial` is IW and `next` is SND.NXT.
    pub(crate) fn start(&mut self, initial: u32, next: SeqNr, config: &Config) {
        self.size.bytes = initial;
        self.early_exit = EarlyExit::new(next, config);
    }

    /// Switches to the configured algorithm and keeps cwnd and ssthresh. Returns true if the algorithm changed; the caller then
    /// has to introduce the connection to the new one.
    pub(crate) fn set_algorithm(&mut self, config: &Config, seed: SeqNr) -> bool {
        let other = self.algorithm.kind() != config.congestion;
        if other {
            self.algorithm = Algorithm::new(config, seed.0.into());
            self.needs = ask!(&mut self.algorithm, it => it.needs());
        }
        other
    }

    /// Recreates a deserialized custom controller. Returns true if it has no saved state, so that the caller has to introduce
    /// the connection to it.
    pub(crate) fn revive(&mut self, custom: Custom) -> bool {
        let anew = self.algorithm.revive(custom);
        self.needs = ask!(&mut self.algorithm, it => it.needs());
        anew
    }

    /// cwnd.
    pub(crate) fn window(&self) -> u32 {
        self.size.bytes
    }

    /// ssthresh; `u32::MAX` before the first reduction.
    pub(crate) fn threshold(&self) -> u32 {
        match self.size.threshold {
            LARGEST_WINDOW => u32::MAX,
            threshold => threshold,
        }
    }

    /// Sets ssthresh to at least two segments (RFC 5681 3.1).
    pub(crate) fn set_threshold(&mut self, bytes: u32, smss: u32) {
        self.size.threshold = bytes.clamp(2 * smss, LARGEST_WINDOW);
    }

    /// Bytes that may be sent beyond the window during the first duplicate ACKs (limited transmit, RFC 3042).
    #[inline]
    pub(crate) fn limited_transmit(&self, smss: u32, threshold: u32) -> u32 {
        match self.phase {
            Phase::Open => smss * u32::from(self.duplicates).min(threshold - 1),
            _ => 0,
        }
    }

    /// Records that data was sent; `flight` bytes are outstanding, up to `max`.
    pub(crate) fn sent(&mut self, flight: u32, una: SeqNr, max: SeqNr) {
        if flight > self.peak || una.at_or_after(self.peak_until) {
            self.peak = flight;
            self.peak_until = max;
        }
    }

    /// Reports whether Linux's counting applies: newly delivered bytes count, and PRR reduces the window also after ECN
    /// marks.
    pub(crate) fn counts_as_linux(&self) -> bool {
        self.counting == WindowCounting::Linux
    }

    /// Keeps `recover` close to SND.UNA if it is behind: more than 2^31 behind would compare as ahead.
    pub(crate) fn keep_mark_near(&mut self, una: SeqNr) {
        if self.recover.before(una) {
            self.recover = una - 1;
        }
    }

    /// Makes the window hold at least one segment, after segments have become larger.
    pub(crate) fn make_room(&mut self, smss: u32) {
        self.size.bytes = self.size.bytes.max(smss);
    }

    /// Sending resumes after `idle`, which is at least a timeout. Reduces the window to `initial` (RFC 5681 4.1), if that is given.
    pub(crate) fn restart(&mut self, now: Moment, idle: Span, initial: Option<u32>) {
        if let Some(initial) = initial {
            self.size.bytes = self.size.bytes.min(initial);
        }
        match &mut self.algorithm {
            Algorithm::LinuxCubic(cubic) => cubic.resume(now, idle),
            other => ask!(other, it => it.after_idle(idle)),
        }
    }

    /// Returns the invariant that is violated, if any.
    pub(crate) fn verify(&self, una: SeqNr, smss: u32) -> Result<(), &'static str> {
        if self.size.bytes < smss {
            return Err("the congestion window has room for a segment");
        }
        if self.phase != Phase::Open && self.recover.before(una) {
            return Err("recovery ends when its mark is acknowledged");
        }
        Ok(())
    }
}
