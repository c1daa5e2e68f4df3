//! Errors that must never happen: a received byte that differs from the sent one, or a broken rule.

use baton_bus::link::LinkError;
use baton_wire::Symbolic;

/// An end-to-end check failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A client received data that is not the next of its response.
    #[error("a client received {data:?} instead of {expected:?}")]
    #[allow(missing_docs)]
    WrongData { data: Symbolic, expected: Symbolic },
    /// A client received data that it had not asked for.
    #[error("a client received {data:?}, which it had not requested")]
    #[allow(missing_docs)]
    UnexpectedData { data: Symbolic },
    /// A connection ended in an orderly way before its last response was complete.
    #[error("the connection of client {client} ended before its last response was complete")]
    #[allow(missing_docs)]
    ShortResponse { client: u32 },
    /// A client received content of a file that was not current at any time between its request and the delivery.
    #[error(
        "a client received revisions {oldest} to {newest} of file {file} (now at {present}), which were not current while it waited"
    )]
    #[allow(missing_docs)]
    OutOfDate {
        file: u32,
        oldest: u32,
        newest: u32,
        present: u32,
    },
    /// Host and adapter violate the protocol between them.
    #[error(transparent)]
    Link(#[from] LinkError),
}
