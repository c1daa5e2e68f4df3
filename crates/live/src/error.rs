//! What can go wrong between a command and its link.

use crate::port::InterfaceError;
use crate::xdp::XdpError;
use std::io;

/// Why a live command cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// What the user asked for cannot be done; the message says what to do instead.
    #[error("{0}")]
    BadInput(String),
    /// Something failed on the way.
    #[error("{what}: {error}")]
    Failed {
        /// What was being done.
        what: String,
        /// What the system said.
        error: io::Error,
    },
}

impl LiveError {
    /// The error of an operation, described by `what`.
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
