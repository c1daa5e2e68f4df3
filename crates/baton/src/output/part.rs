//! Files being written. An exit that nobody can wait for removes them too.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::{NamedTempFile, PersistError};

/// Where all parts are. Only an exit that runs no destructor needs to know.
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that is to take the place of another one. Removed when dropped before, or by [`remove_all_parts`].
#[derive(Debug)]
pub struct Part {
    /// `None` once it has been put in its place.
    file: Option<NamedTempFile>,
    path: PathBuf,
}

impl Part {
    /// Looks after `file`.
    pub fn new(file: NamedTempFile) -> Self {
        let path = file.path().to_owned();
        parts().push(path.clone());
        Self {
            file: Some(file),
            path,
        }
    }

    /// Where it is now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it in the place of `target`.
    ///
    /// # Errors
    /// It cannot be put there, and is removed.
    pub fn persist(mut self, target: &Path) -> Result<File, PersistError> {
        let file = self.file.take().expect("it is put in place once");
        file.persist(target)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        parts().retain(|path| *path != self.path);
    }
}

/// Removes all parts, for an exit that runs no destructor.
pub fn remove_all_parts() {
    for path in parts().drain(..) {
        // It may just have been put in its place.
        let _ = fs::remove_file(path);
    }
}

fn parts() -> MutexGuard<'static, Vec<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}
