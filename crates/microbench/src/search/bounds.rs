//! Trials by load, and what they say about each load.

use super::{Goal, Measured, Range};
use serde::Serialize;
use std::collections::BTreeMap;

/// Classification of a load for a goal (the draft's load classification).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The load meets the goal.
    Lower,
    /// The load does not meet the goal.
    Upper,
    /// More trials are needed.
    Undecided,
}

/// Result of the search for a goal (the draft's goal result).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GoalResult {
    /// The goal.
    pub goal: Goal,
    /// Greatest load below `upper` that meets the goal; `None` if no tried load does.
    pub lower: Option<f64>,
    /// Least load that does not meet the goal; `None` if all do.
    pub upper: Option<f64>,
    /// Forwarding rate at `lower`.
    pub conditional_throughput: Option<f64>,
}

/// All trials by their load. Loads are positive, so their bit patterns have the same order.
#[derive(Debug, Default)]
pub(super) struct Trials(BTreeMap<u64, Vec<Measured>>);

impl Trials {
    pub(super) fn add(&mut self, load: f64, measured: Measured) {
        assert!(load > 0.0, "loads are positive");
        self.0.entry(load.to_bits()).or_default().push(measured);
    }

    fn at(&self, load: f64) -> &[Measured] {
        self.0.get(&load.to_bits()).map_or(&[], Vec::as_slice)
    }

    /// Classifies `load` by its trials. The load stays undecided while missing trials could change the result.
    pub(super) fn classify(&self, load: f64, goal: &Goal) -> Bound {
        let trials = self.at(load);
        let bad = trials.iter().filter(|one| one.loss_ratio > goal.loss_ratio);
        let bad = bad.count() as f64;
        let whole = (trials.len() as f64).max(goal.trials.into());
        let allowed = whole * goal.exceed_ratio;
        let missing = whole - trials.len() as f64;
        if bad > allowed {
            Bound::Upper
        } else if bad + missing <= allowed {
            Bound::Lower
        } else {
            Bound::Undecided
        }
    }

    /// Returns the greatest lower bound below the least upper bound, and the least upper bound.
    pub(super) fn relevant(&self, goal: &Goal) -> (Option<f64>, Option<f64>) {
        let loads = || self.0.keys().map(|bits| f64::from_bits(*bits));
        let upper = loads().find(|load| self.classify(*load, goal) == Bound::Upper);
        let below = loads().take_while(|load| upper.is_none_or(|upper| *load < upper));
        let lower = below
            .filter(|load| self.classify(*load, goal) == Bound::Lower)
            .last();
        (lower, upper)
    }

    /// Returns the mean forwarding rate at `load`, which must have been tried.
    pub(super) fn forwarding_rate(&self, load: f64) -> f64 {
        let trials = self.at(load);
        let sum: f64 = trials.iter().map(|one| one.forwarding_rate).sum();
        sum / trials.len() as f64
    }

    pub(super) fn result(&self, goal: &Goal) -> GoalResult {
        let (lower, upper) = self.relevant(goal);
        GoalResult {
            goal: *goal,
            lower,
            upper,
            conditional_throughput: lower.map(|load| load * (1.0 - self.quantile(load, goal))),
        }
    }

    /// Returns the loss ratio that at most the goal's share of trials exceeds.
    fn quantile(&self, load: f64, goal: &Goal) -> f64 {
        let mut losses: Vec<f64> = self.at(load).iter().map(|one| one.loss_ratio).collect();
        losses.sort_by(f64::total_cmp);
        let above = (losses.len() as f64 * goal.exceed_ratio).floor() as usize;
        let kept = losses.len() - above.min(losses.len() - 1);
        losses[kept - 1]
    }

    /// Returns whether the search for the goal is complete.
    pub(super) fn is_found(&self, goal: &Goal, range: &Range) -> bool {
        match self.relevant(goal) {
            (Some(lower), Some(upper)) => range.is_narrow(lower, upper),
            (Some(lower), None) => lower >= range.most,
            (None, Some(upper)) => upper <= range.least,
            (None, None) => false,
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.0.values().map(|trials| trials.len() as u32).sum()
    }
}
