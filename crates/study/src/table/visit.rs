//! All rows of all tables of a study, for whoever makes something of them.

use super::{Cell, Column, Kind, parts, rows, series};
use crate::error::StoreError;
use crate::store::Store;
use crate::study::{Study, StudyRun};

/// A table of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// With a row for each run.
    Runs,
    /// With a row for each part of a quantity of a run.
    Parts,
    /// With a row for each sample of a run.
    Series,
}

impl Table {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Runs, Self::Parts, Self::Series];

    /// What its name has behind the study's.
    pub(super) const fn ending(self) -> &'static str {
        match self {
            Self::Runs => "",
            Self::Parts => "parts",
            Self::Series => "series",
        }
    }

    /// Its columns. Those of runs depend on the study alone, the others are always the same.
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

/// What is given each row, and of which table it is.
pub type Visitor<'a> = dyn FnMut(Table, &[Cell]) -> Result<(), StoreError> + 'a;

/// Gives `row` each row of each table, of the runs `done` of a study. Returns how many of them failed.
///
/// # Errors
/// Results cannot be read, or the first of `row`.
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
