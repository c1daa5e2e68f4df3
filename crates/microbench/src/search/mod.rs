//! Searches for the highest load at which at most some share of the frames is lost.
//!
//! [`multiple`] follows draft-ietf-bmwg-mlrsearch-15, *Multiple Loss Ratio Search* (November 2025): goals with a loss ratio and an exceed
//! ratio, loads classified as lower bounds, upper bounds or undecided, all trials shared by all goals, and the conditional throughput as
//! result. All trials here are long (the draft's *full-length trials*). [`bisection`] is the usual binary search for RFC 2544, once for
//! each goal.

mod bisection;
mod bounds;
mod multiple;
#[cfg(test)]
mod tests;

pub use bisection::bisection;
pub use bounds::{Bound, GoalResult};
pub use multiple::multiple;

use serde::Serialize;

/// Goal of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// Share of a trial's frames that may be lost, from 0 to below 1.
    pub loss_ratio: f64,
    /// Share of the trials at one load that may lose more, 0 to 1.
    pub exceed_ratio: f64,
    /// Number of trials at one load: the draft's duration sum over its trial duration. 1 if equal loads give equal results.
    pub trials: u32,
}

impl Goal {
    /// Returns a goal for a deterministic device.
    pub const fn deterministic(loss_ratio: f64) -> Self {
        Self {
            loss_ratio,
            exceed_ratio: 0.0,
            trials: 1,
        }
    }

    /// Returns a goal for a real device: of 21 trials of one second, half may lose more (the draft's common goal of FD.io).
    pub const fn live(loss_ratio: f64) -> Self {
        Self {
            loss_ratio,
            exceed_ratio: 0.5,
            trials: 21,
        }
    }
}

/// Range of loads, and precision of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Least load that is tried.
    pub least: f64,
    /// Greatest load, which is tried first.
    pub most: f64,
    /// The search ends when lower and upper bound differ by at most this share of the upper bound.
    pub width: f64,
}

impl Range {
    fn is_narrow(&self, lower: f64, upper: f64) -> bool {
        upper - lower <= self.width * upper
    }
}

/// Result of a trial, as a search needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Share of the offered frames that was lost, 0 to 1.
    pub loss_ratio: f64,
    /// Frames forwarded per second.
    pub forwarding_rate: f64,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The results, in the order of the goals.
    pub goals: Vec<GoalResult>,
    /// Number of trials made.
    pub trials: u32,
}
