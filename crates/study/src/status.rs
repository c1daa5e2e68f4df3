//! How far studies are.

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

/// What is in a store, and who works there.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Runs that are stored, of whatever study and program.
    pub runs: usize,
    /// One for each study.
    pub studies: Vec<StudyStatus>,
    /// One for each process that has begun to work there and not ended in good order.
    pub workers: Vec<WorkerStatus>,
}

/// How far a study is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StudyStatus {
    /// Its name.
    pub name: String,
    /// Its runs.
    pub runs: usize,
    /// Of these, those that have been done.
    pub done: usize,
    /// Of these, those that failed.
    pub failed: usize,
    /// Of these, those that were not steady.
    pub not_steady: usize,
    /// Seconds of threads that those took which have been done.
    pub took_s: f64,
}

/// A process.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerStatus {
    /// Which.
    pub note: Note,
    /// Whether it works; else it died.
    pub lives: bool,
    /// Runs that it is at, or was.
    pub runs: Vec<Key>,
}

impl Status {
    /// Looks at a store from within.
    ///
    /// # Errors
    /// It cannot be read.
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
    /// How far a study is in the store in a folder.
    ///
    /// # Errors
    /// That cannot be read.
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

/// All but this process.
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
