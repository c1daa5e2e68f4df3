//! Two rings of descriptors and two doorbells in memory that two processes share, as an algorithm over atomic words.
//!
//! What the memory is, and what a doorbell is, the caller knows: here are only the words ([`SharedMemory`]) and what is done with
//! them ([`End`], one for each side). So the same code runs between processes, between threads in tests, and under a
//! model checker, which tries all orders that the memory model allows (`RUSTFLAGS="--cfg loom"`).
//!
//! *Nothing that the other side writes is believed.* Indices and attention words are atomic and slots are only copied, so whatever it
//! does to them at whatever moment is a value. Each side keeps its own indices to itself and only tells the other; those of the other side are
//! checked against them. A descriptor is copied before anybody looks at it.
//!
//! *Doorbells are rung only for sleepers.* A side that goes to sleep says for what in its [`Attention`] word, and looks again before
//! it does; one that has moved an index looks at the word after that. A fence stands between the two steps of each, so one
//! of them sees the other, and no wake-up is lost.

mod atomic;
mod consumer;
mod end;
mod memory;
mod producer;

#[cfg(all(test, loom))]
mod model;
#[cfg(test)]
mod testing;
#[cfg(all(test, not(loom)))]
mod tests;

pub use end::{End, Put};
pub use memory::{Attention, Control, RingIndices, SharedMemory, Side};
