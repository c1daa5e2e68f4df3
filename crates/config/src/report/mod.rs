//! Reports on studies: published numbers and their points (`[[published]]`), a table (`[table]`), figures (`[[figure]]`).

mod fit;
mod form;
mod measured;
mod places;
mod published;
mod table;

pub use fit::{Constant, FitPlan};
pub use form::{Form, Tolerance};
pub use places::Places;
pub use published::Status;
pub use table::TablePlan;

use super::figure::FigurePlan;
use super::source::{Diagnostic, Origin, Sources};
use super::study::Point;
use super::suggest;
use super::sweep::Sweep;
use super::tree::{Entry, Node, Value};
use crate::failure::Failure;
use baton_study::table::Cell;
use baton_study::table::metrics::{self, Metric};
use places::Found;
use std::path::Path;

/// The sections of a study file about its report, not yet read.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    published: Option<Entry>,
    table: Option<Entry>,
    figure: Option<Entry>,
    fit: Option<Entry>,
}

/// The plan of a study's report.
#[derive(Clone, Debug)]
pub struct ReportPlan {
    /// Name of the study.
    pub name: String,
    /// Points of the study. The runs of a point follow each other.
    pub points: Vec<ReportPoint>,
    /// Number of runs for each point.
    pub seeds: usize,
    /// Published numbers.
    pub numbers: Vec<Number>,
    /// Table of the points.
    pub table: Option<TablePlan>,
    /// Figures to draw.
    pub figures: Vec<FigurePlan>,
    /// Constants to fit to the numbers.
    pub fit: Option<FitPlan>,
}

impl ReportPlan {
    /// Returns whether the report has nothing besides the tables of all runs.
    pub fn is_silent(&self) -> bool {
        self.numbers.is_empty() && self.table.is_none() && self.figures.is_empty()
    }

    /// Returns the metrics that the report mentions, some of them repeatedly.
    pub fn metrics(&self) -> impl Iterator<Item = &'static Metric> {
        let numbers = self.numbers.iter().map(|number| number.metric);
        let tables = self.table.iter();
        let tables = tables.flat_map(|table| table.metrics.iter().chain(&table.compared));
        let figures = self.figures.iter().flat_map(|figure| &figure.y);
        numbers.chain(tables.chain(figures).copied())
    }
}

/// A point of a study.
#[derive(Clone, Debug)]
pub struct ReportPoint {
    /// Variant of the point.
    pub variant: Option<String>,
    /// For each axis, its swept keys with their values.
    pub axes: Vec<Vec<(String, Cell)>>,
    /// The study's name for the value on each axis, where it has one.
    pub names: Vec<Option<String>>,
}

impl ReportPoint {
    /// Returns the value of a key, if the key is swept.
    pub fn value(&self, key: &str) -> Option<&Cell> {
        let mut values = self.axes.iter().flatten();
        values.find(|(path, _)| path == key).map(|(_, value)| value)
    }
}

/// A published or measured number for one point.
#[derive(Clone, Debug)]
pub struct Number {
    /// Source of the number.
    pub source: String,
    /// What the model knew of the number.
    pub status: Status,
    /// Metric of the number.
    pub metric: &'static Metric,
    /// Meaning of the number for the metric.
    pub form: Form,
    /// The number.
    pub value: f64,
    /// Accepted distance of the model's value, if one is given.
    pub tolerance: Option<Tolerance>,
    /// Point of the number.
    pub point: usize,
    /// Point that the number is relative to.
    pub against: Option<usize>,
}

/// A report before the points of the study are known.
pub struct Draft {
    /// Conditions on points.
    pub places: Places,
    numbers: Vec<published::Draft>,
    table: Option<TablePlan>,
    figures: Vec<FigurePlan>,
    fit: Option<FitPlan>,
}

impl Sections {
    /// Takes the sections out of a document.
    pub fn take(document: &mut Node) -> Self {
        Self {
            published: document.take("published"),
            table: document.take("table"),
            figure: document.take("figure"),
            fit: document.take("fit"),
        }
    }
}

