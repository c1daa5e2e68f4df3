//! Atomic words: the processor's, or the model checker's.

#[cfg(all(test, not(loom)))]
pub(super) use core::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(all(test, loom))]
pub(super) use loom::sync::atomic::AtomicU64;
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, Ordering, fence};
