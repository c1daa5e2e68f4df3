//! Progress of studies.

use crate::error::StoreError;
use crate::file;
use crate::key::Key;
use crate::record::Head;
use crate::store::{self, Life, Note, Store};
use crate::study::Study;
use crate::table::Cell;
use crate::table::metrics::NOT_STEADY;
use serde::Serialize;
use std::path::Path;

/// Content of a store, and the processes that work in it.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Number of stored runs, of any study and program.
    pub runs: usize,
    /// Progress of each study.
    pub studies: Vec<StudyStatus>,
    /// Processes, other than this one, that started to work in the store and have not ended cleanly.
    pub workers: Vec<WorkerStatus>,
}

/// Progress of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StudyStatus {
    /// Name of the study.
    pub name: String,
    /// Number of runs in the study.
    pub runs: usize,
    /// Number of these runs that have been done.
    pub done: usize,
    /// Number of runs done that failed.
    pub failed: usize,
    /// Number of runs done that were not steady.
    pub not_steady: usize,
    /// Total duration of the runs done, in seconds of threads.
    pub took_s: f64,
}

/// A process that works in the store.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerStatus {
    /// Identity of the process.
    pub note: Note,
    /// Whether the process is alive.
    pub lives: bool,
    /// Runs that the process is doing, or was doing when it died.
    pub runs: Vec<Key>,
}

impl Status {
    /// Returns the status of an open store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of(store: &Store) -> Result<Self, StoreError> {
        let root = store.root();
        let studies = Study::all(root)?;
        let studies = studies.iter().map(|study| StudyStatus::of(root, study));
        Ok(Self {
            runs: store::keys(root)?.len(),
            studies: studies.collect::<Result<_, _>>()?,
            workers: workers(store)?,
        })
    }
}

impl StudyStatus {
    /// Returns the progress of a study in the store in a folder.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of(root: &Path, study: &Study) -> Result<Self, StoreError> {
        let mut status = Self {
            name: study.name.clone(),
            runs: study.runs.len(),
            done: 0,
            failed: 0,
            not_steady: 0,
            took_s: 0.0,
        };
        let paths = study.runs.iter().map(|run| store::path(root, run.key));
        for path in paths.filter(|path| path.exists()) {
            let head = Head::read(&path)?;
            status.done += 1;
            status.failed += usize::from(head.has_failed());
            let not_steady = head.metrics.get(NOT_STEADY);
            status.not_steady += usize::from(not_steady.is_some_and(|why| *why != Cell::Nothing));
            status.took_s += head.took_s;
        }
        Ok(status)
    }
}

/// Returns all processes except this one.
fn workers(store: &Store) -> Result<Vec<WorkerStatus>, StoreError> {
    let folder = store.root().join("workers");
    let leases = store.leases();
    let mut workers = Vec::new();
    for name in file::names(&folder)? {
        if name == store.worker() {
            continue;
        }
        if let Some((note, life)) = store.life_of(&folder.join(&name))? {
            workers.push(WorkerStatus {
                note,
                lives: life == Life::Lives,
                runs: Vec::new(),
            });
        }
    }
    for name in file::names(&leases)? {
        let Some(key) = store::key_of_lease(&name) else {
            continue;
        };
        if let Some((owner, _)) = store.life_of(&leases.join(&name))? {
            let owner = workers.iter_mut().find(|worker| worker.note == owner);
            owner.into_iter().for_each(|owner| owner.runs.push(key));
        }
    }
    Ok(workers)
}
