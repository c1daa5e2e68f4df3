//! Transfers under way.

use baton_wire::Time;

use super::Transfer;
use crate::BytesByCategory;

/// A transfer and what is left of it.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Its bytes are those that are left.
    pub(super) transfer: Transfer,
    pub(super) arrival: Time,
    /// Their sum.
    left_bytes: u64,
}

impl Job {
    #[inline]
    pub(super) fn new(now: Time, transfer: Transfer) -> Self {
        Self {
            left_bytes: transfer.bytes.total(),
            transfer,
            arrival: now,
        }
    }

    pub(super) fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Moves `bytes` of it, and says what they were.
    pub(super) fn take(&mut self, bytes: u64) -> BytesByCategory {
        self.left_bytes -= bytes;
        if self.left_bytes == 0 {
            return std::mem::take(&mut self.transfer.bytes);
        }
        self.transfer.bytes.take(bytes)
    }
}
