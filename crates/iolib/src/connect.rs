//! Why an application is not attached to an adapter.

use crate::handshake::Refusal;
use std::io;
use std::time::Duration;

/// An adapter that lives answers sooner.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why there is no link to an adapter. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody could be reached.
    #[error("{0}")]
    Unreachable(String),
    /// The adapter refuses.
    #[error("the adapter refuses: {0}")]
    Refused(#[from] Refusal),
    /// There was no answer, or it broke off.
    #[error("no answer: {0}; see whether the adapter is alive")]
    NoAnswer(io::Error),
    /// What came is not what an adapter gives.
    #[error("what answers there is no adapter: {0}")]
    NoAdapter(&'static str),
    /// This process has no room for the link.
    #[error("no room for the link: {0}")]
    NoRoom(io::Error),
}
