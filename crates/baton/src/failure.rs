//! How the program ends when it does not end well.

use std::process::ExitCode;

/// Why a command gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// What the user gave cannot be used; the message says what, where and what was expected. Exit code 2.
    #[error("error: {0}")]
    BadInput(String),
    /// Something failed on the way. Exit code 1.
    #[error("error: {0}")]
    Failed(String),
    /// The user interrupted it. Exit code 130, as shells give for SIGINT.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

impl Failure {
    /// The exit code that tells a script which of them it was.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::BadInput(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::from(1),
            Self::Interrupted => ExitCode::from(130),
        }
    }
}
