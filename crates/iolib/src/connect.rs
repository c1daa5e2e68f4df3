//! Errors of attaching an application to an adapter.

use crate::handshake::Refusal;
use std::io;
use std::time::Duration;

/// Maximum time to wait for an adapter; a running one answers sooner.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why there is no link to an adapter. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody could be reached at the address.
    #[error("{0}")]
    Unreachable(String),
    /// The adapter refuses the application.
    #[error("the adapter refuses the application: {0}")]
    Refused(#[from] Refusal),
    /// There was no answer, or it broke off.
    #[error("the adapter did not answer: {0}; check whether it is running")]
    NoAnswer(io::Error),
    /// The answer is not one that an adapter gives.
    #[error("the process that answered is not an adapter: {0}")]
    NoAdapter(&'static str),
    /// This process lacks memory or descriptors for the link.
    #[error("no memory or file descriptors for the link: {0}")]
    NoRoom(io::Error),
}
