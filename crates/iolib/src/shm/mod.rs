//! Links through shared memory, between two processes on one machine.
//!
//! The adapter creates the memory, and sends it to the host with the answer to its hello, over a Unix socket:
//!
//! | bytes | what |
//! |---|---|
//! | 0-63 | magic, version, geometry |
//! | 128-895 | indices of both rings, and the words that say who sleeps ([`baton_bus::shared::Control`]) |
//! | 1024- | slots of the request ring, slots of the response ring |
//! | then, from the next page on | the host's buffers |
//!
//! The file is sealed: neither side can shrink it and so make the other's accesses fail.
//!
//! A doorbell is a pipe, whose reading end can be waited for together with any other descriptors. An eventfd costs the same, but both sides
//! share its blocking mode: a host could fill it and make it blocking, and so hold up the adapter that serves all others. The two ends of a
//! pipe are independent. And the reading end reports the other side's death.
//!
//! The Unix socket stays open. The host passes files over it whose content the adapter is to send: 4 bytes with a number, little-endian, and
//! the descriptor. From then on the adapter reads [addresses](baton_bus::descriptor::FilePlace) in the file by itself.

mod adapter;
mod copy;
mod doorbell;
mod end;
mod files;
mod host;
mod lent;
mod listener;
mod mapping;
mod memory;
mod reader;

#[cfg(test)]
mod tests;

pub use adapter::ShmAdapter;
pub use copy::{read_words, write_words};
pub use host::ShmHost;
pub use listener::{AdapterListener, pair};
