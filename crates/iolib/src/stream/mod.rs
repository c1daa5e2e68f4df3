//! A link over a stream: TCP between two machines, or anything else that can be read and written without blocking.
//!
//! Messages follow each other. Each begins with its kind (one byte, and three of zeros) and the length of the rest (four bytes),
//! all numbers little-endian:
//!
//! | kind | from | the rest |
//! |---|---|---|
//! | descriptors | both | descriptors of 32 bytes, whole entries |
//! | read | adapter | transfer (4), length (4), address (8): the host is to send what stands there |
//! | reply | host | transfer (4), data |
//! | write | adapter | address (8), data: comes before the descriptor that tells of it |
//!
//! What cannot be sent waits in a buffer; while that is full, descriptors are not taken. What is not got stays
//! in the socket, so that a slow side is felt by the other and by nobody else.

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