impl Draft {
    /// Reads the sections of the study `name`, and the user's measurements.
    ///
    /// # Errors
    /// Fails if a section or the measurements cannot be used.
    pub fn read(
        sources: &mut Sources,
        sections: &Sections,
        measured: Option<&Path>,
        name: &str,
        sweep: &Sweep,
    ) -> Result<Self, Failure> {
        let bad = |diagnostic: Diagnostic| Failure::BadInput(diagnostic.to_string());
        let mut places = Places::default();
        let mut numbers = Vec::new();
        for node in each(sources, sections.published.as_ref(), "published").map_err(bad)? {
            let read = published::read(sources, node, None, &mut places);
            numbers.extend(read.map_err(bad)?);
        }
        let table = sections.table.as_ref();
        let table = table.map(|entry| TablePlan::read(sources, &entry.node, &mut places));
        let table = table.transpose().map_err(bad)?;
        let mut figures = Vec::new();
        for node in each(sources, sections.figure.as_ref(), "figure").map_err(bad)? {
            let figure = FigurePlan::read(sources, node, name, sweep, &mut places);
            figures.push(figure.map_err(bad)?);
        }
        if let Some(path) = measured {
            numbers.extend(measured::read(sources, path, &mut places)?);
        }
        let fit = sections.fit.as_ref();
        let fit = fit.map(|entry| FitPlan::read(sources, &entry.node));
        Ok(Self {
            places,
            numbers,
            table,
            figures,
            fit: fit.transpose().map_err(bad)?,
        })
    }

    /// Finds the points of all numbers. Numbers without a point are an error or, if only a part of the study or a modified study is run,
    /// are left out and counted.
    ///
    /// # Errors
    /// Fails if a number belongs to no point, or to several.
    pub(super) fn resolve(
        self,
        sources: &Sources,
        name: &str,
        points: &[Point],
        (sweep, columns): (&Sweep, &[String]),
        is_part: bool,
    ) -> Result<(ReportPlan, usize), Diagnostic> {
        let swept = places::swept(sweep, columns);
        let found = points.iter().map(|point| Found {
            variant: point.variant.clone(),
            names: point.names.clone(),
            values: point.values.clone(),
            holds: point.holds.clone(),
        });
        let found: Vec<Found> = found.collect();
        let finder = Finder {
            sources,
            places: &self.places,
            points: &found,
            told_by: (&swept, columns),
        };
        let mut numbers = Vec::with_capacity(self.numbers.len());
        let mut homeless = 0;
        for draft in self.numbers {
            match finder.number(&draft) {
                Ok(number) => numbers.push(number),
                Err(_) if is_part => homeless += 1,
                Err(diagnostic) => return Err(diagnostic),
            }
        }
        let mut table = self.table;
        if let Some(table) = &mut table {
            table.against = finder.counterparts(table.beside);
        }
        let mut figures = self.figures;
        for figure in &mut figures {
            figure.against = finder.counterparts(figure.beside);
            figure.points = finder.that_hold(figure.only);
        }
        let point = |point: &Found| {
            let values = |axis: &places::Swept| {
                let keys = axis.keys.iter();
                keys.map(|(path, column)| (path.clone(), point.values[*column].clone()))
                    .collect()
            };
            ReportPoint {
                variant: point.variant.clone(),
                axes: swept.iter().map(values).collect(),
                names: point.names.clone(),
            }
        };
        let plan = ReportPlan {
            name: name.to_owned(),
            points: found.iter().map(point).collect(),
            seeds: sweep.seeds as usize,
            numbers,
            table,
            figures,
            fit: self.fit,
        };
        Ok((plan, homeless))
    }
}

/// Finds points by conditions.
struct Finder<'a> {
    sources: &'a Sources,
    places: &'a Places,
    points: &'a [Found],
    /// The swept keys, and all columns.
    told_by: (&'a [places::Swept], &'a [String]),
}

