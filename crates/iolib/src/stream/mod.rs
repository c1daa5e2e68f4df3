//! Links over a stream: TCP between two machines, or anything else that can be read and written without blocking.
//!
//! The stream is a sequence of messages. Each begins with its kind (one byte, and three bytes of zeros) and the length of the rest (four
//! bytes). All numbers are little-endian:
//!
//! | kind | from | the rest |
//! |---|---|---|
//! | descriptors | both | descriptors of 32 bytes, whole entries |
//! | read | adapter | transfer (4), length (4), address (8): the host is to send the data at this address |
//! | reply | host | transfer (4), data |
//! | write | adapter | address (8), data; precedes the descriptor that announces it |
//!
//! Unsent data waits in a buffer; while the buffer is full, no more descriptors are taken. Data that is not fetched stays in the socket, so
//! a slow side only slows down the other side of its own link.

mod adapter;
mod channel;
mod host;
mod listener;
mod message;

#[cfg(test)]
mod tests;

pub use adapter::{StreamAdapter, TcpAdapter};
pub use host::{StreamHost, TcpHost};
pub use listener::TcpAdapterListener;
