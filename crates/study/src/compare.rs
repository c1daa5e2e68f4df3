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
    /// What all pairs of a variant have, for one variant after the other.
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
    /// Of which variant's runs, if the study has variants.
    pub variant: Option<String>,
    /// Its name.
    pub name: &'static str,
    /// Means of the one and of the other.
    pub means: (f64, f64),
    /// By how much the other differs, per cent of the one, with a 95 % interval over the variant's pairs; none where the one is 0.
    pub difference_percent: Option<Estimate>,
    /// Chance of such a difference if there were none ([`paired_p_value`]), corrected for the number of metrics and variants by Holm's method; none
    /// of one pair.
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

    /// Whether any metric differs.
    pub fn differs(&self) -> bool {
        self.metrics.iter().any(|metric| metric.differs)
    }
}

/// A run whose results are there.
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

/// The variant of two runs that belong together, and what they had.
type Pair<'a> = (Option<&'a str>, &'a Head, &'a Head);

/// A metric of all pairs of a variant, of the one study and of the other.
struct Sampled<'a> {
    variant: Option<&'a str>,
    name: &'static str,
    these: Vec<f64>,
    others: Vec<f64>,
}

/// Each variant is tested apart: what changes one may leave another as it was, and the mean over both would then be lost in their difference.
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

/// All metrics that every pair of a variant has, but for intervals of others.
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
