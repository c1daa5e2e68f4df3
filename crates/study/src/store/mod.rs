//! A folder of results.
//!
//! ```text
//! DIR/baton-store      its format
//! DIR/runs/ab/...      a file for each run, by its key
//! DIR/studies/         which runs belong together
//! DIR/failed/          configurations of runs that failed, as experiment files
//! DIR/inputs.json      digests of input files
//! DIR/workers/         a file for each process that works here
//! DIR/leases/          which process does which run: links to these files
//! DIR/parts/           files that are being written
//! ```

mod lease;
mod worker;

pub(crate) use lease::key_of as key_of_lease;
pub use lease::{Claim, Lease};
pub(crate) use worker::Life;
pub use worker::{Note, Patience};

use crate::error::StoreError;
use crate::file::{self, Part};
use crate::key::Key;
use crate::record::{self, Head, Outcome};
use baton_sim::results::Results;
use serde::Serialize;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use worker::{Watch, Worker};

/// Name of the file that marks a folder as a store and contains its format.
const MARK: &str = "baton-store";
/// Content of that file.
const FORMAT: &str = "1\n";
/// Folders that a new store is created with.
const FOLDERS: [&str; 5] = ["parts", "runs", "studies", "workers", "leases"];

/// A folder of results, in which this process works.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    worker: Worker,
    watch: Watch,
}

impl Store {
    /// Opens a folder and starts to work in it. A folder that is empty or does not exist becomes a store. Removes incomplete files of dead
    /// processes.
    ///
    /// # Errors
    /// The folder is not a store, or cannot be written.
    pub fn open(root: &Path, patience: Patience) -> Result<Self, StoreError> {
        make(root)?;
        let folder = root.join("workers");
        let worker = Worker::begin(&folder, patience.renew_every)?;
        let store = Self {
            root: root.to_owned(),
            worker,
            watch: Watch::new(patience.dead_after),
        };
        store.remove_parts_of_the_dead()?;
        Ok(store)
    }

    /// Checks that a folder is a store.
    ///
    /// # Errors
    /// It is not a store.
    pub fn check(root: &Path) -> Result<(), StoreError> {
        let mark = root.join(MARK);
        let found = match fs::read_to_string(&mark) {
            Ok(format) if format == FORMAT => return Ok(()),
            Ok(format) => format!("format {:?}", format.trim()),
            Err(_) if !root.exists() => "there is no such folder".to_owned(),
            Err(_) => "has no results of `baton sweep`".to_owned(),
        };
        Err(StoreError::Other {
            path: root.to_owned(),
            found,
            expected: "a folder that `baton sweep --out` of this version created",
        })
    }

    /// Returns the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a run's result, whether it exists or not.
    pub fn path(&self, key: Key) -> PathBuf {
        path(&self.root, key)
    }

    /// Returns whether a run has been done.
    pub fn has(&self, key: Key) -> bool {
        self.path(key).exists()
    }

