//! How the window grows: slow start, its early end, and what the algorithm makes of congestion avoidance.

use super::{CongestionWindow, LARGEST_WINDOW, Phase};
use crate::config::{Congestion, WindowCounting};
use crate::congestion::algorithm::ask;
use crate::congestion::hystart::{EarlyExit, LARGEST_STEP_SEGMENTS};
use crate::congestion::{Acked, Algorithm, Controller, Window};
use baton_wire::{SeqNr, Span};

impl CongestionWindow {
    /// New data was acknowledged outside of fast recovery, up to `una` of what was sent up to `max`. A window that is
    /// not used does not grow: nothing was learnt about it (RFC 7661 1, RFC 9002 7.8).
    pub(crate) fn grow(&mut self, acked: &Acked, una: SeqNr, max: SeqNr) {
        let gap = acked.now.since(self.last_ack);
        self.last_ack = acked.now;
        if self.is_governed() {
            return;
        }
        self.end_with_train(acked, una, max);
        let Window { bytes, threshold } = self.size;
        let over = bytes < threshold && self.rounds_are_over(acked, una, max);
        if self.counting == WindowCounting::Linux {
            self.grow_as_linux(acked, gap);
        } else if bytes < threshold {
            let used = bytes <= self.peak.saturating_mul(2);
            self.slow_start(acked, used);
        } else if bytes <= self.peak.saturating_add(acked.smss) {
            self.size.bytes += self.growth(acked);
        } else {
            ask!(&mut self.algorithm, it => it.after_idle(gap));
        }
        self.size.bytes = self.size.bytes.min(LARGEST_WINDOW);
        if over {
            self.size.threshold = self.size.bytes;
        }
    }

    /// Slow start ends before this acknowledgment counts, if Linux's HyStart says so: it is a part of CUBIC.
    fn end_with_train(&mut self, acked: &Acked, una: SeqNr, max: SeqNr) {
        let Window { bytes, threshold } = self.size;
        if let EarlyExit::Trains(trains) = &mut self.early_exit
            && self.algorithm.kind() == Congestion::Cubic
            && bytes < threshold
            && trains.on_ack(acked, una, max, bytes)
        {
            self.size.threshold = bytes;
        }
    }

    /// Slow start ends with this acknowledgment, if HyStart++ says so.
    fn rounds_are_over(&mut self, acked: &Acked, una: SeqNr, max: SeqNr) -> bool {
        let initial = self.is_in_first_slow_start();
        match &mut self.early_exit {
            EarlyExit::Rounds(hystart) if initial => hystart.on_ack(una, max, acked.rtt),
            _ => false,
        }
    }

    fn growth(&mut self, acked: &Acked) -> u32 {
        let size = self.size;
        ask!(&mut self.algorithm, it => it.on_growth(size, acked))
    }

    /// RFC 5681 3.1. The most that one acknowledgment counts for is L of RFC 3465 2.2 and 2.3: 2 segments, 1 after a
    /// timeout; or that of RFC 9406 4.2.
    fn slow_start(&mut self, acked: &Acked, used: bool) {
        let segments = match &self.early_exit {
            EarlyExit::Rounds(_) if self.is_in_first_slow_start() => LARGEST_STEP_SEGMENTS,
            _ if self.phase == Phase::Timeout => 1,
            _ => 2,
        };
        if used {
            self.size.bytes += self.careful(acked.bytes.min(segments * acked.smss));
        }
    }

    /// RFC 9406 4.3: HyStart++ is for this one only.
    fn is_in_first_slow_start(&self) -> bool {
        self.size.threshold == LARGEST_WINDOW
    }

    /// What HyStart++ leaves of the growth of slow start.
    fn careful(&self, growth: u32) -> u32 {
        match &self.early_exit {
            EarlyExit::Rounds(hystart) if self.is_in_first_slow_start() => hystart.growth(growth),
            _ => growth,
        }
    }

    /// Slow start up to ssthresh, the rest of the acknowledgment in congestion avoidance.
    fn grow_as_linux(&mut self, acked: &Acked, gap: Span) {
        let Window { bytes, threshold } = self.size;
        let limited = bytes <= self.peak.saturating_add(acked.smss);
        if bytes < threshold && (limited || bytes < self.peak.saturating_mul(2)) {
            let growth = self.careful(acked.bytes).min(threshold - bytes);
            self.size.bytes += growth;
            let rest = acked.bytes - growth;
            if self.size.bytes == threshold && rest > 0 {
                let rest = Acked {
                    bytes: rest,
                    ..*acked
                };
                self.size.bytes += self.growth(&rest);
            }
        } else if bytes >= threshold && limited {
            self.size.bytes += self.growth(acked);
        } else {
            ask!(&mut self.algorithm, it => it.after_idle(gap));
        }
    }
}
