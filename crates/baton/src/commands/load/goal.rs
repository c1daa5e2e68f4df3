//! Finds the largest load at which a response time meets a goal.

use super::curve::{Curve, Measured};
use super::laboratory::{Laboratory, Subject};
use super::metric::Metric;
use crate::failure::Failure;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// A goal for a response time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Goal {
    /// Which response time.
    pub metric: Metric,
    /// Maximum, ms.
    pub most_ms: f64,
}

/// The largest load that meets a goal, requests a second: where the estimated response time equals the goal. Below `least` even the upper
/// end of its interval meets the goal, and above `most` not even the lower end does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Met {
    /// The goal.
    pub goal: Goal,
    /// The load; `None` if no measured load meets the goal.
    pub rate: Option<f64>,
    /// The lower end of its interval; `None` if no load certainly meets the goal.
    pub least: Option<f64>,
    /// The upper end; `None` if no load certainly misses the goal.
    pub most: Option<f64>,
}

/// Steps of the search. Each halves the distance between a load that meets the goal and one that does not.
const STEPS: u32 = 5;
/// Factor by which the load grows if all loads meet the goal, and shrinks if none does.
const FURTHER: f64 = 1.2;

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || "expected mean, p50, p90, p99 or p99.9 and a time, as in p99=20ms".to_owned();
        let (name, time) = text.split_once('=').ok_or_else(expected)?;
        let metric = Metric::ALL.into_iter().find(|metric| metric.name() == name);
        let units = [("ms", 1.0), ("us", 1e-3), ("s", 1e3)];
        let ms = units.iter().find_map(|(unit, ms)| {
            let number: f64 = time.strip_suffix(unit)?.trim().parse().ok()?;
            (number > 0.0 && number.is_finite()).then_some(number * ms)
        });
        let (metric, most_ms) = metric.zip(ms).ok_or_else(expected)?;
        Ok(Self { metric, most_ms })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of at most {} ms", self.metric.name(), self.most_ms)
    }
}

/// Searches for the largest load of each subject that meets the goal: halves the distance between two loads, or continues outwards. Runs of
/// the search become points of the curves.
///
/// # Errors
/// Fails if a run fails, or if the user interrupts.
pub fn search(
    laboratory: &Laboratory<'_>,
    subjects: &[Subject],
    curves: &mut [Curve],
    goal: Goal,
) -> Result<(), Failure> {
    for _ in 0..STEPS {
        let rates: Vec<f64> = curves
            .iter()
            .map(|curve| next(&curve.measured, goal))
            .collect();
        let loads = subjects.iter().zip(&rates);
        let runs = laboratory.run(loads.map(|(subject, &rate)| (subject, Some(rate))))?;
        for ((curve, &rate), run) in curves.iter_mut().zip(&rates).zip(runs) {
            let place = curve
                .measured
                .partition_point(|measured| measured.rate < rate);
            let measured = Measured::new(rate, curve.capacity, true, run);
            curve.measured.insert(place, measured);
        }
    }
    for curve in curves {
        curve.goal = Some(met(&curve.measured, goal));
    }
    Ok(())
}

/// Relation of a load to a goal.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Standing {
    rate: f64,
    /// The response time, ms: infinite if the offered load exceeds what can be served.
    time: f64,
    /// Half of its interval, ms: infinite if the run was not steady.
    half_width: f64,
}

fn standings(measured: &[Measured], goal: Goal) -> Vec<Standing> {
    let standing = |measured: &Measured| {
        let rate = measured.rate;
        if measured.is_saturated() {
            return Some(Standing {
                rate,
                time: f64::INFINITY,
                half_width: 0.0,
            });
        }
        let time = measured.time(goal.metric)?;
        let known = time.half_width.filter(|_| measured.is_steady());
        Some(Standing {
            rate,
            time: time.mean,
            half_width: known.unwrap_or(f64::INFINITY),
        })
    };
    measured.iter().filter_map(standing).collect()
}

