//! Iteration over all rows of all tables of a study.

use super::{Cell, Column, Kind, parts, rows, series};
use crate::error::StoreError;
use crate::store::Store;
use crate::study::{Study, StudyRun};

/// A table of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Table with a row for each run.
    Runs,
    /// Table with a row for each part of a quantity of a run.
    Parts,
    /// Table with a row for each sample of a run.
    Series,
}

impl Table {
    /// All tables, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Runs, Self::Parts, Self::Series];

    /// Returns the suffix of the table's name after the study's name.
    pub(super) const fn ending(self) -> &'static str {
        match self {
            Self::Runs => "",
            Self::Parts => "parts",
            Self::Series => "series",
        }
    }

    /// Returns the table's columns. Those of runs depend only on the study, the others are always the same.
    pub fn columns(self, study: &Study) -> Vec<Column> {
        let with_run =
            |columns: Vec<Column>| [vec![Column::new("run", Kind::Text)], columns].concat();
        match self {
            Self::Runs => rows::columns(study),
            Self::Parts => with_run(parts::columns()),
            Self::Series => with_run(series::columns()),
        }
    }
}

/// Callback that receives each row, with the table it belongs to.
pub type Visitor<'a> = dyn FnMut(Table, &[Cell]) -> Result<(), StoreError> + 'a;

/// Calls `row` with each row of each table about the runs in `done`. Returns how many of these runs failed.
///
/// # Errors
/// Results cannot be read, or `row` returned an error; the first one.
pub fn visit(
    store: &Store,
    study: &Study,
    done: &[&StudyRun],
    row: &mut Visitor<'_>,
) -> Result<usize, StoreError> {
    let mut failed = 0;
    for run in done {
        let head = store.head(run.key)?;
        failed += usize::from(head.has_failed());
        row(Table::Runs, &rows::cells(study, run, &head))?;
        let Some(results) = store.results(run.key)? else {
            continue;
        };
        let key = [Cell::text(run.key.to_string())];
        let mut outcome = Ok(());
        parts::rows(&results, |quantity, part, value| {
            if outcome.is_ok() {
                let cells = parts::cells(quantity, part, value);
                outcome = row(Table::Parts, &[&key, &cells[..]].concat());
            }
        });
        outcome?;
        for sample in &results.series {
            row(Table::Series, &[&key, &series::cells(sample)[..]].concat())?;
        }
    }
    Ok(failed)
}
