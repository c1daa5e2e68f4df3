//! Files that are being written. They are removed even by an exit that runs no destructors.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::{NamedTempFile, PersistError};

/// Paths of all parts, for an exit that runs no destructors.
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that will replace another one. It is removed if it is dropped before that, or by [`remove_all_parts`].
#[derive(Debug)]
pub struct Part {
    /// `None` after the file has replaced its target.
    file: Option<NamedTempFile>,
    path: PathBuf,
}

impl Part {
    /// Takes responsibility for `file`.
    pub fn new(file: NamedTempFile) -> Self {
        let path = file.path().to_owned();
        parts().push(path.clone());
        Self {
            file: Some(file),
            path,
        }
    }

    /// Returns the present path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces `target` by the file.
    ///
    /// # Errors
    /// Fails if the target cannot be replaced; the file is then removed.
    pub fn persist(mut self, target: &Path) -> Result<File, PersistError> {
        let file = self
            .file
            .take()
            .expect("the file is put in place only once");
        file.persist(target)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        parts().retain(|path| *path != self.path);
    }
}

/// Removes all parts, for an exit that runs no destructors.
pub fn remove_all_parts() {
    for path in parts().drain(..) {
        // This fails if the file has just replaced its target.
        let _ = fs::remove_file(path);
    }
}

fn parts() -> MutexGuard<'static, Vec<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}
