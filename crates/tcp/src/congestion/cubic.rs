//! CUBIC (RFC 9438): after a loss the window follows a cubic function of time, flat around the size at which the loss
//! happened, so that growth does not depend on the round-trip time. Integer arithmetic throughout: the same bits on
//! every machine. Times are in milliseconds, windows in bytes; the RFC's are in seconds and segments.

use super::controller::{Acked, Controller, Loss, Window};
use crate::clock::Moment;
use baton_wire::Span;
use serde::{Deserialize, Serialize};

/// beta_cubic is 0.7 (RFC 9438 4.6).
const BETA: (u64, u64) = (7, 10);
/// alpha_cubic is 3 * (1 - beta) / (1 + beta) (RFC 9438 4.3).
const ALPHA: (u64, u64) = (9, 17);
/// (1 + beta) / 2, for fast convergence (RFC 9438 4.7).
const CONVERGENCE: (u64, u64) = (17, 20);
/// C is 0.4 segments per cubic second (RFC 9438 5): 2 segments per 5e9 cubic milliseconds.
const C: (u64, u64) = (2, 5_000_000_000);
/// Maximum distance from K at which the function is evaluated, ms: its value there differs from W_max by 400,000 segments.
const FARTHEST_MS: u64 = 100_000;

/// State of CUBIC (RFC 9438 4.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cubic {
    /// Window just before the last reduction, less for fast convergence; zero if none is known.
    w_max: u32,
    /// cwnd_prior: cwnd before the last reduction.
    prior: u32,
    /// W_est: the window that Reno would have.
    w_est: u32,
    /// Time from the start of this stage of congestion avoidance to W_max.
    k_ms: u32,
    /// Start of this stage; `None` before its first acknowledgment.
    epoch: Option<Moment>,
    /// Remainders of the growth of the window and of W_est that are less than a byte.
    credit: u64,
    credit_est: u64,
}

impl Controller for Cubic {
    fn on_growth(&mut self, window: Window, acked: &Acked) -> u32 {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.start_epoch(window.bytes, acked),
        };
        self.grow_estimate(window.bytes, acked);
        let elapsed_ms = acked.now.since(epoch).as_ps() / Span::from_ms(1).as_ps();
        let smss = acked.smss.into();
        if self.cubic(elapsed_ms, smss) < self.w_est.into() {
            // Reno-friendly region (RFC 9438 4.3).
            return self.w_est.saturating_sub(window.bytes);
        }
        // Concave and convex regions (RFC 9438 4.4, 4.5): the window approaches the value of the function one round trip from now.
        let bytes = u64::from(window.bytes);
        let rtt_ms = acked.srtt.as_ps() / Span::from_ms(1).as_ps();
        let target = self
            .cubic(elapsed_ms + rtt_ms, smss)
            .clamp(bytes, bytes * 3 / 2);
        self.credit += u64::from(acked.bytes) * (target - bytes);
        let growth = self.credit / bytes;
        self.credit %= bytes;
        growth.min(target - bytes) as u32
    }

    /// RFC 9438 4.6 and 4.7.
    fn on_loss(&mut self, window: Window, loss: &Loss) -> u32 {
        let bytes = window.bytes;
        self.w_max = match bytes < self.w_max {
            true => part(bytes, CONVERGENCE),
            false => bytes,
        };
        self.prior = bytes;
        self.epoch = None;
        part(loss.flight.min(bytes), BETA).max(2 * loss.smss)
    }

    /// RFC 9438 4.8: the next stage starts flat, where slow start ends.
    fn on_timeout(&mut self, window: Window, loss: &Loss) -> u32 {
        let threshold = self.on_loss(window, loss);
        self.w_max = 0;
        threshold
    }

    /// RFC 9438 5.8: time in which the window was not used does not count.
    fn after_idle(&mut self, idle: Span) {
        self.epoch = self.epoch.map(|epoch| epoch + idle);
    }
}

impl Cubic {
    /// Congestion avoidance begins (RFC 9438 4.2).
    fn start_epoch(&mut self, bytes: u32, acked: &Acked) -> Moment {
        self.epoch = Some(acked.now);
        self.credit = 0;
        self.credit_est = 0;
        self.w_est = bytes;
        if self.w_max <= bytes {
            self.w_max = bytes;
            self.k_ms = 0;
        } else {
            // K = cbrt((W_max - cwnd_epoch) / C).
            let cubed = u64::from(self.w_max - bytes) * (C.1 / C.0) / u64::from(acked.smss);
            self.k_ms = cube_root(cubed) as u32;
        }
        acked.now
    }

    /// RFC 9438 4.3, equation 4: alpha compensates for Reno's larger reduction until W_est reaches the window of the last loss.
    fn grow_estimate(&mut self, bytes: u32, acked: &Acked) {
        let (numerator, denominator) = if self.w_est >= self.prior {
            (1, 1)
        } else {
            ALPHA
        };
        let per = u64::from(bytes) * denominator;
        self.credit_est += u64::from(acked.bytes) * u64::from(acked.smss) * numerator;
        self.w_est = self
            .w_est
            .saturating_add((self.credit_est / per).min(u32::MAX.into()) as u32);
        self.credit_est %= per;
    }

    /// W_cubic(t) (RFC 9438 4.2, equation 1), in bytes.
    fn cubic(&self, t_ms: u64, smss: u64) -> u64 {
        let distance = t_ms.abs_diff(self.k_ms.into()).min(FARTHEST_MS);
        // In thousandths of a segment, so that nothing overflows.
        let offset = distance.pow(3) / (C.1 / C.0 / 1000) * smss / 1000;
        let w_max = u64::from(self.w_max);
        match t_ms < self.k_ms.into() {
            true => w_max.saturating_sub(offset),
            false => w_max + offset,
        }
    }
}

fn part(whole: u32, (numerator, denominator): (u64, u64)) -> u32 {
    (u64::from(whole) * numerator / denominator) as u32
}

/// The largest integer whose cube is at most `x`, bit by bit (Warren, Hacker's Delight, 11-2).
pub(super) fn cube_root(mut x: u64) -> u64 {
    let mut root = 0u64;
    let mut shift = 63;
    loop {
        root *= 2;
        let step = 3 * root * (root + 1) + 1;
        if (x >> shift) >= step {
            x -= step << shift;
            root += 1;
        }
        if shift == 0 {
            return root;
        }
        shift -= 3;
    }
}

#[cfg(test)]
mod tests;
