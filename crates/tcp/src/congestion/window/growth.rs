//! Growth of the window: slow start, its early end, and congestion avoidance as the algorithm defines it.

use super::{CongestionWindow, LARGEST_WINDOW, Phase};
use crate::config::{Congestion, WindowCounting};
use crate::congestion::algorithm::ask;
use crate::congestion::hystart::{EarlyExit, LARGEST_STEP_SEGMENTS};
use crate::congestion::{Acked, Algorithm, Controller, Window};
use baton_wire::{SeqNr, Span};

impl CongestionWindow {
    /// Grows the window after an acknowledgment of new data outside of fast recovery; `una` is SND.UNA and `max` SND.MAX. An
    /// unused window does not grow, since nothing was learnt about it (RFC 7661 1, RFC 9002 7.8).
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

    /// Ends slow start before this acknowledgment counts, if Linux's HyStart, which is a part of CUBIC, says so.
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

    /// Reports whether HyStart++ ends slow start with this acknowledgment.
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

    /// Slow start (RFC 5681 3.1). One acknowledgment counts for at most L of RFC 3465 2.2 and 2.3 (2 segments, 1 after a
    /// timeout) or of RFC 9406 4.2.
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

    /// RFC 9406 4.3: HyStart++ is only for the first slow start.
    fn is_in_first_slow_start(&self) -> bool {
        self.size.threshold == LARGEST_WINDOW
    }

    /// Reduces the growth of slow start as HyStart++ requires.
    fn careful(&self, growth: u32) -> u32 {
        match &self.early_exit {
            EarlyExit::Rounds(hystart) if self.is_in_first_slow_start() => hystart.growth(growth),
            _ => growth,
        }
    }

    /// Applies slow start up to ssthresh and congestion avoidance to the rest of the acknowledgment.
    fn grow_as_linux(&mut self, acked: &Acked, gap: Span) {
        let Window { bytes, threshold } = self.size;
        let limited = bytes <= self.peak.saturating_add(acked.smss);
        if let Algorithm::LinuxCubic(cubic) = &mut self.algorithm {
            cubic.measure(acked);
        }
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
        // A window that was used up counts as used until the data sent then is acknowledged, however much it grows meanwhile.
        if bytes <= self.peak {
            self.peak = self.peak.max(self.size.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;
    use crate::config::{Config, LinuxRules};

    const SMSS: u32 = 1000;

    /// A window of `segments` that grows by Linux's rules.
    fn as_linux(segments: u32) -> CongestionWindow {
        let config = Config {
            linux: LinuxRules::ALL,
            window_counting: WindowCounting::Linux,
            ..Config::default()
        };
        let mut window = CongestionWindow::new(SeqNr(0), &config);
        window.start(segments * SMSS, SeqNr(1), &config);
        window
    }

    /// `segments` are acknowledged at the time `after`, each 100 ms after it was sent.
    fn acked(after: Span, segments: u32) -> Acked {
        Acked {
            now: Moment::default() + after,
            bytes: segments * SMSS,
            smss: SMSS,
            rtt: Some(Span::from_ms(100)),
            srtt: Span::from_ms(100),
        }
    }

    /// Two segments are acknowledged each 100 ms, behind a queue that slow start fills: CUBIC's least round trip is that of
    /// the first segments. Without a loss the window grows by one for twenty segments, until the cubic function, which is at
    /// 0.4 * t^3 segments a round trip later, is above it.
    #[test]
    fn round_trips_of_slow_start_count_for_cubic_as_linux_has_it() {
        let mut una = SeqNr(1);
        let mut window = as_linux(10);
        let mut sizes = Vec::new();
        for number in 1..=50 {
            window.sent(window.window(), una, una + window.window());
            let max = una + window.window();
            una += 2 * SMSS;
            let queued = u64::from(window.window() / SMSS / 2);
            let acked = Acked {
                rtt: Some(Span::from_ms(100 * queued.min(number))),
                ..acked(Span::from_ms(100 * number), 2)
            };
            window.grow(&acked, una, max);
            sizes.push(window.window() / SMSS);
        }
        // HyStart looks at the ninth round trip of the second round, which is the fourteenth of all.
        assert_eq!(
            sizes[..14],
            [12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 36]
        );
        // 1, 2, 3 and 3.6 s after that, as Linux's whole numbers have it.
        assert_eq!(
            [23, 33, 43, 49].map(|at: usize| sizes[at]),
            [37, 38, 41, 45]
        );
    }

    /// A window that was used up once, long after the last loss, grows by a segment for two while the end of the data is
    /// acknowledged and nothing more is sent (tcp_is_cwnd_limited of Linux).
    #[test]
    fn a_fully_used_window_grows_while_its_data_is_acknowledged() {
        let mut una = SeqNr(1);
        let mut window = as_linux(20);
        window.size.threshold = 20 * SMSS;
        let mut acknowledge = |window: &mut CongestionWindow, seconds, segments| {
            una += segments * SMSS;
            window.grow(&acked(Span::from_secs(seconds), segments), una, una);
        };
        window.sent(20 * SMSS, SeqNr(1), SeqNr(1) + 20 * SMSS);
        acknowledge(&mut window, 1, 2);
        for _ in 0..8 {
            acknowledge(&mut window, 60, 2);
        }
        // One of the added segments is for segments that were acknowledged before the pace got faster.
        assert_eq!(window.window(), 29 * SMSS);
    }

    /// Nine of ten segments of the window were used: slow start continues up to twice that (tcp_is_cwnd_limited).
    #[test]
    fn a_partly_used_window_grows_to_twice_the_used_part() {
        let mut window = as_linux(10);
        window.sent(9 * SMSS, SeqNr(1), SeqNr(1) + 9 * SMSS);
        for number in 1..=9 {
            let acked = acked(Span::from_ms(5 * u64::from(number)), 1);
            window.grow(&acked, SeqNr(1) + number * SMSS, SeqNr(1) + 9 * SMSS);
        }
        assert_eq!(window.window(), 18 * SMSS);
    }
}
