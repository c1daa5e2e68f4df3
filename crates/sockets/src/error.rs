//! What can go wrong, and what it is called in the terms of the standard library.

use baton_bus::descriptor::Status;
use baton_host::adapter::OsLayerConfigError;
use baton_iolib::ConnectError;
use std::io::{Error, ErrorKind};

/// Why there is no [`Driver`](crate::Driver). Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A parameter cannot work.
    #[error(transparent)]
    Config(#[from] OsLayerConfigError),
    /// There is no adapter to attach to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The system has no room for the files that waiting needs.
    #[error("no room for another epoll instance: {0}")]
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

/// The kind under which the standard library's sockets would report it.
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
