//! Errors that prevent a test.

use baton_live::LiveError;
use baton_live::port::InterfaceError;
use baton_live::xdp::XdpError;
use std::io;

/// Reason why a trial could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TesterError {
    /// The request cannot be fulfilled; the message says what to do instead.
    #[error("{0}")]
    BadInput(String),
    /// The user interrupted the test.
    #[error("interrupted")]
    Interrupted,
    /// An interface or a file failed.
    #[error("{0}")]
    Failed(String),
}

impl From<InterfaceError> for TesterError {
    fn from(error: InterfaceError) -> Self {
        Self::BadInput(error.to_string())
    }
}

impl From<XdpError> for TesterError {
    fn from(error: XdpError) -> Self {
        Self::BadInput(error.to_string())
    }
}

impl From<LiveError> for TesterError {
    fn from(error: LiveError) -> Self {
        match error {
            LiveError::BadInput(message) => Self::BadInput(message),
            LiveError::Failed { .. } => Self::Failed(error.to_string()),
        }
    }
}

impl From<io::Error> for TesterError {
    fn from(error: io::Error) -> Self {
        Self::Failed(format!("an interface can no longer be used: {error}"))
    }
}
