//! CUBIC as Linux counts it (Ha, Rhee and Xu, "CUBIC: A New TCP-Friendly High-Speed TCP Variant", 2008): in whole segments
//! and in 1024ths of a second; the window grows by a segment for every `pace` segments acknowledged. It differs from RFC 9438
//! in rounding and in the maximum growth.

use super::controller::{Acked, Controller, Loss, Window};
use super::cubic::cube_root;
use crate::clock::Moment;
use baton_wire::Span;
use serde::{Deserialize, Serialize};

/// Parts of a second, as a power of two.
const SECOND_SHIFT: u32 = 10;
/// beta, in 1024ths.
const BETA: u32 = 717;
const BETA_UNIT: u32 = 1024;
/// C is 0.4 segments per cubic second: 410 / 2^10, divided by 2^30 for time in 1024ths of a second.
const C: u64 = 410;
const C_SHIFT: u32 = 10 + 3 * SECOND_SHIFT;
/// Reno with the same reduction grows by a segment for every 15/8 windows of acknowledged segments.
const FRIENDLY: (u32, u32) = (15, 8);
/// Before the first loss the window grows by at least one segment for this many acknowledged ones.
const SLOWEST_BEFORE_A_LOSS: u32 = 20;
/// The window grows by at most one segment for this many acknowledged ones.
const FASTEST: u32 = 2;
/// At the plateau the window grows by a segment for this many windows acknowledged.
const PLATEAU: u32 = 100;
/// Minimum time between updates of the pace while the window does not change.
const UPDATE: Span = Span::from_us(31_250);
const TICK: Span = Span::from_ms(1);
/// Round trips measured within this time after the start of a stage do not count.
const AFTER_REDUCTION: Span = Span::from_secs(1);
/// Largest distance from the plateau, in 1024ths of a second, so that its cube fits.
const FARTHEST: u64 = 1 << 18;

/// State of CUBIC; windows are in segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinuxCubic {
    /// Segments that must be acknowledged for the window to grow by one.
    pace: u32,
    /// Acknowledged segments that count towards the next growth.
    counted: u32,
    /// Window before the last reduction, less for fast convergence; zero if none is known.
    last_max: u32,
    /// The window and the moment of the last update.
    last: Option<(u32, Moment)>,
    /// Start of this stage of congestion avoidance.
    epoch: Option<Moment>,
    /// The window at the plateau, and the time until it is reached, in 1024ths of a second.
    origin: u32,
    k: u32,
    /// Least round-trip time.
    least: Option<Span>,
    /// The window that Reno would have, and the segments acknowledged towards its next growth.
    friendly: u32,
    friendly_counted: u32,
}

impl Controller for LinuxCubic {
    fn on_growth(&mut self, window: Window, acked: &Acked) -> u32 {
        let cwnd = (window.bytes / acked.smss).max(1);
        let segments = acked.bytes.div_ceil(acked.smss);
        self.measure(acked);
        self.update(cwnd, segments, acked.now);
        self.advance(segments) * acked.smss
    }

    fn on_loss(&mut self, window: Window, loss: &Loss) -> u32 {
        let cwnd = window.bytes / loss.smss;
        self.epoch = None;
        self.last_max = match cwnd < self.last_max {
            true => cwnd * (BETA_UNIT + BETA) / (2 * BETA_UNIT),
            false => cwnd,
        };
        (cwnd * BETA / BETA_UNIT).max(2) * loss.smss
    }

    /// Resets all state: the next stage starts where slow start ends.
    fn on_timeout(&mut self, window: Window, loss: &Loss) -> u32 {
        let threshold = self.on_loss(window, loss);
        *self = Self::default();
        threshold
    }
}

impl LinuxCubic {
    /// Data is sent `now` after nothing was sent for `idle`: moves the start of this stage later by `idle`, but not beyond now.
    /// As in Linux, an application that was slow without a pause gets no such correction.
    pub(super) fn resume(&mut self, now: Moment, idle: Span) {
        self.epoch = self.epoch.map(|epoch| epoch + idle.min(now.since(epoch)));
    }

