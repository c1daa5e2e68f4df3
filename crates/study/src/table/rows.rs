//! The table with one row per run.

use super::metrics::{self, NOT_STEADY};
use super::{Cell, Column, Kind};
use crate::record::Head;
use crate::study::{Study, StudyRun};

/// Returns the columns of a study's table.
pub fn columns(study: &Study) -> Vec<Column> {
    let first = [
        ("study", Kind::Text),
        ("run", Kind::Text),
        ("variant", Kind::Text),
        ("seed", Kind::Integer),
    ];
    let then = [
        ("ended", Kind::Text),
        ("error", Kind::Text),
        (NOT_STEADY, Kind::Text),
    ];
    let named = |&(name, kind): &(&str, Kind)| Column::new(name, kind);
    let config = study.columns.iter();
    let config = config.map(|key| Column::new(format!("config.{}", key.path), key.kind));
    let metrics = metrics::ALL.iter();
    let metrics = metrics.map(|metric| Column::new(metric.name, metric.kind()));
    first
        .iter()
        .map(named)
        .chain(config)
        .chain(then.iter().map(named))
        .chain(metrics)
        .collect()
}

/// Returns the row of a run that has been done.
pub fn cells(study: &Study, run: &StudyRun, head: &Head) -> Vec<Cell> {
    let metric = |name: &str| head.metrics.get(name).cloned().unwrap_or_default();
    let first = [
        Cell::text(&study.name),
        Cell::text(run.key.to_string()),
        run.variant.clone().into(),
        Cell::count(run.seed),
    ];
    let then = [
        Cell::text(&head.ended),
        head.error.clone().into(),
        metric(NOT_STEADY),
    ];
    first
        .into_iter()
        .chain(run.values.iter().cloned())
        .chain(then)
        .chain(metrics::ALL.iter().map(|one| metric(one.name)))
        .collect()
}
