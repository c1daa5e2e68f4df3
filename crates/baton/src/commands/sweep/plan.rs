//! The runs of a study, as text.

use crate::config::{Point, StudyPlan};
use crate::failure::Failure;
use baton_study::table::Cell;

/// Returns a line for each run, with the first columns of a table of results.
///
/// # Errors
/// Fails if the result is not text.
pub fn text(plan: &StudyPlan) -> Result<String, Failure> {
    let columns = plan
        .columns
        .iter()
        .map(|column| format!("config.{}", column.path));
    let head: Vec<String> = ["variant", "seed"]
        .map(str::to_owned)
        .into_iter()
        .chain(columns)
        .collect();
    let rows = plan.points.iter().map(row);
    baton_study::table::csv_text(&head, rows).map_err(|error| Failure::Failed(error.to_string()))
}

fn row(point: &Point) -> Vec<Cell> {
    let first = [
        point.variant.clone().into(),
        Cell::count(point.experiment.run.seed),
    ];
    first
        .into_iter()
        .chain(point.values.iter().cloned())
        .collect()
}
