//! Writing of a study's tables next to its results.

#[cfg(feature = "parquet")]
use super::parquet::Parquet;
use super::{Cell, Column, Table, csv::Csv, rows, visit};
use crate::error::StoreError;
use crate::file::{self, Part};
use crate::key::{Digest, Key};
use crate::store::Store;
use crate::study::{Study, StudyRun};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Result of writing the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// All files, those with one row per run first.
    pub files: Vec<PathBuf>,
    /// Number of runs in the tables.
    pub rows: usize,
    /// Number of these runs that failed.
    pub failed: usize,
    /// Whether the tables were already up to date.
    pub was_current: bool,
}

/// Writes the tables of the runs of a study that have been done. If the tables are already up to date, no results are read.
///
/// # Errors
/// Results cannot be read, or tables cannot be written.
pub fn write(store: &Store, study: &Study) -> Result<Written, StoreError> {
    let done: Vec<&StudyRun> = study.runs.iter().filter(|run| store.has(run.key)).collect();
    let root = store.root();
    let base = root.join(&study.name);
    let digest = digest(study, &done);
    let note = root.join("studies").join(format!("{}.tables", study.name));
    let tables = Table::ALL.map(|table| with_ending(&base, table.ending()));
    let files = tables
        .iter()
        .flat_map(|table| ENDINGS.iter().map(|end| with_ending(table, end)));
    let files: Vec<PathBuf> = files.collect();
    let is_there = files.iter().all(|file| file.exists());
    let before: Option<(Key, usize)> = file::read_json(&note).ok().flatten();
    let before = before.filter(|before| is_there && before.0 == digest);
    let was_current = before.is_some();
    let failed = match before {
        Some((_, failed)) => failed,
        None => {
            let failed = write_all(store, study, &done, &base)?;
            store.write_json(&note, &(digest, failed))?;
            failed
        }
    };
    Ok(Written {
        files,
        rows: done.len(),
        failed,
        was_current,
    })
}

/// File name extensions of the files for each table.
#[cfg(feature = "parquet")]
const ENDINGS: &[&str] = &["csv", "parquet"];
#[cfg(not(feature = "parquet"))]
const ENDINGS: &[&str] = &["csv"];

/// Returns the path with a dot and `ending` appended, or unchanged if `ending` is empty.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    if !ending.is_empty() {
        path.push(".");
        path.push(ending);
    }
    path.into()
}

/// Returns a digest of all that determines the content of the tables.
fn digest(study: &Study, done: &[&StudyRun]) -> Key {
    let digest = Digest::new()
        .part(&super::VERSION.to_le_bytes())
        .part(study.digest().to_string().as_bytes());
    let columns = rows::columns(study).into_iter().map(|column| column.name);
    let digest = columns.fold(digest, |digest, name| digest.part(name.as_bytes()));
    let keys = done.iter().map(|run| run.key.to_string());
    keys.fold(digest, |digest, key| digest.part(key.as_bytes()))
        .key()
}

/// Writes all tables; returns the number of runs that failed.
fn write_all(
    store: &Store,
    study: &Study,
    done: &[&StudyRun],
    base: &Path,
) -> Result<usize, StoreError> {
    let begin = |table: Table| {
        Files::begin(
            store,
            with_ending(base, table.ending()),
            &table.columns(study),
        )
    };
    let mut files = [
        begin(Table::Runs)?,
        begin(Table::Parts)?,
        begin(Table::Series)?,
    ];
    let failed = visit(store, study, done, &mut |table, cells| {
        files[table as usize].row(cells)
    })?;
    files.into_iter().try_for_each(Files::finish)?;
    Ok(failed)
}

/// A table in every file format.
struct Files {
    base: PathBuf,
    csv: Csv<BufWriter<Part>>,
    #[cfg(feature = "parquet")]
    parquet: Parquet<BufWriter<Part>>,
}

impl Files {
    fn begin(store: &Store, base: PathBuf, columns: &[Column]) -> Result<Self, StoreError> {
        let part = || Part::begin(&store.parts(), store.worker()).map(BufWriter::new);
        let begun = || -> io::Result<Self> {
            Ok(Self {
                csv: Csv::new(part()?, columns)?,
                #[cfg(feature = "parquet")]
                parquet: Parquet::new(part()?, columns)?,
                base: base.clone(),
            })
        };
        begun().map_err(StoreError::io("write the table", &base))
    }

    fn row(&mut self, cells: &[Cell]) -> Result<(), StoreError> {
        let mut row = || -> io::Result<()> {
            #[cfg(feature = "parquet")]
            self.parquet.row(cells)?;
            self.csv.row(cells)
        };
        row().map_err(StoreError::io("write the table", &self.base))
    }

    fn finish(self) -> Result<(), StoreError> {
        let base = self.base;
        let finish = || -> io::Result<()> {
            Part::commit(self.csv.finish()?, &with_ending(&base, "csv"))?;
            #[cfg(feature = "parquet")]
            Part::commit(self.parquet.finish()?, &with_ending(&base, "parquet"))?;
            Ok(())
        };
        finish().map_err(StoreError::io("write the table", &base))
    }
}
