//! Results of a study next to published ones: by points, with means over the seeds.

mod comparison;
mod csv;
pub mod figure;
mod rows;
mod text;

pub use comparison::{Comparison, Verdict};
pub use csv::csv;
pub use rows::{Row, rows};
pub use text::{published, text};

use crate::config::{Form, ReportPlan};
use crate::failure::Failure;
use baton_stats::Estimate;
use baton_study::table::{Cell, metrics};
use baton_study::{Store, Study, StudyRun};
use std::collections::{BTreeMap, BTreeSet};

/// Metrics of a run by their names.
pub type Metrics = BTreeMap<String, Cell>;

/// The metric that counts complete responses.
pub const RESPONSES: &str = "responses";

/// Results of a study.
pub struct Outcome<'a> {
    /// The plan of the report.
    pub plan: &'a ReportPlan,
    /// The necessary metrics of each run; the runs of a point follow each other. Empty for a run that failed or is missing.
    pub runs: Vec<Metrics>,
}

impl<'a> Outcome<'a> {
    /// Reads the results of those runs of a study that are in the store.
    ///
    /// # Errors
    /// Fails if a result cannot be read.
    pub fn read(plan: &'a ReportPlan, store: &Store, study: &Study) -> Result<Self, Failure> {
        // A run has hundreds of metrics, and there may be ten thousand runs.
        let needed = needed(plan);
        let metrics = |run: &StudyRun| {
            let mut metrics = match store.has(run.key) {
                true => store.head(run.key)?.metrics,
                false => Metrics::new(),
            };
            metrics.retain(|name, _| needed.contains(name));
            Ok(metrics)
        };
        let runs: Result<_, Failure> = study.runs.iter().map(metrics).collect();
        Ok(Self { plan, runs: runs? })
    }
}

impl Outcome<'_> {
    /// Returns a metric at a point: its mean over the seeds with the 95 % interval or, for one seed, with that of the run.
    pub fn estimate(&self, point: usize, metric: &str) -> Option<Estimate> {
        let interval = metrics::interval_of(metric);
        let runs = self.runs_of(point).iter();
        let each = runs.filter_map(|run| {
            Some(Estimate {
                mean: number(run, metric)?,
                half_width: interval.as_ref().and_then(|name| number(run, name)),
            })
        });
        let each: Vec<Estimate> = each.collect();
        match each.as_slice() {
            [one] => Some(*one),
            _ => {
                let means: Vec<f64> = each.iter().map(|one| one.mean).collect();
                Estimate::of_independent(&means)
            }
        }
    }

    /// Returns a metric at a point relative to another point, compared seed by seed.
    pub fn beside(&self, point: usize, other: usize, metric: &str, form: Form) -> Option<Estimate> {
        let pairs = self.runs_of(other).iter().zip(self.runs_of(point));
        let pairs =
            pairs.filter_map(|(one, run)| Some((number(one, metric)?, number(run, metric)?)));
        let (others, these): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let percent = || Estimate::of_difference_percent(&others, &these);
        match form {
            Form::Absolute => Estimate::of_independent(&these),
            Form::Percent => percent(),
            Form::Ratio => percent().map(|percent| {
                let part = percent.times(0.01);
                Estimate {
                    mean: 1.0 + part.mean,
                    ..part
                }
            }),
            Form::Difference => {
                let pairs = these.iter().zip(&others);
                let differences: Vec<f64> = pairs.map(|(this, other)| this - other).collect();
                Estimate::of_independent(&differences)
            }
        }
    }

    /// Returns whether a run of a point was not steady.
    pub fn is_doubtful(&self, point: usize) -> bool {
        let why = |run: &Metrics| matches!(run.get(metrics::NOT_STEADY), Some(Cell::Text(_)));
        self.runs_of(point).iter().any(why)
    }

    fn runs_of(&self, point: usize) -> &[Metrics] {
        let first = point * self.plan.seeds;
        &self.runs[first..first + self.plan.seeds]
    }
}

/// Returns the metrics that the report depends on.
fn needed(plan: &ReportPlan) -> BTreeSet<String> {
    let said = plan.metrics().map(|metric| metric.name.to_owned());
    let mut needed: BTreeSet<String> = said.collect();
    let intervals = needed.iter().filter_map(|name| metrics::interval_of(name));
    let intervals: Vec<String> = intervals.collect();
    needed.extend(intervals);
    needed.extend([RESPONSES, metrics::NOT_STEADY].map(str::to_owned));
    needed
}

fn number(run: &Metrics, metric: &str) -> Option<f64> {
    run.get(metric).and_then(Cell::as_number)
}

/// Returns the name of a point: its variant, and the values of swept keys that have several values.
pub fn label(plan: &ReportPlan, point: usize) -> String {
    let variant = plan.points[point].variant.clone();
    let settings = setting(plan, point);
    let parts: Vec<String> = variant.into_iter().chain(settings).collect();
    match parts.is_empty() {
        true => plan.name.clone(),
        false => parts.join(", "),
    }
}

/// Returns what distinguishes `other` from this point.
fn told_from(plan: &ReportPlan, point: usize, other: usize) -> String {
    let (here, there) = (&plan.points[point], &plan.points[other]);
    let variant = there.variant.clone();
    let variant = variant.filter(|_| there.variant != here.variant);
    let axes = there.axes.iter().zip(&here.axes).enumerate();
    let axes = axes.filter(|(_, (there, here))| there != here);
    let keys = axes.filter_map(|(axis, _)| on_axis(plan, other, axis));
    let parts: Vec<String> = variant.into_iter().chain(keys).collect();
    parts.join(", ")
}

/// Returns the study's name for the value of a point on an axis.
fn on_axis(plan: &ReportPlan, point: usize, axis: usize) -> Option<String> {
    let point = &plan.points[point];
    if let Some(Some(name)) = point.names.get(axis) {
        return Some(name.clone());
    }
    let (path, value) = point.axes[axis].first()?;
    Some(format!("{} = {value}", short(plan, path)))
}

/// Returns the short name of a swept key: its last part, or the whole key if another key has the same last part.
fn short<'a>(plan: &ReportPlan, path: &'a str) -> &'a str {
    let end = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let axes = plan
        .points
        .first()
        .into_iter()
        .flat_map(|point| &point.axes);
    let keys = axes.filter_map(|axis| axis.first());
    let alike = keys.filter(|(other, _)| end(other) == end(path)).count();
    match path.rsplit_once('.') {
        Some((_, end)) if alike < 2 => end,
        _ => path,
    }
}

/// Returns the values of swept keys that have several values, or `None` if there are no such keys.
pub fn setting(plan: &ReportPlan, point: usize) -> Option<String> {
    let varies = |number: usize| {
        let mut values = plan.points.iter().map(|point| &point.axes[number]);
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let axes = (0..plan.points[point].axes.len()).filter(|axis| varies(*axis));
    let keys = axes.filter_map(|axis| on_axis(plan, point, axis));
    let keys: Vec<String> = keys.collect();
    (!keys.is_empty()).then(|| keys.join(", "))
}
