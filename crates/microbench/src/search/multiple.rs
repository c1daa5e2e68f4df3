//! One search for several goals.

use super::bounds::{Bound, Trials};
use super::{Found, Goal, Measured, Range};

/// How far below the load that is expected to just meet a goal it is tried, in widths: so near that one more trial above is enough.
const CAUTION: f64 = 0.25;

/// How far above a lower bound that was expected the next trial is, in widths.
const STEP: f64 = 0.9;

/// No step down from an upper bound goes further than to this share of it.
const LEAST_SHARE: f64 = 0.5;

/// Finds the greatest load for each goal.
///
/// The first trial is at the greatest load. What is forwarded at an upper bound is what is tried next, and then a load just above it: of what
/// saturates no more is asked. Where that is no bound what lies between the bounds is halved, and without a lower bound steps down from
/// the upper one grow. Goals are taken in the order of falling loss ratios, so that upper bounds of one are such of the next.
///
/// # Errors
/// What `measure` gives.
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

/// What has been tried for a goal.
#[derive(Debug, Default)]
struct Steps {
    /// Steps down from an upper bound, without a lower one.
    down: i32,
    /// Whether a step up from a lower bound was made.
    up: bool,
}

/// Where to look next; `None` when nothing is left to find out.
fn next_load(trials: &Trials, goal: &Goal, range: &Range, steps: &mut Steps) -> Option<f64> {
    if trials.is_found(goal, range) {
        return None;
    }
    let (lower, Some(upper)) = trials.relevant(goal) else {
        return Some(range.most);
    };
    // Were as much forwarded as at the upper bound, this load would just meet the goal.
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
    // By ratio: the width that ends the search is one, and bounds may be orders of magnitude apart.
    let middle = (lower * upper).sqrt();
    let is_expected = guess <= lower * (1.0 + range.width) && !steps.up;
    if is_expected {
        steps.up = true;
        return Some((lower * (1.0 + STEP * range.width)).min(middle));
    }
    Some(middle)
}
