//! Searches for the highest load at which no more than some share is lost.
//!
//! [`multiple`] follows draft-ietf-bmwg-mlrsearch-15, *Multiple Loss Ratio Search* (November 2025): goals with a loss ratio and an exceed
//! ratio, loads classified as lower bounds, upper bounds or undecided, all trials shared by all goals, and the conditional throughput as
//! result. All trials here are long (the draft's *full-length trials*). [`bisection`] is the usual binary search for RFC 2544, once for each goal.

mod bisection;
mod bounds;
mod multiple;
#[cfg(test)]
mod tests;

pub use bisection::bisection;
pub use bounds::{Bound, GoalResult};
pub use multiple::multiple;

use serde::Serialize;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// The share of a trial's frames that may be lost, 0 to 1, 1 excluded.
    pub loss_ratio: f64,
    /// The share of the trials at one load that may lose more, 0 to 1.
    pub exceed_ratio: f64,
    /// Trials at one load: the draft's duration sum over its trial duration. One where equal loads give equal results.
    pub trials: u32,
}

impl Goal {
    /// A goal for something that always does the same.
    pub const fn deterministic(loss_ratio: f64) -> Self {
        Self {
            loss_ratio,
            exceed_ratio: 0.0,
            trials: 1,
        }
    }

    /// A goal for a real device: of 21 s of trials of a second, half may lose more (the draft's common goal of FD.io).
    pub const fn live(loss_ratio: f64) -> Self {
        Self {
            loss_ratio,
            exceed_ratio: 0.5,
            trials: 21,
        }
    }
}

/// Where to look, and how exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least load that is tried.
    pub least: f64,
    /// The greatest load, which is tried first.
    pub most: f64,
    /// The search ends when lower and upper bound are no further apart than this share of the upper one.
    pub width: f64,
}

impl Range {
    fn is_narrow(&self, lower: f64, upper: f64) -> bool {
        upper - lower <= self.width * upper
    }
}

/// What a trial says to a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The share of the offered frames that was lost, 0 to 1.
    pub loss_ratio: f64,
    /// Frames that were forwarded a second.
    pub forwarding_rate: f64,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The results, in the order of the goals.
    pub goals: Vec<GoalResult>,
    /// How many trials it took.
    pub trials: u32,
}
