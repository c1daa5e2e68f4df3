//! DCTCP (RFC 8257): queues mark packets above a low threshold, and the window is reduced in proportion to the share of
//! marked data. For networks under one administration; losses are handled as in NewReno.

use super::controller::{Ack, Acked, Controller, Loss, Needs, Window};
use super::new_reno::NewReno;
use serde::{Deserialize, Serialize};

/// Fixed-point representation of the share 1.
const ONE: u32 = 1 << 20;
/// g is 1/16 (RFC 8257 4.2).
const GAIN_SHIFT: u32 = 4;

/// State of DCTCP (RFC 8257 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dctcp {
    /// The window grows as NewReno's.
    reno: NewReno,
    /// DCTCP.Alpha: the smoothed share of sent data that was marked.
    alpha: u32,
    /// DCTCP.WindowEnd, as bytes beyond where the observation began.
    window: u32,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked.
    acked: u32,
    marked: u32,
}

impl Default for Dctcp {
    /// The first mark halves the window: nothing is known of the share yet (RFC 8257 3.3).
    fn default() -> Self {
        Self {
            reno: NewReno::default(),
            alpha: ONE,
            window: 0,
            acked: 0,
            marked: 0,
        }
    }
}

impl Controller for Dctcp {
    fn needs(&self) -> Needs {
        Needs::ACKS | Needs::EACH_MARK
    }

    /// RFC 8257 3.3, steps 1 to 8.
    fn on_ack(&mut self, ack: &Ack) {
        self.acked = self.acked.saturating_add(ack.acked);
        if ack.echoes_congestion {
            self.marked = self.marked.saturating_add(ack.acked);
        }
        if self.acked <= self.window {
            return;
        }
        let share = u64::from(self.marked) * u64::from(ONE) / u64::from(self.acked);
        self.alpha -= self.alpha >> GAIN_SHIFT;
        self.alpha = (self.alpha + (share as u32 >> GAIN_SHIFT)).min(ONE);
        self.window = ack.flight;
        self.acked = 0;
        self.marked = 0;
    }

    fn on_growth(&mut self, window: Window, acked: &Acked) -> u32 {
        self.reno.on_growth(window, acked)
    }

    /// RFC 8257 3.4: losses are handled as without DCTCP.
    fn on_loss(&mut self, window: Window, loss: &Loss) -> u32 {
        self.reno.on_loss(window, loss)
    }

    /// RFC 8257 3.3, step 9: cwnd * (1 - Alpha / 2).
    fn on_ecn_echo(&mut self, window: Window, loss: &Loss) -> u32 {
        self.reno = NewReno::default();
        let cut = u64::from(window.bytes) * u64::from(self.alpha) / u64::from(2 * ONE);
        window.bytes.saturating_sub(cut as u32).max(2 * loss.smss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;

    const SMSS: u32 = 1000;

    fn ack(acked: u32, flight: u32, echoes_congestion: bool) -> Ack {
        Ack {
            now: Moment::ZERO,
            smss: SMSS,
            acked,
            delivered: acked,
            flight,
            in_flight: flight,
            rtt: None,
            echoes_congestion,
            recovering: false,
            used_window: true,
            sample: None,
        }
    }

    fn window(bytes: u32) -> Window {
        Window {
            bytes,
            threshold: bytes,
        }
    }

    const LOSS: Loss = Loss {
        now: Moment::ZERO,
        flight: 100_000,
        smss: SMSS,
    };

    /// Observation windows of ten segments, of which `marked` are.
    fn observe(dctcp: &mut Dctcp, windows: usize, marked: u32) {
        for _ in 0..windows {
            for number in 0..10 {
                dctcp.on_ack(&ack(SMSS, 9 * SMSS, number < marked));
            }
        }
    }

    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut dctcp = Dctcp::default();
        dctcp.on_ack(&ack(0, 9 * SMSS, false));
        for marked in [0, 10, 3, 5] {
            observe(&mut dctcp, 150, marked);
            let share = f64::from(dctcp.alpha) / f64::from(ONE);
            let expected = f64::from(marked) / 10.0;
            assert!((share - expected).abs() < 0.001, "{share} of {expected}");
        }
    }

    #[test]
    fn alpha_moves_by_a_sixteenth_a_window() {
        let mut dctcp = Dctcp::default();
        observe(&mut dctcp, 1, 0);
        assert_eq!(
            dctcp.alpha,
            ONE / 16 * 15,
            "the first acknowledgment ends a window of nothing"
        );
        observe(&mut dctcp, 1, 0);
        assert_eq!(dctcp.alpha, ONE / 16 * 15 / 16 * 15);
    }

    #[test]
    fn the_window_comes_down_by_half_of_alpha() {
        let mut dctcp = Dctcp::default();
        assert_eq!(dctcp.on_ecn_echo(window(100_000), &LOSS), 50_000);
        dctcp.alpha = ONE / 4;
        assert_eq!(dctcp.on_ecn_echo(window(100_000), &LOSS), 87_500);
        dctcp.alpha = 0;
        assert_eq!(dctcp.on_ecn_echo(window(100_000), &LOSS), 100_000);
        dctcp.alpha = ONE;
        assert_eq!(dctcp.on_ecn_echo(window(2500), &LOSS), 2 * SMSS);
    }

    #[test]
    fn a_loss_halves_whatever_alpha_is() {
        let mut dctcp = Dctcp {
            alpha: 0,
            ..Dctcp::default()
        };
        assert_eq!(dctcp.on_loss(window(100_000), &LOSS), 50_000);
        assert_eq!(dctcp.on_timeout(window(100_000), &LOSS), 50_000);
    }
}
