//! Errors that prevent experiments or results.

use baton_study::StoreError;
use std::io;

/// Why a request gives no experiment, or an experiment gives no results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The input cannot be used. The message names the place, the error and the expected input.
    #[error("{0}")]
    BadInput(String),
    /// An operation failed.
    #[error("{0}")]
    Failed(String),
    /// The user interrupted the operation.
    #[error("interrupted")]
    Interrupted,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Io { doing, path, error } => {
                let path = path.display();
                Self::Failed(format!("{path}: cannot {doing}: {}", reason(&error)))
            }
            StoreError::Other { .. } => Self::BadInput(error.to_string()),
        }
    }
}

/// Describes why something cannot be read or written, without error numbers and names that mean nothing to the user.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at path ").next().unwrap_or_default();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}
