//! Binary search, once for each goal.

use super::bounds::{Bound, Trials};
use super::{Found, Goal, Measured, Range};

/// Finds the greatest load for each goal separately by halving the interval, starting at the greatest load, as is usual for RFC 2544.
///
/// # Errors
/// Those of `measure`.
pub fn bisection<E>(
    range: &Range,
    goals: &[Goal],
    mut measure: impl FnMut(f64) -> Result<Measured, E>,
) -> Result<Found, E> {
    let mut found = Found {
        goals: Vec::new(),
        trials: 0,
    };
    for goal in goals {
        let mut trials = Trials::default();
        let mut load = range.most;
        loop {
            while trials.classify(load, goal) == Bound::Undecided {
                trials.add(load, measure(load)?);
            }
            if trials.is_found(goal, range) {
                break;
            }
            load = match trials.relevant(goal) {
                (lower, Some(upper)) => ((lower.unwrap_or(0.0) + upper) / 2.0).max(range.least),
                (_, None) => range.most,
            };
        }
        found.goals.push(trials.result(goal));
        found.trials += trials.count();
    }
    Ok(found)
}
