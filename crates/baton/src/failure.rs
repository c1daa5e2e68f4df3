//! Unsuccessful ends of the program.

use baton_study::StoreError;
use std::process::ExitCode;

/// Why a command has no results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The input cannot be used. The message names the error, its place and the expected input. Exit code 2.
    #[error("error: {0}")]
    BadInput(String),
    /// An operation failed. Exit code 1.
    #[error("error: {0}")]
    Failed(String),
    /// The user interrupted the command. Exit code 130, as shells report for SIGINT.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// The user interrupted the command, and the results so far are kept, as the message says. Exit code 130.
    #[error("interrupted; {0}")]
    Paused(String),
}

impl Failure {
    /// Returns the exit code, which distinguishes the kinds of failures for scripts.
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
