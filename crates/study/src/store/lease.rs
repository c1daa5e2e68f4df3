//! Assignment of runs to processes.
//!
//! A lease is a hard link to its owner's file in `workers`. Only one process can create a given link, even in a shared folder. The link
//! names its owner as soon as it exists, and shows the owner's lock and last sign of life. Leases of one run are numbered, and the one with
//! the highest number is valid: the lease of a dead owner is not removed but followed by the next, which again only one process can create.

use super::worker::{Life, Note, Watch, Worker};
use crate::error::StoreError;
use crate::file;
use crate::key::Key;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Result of an attempt to claim a run.
#[derive(Debug)]
pub enum Claim {
    /// This process should do the run.
    Mine(Lease),
    /// Another process is doing the run.
    Held(Note),
    /// The run has been done.
    Done,
}

/// The right to do a run, until this is dropped.
#[derive(Debug)]
pub struct Lease {
    folder: PathBuf,
    key: Key,
    number: u32,
}

/// Acquires the lease of a run, unless a living process holds it.
pub fn claim(folder: &Path, key: Key, worker: &Worker, watch: &Watch) -> Result<Claim, StoreError> {
    let mut number = 0;
    loop {
        let path = folder.join(name(key, number));
        let next = folder.join(name(key, number + 1));
        match fs::hard_link(worker.path(), &path) {
            Ok(()) => {
                let folder = folder.to_owned();
                return Ok(Claim::Mine(Lease {
                    folder,
                    key,
                    number,
                }));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StoreError::io("lease a run", &path)(error)),
        }
        if next.exists() {
            number += 1;
            continue;
        }
        number = match watch.life_of(&path)? {
            Some((owner, Life::Lives)) => return Ok(Claim::Held(owner)),
            Some((_, Life::Dead)) => number + 1,
            // The previous owner has just released the run.
            None => 0,
        };
    }
}

impl Lease {
    /// Removes the remaining leases of a run that has been done.
    pub fn end(self) -> Result<(), StoreError> {
        for number in 0..self.number {
            file::remove(&self.folder.join(name(self.key, number)))?;
        }
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // If the lease cannot be removed, another process takes it over once this process has ended.
        let _ = file::remove(&self.folder.join(name(self.key, self.number)));
    }
}

fn name(key: Key, number: u32) -> String {
    format!("{key}.{number}")
}

/// Returns the run of the lease with this name.
pub fn key_of(name: &str) -> Option<Key> {
    name.split_once('.')?.0.parse().ok()
}
