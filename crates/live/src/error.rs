//! Errors of live commands.

use crate::port::InterfaceError;
use crate::xdp::XdpError;
use std::io;

/// The error of a live command.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The user's request cannot be carried out; the message says what to do instead.
    #[error("{0}")]
    BadInput(String),
    /// An operation failed.
    #[error("{what}: {error}")]
    Failed {
        /// The operation.
        what: String,
        /// The error that the system reported.
        error: io::Error,
    },
}

impl LiveError {
    /// Returns a function that makes the error of an operation, described by `what`.
    pub fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Failed { what, error }
    }
}

impl From<InterfaceError> for LiveError {
    fn from(error: InterfaceError) -> Self {
        Self::BadInput(error.to_string())
    }
}

impl From<XdpError> for LiveError {
    fn from(error: XdpError) -> Self {
        Self::BadInput(error.to_string())
    }
}
