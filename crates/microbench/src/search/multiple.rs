//! One search for several goals.

use super::bounds::{Bound, Trials};
use super::{Found, Goal, Measured, Range};

/// Distance of the first trial below the load that is expected to just meet a goal, in widths: so close that one more trial above it is enough.
const CAUTION: f64 = 0.25;

/// Distance of the next trial above an expected lower bound, in widths.
const STEP: f64 = 0.9;

/// A step down from an upper bound never goes below this share of it.
const LEAST_SHARE: f64 = 0.5;

/// Finds the greatest load for each goal.
///
/// The first trial is at the greatest load. The next loads are the forwarding rate at an upper bound and a load just above it, which
/// suffice for a device that saturates. If these are not the bounds, the search halves the interval between them; without a lower bound, it
/// takes growing steps down from the upper bound. Goals are taken in the order of falling loss ratios, so that upper bounds of one are also
/// upper bounds of the next.
///
/// # Errors
/// Those of `measure`.
pub fn multiple<E>(
    range: &Range,
    goals: &[Goal],
    mut measure: impl FnMut(f64) -> Result<Measured, E>,
) -> Result<Found, E> {
    let mut trials = Trials::default();
    let mut order: Vec<&Goal> = goals.iter().collect();
    order.sort_by(|a, b| b.loss_ratio.total_cmp(&a.loss_ratio));
    for goal in order {
        let mut steps = Steps::default();
        let mut next = Some(range.most);
        while let Some(load) = next {
            while trials.classify(load, goal) == Bound::Undecided {
                trials.add(load, measure(load)?);
            }
            next = next_load(&trials, goal, range, &mut steps);
        }
    }
    Ok(Found {
        goals: goals.iter().map(|goal| trials.result(goal)).collect(),
        trials: trials.count(),
    })
}

/// Steps of the search for a goal.
#[derive(Debug, Default)]
struct Steps {
    /// Number of steps down from an upper bound while there is no lower bound.
    down: i32,
    /// Whether the search has stepped up from a lower bound.
    up: bool,
}

/// Returns the next load to try, or `None` when the search for the goal is complete.
fn next_load(trials: &Trials, goal: &Goal, range: &Range, steps: &mut Steps) -> Option<f64> {
    if trials.is_found(goal, range) {
        return None;
    }
    let (lower, Some(upper)) = trials.relevant(goal) else {
        return Some(range.most);
    };
    // If this load were forwarded at the same rate as the upper bound, it would just meet the goal.
    let expected = trials.forwarding_rate(upper) / (1.0 - goal.loss_ratio);
    let guess = expected * (1.0 - CAUTION * range.width);
    let Some(lower) = lower else {
        let step = STEP * range.width * 4.0_f64.powi(steps.down);
        steps.down += 1;
        return Some(
            guess
                .min(upper * (1.0 - step).max(LEAST_SHARE))
                .max(range.least),
        );
    };
    let is_new = !range.is_narrow(lower, guess) && !range.is_narrow(guess, upper);
    if is_new && guess < upper {
        return Some(guess);
    }
    // Geometric mean: the width that ends the search is relative, and the bounds may be orders of magnitude apart.
    let middle = (lower * upper).sqrt();
    let is_expected = guess <= lower * (1.0 + range.width) && !steps.up;
    if is_expected {
        steps.up = true;
        return Some((lower * (1.0 + STEP * range.width)).min(middle));
    }
    Some(middle)
}
