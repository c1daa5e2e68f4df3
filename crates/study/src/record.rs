//! Format of a stored run: a line with the data for tables, and a line with all results.

use crate::error::StoreError;
use crate::key::Key;
use crate::table::{Cell, metrics};
use baton_sim::results::Results;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::SystemTime;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The run has results.
    Measured(Box<Results>),
    /// The simulator violated an invariant, and would do so again: its message.
    Failed(String),
}

/// The first line of a stored run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Version of the tables that the metrics belong to ([`crate::table::VERSION`]).
    pub schema: u32,
    /// Key of the run.
    pub key: Key,
    /// Sources and commit of the program that executed the run.
    pub program: String,
    /// Duration of the run, in seconds of a thread.
    pub took_s: f64,
    /// `complete`, `time_limit`, `quiet` or `failed`.
    pub ended: String,
    /// Why the run failed.
    pub error: Option<String>,
    /// Every metric by its name; empty if the run failed.
    pub metrics: BTreeMap<String, Cell>,
}

impl Head {
    /// Creates the head of a run that has ended.
    pub fn new(key: Key, program: &str, took_s: f64, outcome: &Outcome) -> Self {
        let (ended, error, metrics) = match outcome {
            Outcome::Measured(results) => (results.ended.name(), None, metrics::of(results)),
            Outcome::Failed(error) => ("failed", Some(error.clone()), BTreeMap::new()),
        };
        Self {
            schema: crate::table::VERSION,
            key,
            program: program.to_owned(),
            took_s,
            ended: ended.to_owned(),
            error,
            metrics,
        }
    }

    /// Returns whether the run has no results.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Returns whether both runs have the same outcome.
    pub fn says_the_same(&self, other: &Self) -> bool {
        (&self.ended, &self.error, &self.metrics) == (&other.ended, &other.error, &other.metrics)
    }

    /// Reads only the first line of a stored run.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let head = || -> io::Result<Self> {
            let mut line = Vec::new();
            BufReader::new(File::open(path)?).read_until(b'\n', &mut line)?;
            Ok(serde_json::from_slice(&line)?)
        };
        head().map_err(StoreError::io("read", path))
    }
}

/// A stored run.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The first line.
    pub head: Head,
    /// All results; `None` if the run failed.
    pub results: Option<Results>,
    /// When the file was written, if the file system records it.
    pub written: Option<SystemTime>,
}

/// Reads a run from the store in a folder, without writing there. Returns `None` if the run has not been done.
///
/// # Errors
/// The file cannot be read.
pub fn read_run(root: &Path, key: Key) -> Result<Option<Stored>, StoreError> {
    let path = crate::store::path(root, key);
    let Ok(file) = path.metadata() else {
        return Ok(None);
    };
    Ok(Some(Stored {
        head: Head::read(&path)?,
        results: read_results(&path)?,
        written: file.modified().ok(),
    }))
}

/// Reads all results of a stored run; returns `None` if the run failed.
///
/// # Errors
/// The file cannot be read.
pub fn read_results(path: &Path) -> Result<Option<Results>, StoreError> {
    let results = || -> io::Result<Option<Results>> {
        let mut file = BufReader::new(File::open(path)?);
        file.skip_until(b'\n')?;
        let mut line = Vec::new();
        file.read_to_end(&mut line)?;
        Ok(serde_json::from_slice(&line)?)
    };
    results().map_err(StoreError::io("read", path))
}

/// Writes both lines.
pub fn write(out: &mut impl Write, head: &Head, outcome: &Outcome) -> io::Result<()> {
    serde_json::to_writer(&mut *out, head)?;
    out.write_all(b"\n")?;
    match outcome {
        Outcome::Measured(results) => serde_json::to_writer(&mut *out, results)?,
        Outcome::Failed(_) => out.write_all(b"null")?,
    }
    out.write_all(b"\n")
}
