//! Who does which run.
//!
//! A lease is a link to its owner's file in `workers`. A link is made by one process only, on shared folders too; it names its owner from its
//! first moment on; and whoever looks at it sees the owner's lock and last sign of life. Leases of one run are numbered. The one with the
//! highest number holds: a dead owner's is not removed but followed by the next, which again only one process can make.

use super::worker::{Life, Note, Watch, Worker};
use crate::error::StoreError;
use crate::file;
use crate::key::Key;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What came of asking for a run.
#[derive(Debug)]
pub enum Claim {
    /// It is for this process to do.
    Mine(Lease),
    /// Another process does it.
    Held(Note),
    /// It has been done.
    Done,
}

/// The right to do a run, until dropped.
#[derive(Debug)]
pub struct Lease {
    folder: PathBuf,
    key: Key,
    number: u32,
}

/// Takes the lease of a run, unless a living process has it.
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
            // Whoever had it has just let go of it.
            None => 0,
        };
    }
}

impl Lease {
    /// Removes what is left of the leases of a run that has been done.
    pub fn end(self) -> Result<(), StoreError> {
        for number in 0..self.number {
            file::remove(&self.folder.join(name(self.key, number)))?;
        }
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // What cannot be removed is taken over once this process has ended.
        let _ = file::remove(&self.folder.join(name(self.key, self.number)));
    }
}

fn name(key: Key, number: u32) -> String {
    format!("{key}.{number}")
}

/// The run that a lease of this name is for.
pub fn key_of(name: &str) -> Option<Key> {
    name.split_once('.')?.0.parse().ok()
}
