//! Cache policies: which block stays in a cache of equal slots, which one is evicted, and what the best choice would have been.
//!
//! Policies are built from data, and know neither files nor networks: the owner of the cache numbers its slots and names its blocks.
//! Everything is deterministic: hashes have fixed seeds, and age breaks ties.
//!
//! | to find | look in |
//! |---|---|
//! | which block a full cache evicts | [`Replacement`], [`ReplacementConfig`]; a file for each policy, such as `src/lru.rs` |
//! | whether a block is worth a slot at all | [`Admission`], [`AdmissionConfig`] |
//! | hits of LRU caches of every size, in one pass | [`StackDistance`] |
//! | hits of the best policy, which knows the future | [`Optimum`] |
//! | their upper bound, if blocks are worth different numbers of bytes | [`ByteBound`] |
//! | hits of one cache that replays a string of references | [`Simulation`] |
//! | models that each policy is compared with | `src/tests/models.rs` |

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

/// Chooses the block to evict when a cache of equal slots is full.
///
/// The cache's owner numbers the slots from 0, below the number for which the policy was built. The owner reports every block that it puts
/// into a slot ([`inserted`](Self::inserted)), every hit ([`used`](Self::used)) and every block that it removes for reasons of its own
/// ([`removed`](Self::removed)). When it needs a slot, it asks for a [`victim`](Self::victim), which the policy then forgets: the slot is
/// empty.
pub trait Replacement: Debug + Send {
    /// Records that a block was put into an empty slot. `key` is a stable name of the block, by which a policy may recognize the block
    /// after it was evicted. `bytes` are what a hit on the block saves: the last block of a file is partial.
    fn inserted(&mut self, slot: u32, key: u64, bytes: u32);

    /// Records a hit on the block in `slot`.
    fn used(&mut self, slot: u32);

    /// Records that the owner emptied `slot` itself (invalidation, inclusion).
    fn removed(&mut self, slot: u32);

    /// Chooses the block to evict and empties its slot. Returns `None` if no slot is in use.
    fn victim(&mut self) -> Option<u32>;

    /// Asserts the policy's own invariants.
    ///
    /// # Panics
    /// Panics if an invariant is violated.
    fn check(&self);
}

/// Decides whether a block that is not cached is worth a slot. Blocks that are requested only once pollute a cache.
pub trait Admission: Debug + Send {
    /// Decides whether to cache a requested block that is not in the cache. `full` says whether another block would have to be evicted.
    fn admits(&mut self, key: u64, bytes: u32, full: bool) -> bool;

    /// Records a hit on `key`.
    fn used(&mut self, key: u64);
}