    /// Takes a round-trip measurement, in slow start or later. Ignores measurements just after a reduction.
    pub(super) fn measure(&mut self, acked: &Acked) {
        let settled = |epoch| acked.now.since(epoch) >= AFTER_REDUCTION;
        if let Some(rtt) = acked.rtt.filter(|_| self.epoch.is_none_or(settled)) {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Computes the pace anew, if an update is due.
    fn update(&mut self, cwnd: u32, segments: u32, now: Moment) {
        self.friendly_counted += segments;
        if let Some((window, at)) = self.last
            && window == cwnd
            && now.since(at) <= UPDATE
        {
            return;
        }
        let same_tick = self.last.is_some_and(|(_, at)| now.since(at) < TICK);
        if self.epoch.is_none() || !same_tick {
            self.last = Some((cwnd, now));
            let epoch = match self.epoch {
                Some(epoch) => epoch,
                None => self.start_epoch(cwnd, segments, now),
            };
            self.pace = self.pace_towards(self.target(now.since(epoch)), cwnd);
        }
        self.befriend(cwnd);
        self.pace = self.pace.max(FASTEST);
    }

    fn start_epoch(&mut self, cwnd: u32, segments: u32, now: Moment) -> Moment {
        self.epoch = Some(now);
        self.friendly_counted = segments;
        self.friendly = cwnd;
        self.origin = self.last_max.max(cwnd);
        // K = cbrt((W_max - cwnd) / C).
        let below = u64::from(self.origin - cwnd);
        self.k = cube_root((below << C_SHIFT) / C) as u32;
        now
    }

    /// Value of the cubic function a round trip from now.
    fn target(&self, elapsed: Span) -> u32 {
        let at = elapsed + self.least.unwrap_or(Span::ZERO);
        let ticks = ((at.as_ps() / TICK.as_ps()) << SECOND_SHIFT) / 1000;
        let distance = ticks.abs_diff(self.k.into()).min(FARTHEST);
        let offset = (u128::from(C) * u128::from(distance).pow(3)) >> C_SHIFT;
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        match ticks < self.k.into() {
            true => self.origin.saturating_sub(offset),
            false => self.origin.saturating_add(offset),
        }
    }

    fn pace_towards(&self, target: u32, cwnd: u32) -> u32 {
        let pace = match target.checked_sub(cwnd) {
            Some(above) if above > 0 => cwnd / above,
            _ => PLATEAU.saturating_mul(cwnd),
        };
        match self.last_max {
            0 => pace.min(SLOWEST_BEFORE_A_LOSS),
            _ => pace,
        }
    }

    /// Makes the window grow no slower than Reno's.
    fn befriend(&mut self, cwnd: u32) {
        let each = (cwnd * FRIENDLY.0 / FRIENDLY.1).max(1);
        // An exact multiple of `each` does not add a segment yet.
        let more = self.friendly_counted.saturating_sub(1) / each;
        self.friendly_counted -= more * each;
        self.friendly += more;
        if self.friendly > cwnd {
            self.pace = self.pace.min(cwnd / (self.friendly - cwnd));
        }
    }

    /// Returns by how many segments the window grows.
    fn advance(&mut self, segments: u32) -> u32 {
        let mut growth = 0;
        if self.counted >= self.pace {
            // The pace got faster.
            self.counted = 0;
            growth = 1;
        }
        self.counted += segments;
        growth += self.counted / self.pace;
        self.counted %= self.pace;
        growth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u32 = 1000;

    fn at(ms: u64) -> Moment {
        Moment::default() + Span::from_ms(ms)
    }

    fn window(segments: u32) -> Window {
        Window {
            bytes: segments * SMSS,
            threshold: SMSS,
        }
    }

    fn acked(now_ms: u64) -> Acked {
        Acked {
            now: at(now_ms),
            bytes: SMSS,
            smss: SMSS,
            rtt: Some(Span::from_ms(100)),
            srtt: Span::from_ms(100),
        }
    }

    fn loss() -> Loss {
        Loss {
            now: at(1),
            flight: 0,
            smss: SMSS,
        }
    }

    /// By the formulas: 717/1024, and for a smaller maximum (1024 + 717)/2048 of the window.
    #[test]
    fn a_loss_leaves_seven_tenths_in_whole_segments() {
        let mut cubic = LinuxCubic::default();
        assert_eq!(cubic.on_loss(window(100), &loss()), 70 * SMSS);
        assert_eq!(cubic.last_max, 100);
        assert_eq!(cubic.on_loss(window(70), &loss()), 49 * SMSS);
        assert_eq!(cubic.last_max, 59);
        assert_eq!(cubic.on_loss(window(2), &loss()), 2 * SMSS);
        assert_eq!(cubic.on_timeout(window(50), &loss()), 35 * SMSS);
        assert_eq!(cubic, LinuxCubic::default());
    }

    /// A window of 70 after a loss at 100: the plateau is cbrt(30 * 1024 / 410) = 4.2 s away.
    #[test]
    fn the_window_is_back_at_the_plateau_in_time() {
        let mut cubic = LinuxCubic::default();
        cubic.on_loss(window(100), &loss());
        let mut cwnd = 70;
        let mut reached_ms = None;
        for round in 0..80 {
            let before = cwnd;
            for _ in 0..before {
                cwnd += cubic.on_growth(window(cwnd), &acked(1000 + round * 100)) / SMSS;
            }
            if cwnd >= 99 && reached_ms.is_none() {
                reached_ms = Some(round * 100);
            }
        }
        assert_eq!(cubic.k, 4316);
        let reached_ms = reached_ms.expect("it gets there");
        assert!((2500..4500).contains(&reached_ms), "{reached_ms}");
        assert!(cwnd > 110, "and beyond it: {cwnd}");
    }

    /// A stage that began at 1 s is shifted by the pause, but no further than to the current time.
    #[test]
    fn an_idle_pause_does_not_count() {
        let mut cubic = LinuxCubic::default();
        cubic.on_growth(window(1000), &acked(1000));
        cubic.resume(at(6000), Span::from_secs(3));
        assert_eq!(cubic.epoch, Some(at(4000)));
        cubic.resume(at(6000), Span::from_secs(5));
        assert_eq!(cubic.epoch, Some(at(6000)));
    }

    /// Without a loss: a segment for twenty at the slowest, for two at the fastest.
    #[test]
    fn the_growth_rate_has_bounds() {
        let mut cubic = LinuxCubic::default();
        let grown = |cubic: &mut LinuxCubic, now_ms| -> u32 {
            let growths = (0..20).map(|_| cubic.on_growth(window(1000), &acked(now_ms)));
            growths.sum::<u32>() / SMSS
        };
        assert_eq!(grown(&mut cubic, 1000), 1);
        assert_eq!(grown(&mut cubic, 60_000), 10);
    }
}
