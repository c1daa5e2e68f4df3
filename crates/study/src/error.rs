//! Errors of a store.

use std::io;
use std::path::{Path, PathBuf};

/// A store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused an operation.
    #[error("{}: cannot {doing}: {error}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A folder or file is not what it should be.
    #[error("{}: {found}; expected {expected}", path.display())]
    Other {
        /// The folder or file.
        path: PathBuf,
        /// What was found there.
        found: String,
        /// What was expected there.
        expected: &'static str,
    },
}

impl StoreError {
    /// Returns a function that converts an I/O error, with the operation and path that failed.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io {
            doing,
            path: path.to_owned(),
            error,
        }
    }
}