    /// Reads the data that tables need of a run that has been done.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn head(&self, key: Key) -> Result<Head, StoreError> {
        Head::read(&self.path(key))
    }

    /// Reads all results of a run that has been done; returns `None` if it failed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn results(&self, key: Key) -> Result<Option<Results>, StoreError> {
        record::read_results(&self.path(key))
    }

    /// Stores the result of a run.
    ///
    /// # Errors
    /// The file cannot be written, for example because the disk is full; nothing is stored then.
    pub fn put(&self, head: &Head, outcome: &Outcome) -> Result<(), StoreError> {
        self.write(&self.path(head.key), |out| {
            record::write(out, head, outcome)
        })
    }

    /// Claims a run for this process, unless it has been done or another process is doing it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn claim(&self, key: Key) -> Result<Claim, StoreError> {
        if self.has(key) {
            return Ok(Claim::Done);
        }
        let claim = lease::claim(&self.leases(), key, &self.worker, &self.watch)?;
        // The previous owner may have finished the run in the meantime.
        Ok(match claim {
            Claim::Mine(_) if self.has(key) => Claim::Done,
            claim => claim,
        })
    }

    /// Writes a file of the store, completely or not at all; creates missing folders.
    pub(crate) fn write(
        &self,
        target: &Path,
        write: impl FnOnce(&mut BufWriter<Part>) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        if let Some(folder) = target.parent() {
            make_folder(folder)?;
        }
        file::write_whole(&self.parts(), self.worker.id(), target, write)
    }

    /// Writes a value as JSON, like [`Self::write`].
    pub(crate) fn write_json(
        &self,
        target: &Path,
        value: &impl Serialize,
    ) -> Result<(), StoreError> {
        if let Some(folder) = target.parent() {
            make_folder(folder)?;
        }
        file::write_json(&self.parts(), self.worker.id(), target, value)
    }

    /// Writes an additional file to the store, such as the configuration of a run that failed. Returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_beside(&self, name: &str, content: &[u8]) -> Result<PathBuf, StoreError> {
        let target = self.root.join(name);
        self.write(&target, |out| out.write_all(content))?;
        Ok(target)
    }

    pub(crate) fn inputs(&self) -> PathBuf {
        self.root.join("inputs.json")
    }

    pub(crate) fn parts(&self) -> PathBuf {
        self.root.join("parts")
    }

    pub(crate) fn leases(&self) -> PathBuf {
        self.root.join("leases")
    }

    /// Returns the process that wrote a file in `workers` or `leases`, and whether it is alive; `None` if there is no such file.
    pub(crate) fn life_of(&self, note: &Path) -> Result<Option<(Note, Life)>, StoreError> {
        self.watch.life_of(note)
    }

    /// Returns the name of this process's file in `workers`.
    pub(crate) fn worker(&self) -> &str {
        self.worker.id()
    }

    fn remove_parts_of_the_dead(&self) -> Result<usize, StoreError> {
        let mut removed = 0;
        for name in file::names(&self.parts())? {
            let owner = name.split('.').next().unwrap_or_default();
            let note = self.root.join("workers").join(owner);
            let lives = self
                .life_of(&note)?
                .is_some_and(|(_, life)| life != Life::Dead);
            if owner != self.worker.id() && !lives {
                removed += usize::from(file::remove(&self.parts().join(name))?);
            }
        }
        Ok(removed)
    }
}

/// Returns the path of a run's result in a store.
pub(crate) fn path(root: &Path, key: Key) -> PathBuf {
    let name = key.to_string();
    let (folder, name) = name.split_at(2);
    root.join("runs").join(folder).join(format!("{name}.jsonl"))
}

/// Returns all runs in a store.
pub(crate) fn keys(root: &Path) -> Result<Vec<Key>, StoreError> {
    let runs = root.join("runs");
    let mut keys = Vec::new();
    for folder in file::names(&runs)? {
        for name in file::names(&runs.join(&folder))? {
            let key = name.strip_suffix(".jsonl");
            keys.extend(key.and_then(|rest| format!("{folder}{rest}").parse::<Key>().ok()));
        }
    }
    Ok(keys)
}

fn make(root: &Path) -> Result<(), StoreError> {
    make_folder(root)?;
    // Another process may be creating the store at this moment.
    let is_ours = |name: &String| FOLDERS.contains(&name.as_str()) || name.starts_with(MARK);
    let names = file::names(root)?;
    let is_new = !names.iter().any(|name| name == MARK) && names.iter().all(is_ours);
    if !is_new {
        Store::check(root)?;
    }
    for folder in FOLDERS {
        make_folder(&root.join(folder))?;
    }
    if is_new {
        let write = |out: &mut BufWriter<Part>| out.write_all(FORMAT.as_bytes());
        file::write_whole(root, MARK, &root.join(MARK), write)?;
    }
    Ok(())
}

fn make_folder(folder: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(folder).map_err(StoreError::io("create the folder", folder))
}
