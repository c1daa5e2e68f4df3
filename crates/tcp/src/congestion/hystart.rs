//! HyStart++ (RFC 9406): slow start ends when round trips get longer, before anything is lost.

use super::hystart_linux::TrainHyStart;
use crate::config::Config;
use baton_wire::{SeqNr, Span};
use serde::{Deserialize, Serialize};

/// MIN_RTT_THRESH and MAX_RTT_THRESH (RFC 9406 4.3).
const LEAST_RISE_US: u32 = 4_000;
const MOST_RISE_US: u32 = 16_000;
/// MIN_RTT_DIVISOR.
const RISE_DIVISOR: u32 = 8;
/// N_RTT_SAMPLE.
const SAMPLES: u8 = 8;
/// CSS_GROWTH_DIVISOR.
const GROWTH_DIVISOR: u32 = 4;
/// CSS_ROUNDS.
const ROUNDS: u8 = 5;
/// L without pacing: most segments by which one acknowledgment grows the window.
pub(super) const LARGEST_STEP_SEGMENTS: u32 = 8;

/// Nothing measured yet.
const UNKNOWN: u32 = u32::MAX;

/// The algorithm that ends slow start before a loss does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EarlyExit {
    Off,
    /// HyStart++ (RFC 9406).
    Rounds(HyStart),
    /// HyStart as implemented in Linux.
    Trains(Box<TrainHyStart>),
}

impl EarlyExit {
    /// Creates the configured algorithm for a connection that was just established; `next` is SND.NXT.
    pub(super) fn new(next: SeqNr, config: &Config) -> Self {
        match (config.hystart, config.linux.hystart) {
            (false, _) => Self::Off,
            (true, false) => Self::Rounds(HyStart::new(next)),
            (true, true) => Self::Trains(Box::new(TrainHyStart::new(next, config.linux.paces))),
        }
    }
}

/// State of HyStart++ for the rounds of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HyStart {
    /// windowEnd: the round ends when this is acknowledged.
    end: SeqNr,
    last_min_us: u32,
    current_min_us: u32,
    samples: u8,
    /// Round-trip time at which conservative slow start began; `None` outside of it.
    baseline_us: Option<u32>,
    /// Rounds of conservative slow start so far.
    rounds: u8,
}

impl HyStart {
    pub(super) fn new(next: SeqNr) -> Self {
        Self {
            end: next,
            last_min_us: UNKNOWN,
            current_min_us: UNKNOWN,
            samples: 0,
            baseline_us: None,
            rounds: 0,
        }
    }

    /// Processes an acknowledgment up to `una` in slow start; `next` is SND.NXT. Returns true if slow start ends.
    pub(super) fn on_ack(&mut self, una: SeqNr, next: SeqNr, rtt: Option<Span>) -> bool {
        let ended = una.after(self.end) && self.end_round(next);
        if let Some(rtt) = rtt {
            let rtt_us = rtt.as_us().min(u64::from(UNKNOWN - 1)) as u32;
            self.current_min_us = self.current_min_us.min(rtt_us);
            self.samples = self.samples.saturating_add(1);
            self.judge();
        }
        ended
    }

    /// Returns by how much the window grows if slow start alone would grow it by `growth`.
    pub(super) fn growth(&self, growth: u32) -> u32 {
        match self.baseline_us {
            Some(_) => growth / GROWTH_DIVISOR,
            None => growth,
        }
    }

    fn end_round(&mut self, next: SeqNr) -> bool {
        self.end = next;
        self.last_min_us = self.current_min_us;
        self.current_min_us = UNKNOWN;
        self.samples = 0;
        if self.baseline_us.is_some() {
            self.rounds += 1;
        }
        self.rounds >= ROUNDS
    }

    fn judge(&mut self) {
        if self.samples < SAMPLES {
            return;
        }
        if let Some(baseline) = self.baseline_us {
            if self.current_min_us < baseline {
                // The rise was spurious: back to slow start.
                self.baseline_us = None;
                self.rounds = 0;
            }
        } else if self.last_min_us != UNKNOWN {
            let rise = (self.last_min_us / RISE_DIVISOR).clamp(LEAST_RISE_US, MOST_RISE_US);
            if self.current_min_us >= self.last_min_us.saturating_add(rise) {
                self.baseline_us = Some(self.current_min_us);
                self.rounds = 0;
            }
        }
    }
}
