//! Two rings of descriptors and two doorbells in memory shared by two processes, as an algorithm over atomic words.
//!
//! The caller provides the memory and the doorbells. This module contains only the words ([`SharedMemory`]) and the operations on them
//! ([`End`], one for each side). The same code therefore runs between processes, between threads in tests, and under a model checker, which
//! tries all orders that the memory model allows (`RUSTFLAGS="--cfg loom"`).
//!
//! *The other side is not trusted.* Indices and attention words are atomic and slots are only copied, so any concurrent change by the other
//! side results in some value, never in undefined behaviour. Each side keeps private copies of its own indices, publishes them, and checks
//! the other side's indices against them. A descriptor is copied before it is inspected.
//!
//! *Doorbells are rung only for sleepers.* A side that is about to sleep announces what it waits for in its [`Attention`] word, and then
//! checks the indices again. A side that has moved an index then checks the other's word. A fence separates the two steps on either side,
//! so at least one of them sees the other, and no wake-up is lost. A [`Mailbox`] between threads of one process follows the same rule.

mod atomic;
mod consumer;
mod end;
mod mailbox;
mod memory;
mod producer;

#[cfg(all(test, loom))]
mod model;
#[cfg(test)]
mod testing;
#[cfg(all(test, not(loom)))]
mod tests;

pub use end::{End, Put};
pub use mailbox::{Mailbox, Sender, Undelivered, mailbox};
pub use memory::{Attention, Control, RingIndices, SharedMemory, Side};
