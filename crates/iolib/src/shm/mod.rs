//! A link through shared memory, between two processes of one machine.
//!
//! The adapter makes the memory and gives it to the host with the answer to its hello, over a Unix socket:
//!
//! | bytes | what |
//! |---|---|
//! | 0-63 | magic, version, geometry |
//! | 128-895 | indices of both rings and the words of who sleeps ([`baton_bus::shared::Control`]) |
//! | 1024- | slots of the requests' ring, slots of the responses' ring |
//! | then, from a page's beginning | the host's buffers |
//!
//! It is sealed: neither side can make it shorter and so let the other fall over its own access.
//!
//! A doorbell is a pipe, whose reading end can be waited for beside anything else. An eventfd costs the same, but whether it blocks is
//! a property that both sides share: a host could fill it, let it block, and hold up the adapter that all others use. The two
//! ends of a pipe are apart. And a reading end tells of the other side's death.

mod adapter;
mod copy;
mod doorbell;
mod end;
mod host;
mod listener;
mod mapping;
mod memory;

#[cfg(test)]
mod tests;

pub use adapter::ShmAdapter;
pub use copy::{read_words, write_words};
pub use host::ShmHost;
pub use listener::{AdapterListener, pair};
