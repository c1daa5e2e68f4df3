//! Why there is no experiment, or are no results.

use baton_study::StoreError;
use std::io;

/// Why what the user said makes no experiment, or an experiment no results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It cannot be used; the message says what, where and what was expected.
    #[error("{0}")]
    BadInput(String),
    /// Something failed on the way.
    #[error("{0}")]
    Failed(String),
    /// The user does not want it any more.
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

/// Why something cannot be read or written, without numbers and names that say nothing to the user.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at path ").next().unwrap_or_default();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}
