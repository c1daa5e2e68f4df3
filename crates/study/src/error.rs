//! What can be wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

/// A store cannot be used, or not any more.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refuses something.
    #[error("{}: cannot {doing}: {error}", path.display())]
    Io {
        /// What was to be done.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it was not.
        error: io::Error,
    },
    /// A folder is something else.
    #[error("{}: {found}; expected {expected}", path.display())]
    Other {
        /// The folder or file.
        path: PathBuf,
        /// What it is.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
}

impl StoreError {
    /// Says what failed.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io {
            doing,
            path: path.to_owned(),
            error,
        }
    }
}
