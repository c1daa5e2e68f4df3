//! Which block stays in a cache of equal slots, which one goes, and what the best choice would have been.
//!
//! - [`Replacement`] chooses the victim of a full cache; [`Admission`] says whether a block is worth a slot at all. Both
//!   are built from data ([`ReplacementConfig`], [`AdmissionConfig`]) and know neither files nor networks: the owner of
//!   the cache numbers its slots and names its blocks.
//! - [`StackDistance`] tells the hits of LRU caches of every size in one pass; [`Optimum`] those of the best policy that
//!   knows the future, and [`ByteBound`] bounds them where blocks are worth different numbers of bytes.
//! - [`Simulation`] replays a string of references through one cache and counts.
//!
//! All of it is deterministic: hashes have fixed seeds, ties are broken by age.

mod admission;
mod bits;
mod bound;
mod config;
mod fifo;
mod gdsf;
mod ghost;
mod lfu;
mod list;
mod lru;
mod optimum;
mod s3_fifo;
mod sieve;
mod simulate;
mod sketch;
mod stack;
#[cfg(test)]
mod tests;
mod w_tiny_lfu;

pub use admission::{AdmitAll, SecondRequest, TinyLfuAdmission};
pub use bound::ByteBound;
pub use config::{AdmissionConfig, Invalid, ReplacementConfig};
pub use fifo::Fifo;
pub use gdsf::Gdsf;
pub use lfu::Lfu;
pub use lru::Lru;
pub use optimum::Optimum;
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;
pub use simulate::{Hits, Reference, Simulation};
pub use stack::StackDistance;
pub use w_tiny_lfu::WTinyLfu;

use std::fmt::Debug;

/// Chooses which block goes when a cache of equal slots is full.
///
/// Slots are numbered from 0 by the cache's owner, below the number that the policy was built for. The owner reports
/// every block that it puts into a slot ([`inserted`](Self::inserted)), every hit ([`used`](Self::used)) and every block
/// that it throws out for reasons of its own ([`removed`](Self::removed)). When it needs room it asks for a
/// [`victim`](Self::victim), which the policy has then forgotten: the slot is empty.
pub trait Replacement: Debug + Send {
    /// A block was put into an empty slot. `key` is a stable name of the block, by which a policy may know it again
    /// after it was thrown out. `bytes` are what a hit on it saves: the last block of a file is partial.
    fn inserted(&mut self, slot: u32, key: u64, bytes: u32);

    /// A hit: the block in `slot` was used.
    fn used(&mut self, slot: u32);

    /// The owner emptied `slot` itself (invalidation, inclusion).
    fn removed(&mut self, slot: u32);

    /// Empties the slot of the block that should go. `None` if no slot is in use.
    fn victim(&mut self) -> Option<u32>;

    /// Checks the policy's own invariants.
    ///
    /// # Panics
    /// If one does not hold.
    fn check(&self);
}

/// Says whether a block that is not cached is worth a slot. Blocks that are asked for only once pollute a cache.
pub trait Admission: Debug + Send {
    /// A block that is not cached was asked for. True: put it into the cache. `full`: something else would have to go.
    fn admits(&mut self, key: u64, bytes: u32, full: bool) -> bool;

    /// A hit on `key`.
    fn used(&mut self, key: u64);
}
