//! A folder of results.
//!
//! ```text
//! DIR/baton-store      its format
//! DIR/runs/ab/...      a file for each run, by its key
//! DIR/studies/         which runs belong together
//! DIR/failed/          configurations of runs that failed, as experiment files
//! DIR/inputs.json      digests of input files
//! DIR/workers/         a file for each process that works here
//! DIR/leases/          which of them does which run: links to these files
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

/// Says that a folder is a store, and of which format.
const MARK: &str = "baton-store";
/// What the mark says.
const FORMAT: &str = "1\n";
/// What is made first.
const FOLDERS: [&str; 5] = ["parts", "runs", "studies", "workers", "leases"];

/// A folder of results, in which this process works.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    worker: Worker,
    watch: Watch,
}

impl Store {
    /// Opens a folder, which is made a store if it is empty or not there, and begins to work in it. What dead processes left half-written
    /// is removed.
    ///
    /// # Errors
    /// It is no store, or cannot be written.
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

    /// Whether a folder is a store.
    ///
    /// # Errors
    /// It is none.
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
            expected: "a folder that `baton sweep --out` of this version has made",
        })
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a run's result is, or will be.
    pub fn path(&self, key: Key) -> PathBuf {
        path(&self.root, key)
    }

    /// Whether a run has been done.
    pub fn has(&self, key: Key) -> bool {
        self.path(key).exists()
    }

    /// What tables need of a run that has been done.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn head(&self, key: Key) -> Result<Head, StoreError> {
        Head::read(&self.path(key))
    }

    /// All results of a run that has been done; none if it failed.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn results(&self, key: Key) -> Result<Option<Results>, StoreError> {
        record::read_results(&self.path(key))
    }

    /// Keeps the result of a run.
    ///
    /// # Errors
    /// The disk is full, say; nothing is kept then.
    pub fn put(&self, head: &Head, outcome: &Outcome) -> Result<(), StoreError> {
        self.write(&self.path(head.key), |out| {
            record::write(out, head, outcome)
        })
    }

    /// Takes a run to do, unless it has been done or somebody else is at it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn claim(&self, key: Key) -> Result<Claim, StoreError> {
        if self.has(key) {
            return Ok(Claim::Done);
        }
        let claim = lease::claim(&self.leases(), key, &self.worker, &self.watch)?;
        // Who had it may have ended it in between.
        Ok(match claim {
            Claim::Mine(_) if self.has(key) => Claim::Done,
            claim => claim,
        })
    }

    /// Writes a file of the store, whole or not at all; folders on the way are made.
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

    /// The same with a value as JSON.
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

    /// Writes a file beside the results, as the configuration of a run that failed. Returns where it is.
    ///
    /// # Errors
    /// It cannot be written.
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

    /// Whether the process lives that wrote a file in `workers` or `leases`.
    pub(crate) fn life_of(&self, note: &Path) -> Result<Option<(Note, Life)>, StoreError> {
        self.watch.life_of(note)
    }

    /// This process's own file in `workers`.
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

/// Where a store keeps the result of a run.
pub(crate) fn path(root: &Path, key: Key) -> PathBuf {
    let name = key.to_string();
    let (folder, name) = name.split_at(2);
    root.join("runs").join(folder).join(format!("{name}.jsonl"))
}

/// All runs that a store holds.
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
    // Another process may be making it at this moment.
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
    fs::create_dir_all(folder).map_err(StoreError::io("make the folder", folder))
}
