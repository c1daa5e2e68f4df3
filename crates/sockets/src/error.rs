//! Errors, and the standard library's kinds for them.

use baton_bus::descriptor::Status;
use baton_host::adapter::OsLayerConfigError;
use baton_iolib::ConnectError;
use std::io::{Error, ErrorKind};

/// Why a [`Driver`](crate::Driver) could not be opened. The texts say what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A parameter is invalid.
    #[error(transparent)]
    Config(#[from] OsLayerConfigError),
    /// There is no adapter to attach to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The system has no resources for the descriptors that waiting needs.
    #[error("cannot create another epoll instance: {0}")]
    NoRoom(Error),
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        let kind = match &error {
            OpenError::Config(_) => ErrorKind::InvalidInput,
            OpenError::Connect(ConnectError::Unreachable(_)) => ErrorKind::NotFound,
            OpenError::Connect(ConnectError::Refused(_)) => ErrorKind::ConnectionRefused,
            OpenError::Connect(_) => ErrorKind::NetworkDown,
            OpenError::NoRoom(error) => error.kind(),
        };
        Self::new(kind, error)
    }
}

/// Returns the kind under which the standard library's sockets would report the status.
pub fn kind_of(status: Status) -> ErrorKind {
    match status {
        Status::AddressInUse => ErrorKind::AddrInUse,
        Status::AddressNotAvailable | Status::NoPort => ErrorKind::AddrNotAvailable,
        Status::Refused => ErrorKind::ConnectionRefused,
        Status::Reset => ErrorKind::ConnectionReset,
        Status::TimedOut => ErrorKind::TimedOut,
        Status::Unreachable => ErrorKind::HostUnreachable,
        Status::Aborted | Status::Cancelled => ErrorKind::ConnectionAborted,
        Status::EndOfStream => ErrorKind::UnexpectedEof,
        Status::BadValue => ErrorKind::InvalidInput,
        Status::Shut => ErrorKind::BrokenPipe,
        Status::TooManySockets | Status::TooManyRequests => ErrorKind::QuotaExceeded,
        _ => ErrorKind::Other,
    }
}

pub(crate) fn error_of(status: Status) -> Error {
    Error::new(kind_of(status), status)
}