impl Finder<'_> {
    /// Returns the points at which a condition holds, or all points if there is no condition.
    fn that_hold(&self, condition: Option<usize>) -> Vec<usize> {
        let holds =
            |point: &usize| condition.is_none_or(|number| self.points[*point].holds[number]);
        (0..self.points.len()).filter(holds).collect()
    }

    /// Returns the counterpart of each point; empty without a condition.
    fn counterparts(&self, condition: Option<usize>) -> Vec<Option<usize>> {
        let Some(number) = condition else {
            return Vec::new();
        };
        let of = |point| {
            let other = self
                .places
                .counterpart(self.points, point, number, self.told_by);
            other.filter(|other| *other != point)
        };
        (0..self.points.len()).map(of).collect()
    }

    fn number(&self, draft: &published::Draft) -> Result<Number, Diagnostic> {
        let wrong = |message: String| Err(self.sources.diagnose(&draft.origin, message));
        let at = self.that_hold(draft.at);
        let [point] = at[..] else {
            let keys = self.told_by.0.iter().flat_map(|axis| &axis.keys);
            let keys: Vec<&str> = keys.map(|(path, _)| path.as_str()).collect();
            return wrong(format!(
                "`at` matches {} points of the study; expected one, identified by `name` (the variant) and the keys that are swept: {}",
                at.len(),
                keys.join(", ")
            ));
        };
        let against = draft.against.map(|number| {
            self.places
                .counterpart(self.points, point, number, self.told_by)
        });
        if against == Some(None) {
            return wrong(
                "no single point differs from that of `at` only in what `against` says; expected exactly one"
                    .to_owned(),
            );
        }
        Ok(Number {
            source: draft.source.clone(),
            status: draft.status,
            metric: draft.metric,
            form: draft.form,
            value: draft.value,
            tolerance: draft.tolerance,
            point,
            against: against.flatten(),
        })
    }
}

/// Returns the tables of a section that may be repeated.
fn each<'a>(
    sources: &Sources,
    entry: Option<&'a Entry>,
    name: &str,
) -> Result<Vec<&'a Node>, Diagnostic> {
    let Some(Entry { node, .. }) = entry else {
        return Ok(Vec::new());
    };
    match &node.value {
        Value::Table(_) => Ok(vec![node]),
        Value::Array(items) if items.iter().all(|item| item.table().is_some()) => {
            Ok(items.iter().collect())
        }
        _ => {
            let message = format!("expected a table [{name}], or one or more tables [[{name}]]");
            Err(sources.diagnose(&node.origin, message))
        }
    }
}

/// Refuses keys other than these.
pub(super) fn only(
    sources: &Sources,
    node: &Node,
    keys: &[&str],
    table: &str,
) -> Result<(), Diagnostic> {
    for (key, entry) in node.table().into_iter().flatten() {
        if !keys.contains(&key.as_str()) {
            let known = keys.join(", ");
            let message = format!("unknown key `{key}` in {table}; expected one of {known}");
            return Err(sources.diagnose(&entry.key, message));
        }
    }
    Ok(())
}

/// Returns the metric of this name.
fn metric(
    sources: &Sources,
    key: &str,
    name: &str,
    place: &Origin,
) -> Result<&'static Metric, Diagnostic> {
    metrics::find(name).ok_or_else(|| {
        let meant = suggest::name(name, metrics::ALL.iter().map(|metric| metric.name));
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        let message = format!("{key}: expected a column that `baton list columns` shows{meant}");
        sources.diagnose(place, message)
    })
}

/// Returns the metrics that `node` names: a single metric, or a list.
pub(super) fn metrics(
    sources: &Sources,
    around: &Node,
    key: &str,
    node: Option<&Node>,
) -> Result<Vec<&'static Metric>, Diagnostic> {
    let find = |node: &Node| {
        metric(
            sources,
            key,
            node.string().unwrap_or_default(),
            &node.origin,
        )
    };
    match node {
        Some(Node {
            value: Value::Array(items),
            ..
        }) if !items.is_empty() => items.iter().map(find).collect(),
        node => Ok(vec![find(node.unwrap_or(around))?]),
    }
}