/// Returns the largest load up to which all loads meet the goal, and the next load, which does not.
fn bracket(
    standings: &[Standing],
    meets: impl Fn(&Standing) -> bool,
) -> (Option<f64>, Option<f64>) {
    let count = standings
        .iter()
        .take_while(|standing| meets(standing))
        .count();
    let rate = |place: usize| standings.get(place).map(|standing| standing.rate);
    (count.checked_sub(1).and_then(rate), rate(count))
}

/// Returns the load to try next.
fn next(measured: &[Measured], goal: Goal) -> f64 {
    let standings = standings(measured, goal);
    match bracket(&standings, |standing| standing.time <= goal.most_ms) {
        (Some(meets), Some(fails)) => (meets + fails) / 2.0,
        (Some(meets), None) => meets * FURTHER,
        (None, Some(fails)) => fails / FURTHER,
        (None, None) => measured[0].rate / FURTHER,
    }
}

/// Evaluates the goal with the runs.
fn met(measured: &[Measured], goal: Goal) -> Met {
    let standings = standings(measured, goal);
    let crossing = crossing(&standings, goal.most_ms);
    let surely = bracket(&standings, |at| at.time + at.half_width <= goal.most_ms);
    let maybe = bracket(&standings, |at| at.time - at.half_width <= goal.most_ms);
    Met {
        goal,
        rate: crossing,
        least: surely.0,
        most: maybe.1,
    }
}

/// Returns the load at which the response time crosses the goal, on the line between the two nearest loads; the lower load if the upper one
/// exceeds what can be served.
fn crossing(standings: &[Standing], most_ms: f64) -> Option<f64> {
    let count = standings.iter().take_while(|at| at.time <= most_ms).count();
    let below = standings.get(count.checked_sub(1)?)?;
    let Some(above) = standings.get(count).filter(|above| above.time.is_finite()) else {
        return Some(below.rate);
    };
    let share = (most_ms - below.time) / (above.time - below.time);
    Some(below.rate + share * (above.rate - below.rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_parsed() {
        let goal = |text: &str| text.parse::<Goal>().map(|goal| (goal.metric, goal.most_ms));
        assert_eq!(goal("p99=20ms"), Ok((Metric::P99, 20.0)));
        assert_eq!(goal("p99.9=1.5s"), Ok((Metric::P999, 1500.0)));
        assert_eq!(goal("mean=500us"), Ok((Metric::Mean, 0.5)));
        for text in [
            "",
            "p99",
            "p98=1ms",
            "p99=1",
            "p99=0ms",
            "p99=-1ms",
            "mean=infs",
        ] {
            assert!(goal(text).is_err(), "{text}");
        }
    }

    /// An M/M/1 queue that serves 100 a second.
    fn standing(rate: f64) -> Standing {
        let time = if rate < 100.0 {
            1e3 / (100.0 - rate)
        } else {
            f64::INFINITY
        };
        Standing {
            rate,
            time,
            half_width: 0.1 * time.min(1e9),
        }
    }

    #[test]
    fn the_load_is_between_one_that_meets_the_goal_and_one_that_does_not() {
        let standings: Vec<Standing> = [10.0, 50.0, 78.0, 82.0, 90.0, 110.0].map(standing).to_vec();
        // 50 ms at 80 a second.
        let rate = crossing(&standings, 50.0).expect("met");
        assert!((rate - 80.0).abs() < 0.5, "{rate}");
        assert_eq!(
            bracket(&standings, |at| at.time <= 50.0),
            (Some(78.0), Some(82.0))
        );
        assert_eq!(crossing(&standings, 5.0), None, "no load is so fast");
        assert_eq!(
            crossing(&standings, 1e6),
            Some(90.0),
            "more cannot be served"
        );
        assert_eq!(crossing(&standings[..2], 1e6), Some(50.0));
    }

    #[test]
    fn a_run_that_was_not_steady_proves_nothing() {
        let mut standings: Vec<Standing> = [10.0, 50.0, 90.0].map(standing).to_vec();
        standings[1].half_width = f64::INFINITY;
        let surely = bracket(&standings, |at| at.time + at.half_width <= 50.0);
        assert_eq!(surely.0, Some(10.0));
        let maybe = bracket(&standings, |at| at.time - at.half_width <= 50.0);
        assert_eq!(maybe.1, Some(90.0));
    }
}
