//! Atomic words: those of the processor, or those of the model checker.

#[cfg(all(test, not(loom)))]
pub(super) use core::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
#[cfg(all(test, loom))]
pub(super) use loom::sync::atomic::AtomicU64;
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
