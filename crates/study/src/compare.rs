//! Comparison of two studies.

use crate::error::StoreError;
use crate::record::Head;
use crate::store;
use crate::study::{Study, StudyRun};
use crate::table::{Cell, metrics};
use baton_stats::{Estimate, holm, paired_p_value};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::path::Path;

/// A difference counts if it would occur by chance in at most one of twenty such comparisons.
const LEVEL: f64 = 0.05;

/// Differences between two studies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Number of runs that both have: of the same variant, seed and values of swept keys.
    pub pairs: usize,
    /// Numbers of runs that only the first and only the second study has.
    pub unpaired: (usize, usize),
    /// Keys that have the same value in all runs of each study, but not in both studies.
    pub configuration: Vec<KeyDifference>,
    /// Metrics that all pairs of a variant have, one variant after the other.
    pub metrics: Vec<MetricDifference>,
}

/// A key with different values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyDifference {
    /// Path of the key.
    pub path: String,
    /// Values of the key in the first and in the second study; empty where a study leaves the key to profile and defaults.
    pub values: (Cell, Cell),
}

/// Difference of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricDifference {
    /// Variant of the runs, if the study has variants.
    pub variant: Option<String>,
    /// Name of the metric.
    pub name: &'static str,
    /// Means in the first and in the second study.
    pub means: (f64, f64),
    /// Difference of the second study, per cent of the first, with a 95 % interval over the variant's pairs; `None` if the first mean is 0.
    pub difference_percent: Option<Estimate>,
    /// Probability of such a difference by chance alone ([`paired_p_value`]), corrected by Holm's method for the number of metrics and
    /// variants; `None` for a single pair.
    pub p_value: Option<f64>,
    /// Whether the metric differs: by more than chance or, for a single pair, at all.
    pub differs: bool,
}

impl Comparison {
    /// Compares two studies, each in the store of a folder.
    ///
    /// # Errors
    /// Results cannot be read.
    pub fn of(these: (&Path, &Study), others: (&Path, &Study)) -> Result<Self, StoreError> {
        let varying = varying(these.1, others.1);
        let these_done = done(these, &varying)?;
        let others_done = done(others, &varying)?;
        let others_done: FxHashMap<&str, &Done<'_>> = others_done
            .iter()
            .map(|done| (done.identity.as_str(), done))
            .collect();
        let pairs = these_done.iter().filter_map(|this| {
            let other = others_done.get(this.identity.as_str())?;
            Some((this.variant, &this.head, &other.head))
        });
        let pairs: Vec<Pair<'_>> = pairs.collect();
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

    /// Returns whether any metric differs.
    pub fn differs(&self) -> bool {
        self.metrics.iter().any(|metric| metric.differs)
    }
}

/// A run whose results are available.
struct Done<'a> {
    identity: String,
    variant: Option<&'a str>,
    head: Head,
}

fn done<'a>(
    (root, study): (&Path, &'a Study),
    varying: &[String],
) -> Result<Vec<Done<'a>>, StoreError> {
    let runs = study
        .runs
        .iter()
        .map(|run| (run, store::path(root, run.key)));
    let there = runs.filter(|(_, path)| path.exists());
    there
        .map(|(run, path)| {
            Ok(Done {
                identity: identity(study, run, varying),
                variant: run.variant.as_deref(),
                head: Head::read(&path)?,
            })
        })
        .collect()
}

/// Returns the keys that have several values in one of the studies.
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

/// Returns what identifies a run and its counterpart in the other study.
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

/// The variant of two runs that belong together, and their heads.
type Pair<'a> = (Option<&'a str>, &'a Head, &'a Head);

/// Values of a metric in all pairs of a variant, for both studies.
struct Sampled<'a> {
    variant: Option<&'a str>,
    name: &'static str,
    these: Vec<f64>,
    others: Vec<f64>,
}

/// Tests each variant separately: a change may affect only one variant, and the difference between variants would then hide its effect on
/// the mean over both.
fn differences(pairs: &[Pair<'_>]) -> Vec<MetricDifference> {
    let mut variants: Vec<Option<&str>> = Vec::new();
    for &(variant, ..) in pairs {
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    let of_variant = |variant| sampled(variant, pairs);
    let samples: Vec<Sampled<'_>> = variants.into_iter().flat_map(of_variant).collect();
    let p_values = samples
        .iter()
        .map(|sampled| paired_p_value(&sampled.these, &sampled.others));
    let p_values: Vec<Option<f64>> = p_values.collect();
    let known: Vec<f64> = p_values.iter().copied().flatten().collect();
    let mut adjusted = holm(&known).into_iter();
    let p_values = p_values.iter().map(|p_value| p_value.and(adjusted.next()));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let difference = |(sampled, p_value): (&Sampled<'_>, Option<f64>)| {
        let Sampled { these, others, .. } = sampled;
        MetricDifference {
            variant: sampled.variant.map(str::to_owned),
            name: sampled.name,
            means: (mean(these), mean(others)),
            difference_percent: Estimate::of_difference_percent(these, others),
            p_value,
            differs: p_value.map_or(these != others, |p_value| p_value < LEVEL),
        }
    };
    samples.iter().zip(p_values).map(difference).collect()
}

/// Returns all metrics that every pair of a variant has, except for intervals of other metrics.
fn sampled<'a>(variant: Option<&'a str>, pairs: &[Pair<'_>]) -> Vec<Sampled<'a>> {
    let number = |head: &Head, name: &str| head.metrics.get(name).and_then(Cell::as_number);
    let all = metrics::ALL
        .iter()
        .filter(|metric| !metric.name.contains("_ci95"));
    let of_metric = all.filter_map(|metric| {
        let pairs = pairs.iter().filter(|(of, ..)| *of == variant);
        let numbers = pairs.map(|(_, this, other)| {
            Some((number(this, metric.name)?, number(other, metric.name)?))
        });
        let (these, others) = numbers.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        Some(Sampled {
            variant,
            name: metric.name,
            these,
            others,
        })
    });
    of_metric.collect()
}
