//! How the program ends when it does not end well.

use baton_study::StoreError;
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
    /// The user interrupted it, and what was done is kept, as the message says. Exit code 130.
    #[error("interrupted; {0}")]
    Paused(String),
}

impl Failure {
    /// The exit code that tells a script which of them it was.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::BadInput(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::from(1),
            Self::Interrupted | Self::Paused(_) => ExitCode::from(130),
        }
    }
}

impl From<baton_config::Failure> for Failure {
    fn from(failure: baton_config::Failure) -> Self {
        match failure {
            baton_config::Failure::BadInput(message) => Self::BadInput(message),
            baton_config::Failure::Failed(message) => Self::Failed(message),
            baton_config::Failure::Interrupted => Self::Interrupted,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        baton_config::Failure::from(error).into()
    }
}
