//! How two studies differ.

use crate::error::StoreError;
use crate::record::Head;
use crate::store;
use crate::study::{Study, StudyRun};
use crate::table::{Cell, metrics};
use baton_stats::{Estimate, holm, paired_p_value};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::path::Path;

/// A difference is told from chance if it would come by chance once in twenty comparisons like this at most.
const LEVEL: f64 = 0.05;

/// How two studies differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Runs that both have: of the same variant, seed and values of swept keys.
    pub pairs: usize,
    /// Runs that only the one or the other has.
    pub unpaired: (usize, usize),
    /// Keys that are the same in all runs of each, but not in both.
    pub configuration: Vec<KeyDifference>,
    /// What all pairs have.
    pub metrics: Vec<MetricDifference>,
}

/// A key that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyDifference {
    /// Its path.
    pub path: String,
    /// Its value in the one and in the other; nothing where that leaves it to profile and defaults.
    pub values: (Cell, Cell),
}

/// How a metric differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricDifference {
    /// Its name.
    pub name: &'static str,
    /// Means of the one and of the other.
    pub means: (f64, f64),
    /// By how much the other differs, per cent of the one, with a 95 % interval over the pairs; none where the one is 0.
    pub difference_percent: Option<Estimate>,
    /// Chance of such a difference if there were none ([`paired_p_value`]), corrected for the number of metrics by Holm's method; none of one pair.
    pub p_value: Option<f64>,
    /// Whether it differs: by more than chance or, of one pair, at all.
    pub differs: bool,
}

impl Comparison {
    /// Compares studies in the stores in two folders.
    ///
    /// # Errors
    /// Results cannot be read.
    pub fn of(these: (&Path, &Study), others: (&Path, &Study)) -> Result<Self, StoreError> {
        let varying = varying(these.1, others.1);
        let done = |(root, study): (&Path, &Study)| {
            let done = study
                .runs
                .iter()
                .filter(|run| store::path(root, run.key).exists());
            let done = done.map(|run| {
                Ok((
                    identity(study, run, &varying),
                    Head::read(&store::path(root, run.key))?,
                ))
            });
            done.collect::<Result<Vec<_>, StoreError>>()
        };
        let these_done = done(these)?;
        let others_done: FxHashMap<String, Head> = done(others)?.into_iter().collect();
        let pairs = these_done.iter();
        let pairs = pairs.filter_map(|(identity, this)| Some((this, others_done.get(identity)?)));
        let pairs: Vec<(&Head, &Head)> = pairs.collect();
        Ok(Self {
            pairs: pairs.len(),
            unpaired: (
                these_done.len() - pairs.len(),
                others_done.len() - pairs.len(),
            ),
            configuration: configuration(these.1, others.1, &varying),
            metrics: differences(&pairs),
        })
    }

    /// Whether any metric differs.
    pub fn differs(&self) -> bool {
        self.metrics.iter().any(|metric| metric.differs)
    }
}

/// Keys that have several values in one of the studies.
fn varying(these: &Study, others: &Study) -> Vec<String> {
    let varies = |study: &Study, number: usize| {
        let mut values = study.runs.iter().map(|run| &run.values[number]);
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let of = |study: &Study| {
        let columns = study.columns.iter().enumerate();
        let varying = columns.filter(|(number, _)| varies(study, *number));
        varying
            .map(|(_, column)| column.path.clone())
            .collect::<Vec<_>>()
    };
    let mut all = [of(these), of(others)].concat();
    all.sort();
    all.dedup();
    all
}

fn value<'a>(study: &Study, run: &'a StudyRun, path: &str) -> Option<&'a Cell> {
    let number = study.columns.iter().position(|column| column.path == path);
    number.map(|number| &run.values[number])
}

/// What a run has in common with its counterpart, and with no other.
fn identity(study: &Study, run: &StudyRun, varying: &[String]) -> String {
    let values: Vec<Option<&Cell>> = varying.iter().map(|path| value(study, run, path)).collect();
    serde_json::to_string(&(&run.variant, run.seed, values)).expect("cells are JSON")
}

fn configuration(these: &Study, others: &Study, varying: &[String]) -> Vec<KeyDifference> {
    let columns = these.columns.iter().chain(&others.columns);
    let mut paths: Vec<&String> = columns.map(|column| &column.path).collect();
    paths.sort();
    paths.dedup();
    let of = |study: &Study, path: &str| {
        let first = study.runs.first();
        first
            .and_then(|run| value(study, run, path).cloned())
            .unwrap_or_default()
    };
    let fixed = paths.into_iter().filter(|path| !varying.contains(path));
    let keys = fixed.map(|path| KeyDifference {
        path: path.clone(),
        values: (of(these, path), of(others, path)),
    });
    keys.filter(|key| key.values.0 != key.values.1).collect()
}

/// All metrics that every pair has, but for intervals of others.
fn differences(pairs: &[(&Head, &Head)]) -> Vec<MetricDifference> {
    let number = |head: &Head, name: &str| head.metrics.get(name).and_then(Cell::as_number);
    let all = metrics::ALL
        .iter()
        .filter(|metric| !metric.name.contains("_ci95"));
    let both = all.filter_map(|metric| {
        let pairs = pairs.iter();
        let pairs = pairs
            .map(|(this, other)| Some((number(this, metric.name)?, number(other, metric.name)?)));
        let (these, others): (Vec<f64>, Vec<f64>) =
            pairs.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        (!these.is_empty()).then_some((metric.name, these, others))
    });
    let both: Vec<(&'static str, Vec<f64>, Vec<f64>)> = both.collect();
    let p_values = both
        .iter()
        .map(|(_, these, others)| paired_p_value(these, others));
    let adjusted = p_values
        .collect::<Option<Vec<f64>>>()
        .map(|p_values| holm(&p_values));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let metrics = both
        .iter()
        .enumerate()
        .map(|(number, (name, these, others))| {
            let p_value = adjusted.as_ref().map(|adjusted| adjusted[number]);
            MetricDifference {
                name,
                means: (mean(these), mean(others)),
                difference_percent: Estimate::of_difference_percent(these, others),
                p_value,
                differs: p_value.map_or(these != others, |p_value| p_value < LEVEL),
            }
        });
    metrics.collect()
}
