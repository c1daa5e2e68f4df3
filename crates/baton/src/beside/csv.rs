//! Published and simulated numbers as CSV.

use super::{Comparison, Outcome, label};
use crate::config::Tolerance;
use crate::failure::Failure;
use baton_study::table::{Cell, csv_text};

const HEAD: [&str; 12] = [
    "configuration",
    "metric",
    "against",
    "form",
    "source",
    "status",
    "published",
    "simulated",
    "simulated_ci95",
    "error",
    "tolerance",
    "verdict",
];

/// Returns a line for each published number.
///
/// # Errors
/// Fails if the result is not text.
pub fn csv(outcome: &Outcome<'_>) -> Result<String, Failure> {
    let rows = Comparison::published(outcome)
        .into_iter()
        .map(|row| cells(outcome, &row));
    csv_text(&HEAD.map(str::to_owned), rows).map_err(|error| Failure::Failed(error.to_string()))
}

fn cells(outcome: &Outcome<'_>, row: &Comparison<'_>) -> Vec<Cell> {
    let name = |point: usize| Cell::text(label(outcome.plan, point));
    let number = row.number;
    let of_number = |cell: Option<Cell>| cell.unwrap_or_default();
    vec![
        name(row.point),
        Cell::text(row.metric),
        of_number(row.against.map(name)),
        Cell::text(row.form.name()),
        of_number(number.map(|number| Cell::text(&number.source))),
        of_number(number.map(|number| Cell::text(number.status.name()))),
        of_number(number.map(|number| Cell::number(number.value))),
        of_number(row.simulated.map(|found| Cell::number(found.mean))),
        of_number(
            row.simulated
                .and_then(|found| found.half_width)
                .map(Cell::number),
        ),
        Cell::text(row.error()),
        of_number(number.and_then(|number| number.tolerance).map(tolerance)),
        of_number(row.verdict().map(|verdict| Cell::text(verdict.name()))),
    ]
}

/// Returns a tolerance as written in study files.
fn tolerance(tolerance: Tolerance) -> Cell {
    Cell::text(match tolerance {
        Tolerance::Percent(percent) => format!("{percent} %"),
        Tolerance::Factor(factor) => format!("x {factor}"),
        Tolerance::Points(points) => points.to_string(),
    })
}
