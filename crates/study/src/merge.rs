//! Merges results that were computed in separate stores.

use crate::error::StoreError;
use crate::file;
use crate::key::Key;
use crate::record::Head;
use crate::store::{self, Store};
use std::fs::File;
use std::io;
use std::path::Path;

/// Result of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Number of runs that were not in the store.
    pub new: usize,
    /// Number of runs that were already in the store, with the same results.
    pub same: usize,
    /// Runs that were already in the store, with different results: equal configurations, inputs and programs should give equal results.
    pub different: Vec<Key>,
    /// Number of studies that were not in the store.
    pub studies: usize,
}

/// Copies all runs and studies of the store in `from` that `store` does not have.
///
/// # Errors
/// `from` cannot be read, or `store` cannot be written.
pub fn merge(from: &Path, store: &Store) -> Result<Merged, StoreError> {
    Store::check(from)?;
    let mut merged = Merged::default();
    for key in store::keys(from)? {
        let theirs = store::path(from, key);
        if !store.has(key) {
            copy(&theirs, store, &store.path(key))?;
            merged.new += 1;
        } else if Head::read(&theirs)?.says_the_same(&store.head(key)?) {
            merged.same += 1;
        } else {
            merged.different.push(key);
        }
    }
    let studies = from.join("studies");
    let names = file::names(&studies)?.into_iter();
    for name in names.filter(|name| name.ends_with(".json")) {
        let ours = store.root().join("studies").join(&name);
        if !ours.exists() {
            copy(&studies.join(&name), store, &ours)?;
            merged.studies += 1;
        }
    }
    Ok(merged)
}

fn copy(from: &Path, store: &Store, target: &Path) -> Result<(), StoreError> {
    let mut source = File::open(from).map_err(StoreError::io("read", from))?;
    store.write(target, |out| io::copy(&mut source, out).map(drop))
}
