//! Removes data that is no longer needed.

use crate::error::StoreError;
use crate::file;
use crate::store::{self, Life, Store};
use crate::study::Study;
use rustc_hash::FxHashSet;
use std::fs;

/// Amount of data that is no longer needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Number of runs that no study of the store refers to, for example of earlier programs or of keys that are not swept any more.
    pub runs: usize,
    /// Total size of these runs in bytes.
    pub bytes: u64,
    /// Number of files of processes that died.
    pub workers: usize,
    /// Number of runs with leases of dead processes only.
    pub leases: usize,
}

/// Finds data that is no longer needed and removes it, unless `only_count` is set.
///
/// # Errors
/// The store cannot be read or written.
pub fn collect_garbage(store: &Store, only_count: bool) -> Result<Leftovers, StoreError> {
    let mut leftovers = Leftovers::default();
    let studies = Study::all(store.root())?;
    let runs = studies.iter().flat_map(|study| &study.runs);
    let wanted: FxHashSet<_> = runs.map(|run| run.key).collect();
    for key in store::keys(store.root())? {
        if wanted.contains(&key) {
            continue;
        }
        let path = store.path(key);
        leftovers.bytes += fs::metadata(&path).map_or(0, |metadata| metadata.len());
        leftovers.runs += 1;
        if !only_count {
            file::remove(&path)?;
        }
    }
    // Remove leases before the files of their owners, because nothing else identifies the owners.
    leftovers.leases = collect_leases(store, only_count)?;
    let folder = store.root().join("workers");
    for name in file::names(&folder)? {
        let path = folder.join(&name);
        if name != store.worker() && matches!(store.life_of(&path)?, Some((_, Life::Dead))) {
            leftovers.workers += 1;
            if !only_count {
                file::remove(&path)?;
            }
        }
    }
    Ok(leftovers)
}

/// Removes the leases of runs without a living owner, and returns the number of these runs. The leases before that of a living owner stay,
/// because they show that it is not the first.
fn collect_leases(store: &Store, only_count: bool) -> Result<usize, StoreError> {
    let folder = store.leases();
    let names = file::names(&folder)?;
    let of_a_run = |a: &String, b: &String| store::key_of_lease(a) == store::key_of_lease(b);
    let mut dead = 0;
    for names in names.chunk_by(of_a_run) {
        let lives = names.iter().map(|name| store.life_of(&folder.join(name)));
        let lives: Vec<_> = lives.collect::<Result<_, _>>()?;
        if lives.iter().flatten().any(|(_, life)| *life == Life::Lives) {
            continue;
        }
        dead += 1;
        for name in names.iter().filter(|_| !only_count) {
            file::remove(&folder.join(name))?;
        }
    }
    Ok(dead)
}
