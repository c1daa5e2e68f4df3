//! Response times over load.

use super::goal::Met;
use super::laboratory::{Laboratory, Subject};
use super::metric::Metric;
use super::point::Point;
use crate::failure::Failure;
use baton_sim::results::{NotSteady, Results};
use baton_stats::Estimate;
use schemars::JsonSchema;
use serde::Serialize;

/// Response times of one configuration over load.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Curve {
    /// Name of the configuration in the experiment.
    pub name: String,
    /// Requests a second in a closed loop, or as given by the user.
    pub capacity: Estimate,
    /// Runs, ordered by rate.
    pub measured: Vec<Measured>,
    /// The load, among steady runs, at which load divided by mean response time is largest, requests a second; `None` if no run was steady.
    pub knee_rate: Option<f64>,
    /// The largest load that meets the goal; `None` if there is no goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Met>,
}

/// A run at a load.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Measured {
    /// Planned requests a second.
    pub rate: f64,
    /// Planned rate as a share of the capacity, per cent.
    pub percent: f64,
    /// Whether the search for a goal chose the rate, and not the user.
    pub by_search: bool,
    /// Results of the run.
    pub run: Results,
}

impl Measured {
    /// Creates the record of a run at `rate`.
    pub fn new(rate: f64, capacity: Estimate, by_search: bool, run: Results) -> Self {
        Self {
            rate,
            percent: 100.0 * rate / capacity.mean,
            by_search,
            run,
        }
    }

    /// Returns whether the run was steady.
    pub fn is_steady(&self) -> bool {
        !self.run.long_run.is_doubtful()
    }

    /// Returns whether the offered load exceeded what could be served.
    pub fn is_saturated(&self) -> bool {
        let not_steady = &self.run.long_run.not_steady;
        not_steady.contains(&NotSteady::Saturated)
    }

    /// Returns a response time, ms, or `None` if it is not known.
    pub fn time(&self, metric: Metric) -> Option<Estimate> {
        metric.of(self.run.long_run.response_ms.as_ref()?)
    }
}

/// Measures all subjects at all loads.
///
/// # Errors
/// Fails if a run fails, or if the user interrupts.
pub fn measure(
    laboratory: &Laboratory<'_>,
    subjects: &[Subject],
    points: &[Point],
    capacity: Option<Point>,
) -> Result<Vec<Curve>, Failure> {
    let capacities: Vec<Estimate> = match capacity {
        Some(rate) => vec![Estimate::of_one(rate.rate(0.0)); subjects.len()],
        None => {
            let closed = laboratory.run(subjects.iter().map(|subject| (subject, None)))?;
            closed.iter().map(Results::request_rate).collect()
        }
    };
    let rates = |capacity: &Estimate| {
        let mut rates: Vec<f64> = points
            .iter()
            .map(|point| point.rate(capacity.mean))
            .collect();
        rates.sort_unstable_by(f64::total_cmp);
        rates
    };
    let rates: Vec<Vec<f64>> = capacities.iter().map(rates).collect();
    let loads = subjects.iter().zip(&rates);
    let loads =
        loads.flat_map(|(subject, rates)| rates.iter().map(move |&rate| (subject, Some(rate))));
    let mut runs = laboratory.run(loads)?.into_iter();
    let curve = |((subject, capacity), rates): ((&Subject, &Estimate), &Vec<f64>)| {
        let runs = rates.iter().zip(runs.by_ref());
        let measured: Vec<Measured> = runs
            .map(|(&rate, run)| Measured::new(rate, *capacity, false, run))
            .collect();
        Curve {
            name: subject.experiment.name.clone(),
            capacity: *capacity,
            knee_rate: None,
            measured,
            goal: None,
        }
    };
    Ok(subjects
        .iter()
        .zip(&capacities)
        .zip(&rates)
        .map(curve)
        .collect())
}

impl Curve {
    /// Finds the load at which load divided by mean response time, Kleinrock's power, is largest (Kleinrock, *Power and Deterministic Rules of
    /// Thumb for Probabilistic Problems in Computer Communications*, 1979). An M/M/1 queue has it where half of the time is used.
    pub fn find_knee(&mut self) {
        let steady = self.measured.iter().filter(|measured| measured.is_steady());
        let power = |measured: &Measured| {
            let time = measured.time(Metric::Mean)?.mean;
            Some((measured.rate, measured.rate / time))
        };
        let highest = steady
            .filter_map(power)
            .max_by(|one, other| one.1.total_cmp(&other.1));
        self.knee_rate = highest.map(|(rate, _)| rate);
    }
}
