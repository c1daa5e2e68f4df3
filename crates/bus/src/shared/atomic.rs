//! Atomic words: the processor's, or the model checker's.

#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
